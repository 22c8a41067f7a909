/**
 * The description of the REST face for programs (`/openapi.json`) and for people (`/docs`), and the documentation as Markdown. Public,
 * without reading a key.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import * as z from "zod";
import { notFound } from "../../errors.js";
import type { Exchange } from "../../http/exchange.js";
import type { AnswerType } from "../../lib/content-types.js";
import { openEndpoint } from "../open-endpoint.js";
import { json, writtenJson } from "../openapi/answer.js";
import { createOpenApiDocument } from "../openapi/document.js";
import type { RecordedRoute } from "../openapi/record.js";
import { listGuides, readGuide } from "../reference/guides.js";
import { PAGE, START, START_SCRIPT, STYLE_SHEET, STYLES } from "../reference/page.js";
import type { Route } from "../route.js";

/** Files of Swagger UI that the page loads. */
const ASSETS: ReadonlyMap<string, AnswerType> = new Map(
  Object.entries({
    "swagger-ui.css": "text/css; charset=utf-8",
    "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "favicon-32x32.png": "image/png",
  } as const),
);
const ASSET_MAX_AGE_SECONDS = 86_400;

/** Swagger UI sets styles by script, has icons as data URLs, and shows images and audio of answers; all from this host. */
const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** `recorded` is read on request, after all routes were added. */
export function addDocsRoutes(route: Route, recorded: readonly RecordedRoute[], baseUrl: () => string): void {
  let document: Buffer | null = null;
  let guides: Promise<string> | null = null;
  route("/openapi.json", {
    GET: openEndpoint({
      id: "getOpenApi",
      tag: "Service",
      summary: "Returns this document.",
      answer: writtenJson(json("OpenApi", z.looseObject({ openapi: z.string() }))),
      handler: (exchange) => {
        document ??= Buffer.from(JSON.stringify(createOpenApiDocument(recorded)));
        exchange.sendBytes(document, "application/json; charset=utf-8");
      },
    }),
  });
  route("/docs", {
    GET: openEndpoint({
      id: null,
      handler: (exchange) => {
        exchange.setHeaders({
          "Content-Security-Policy": PAGE_POLICY,
          "Referrer-Policy": "no-referrer",
        });
        exchange.sendBytes(Buffer.from(PAGE), "text/html; charset=utf-8");
      },
    }),
  });
  route("/docs/:asset", { GET: openEndpoint({ id: null, handler: sendAsset }) });
  route("/docs/spec/:page", {
    GET: openEndpoint({ id: null, handler: (exchange) => sendGuide(exchange, `spec/${exchange.parameter("page")}`) }),
  });
  route("/llms.txt", {
    GET: openEndpoint({
      id: null,
      handler: async (exchange) => {
        guides ??= listGuides(baseUrl()).catch((error: unknown) => {
          guides = null;
          throw error;
        });
        exchange.sendBytes(Buffer.from(await guides), "text/plain; charset=utf-8");
      },
    }),
  });
}

async function sendGuide(exchange: Exchange, name: string): Promise<void> {
  exchange.sendBytes(await readGuide(name), "text/markdown; charset=utf-8");
}

async function sendAsset(exchange: Exchange): Promise<void> {
  const name = exchange.parameter("asset");
  if (name.endsWith(".md")) return sendGuide(exchange, name);
  exchange.setHeaders({ "Cache-Control": `public, max-age=${ASSET_MAX_AGE_SECONDS}` });
  if (name === START_SCRIPT) return exchange.sendBytes(Buffer.from(START), "text/javascript; charset=utf-8");
  if (name === STYLES) return exchange.sendBytes(Buffer.from(STYLE_SHEET), "text/css; charset=utf-8");
  const type = ASSETS.get(name);
  if (type === undefined) throw notFound("path");
  const path = join(dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json")), name);
  exchange.writeHead(200, { "Content-Type": type, "Content-Length": (await stat(path)).size });
  if (exchange.req.method === "HEAD") exchange.res.end();
  else await pipeline(createReadStream(path), exchange.res).catch(() => undefined);
}
