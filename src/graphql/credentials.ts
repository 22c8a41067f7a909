/** The key in the URL of a request or a socket (Spec 5.2, decisions "Keys"). */
import { invalidInput } from "../errors.js";

/** The key in `?key=`; null when there is none. Throws BAD_REQUEST when there are two. */
export function readQueryKey(url: string): string | null {
  const mark = url.indexOf("?");
  if (mark === -1) return null;
  const keys = new URLSearchParams(url.slice(mark)).getAll("key");
  if (keys.length > 1) throw invalidInput("The query parameter key was sent more than once.", "key");
  return keys[0] || null;
}
