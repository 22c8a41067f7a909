/** Query strings: each name once, well-formed, and the `key` credential apart from the parameters. */
import { invalidInput, wrongField } from "../errors.js";
import { setOwnValue } from "../lib/own-values.js";

export interface Query {
  /** The `key` parameter (docs/spec/http.md#credentials). Never logged. */
  readonly key: string | null;
  /** Every other parameter, decoded; without a prototype. */
  readonly parameters: Readonly<Record<string, string>>;
}

const NO_QUERY: Query = Object.freeze({ key: null, parameters: Object.freeze(Object.create(null)) });
const MALFORMED_ESCAPE = /%(?![0-9A-Fa-f]{2})/;

/** Takes a request target. Throws BAD_REQUEST for a broken escape, a NUL or a name that appears twice. */
export function parseQuery(url: string): Query {
  const mark = url.indexOf("?");
  if (mark === -1 || mark === url.length - 1) return NO_QUERY;
  const text = url.slice(mark + 1);
  if (MALFORMED_ESCAPE.test(text)) throw invalidInput("The query string holds a malformed percent escape.");
  let key: string | null = null;
  const parameters: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(text)) {
    if (Object.hasOwn(parameters, name) || (name === "key" && key !== null)) throw wrongField(name, "may be given only once");
    if (name === "key") {
      key = value;
      continue;
    }
    if (value.includes("\0")) throw wrongField(name, "must not hold a NUL character");
    setOwnValue(parameters, name, value);
  }
  return { key, parameters };
}
