/**
 * Watches the key or session of an open socket or event stream, which outlives the check at its start. It is looked up again when a change
 * is announced, and at intervals in case the event was missed.
 */
import type { Caller } from "../../context.js";
import { type AppError, isCredentialEnded, unauthenticated } from "../../errors.js";
import { LIVE_KEY_CHECK_MS } from "../../limits.js";
import type { KeyAuthenticator, SessionFinder } from "./access.js";

/** The credentials of a caller; both are null for an anonymous one. */
export interface Credential {
  readonly key: string | null;
  readonly sessionToken: string | null;
}

/**
 * Each calls `listener` when the key or session has changed, or when an event may have been missed, until the returned function is called.
 */
export interface WatchedKeys extends KeyAuthenticator {
  onChanged(apiKeyId: string, listener: () => void): () => void;
}

export interface WatchedSessions extends SessionFinder {
  onChanged(sessionId: string, listener: () => void): () => void;
}

export interface Watched {
  readonly apiKeys: WatchedKeys;
  readonly sessions: WatchedSessions;
}

/** Calls `onRefused` once when the caller's key or session is no longer good; the returned function ends the watch. */
export function watchCaller(
  { apiKeys, sessions }: Watched,
  caller: Caller,
  { key, sessionToken }: Credential,
  onRefused: (error: AppError) => void,
): () => void {
  if (caller.kind === "key" && key !== null) return watchKey(apiKeys, key, caller.apiKeyId, onRefused);
  if (caller.kind !== "session" || (key === null && sessionToken === null)) return () => undefined;
  const isGood = async () => {
    // An agent run of a signed-in person has its own token.
    if (sessionToken === null) return void (await apiKeys.authenticate(key));
    if ((await sessions.find(sessionToken)) === null) throw sessionEnded();
  };
  return watch(isGood, (check) => sessions.onChanged(caller.sessionId, check), onRefused);
}

/** As `watchCaller`, for a key alone. */
export function watchKey(apiKeys: WatchedKeys, key: string, apiKeyId: string, onRefused: (error: AppError) => void): () => void {
  return watch(
    () => apiKeys.authenticate(key),
    (check) => apiKeys.onChanged(apiKeyId, check),
    onRefused,
  );
}

export function sessionEnded(): AppError {
  return unauthenticated("The session has ended: sign in again.");
}

function watch(isGood: () => unknown, listen: (check: () => void) => () => void, onRefused: (error: AppError) => void): () => void {
  let isOver = false;
  const check = async () => {
    try {
      await isGood();
    } catch (error) {
      // An unavailable database proves nothing about the key.
      if (isOver || !isCredentialEnded(error)) return;
      end();
      onRefused(error);
    }
  };
  const timer = setInterval(check, LIVE_KEY_CHECK_MS);
  const stopListening = listen(check);
  const end = () => {
    isOver = true;
    clearInterval(timer);
    stopListening();
  };
  return end;
}
