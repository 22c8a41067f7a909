/**
 * Keys and sessions outlive the moment at which they were checked when a socket or an event stream is open. A watch looks its key or
 * session up again when that is announced to have changed, and every so often in case that was not heard.
 */
import type { Caller } from "../../context.js";
import { AppError, unauthenticated } from "../../errors.js";
import { LIVE_KEY_CHECK_MS } from "../../limits.js";
import type { KeyAuthenticator, SessionFinder } from "./access.js";

/** What a caller came with; both null is nobody. */
export interface Credential {
  readonly key: string | null;
  readonly sessionToken: string | null;
}

/** Each calls `listener` whenever the key or the session has changed, or may have unheard, until the returned function is called. */
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

/** Calls `onRefused` once when the caller's key or session stops being good; the returned function ends the watch. */
export function watchCaller(
  { apiKeys, sessions }: Watched,
  caller: Caller,
  { key, sessionToken }: Credential,
  onRefused: (error: AppError) => void,
): () => void {
  if (caller.kind === "key" && key !== null) return watchKey(apiKeys, key, caller.apiKeyId, onRefused);
  if (caller.kind !== "session" || (key === null && sessionToken === null)) return () => undefined;
  const isGood = async () => {
    // An agent at work for a signed-in person has a token of its own.
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
      // A database that is away says nothing about the key.
      if (isOver || !(error instanceof AppError) || error.code !== "UNAUTHORIZED") return;
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
