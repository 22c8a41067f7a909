/**
 * The key ring: the secrets of a deployment, stored sealed under each accepted ENCRYPTION_KEY
 * (docs/decisions/encryption-key-rotation.md). It is one row, replaced by compare-and-swap.
 */
import { createHash, hkdfSync, randomBytes } from "node:crypto";
import * as z from "zod";
import { ownValue } from "../../lib/own-values.js";
import { SecretBox } from "./secret-box.js";

const root = z.object({
  secret: z.string().min(1),
  /** Signs and seals from this time on, in milliseconds since 1970. It is accepted before. */
  usedFrom: z.number(),
});
const keyRing = z.object({
  /** The root of hashes of credentials. It stays the same for the life of the database. */
  hashRoot: z.string().min(1),
  /** Roots of signatures and sealed values, newest first. */
  roots: z.tuple([root], root),
});
export type KeyRing = z.output<typeof keyRing>;

/** By the fingerprint of the encryption key. */
const wraps = z.record(z.string(), z.string());
export type Wraps = z.output<typeof wraps>;

const PLACE = { table: "deployment_setting", rowId: "key-ring", column: "value" };
const ROOT_BYTES = 32;
const FINGERPRINT_CHARS = 16;

/** 32 bytes for each purpose. */
export function deriveFrom(secret: string, purpose: string): Buffer {
  return Buffer.from(hkdfSync("sha256", secret, "", `sluice ${purpose}`, 32));
}

export function createRoot(): string {
  return randomBytes(ROOT_BYTES).toString("base64url");
}

export function fingerprintOf(secret: Buffer): string {
  return createHash("sha256").update(secret).digest("hex").slice(0, FINGERPRINT_CHARS);
}

/** Names an encryption key in the database, without telling it. */
export function fingerprintOfKey(encryptionKey: string): string {
  return fingerprintOf(deriveFrom(encryptionKey, "key ring"));
}

/** The stored text. */
export function sealRing(ring: KeyRing, encryptionKeys: readonly string[]): string {
  const text = JSON.stringify(ring);
  const sealed = encryptionKeys.map((key) => [fingerprintOfKey(key), Buffer.from(boxOf(key).seal(PLACE, text)).toString("base64")]);
  return JSON.stringify(Object.fromEntries(sealed));
}

export function readWraps(stored: string): Wraps {
  return wraps.parse(JSON.parse(stored));
}

/** Null when the ring is not sealed under this key. */
export function openRing(stored: Wraps, encryptionKey: string): KeyRing | null {
  const wrap = ownValue(stored, fingerprintOfKey(encryptionKey));
  if (wrap === undefined) return null;
  return keyRing.parse(JSON.parse(boxOf(encryptionKey).open(PLACE, Buffer.from(wrap, "base64"))));
}

/** The stored text without the other keys' wraps; null when it is not sealed under this key. */
export function keepWrapOf(stored: Wraps, encryptionKey: string): string | null {
  const fingerprint = fingerprintOfKey(encryptionKey);
  const wrap = ownValue(stored, fingerprint);
  return wrap === undefined ? null : JSON.stringify({ [fingerprint]: wrap });
}

function boxOf(encryptionKey: string): SecretBox {
  const key = deriveFrom(encryptionKey, "key ring");
  return new SecretBox(() => [key]);
}
