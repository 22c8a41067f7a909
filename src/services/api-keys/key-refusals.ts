/**
 * Messages for refused credentials (docs/spec/errors.md#codes: 401). Only a client that presents the whole key, which the database then
 * finds by HMAC, learns how it ended; otherwise the key is unknown. No message repeats the credential.
 */
import { type AppError, credentialRefused } from "../../errors.js";
import { faultOfApiKey } from "../../lib/api-key-format.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";

type EndedKey = Pick<ApiKeyModel, "revokedAt" | "expiresAt" | "origin">;

export function malformedKey(text: string): AppError {
  return credentialRefused(`The API key ${faultOfApiKey(text) ?? "is not valid"}.`);
}

export function unknownKey(): AppError {
  return credentialRefused("The API key is unknown to this gateway.");
}

/** For a key that was revoked by itself or with an ancestor. */
export function describeRevocation(key: EndedKey, ancestors: readonly EndedKey[]): string {
  const own = key.revokedAt;
  const above = ancestors.find(({ revokedAt }) => revokedAt !== null && (own === null || revokedAt <= own));
  if (above?.revokedAt) return `The API key ended at ${above.revokedAt.toISOString()}, when the key that it was made with was revoked.`;
  const when = own === null ? "" : ` at ${own.toISOString()}`;
  if (key.origin === "run") return `The run of this key was ended${when}.`;
  return key.origin === "created"
    ? `The API key was revoked${when}.`
    : `The API key was revoked${when}: the access that was granted with it has ended.`;
}

/** `end` is the earliest expiry of the key and its ancestors. */
export function describeExpiry(key: Pick<EndedKey, "expiresAt" | "origin">, end: Date): string {
  const when = end.toISOString();
  if (key.expiresAt === null || key.expiresAt > end) return `The API key expired at ${when}, with the key that it was made with.`;
  if (key.origin === "run") return `The run of this key expired at ${when}: create another one, with a longer ttl if needed.`;
  return key.origin === "created"
    ? `The API key expired at ${when}.`
    : `The API key expired at ${when}: the access that was granted with it has to be granted anew.`;
}

/** Of generations that were under way when their run was ended. */
export function runEnded(): AppError {
  return credentialRefused("The run of this key was ended.");
}

export function runTokenRefused(): AppError {
  return credentialRefused("The run token is not valid: it is made up, older than 30 minutes, or its caller's session has ended.");
}
