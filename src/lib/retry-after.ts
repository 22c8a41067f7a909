/** `Retry-After` as others send it (RFC 9110, 10.2.3): whole seconds, or an HTTP date. */

/** What asks for more patience than a day is no answer to a request: it is dropped. */
const SECONDS_MAX = 86_400;
const SECONDS = /^\d{1,5}$/;
/** `Sun, 06 Nov 1994 08:49:37 GMT`, the one form that is still sent. */
const HTTP_DATE = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** Whole seconds, 1 to a day; undefined for what is none, is over, or is too long. */
export function parseRetryAfter(header: string | null | undefined, now = Date.now()): number | undefined {
  const text = header?.trim() ?? "";
  const seconds = SECONDS.test(text) ? Number(text) : HTTP_DATE.test(text) ? Math.ceil((Date.parse(text) - now) / 1000) : Number.NaN;
  return seconds >= 1 && seconds <= SECONDS_MAX ? seconds : undefined;
}
