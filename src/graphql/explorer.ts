/**
 * GraphiQL for browsers that open /graphql: a page of a kilobyte that loads a script, a style sheet and the schema. These are named
 * by their content, so browsers cache them and refetch only the page (docs/decisions/graphiql-from-the-gateway.md). Like the
 * reference of the REST face it is public: no key is checked before the page makes a request.
 */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import { fileURLToPath } from "node:url";
import { type GraphQLSchema, introspectionFromSchema } from "graphql";
import { notFound } from "../errors.js";
import { type Asset, builtAsset, type Coding, sendAsset, sendHead } from "../http/built-assets.js";
import type { Exchange } from "../http/exchange.js";
import { MARK_URL } from "../lib/design-tokens.js";

/** The folder of the built script and style sheet. */
const BUILT = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./explorer/generated/" : "./explorer/", import.meta.url));

interface BuiltFile {
  readonly name: string;
  readonly integrity: string;
}

interface Loaded {
  readonly page: Buffer;
  readonly pageTag: string;
  readonly policy: string;
  readonly assets: ReadonlyMap<string, Asset>;
}

export interface ExplorerOptions {
  /** The path of the GraphQL face, which serves the page. */
  readonly path: string;
  /** The schema shown with the page. Null: it is read over GraphQL with the caller's rights. */
  readonly schema: GraphQLSchema | null;
}

export class Explorer {
  readonly #assetsPath: string;
  #loading: Promise<Loaded> | null = null;

  constructor(private readonly options: ExplorerOptions) {
    this.#assetsPath = `${options.path}/assets/`;
  }

  /** Whether a request for this path is for the explorer rather than for GraphQL. */
  answers({ method, headers }: IncomingMessage, path: string): boolean {
    if (path === this.options.path) return method === "GET" && (headers.accept?.includes("text/html") ?? false);
    return path.startsWith(this.#assetsPath) && (method === "GET" || method === "HEAD");
  }

  /** Rejects with NOT_FOUND for a file that is not of this build. */
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
      [script.name, builtAsset(BUILT + script.name, "text/javascript; charset=utf-8")],
      [style.name, builtAsset(BUILT + style.name, "text/css; charset=utf-8")],
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

/** Allows only the script whose digest the page states, and no other origin. */
function policyOf(script: BuiltFile): string {
  return [
    "default-src 'none'",
    `script-src '${script.integrity}'`,
    // The editor sets styles from its script, which the policy allows. It writes no style elements.
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");
}

function layOut(script: BuiltFile, style: BuiltFile, assetsPath: string, schemaUrl: string | null): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1, interactive-widget=resizes-content">
<meta name="color-scheme" content="light dark">
<title>GraphiQL · Sluice</title>
<link rel="icon" href="${MARK_URL}">
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

/** Compressed once: as a GraphQL answer it would be a third of a megabyte at every visit. */
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
