/**
 * The format of an API key (docs/spec/keys.md#form): a prefix, random base62, and a checksum of six characters, so that a mistyped key is
 * refused without a look-up and secret scanners recognize a real one.
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
/** `sk_live_...` and the like: no underscore follows our own prefix. */
const FOREIGN_SECTION = /^[sp]k_[0-9A-Za-z]{1,10}_/;
/** `$KEY`, `${KEY}`, `%KEY%`, `<your key>`. */
const PLACEHOLDER = /^[$%<{]/;
const QUOTED = /^["'`\u2018\u2019\u201c\u201d]/;

/** Prefix of a realtime session's client secret. */
export const CLIENT_SECRET_PREFIX = "ek_";

/** Prefix of an agent's run token. */
export const RUN_TOKEN_PREFIX = "ag_";

/** See services/agents/run-tokens.ts. */
const RUN_TOKEN = /^ag_[0-9A-Za-z_-]{106}$/;

/** True when it could be a run token: prefix, length and alphabet fit. */
export function isWellFormedRunToken(text: string): boolean {
  return RUN_TOKEN.test(text);
}

/** True for text that can only be a run token, good or not. */
export function isRunToken(text: string): boolean {
  return text.startsWith(RUN_TOKEN_PREFIX);
}

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

/**
 * The fault of text that cannot be a key, to follow "The API key"; null when it could be one. Does not repeat the text, which may be
 * another service's key.
 */
export function faultOfApiKey(text: string): string | null {
  if (isWellFormedApiKey(text)) return null;
  if (QUOTED.test(text)) return "stands in quotation marks: send it without them";
  if (PLACEHOLDER.test(text)) return "is the name of a variable that was not filled in";
  if (text.startsWith(CLIENT_SECRET_PREFIX)) return "is a client secret, which opens sessions at /v1/realtime and nothing else";
  const prefix = text.slice(0, 2);
  if ((prefix !== "sk" && prefix !== "pk") || text[2] !== "_" || FOREIGN_SECTION.test(text)) {
    return "looks like a key of another service: Sluice keys begin with sk_ (publishable ones with pk_)";
  }
  const chars = prefix.length + 1 + RANDOM_CHARS[prefix] + CHECKSUM_CHARS;
  if (text.length !== chars) return `is not whole: one that begins with ${prefix}_ has ${chars} characters, and this has ${text.length}`;
  if (!PATTERN.test(text)) return `is mistyped: after ${prefix}_ there are letters and digits alone`;
  return "is mistyped: its checksum does not fit";
}

/** As `faultOfApiKey`, and refuses publishable keys. */
export function faultOfSecretKey(text: string): string | null {
  return faultOfApiKey(text) ?? (text.startsWith("sk_") ? null : "is a publishable key: a secret one begins with sk_");
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
