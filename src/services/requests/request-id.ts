/** The id by which a request is found again (docs/spec/http.md#request-ids): answered, and in every line of the log that is about it. */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { isRunToken, isWellFormedApiKey } from "../../lib/api-key-format.js";
import { REQUEST_ID_PATTERN } from "../../limits.js";

/** The caller's own when it is well-formed, else made. What is a credential is no id: ids are logged. */
export function requestIdOf({ headers }: Pick<IncomingMessage, "headers">): string {
  const asked = headers["x-request-id"];
  if (typeof asked !== "string" || !REQUEST_ID_PATTERN.test(asked)) return randomUUID();
  return isWellFormedApiKey(asked) || isRunToken(asked) ? randomUUID() : asked;
}
