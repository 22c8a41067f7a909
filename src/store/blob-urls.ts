/**
 * Signed addresses at the gateway for blobs on disk, like an object store's presigned ones: an address allows one kind of request until it
 * expires. The signature covers everything but the host.
 *
 *   <media host>/blobs/<folder>/<name>?expires=<seconds since 1970>&type=...&size=...&signature=... PUT
 *   <media host>/blobs/<folder>/<name>?expires=...&type=...&disposition=...&cache=...&signature=... GET and HEAD
 */
import type { Clock } from "../lib/clock.js";
import { isSignedWith, type RotatingSecret, signWith } from "../lib/rotating-secret.js";
import { type PresignedUpload, type PresignGetOptions, type PresignPutOptions, splitBlobKey } from "./blobs.js";

export interface SignedUpload {
  readonly contentType: string;
  readonly sizeBytes: number;
}

export interface SignedDownload {
  readonly contentType: string;
  readonly disposition: string;
  readonly cacheControl: string | null;
}

/** Why an address is refused: expired, or never valid. */
export type BadBlobUrl = "expired" | "forged";

/** The signed parameters, in this order; absent ones are signed as absent. */
const SIGNED_PARAMETERS = ["expires", "type", "size", "disposition", "cache"] as const;

export class BlobUrls {
  constructor(
    private readonly secret: RotatingSecret,
    /** Address of the media host, without a trailing slash; read for each address. */
    private readonly mediaUrl: () => string,
    private readonly clock: Clock,
  ) {}

  upload(key: string, { contentType, sizeBytes, expiresInSeconds }: PresignPutOptions): PresignedUpload {
    const url = this.sign("PUT", key, expiresInSeconds, { type: contentType, size: String(sizeBytes) });
    return { url, method: "PUT", headers: { "Content-Type": contentType } };
  }

  download(key: string, { expiresInSeconds, contentType, disposition, cacheControl }: PresignGetOptions): string {
    const parameters = { type: contentType, disposition, ...(cacheControl !== undefined && { cache: cacheControl }) };
    return this.sign("GET", key, expiresInSeconds, parameters);
  }

  /** The upload that a PUT at this address allows. */
  readUpload(key: string, query: URLSearchParams): SignedUpload | BadBlobUrl {
    return this.check("PUT", key, query) ?? { contentType: query.get("type") ?? "", sizeBytes: Number(query.get("size")) };
  }

  /** The answer to a GET at this address. */
  readDownload(key: string, query: URLSearchParams): SignedDownload | BadBlobUrl {
    const bad = this.check("GET", key, query);
    if (bad) return bad;
    return { contentType: query.get("type") ?? "", disposition: query.get("disposition") ?? "", cacheControl: query.get("cache") };
  }

  private sign(method: "PUT" | "GET", key: string, expiresInSeconds: number, parameters: Readonly<Record<string, string>>): string {
    splitBlobKey(key);
    const expires = Math.floor(this.clock.now().getTime() / 1000) + expiresInSeconds;
    const query = new URLSearchParams({ expires: String(expires), ...parameters });
    query.set("signature", signWith(this.secret, signedText(method, key, query)).toString("base64url"));
    return `${this.mediaUrl()}/blobs/${key}?${query}`;
  }

  private check(method: "PUT" | "GET", key: string, query: URLSearchParams): BadBlobUrl | null {
    const given = Buffer.from(query.get("signature") ?? "", "base64url");
    if (!isSignedWith(this.secret, signedText(method, key, query), given)) return "forged";
    return Number(query.get("expires")) * 1000 > this.clock.now().getTime() ? null : "expired";
  }
}

/** JSON separates the parts unambiguously. */
function signedText(method: "PUT" | "GET", key: string, query: URLSearchParams): string {
  return JSON.stringify([method, key, ...SIGNED_PARAMETERS.map((name) => query.get(name))]);
}
