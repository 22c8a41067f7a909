/** Parsing and printing of the schema's own scalars. */
import { GraphQLError } from "graphql";
import { UploadedFile } from "../http/uploads.js";
import { AMOUNT_CHARS_MAX, parseNanocredits, parsePicocredits } from "../lib/money.js";
import { isStorableTime, STORABLE_YEARS } from "../lib/storable-time.js";
import { JSON_DEPTH_MAX } from "../limits.js";

const CREDITS = /^-?\d+(?:\.\d+)?$/;
const ISO_DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:\d\d)$/;

export function serializeDateTime(value: unknown): string {
  if (!(value instanceof Date)) throw new TypeError("A DateTime field was given something that is not a date.");
  return value.toISOString();
}

export function parseDateTime(value: unknown): Date {
  const date = typeof value === "string" && ISO_DATE_TIME.test(value) ? new Date(value) : null;
  if (date === null || Number.isNaN(date.getTime())) throw new GraphQLError('A DateTime is ISO 8601 text such as "2026-11-21T09:30:00Z".');
  if (!isStorableTime(date)) throw new GraphQLError(`A DateTime ${STORABLE_YEARS}.`);
  return date;
}

export function serializeCredits(value: unknown): string {
  if (typeof value !== "string" || !CREDITS.test(value))
    throw new TypeError("A Credits field was given something that is not a decimal string.");
  return value;
}

/** Parses nanocredits. Only from text: a JSON number has already been rounded to a double. */
export function parseCredits(value: unknown): bigint {
  const nanocredits = typeof value === "string" ? parseNanocredits(value) : null;
  if (nanocredits === null)
    throw new GraphQLError(
      `Credits are a decimal string of at most ${AMOUNT_CHARS_MAX} characters with at most 9 decimal places, such as "1.5".`,
    );
  return nanocredits;
}

/** Parses picocredits. Only from text, as credits are. */
export function parsePrice(value: unknown): bigint {
  const picocredits = typeof value === "string" ? parsePicocredits(value) : null;
  if (picocredits === null)
    throw new GraphQLError(
      `A price is a decimal string of at most ${AMOUNT_CHARS_MAX} characters with at most 12 decimal places, such as "0.00000015".`,
    );
  return picocredits;
}

/** A coerced value of a variable, in a form that the executor accepts as JSON without coercing it again. */
export class CoercedValue {
  constructor(readonly value: unknown) {}
}

export function parseJson(value: unknown): unknown {
  if (value instanceof CoercedValue) return value.value;
  if (isDeeperThan(value, JSON_DEPTH_MAX)) throw new GraphQLError(`JSON may be nested at most ${JSON_DEPTH_MAX} levels deep.`);
  return value;
}

export function serializeFile(): never {
  throw new TypeError("A File is only ever sent to the gateway.");
}

export function parseFile(value: unknown): UploadedFile {
  if (value instanceof UploadedFile) return value;
  throw new GraphQLError("A File is sent in a multipart request: null in the variables, and the file in the form.");
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (value instanceof UploadedFile) throw new GraphQLError("A file is not JSON.");
  if (levels === 0) return true;
  const items: unknown[] = Array.isArray(value) ? value : Object.values(value);
  return items.some((item) => isDeeperThan(item, levels - 1));
}
