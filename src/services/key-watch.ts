/**
 * Keys outlive the moment at which they were checked when a socket or an event stream is open. A watch looks its key up
 * again when the key is announced to have changed, and every so often in case that was not heard.
 */
import { AppError } from "../errors.js";
import { LIVE_KEY_CHECK_MS } from "../limits.js";
import type { ApiKeys } from "./api-keys.js";

/** Calls `onRefused` once when the key stops being good; the returned function ends the watch. */
export function watchKey(apiKeys: ApiKeys, key: string, apiKeyId: string, onRefused: (error: AppError) => void): () => void {
  let isOver = false;
  const check = async () => {
    try {
      await apiKeys.authenticate(key);
    } catch (error) {
      // A database that is away says nothing about the key.
      if (isOver || !(error instanceof AppError) || error.code !== "UNAUTHORIZED") return;
      end();
      onRefused(error);
    }
  };
  const timer = setInterval(check, LIVE_KEY_CHECK_MS);
  const stopListening = apiKeys.onChanged(apiKeyId, check);
  const end = () => {
    isOver = true;
    clearInterval(timer);
    stopListening();
  };
  return end;
}
