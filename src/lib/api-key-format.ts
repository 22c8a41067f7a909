/**
 * The shape of an API key (decisions "Keys"): a prefix, random base62, and six characters of checksum, so that a mistyped
 * key is refused without a look-up and secret scanners can tell a real one.
 */
import { randomInt } from "node:crypto";
import { crc32 } from "node:zlib";

export type ApiKeyPrefix = "sk" | "pk";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/** Random characters after the prefix: about 220 bits for a secret key, 95 for a publishable one. */
const RANDOM_CHARS: Readonly<Record<ApiKeyPrefix, number>> = { sk: 37, pk: 16 };
const CHECKSUM_CHARS = 6;
const START_CHARS = 10;
const PATTERN = /^(?:sk_[0-9A-Za-z]{43}|pk_[0-9A-Za-z]{22})$/;

export function createApiKeyText(prefix: ApiKeyPrefix): string {
  let body = `${prefix}_`;
  for (let index = 0; index < RANDOM_CHARS[prefix]; index += 1) body += ALPHABET[randomInt(ALPHABET.length)];
  return body + checksumOf(body);
}

/** True when it could be a key: prefix, length, alphabet and checksum fit. */
export function isWellFormedApiKey(text: string): boolean {
  if (!PATTERN.test(text)) return false;
  const body = text.slice(0, -CHECKSUM_CHARS);
  return checksumOf(body) === text.slice(-CHECKSUM_CHARS);
}

/** The first characters, for display. */
export function startOfApiKey(text: string): string {
  return text.slice(0, START_CHARS);
}

/** CRC-32 of the ASCII text before it in base62, most significant digit first. */
function checksumOf(body: string): string {
  let rest = crc32(body);
  let digits = "";
  while (rest > 0) {
    digits = ALPHABET[rest % ALPHABET.length] + digits;
    rest = Math.floor(rest / ALPHABET.length);
  }
  return digits.padStart(CHECKSUM_CHARS, "0");
}
