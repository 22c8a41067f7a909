/** Built files for browsers: named by content hash, so that browsers cache them forever, and stored compressed. */
import { readFile } from "node:fs/promises";
import type { OutgoingHttpHeaders } from "node:http";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import type { AnswerType } from "../lib/content-types.js";
import type { Exchange } from "./exchange.js";

const IMMUTABLE = "public, max-age=31536000, immutable";

/** For files compressed on first request: the best quality would take ten times as long for a tenth fewer bytes. */
const BROTLI = { [constants.BROTLI_PARAM_QUALITY]: 9 };

/** Codings stored for each file, smallest first, with their file extensions. */
const CODINGS = [
  { name: "br", ending: ".br", compress: (bytes: Uint8Array) => promisify(brotliCompress)(bytes, { params: BROTLI }) },
  { name: "gzip", ending: ".gz", compress: (bytes: Uint8Array) => promisify(gzip)(bytes) },
] as const;
export type Coding = (typeof CODINGS)[number];

export interface Asset {
  readonly type: AnswerType;
  /** Reads the bytes in a coding; null: uncompressed. */
  readonly read: (coding: Coding | null) => Promise<Uint8Array>;
}

export async function sendAsset(exchange: Exchange, name: string, { type, read }: Asset): Promise<void> {
  const coding = CODINGS.find((known) => exchange.req.acceptsEncodings(known.name) === known.name) ?? null;
  // An ETag identifies the bytes sent, which differ by coding.
  const tag = `"${coding === null ? name : `${name}.${coding.name}`}"`;
  const headers: OutgoingHttpHeaders = { "Cache-Control": IMMUTABLE, ETag: tag, Vary: "Accept-Encoding" };
  if (exchange.isKept(tag)) return sendHead(exchange, 304, headers);
  const bytes = await read(coding);
  if (coding !== null) headers["Content-Encoding"] = coding.name;
  exchange.setHeaders(headers);
  if (exchange.req.method === "HEAD") sendHead(exchange, 200, { "Content-Type": type, "Content-Length": bytes.byteLength });
  else exchange.sendBytes(bytes, type);
}

export function sendHead(exchange: Exchange, status: number, headers: OutgoingHttpHeaders): void {
  exchange.writeHead(status, headers);
  exchange.res.end();
}

/** `path`: the file; its compressed forms are beside it. */
export function builtAsset(path: string, type: AnswerType): Asset {
  return { type, read: (coding) => readFile(coding === null ? path : path + coding.ending) };
}
