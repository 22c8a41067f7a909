/**
 * GraphiQL for browsers that open /graphql: a page of a kilobyte, and the script, the style sheet and the schema that it loads from here.
 * These are named by what they hold, so browsers keep them and ask for the page alone (docs/decisions/graphiql-from-the-gateway.md).
 * Like the reference of the REST face it is open to all: no key is looked at before the page asks something.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { type GraphQLSchema, introspectionFromSchema } from "graphql";
import { notFound } from "../errors.js";
import type { Exchange } from "../http/exchange.js";
import type { AnswerType } from "../lib/content-types.js";

/** Where the build has put its script and its style sheet. */
const BUILT = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./explorer/generated/" : "./explorer/", import.meta.url));
const IMMUTABLE = "public, max-age=31536000, immutable";

/** Of what is compressed by whoever asks first: at the best quality a tenth of the bytes less would take ten times as long. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 9 };

/** The codings that are kept of each file, the smallest first, with the ending of their names. */
const CODINGS = [
  { name: "br", ending: ".br", compress: (bytes: Uint8Array) => promisify(brotliCompress)(bytes, { params: BROTLI }) },
  { name: "gzip", ending: ".gz", compress: (bytes: Uint8Array) => promisify(gzip)(bytes) },
] as const;
type Coding = (typeof CODINGS)[number];

/** What the build says of a file. */
interface BuiltFile {
  readonly name: string;
  readonly integrity: string;
}

interface Asset {
  readonly type: AnswerType;
  /** Its bytes as they are sent; null: as they are. */
  readonly read: (coding: Coding | null) => Promise<Uint8Array>;
}

interface Loaded {
  readonly page: Buffer;
  readonly pageTag: string;
  readonly policy: string;
  readonly assets: ReadonlyMap<string, Asset>;
}

export interface ExplorerOptions {
  /** The path of the GraphQL face, where the page is. */
  readonly path: string;
  /** Shown with the page; null: whoever asks for it over GraphQL sees what they may. */
  readonly schema: GraphQLSchema | null;
}

export class Explorer {
  readonly #assetsPath: string;
  #loading: Promise<Loaded> | null = null;

  constructor(private readonly options: ExplorerOptions) {
    this.#assetsPath = `${options.path}/assets/`;
  }

  /** Whether a request for this path is for the explorer rather than for the graph. */
  answers({ method, headers }: IncomingMessage, path: string): boolean {
    if (path === this.options.path) return method === "GET" && (headers.accept?.includes("text/html") ?? false);
    return path.startsWith(this.#assetsPath) && (method === "GET" || method === "HEAD");
  }

  /** Rejects with NOT_FOUND for a file that is none of this build. */
  async answer(exchange: Exchange, path: string): Promise<void> {
    const loaded = await this.#load();
    if (path === this.options.path) return sendPage(exchange, loaded);
    const name = path.slice(this.#assetsPath.length);
    const asset = loaded.assets.get(name);
    if (!asset) throw notFound("path");
    exchange.note.route = `${this.#assetsPath}:asset`;
    await sendAsset(exchange, name, asset);
  }

  #load(): Promise<Loaded> {
    this.#loading ??= this.#read().catch((error: unknown) => {
      this.#loading = null;
      throw error;
    });
    return this.#loading;
  }

  async #read(): Promise<Loaded> {
    const { script, style } = JSON.parse(await readFile(`${BUILT}manifest.json`, "utf8")) as Record<"script" | "style", BuiltFile>;
    const assets = new Map<string, Asset>([
      [script.name, builtAsset(script, "text/javascript; charset=utf-8")],
      [style.name, builtAsset(style, "text/css; charset=utf-8")],
    ]);
    let schemaUrl: string | null = null;
    if (this.options.schema) {
      const [name, asset] = schemaAsset(this.options.schema);
      assets.set(name, asset);
      schemaUrl = this.#assetsPath + name;
    }
    const page = Buffer.from(layOut(script, style, this.#assetsPath, schemaUrl));
    return { page, pageTag: `"${digestOf(page)}"`, policy: policyOf(script), assets };
  }
}

/** Nothing may run but the one script whose digest the page states, and nothing comes from elsewhere or goes there. */
function policyOf(script: BuiltFile): string {
  return [
    "default-src 'none'",
    `script-src '${script.integrity}'`,
    // The editor sets styles on its elements from its script, which a policy allows; it writes none into the page.
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

const ICON =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect width='16' height='9' rx='3' fill='%230b5cad'/%3E%3Crect y='8' width='16' height='8' rx='3' fill='%23d3dae4'/%3E%3C/svg%3E";

function layOut(script: BuiltFile, style: BuiltFile, assetsPath: string, schemaUrl: string | null): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<meta name="color-scheme" content="light dark">
<title>GraphiQL · Sluice</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="${assetsPath}${style.name}" integrity="${style.integrity}">
<script type="module" src="${assetsPath}${script.name}" integrity="${script.integrity}"></script>${
    schemaUrl === null ? "" : `\n<link rel="preload" as="fetch" crossorigin href="${schemaUrl}">`
  }
</head>
<body>
<div id="explorer"${schemaUrl === null ? "" : ` data-schema="${schemaUrl}"`}><noscript>GraphiQL needs JavaScript.</noscript></div>
</body>
</html>
`;
}

function sendPage(exchange: Exchange, { page, pageTag, policy }: Loaded): void {
  exchange.hideFromScripts();
  const headers: OutgoingHttpHeaders = {
    "Cache-Control": "private, no-cache",
    ETag: pageTag,
    Vary: "Accept",
    "Content-Security-Policy": policy,
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
  };
  if (exchange.isKept(pageTag)) {
    sendHead(exchange, 304, headers);
    return;
  }
  exchange.setHeaders(headers);
  exchange.sendBytes(page, "text/html; charset=utf-8");
}

async function sendAsset(exchange: Exchange, name: string, { type, read }: Asset): Promise<void> {
  const coding = CODINGS.find((known) => exchange.req.acceptsEncodings(known.name) === known.name) ?? null;
  // A tag is of the bytes that are sent, and each coding has others.
  const tag = `"${coding === null ? name : `${name}.${coding.name}`}"`;
  const headers: OutgoingHttpHeaders = { "Cache-Control": IMMUTABLE, ETag: tag, Vary: "Accept-Encoding" };
  if (exchange.isKept(tag)) return sendHead(exchange, 304, headers);
  const bytes = await read(coding);
  if (coding !== null) headers["Content-Encoding"] = coding.name;
  exchange.setHeaders(headers);
  if (exchange.req.method === "HEAD") sendHead(exchange, 200, { "Content-Type": type, "Content-Length": bytes.byteLength });
  else exchange.sendBytes(bytes, type);
}

function sendHead(exchange: Exchange, status: number, headers: OutgoingHttpHeaders): void {
  exchange.writeHead(status, headers);
  exchange.res.end();
}

function builtAsset({ name }: BuiltFile, type: AnswerType): Asset {
  return { type, read: (coding) => readFile(`${BUILT}${name}${coding === null ? "" : coding.ending}`) };
}

/** Compressed once for all: as an answer of the graph it would be a third of a megabyte for every visit. */
function schemaAsset(schema: GraphQLSchema): readonly [name: string, asset: Asset] {
  const bytes = Buffer.from(JSON.stringify({ data: introspectionFromSchema(schema) }));
  const compressed = new Map<string, Promise<Uint8Array>>();
  const compress = ({ name, compress }: Coding): Promise<Uint8Array> => {
    const known = compressed.get(name) ?? compress(bytes);
    compressed.set(name, known);
    return known;
  };
  const read = async (coding: Coding | null) => (coding === null ? bytes : compress(coding));
  return [`schema-${digestOf(bytes)}.json`, { type: "application/json; charset=utf-8", read }];
}

function digestOf(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}
