/** Bodies of HTML forms and OAuth requests: application/x-www-form-urlencoded. */
import type { IncomingMessage } from "node:http";
import { AppError, invalidInput, wrongField } from "../../errors.js";
import { readBytesBody } from "../../http/body.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { unstorableIn } from "../../lib/storable-text.js";
import { URLENCODED_BODY_BYTES_MAX, URLENCODED_FIELDS_MAX } from "../../limits.js";
import type { BodyAllowance } from "../../services/requests/body-budget.js";

/** A repeated field is a list; without a prototype. */
export type FormFields = Readonly<Record<string, string | readonly string[]>>;

const MEDIA_TYPE = /^application\/x-www-form-urlencoded\s*(?:;|$)/i;
const MALFORMED_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

export function isUrlencoded(req: IncomingMessage): boolean {
  return MEDIA_TYPE.test(req.headers["content-type"] ?? "");
}

/** Throws UNSUPPORTED_MEDIA_TYPE, PAYLOAD_TOO_LARGE, SERVICE_UNAVAILABLE, or BAD_REQUEST for a broken escape, a NUL or too many fields. */
export async function readFormFields(req: IncomingMessage, allowance: BodyAllowance): Promise<FormFields> {
  if (!isUrlencoded(req)) {
    throw new AppError("UNSUPPORTED_MEDIA_TYPE", "The body must be a form: send Content-Type: application/x-www-form-urlencoded.");
  }
  const text = (await readBytesBody(req, allowance, URLENCODED_BODY_BYTES_MAX)).toString("utf8");
  if (MALFORMED_ESCAPE.test(text)) throw invalidInput("The form holds a malformed percent escape.");
  const fields: Record<string, string | string[]> = Object.create(null);
  let count = 0;
  for (const [name, value] of new URLSearchParams(text)) {
    count += 1;
    if (count > URLENCODED_FIELDS_MAX) throw invalidInput(`A form has at most ${URLENCODED_FIELDS_MAX} fields.`);
    const problem = unstorableIn(value);
    if (problem !== null) throw wrongField(name, problem);
    const before = ownValue(fields, name);
    setOwnValue(fields, name, before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]);
  }
  return fields;
}
