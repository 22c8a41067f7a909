/** Secrets that are replaced while processes run. */
import { createHmac, timingSafeEqual } from "node:crypto";

/** The secrets of one purpose, of 32 bytes each. The first one signs and seals; all are accepted. */
export type RotatingSecret = () => readonly [Buffer, ...Buffer[]];

/** HMAC-SHA-256 under the secret that signs. */
export function signWith(secret: RotatingSecret, content: string | Uint8Array): Buffer {
  return hmacOf(secret()[0], content);
}

/** Whether one of the accepted secrets made the signature. */
export function isSignedWith(secret: RotatingSecret, content: string | Uint8Array, signature: Uint8Array): boolean {
  return secret().some((key) => {
    const own = hmacOf(key, content);
    return own.length === signature.length && timingSafeEqual(own, signature);
  });
}

function hmacOf(key: Buffer, content: string | Uint8Array): Buffer {
  return createHmac("sha256", key).update(content).digest();
}
