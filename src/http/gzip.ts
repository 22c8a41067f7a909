/** Compresses answers that are made for one browser. Files of the build are stored compressed (`built-assets.ts`), event streams never are. */
import type { OutgoingHttpHeaders } from "node:http";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Request } from "express";

/** Below this size, in bytes, compression saves no packet. */
const BYTES_MIN = 1_024;

/** The body, compressed when it is long enough and the client takes gzip, with the headers that say so. */
export async function gzipFor(req: Request, body: Buffer): Promise<{ readonly body: Buffer; readonly headers: OutgoingHttpHeaders }> {
  if (body.byteLength < BYTES_MIN) return { body, headers: {} };
  const headers = { Vary: "Accept-Encoding" };
  if (req.acceptsEncodings("gzip") !== "gzip") return { body, headers };
  return { body: await promisify(gzip)(body), headers: { ...headers, "Content-Encoding": "gzip" } };
}
