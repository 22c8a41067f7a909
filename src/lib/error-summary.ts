/** Messages of errors without the client's words, for records that are kept. */

/** Stands behind a client's own name of a field or parameter. */
export const UNKNOWN_NAME = "is not known here";

/** A client's words are quoted, or are names of fields below the first level (`param`), or of fields that do not exist. */
export function summarize(message: string, param: string | undefined): string {
  if (message.includes(UNKNOWN_NAME)) return `A field or parameter ${UNKNOWN_NAME}.`;
  const problem = param !== undefined && message.startsWith(`${param}: `) ? message.slice(param.length + 2) : message;
  const field = param === undefined || problem === message ? "" : `${param.split(".", 1)[0]}: `;
  return field + withoutQuotes(problem);
}

/** The text before the first quote, and before a second problem. */
export function withoutQuotes(text: string): string {
  const at = text.search(/["“‘`;]/);
  return at === -1 ? text : `${text.slice(0, at).trimEnd()} …`;
}
