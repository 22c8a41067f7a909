/**
 * Messages for invalid input. Every schema of client input is parsed with `sayIssue`, so that a schema needs its own message only where it
 * knows more than type, bounds and choices. Such a message follows the field's name and a colon ("size: must be WIDTHxHEIGHT"): it begins
 * in lower case and does not name the field.
 */

import { distance } from "fastest-levenshtein";
import * as z from "zod";
import { least } from "./collections.js";
import { UNKNOWN_NAME } from "./error-summary.js";

/** Units of number schemas, for messages about bounds and for descriptions. */
const units = z.registry<{ readonly unit: string }>();

/** Sets the unit of a number, in the plural: "seconds". Must be the last call on the number itself, before nullish() and default(). */
export function inUnit<Schema extends z.ZodType>(schema: Schema, unit: string): Schema {
  units.add(schema, { unit });
  return schema;
}

export function unitOf(schema: z.core.$ZodType): string | undefined {
  return units.get(schema)?.unit;
}

/** Joins the messages of several fields: zod has one message for all unknown fields of an object. */
export const UNKNOWN_FIELDS_SEPARATOR = "\n";
/** Unspecified: unknown fields with a message; an object may hold thousands. */
const UNKNOWN_SAID_MAX = 20;
/** Suggestions for an unknown field: their number, and the characters of its name that are compared. */
const CLOSEST = { namesOf: (name: string) => [name], count: 3, charsMax: 64 } as const;

/** JSON types by zod's names. Other zod types have no JSON type. */
const NOUNS: ReadonlyMap<string, string> = new Map([
  ["string", "a string"],
  ["number", "a number"],
  ["int", "a whole number"],
  ["boolean", "true or false"],
  ["array", "an array"],
  ["tuple", "an array"],
  ["object", "an object"],
  ["record", "an object"],
  ["null", "null"],
]);

const FORMS: ReadonlyMap<string, string> = new Map([
  ["url", "must be a URL"],
  ["email", "must be an e-mail address"],
  ["uuid", "must be a UUID"],
  ["datetime", "must be an ISO 8601 time such as 2026-01-31T12:00:00.000Z"],
  ["base64", "must be base64"],
]);

export const MISSING = "is required";
/** For a rule without a message; in a union it means that the input is for another variant. */
export const NOT_ALLOWED = "is not allowed";

/** For `safeParse(input, { error: sayIssue })`; a schema's own message takes precedence. */
export function sayIssue(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type":
      return issue.input === undefined ? MISSING : `expected ${nounOf(issue.expected)}`;
    case "invalid_value":
      return issue.input === undefined ? MISSING : sayChoices(issue.values.map(say));
    case "invalid_union":
      return sayUnion(issue);
    case "too_small":
    case "too_big":
      return sayBounds(issue);
    case "not_multiple_of":
      return `must be a multiple of ${issue.divisor}`;
    case "invalid_format":
      return FORMS.get(issue.format) ?? "does not have the right form";
    case "unrecognized_keys":
      return sayUnknown(issue.keys, fieldsOf(issue.inst));
    default:
      return NOT_ALLOWED;
  }
}

/** "must be a", "must be one of a, b or c". */
export function sayChoices(choices: readonly string[]): string {
  return choices.length === 1 ? `must be ${choices[0]}` : `must be one of ${listed(choices)}`;
}

function nounOf(expected: string): string {
  return NOUNS.get(expected) ?? "another type";
}

function say(value: unknown): string {
  return value === "" ? "empty" : String(value);
}

/** "a, b or c". */
function listed(words: readonly string[]): string {
  return words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} or ${words.at(-1)}`;
}

type Raw<Code> = Extract<z.core.$ZodRawIssue, { readonly code: Code }>;

/** For a value with none of the types: lists them. `errors` has details of each. */
function sayUnion({ input, errors, options }: Raw<"invalid_union">): string {
  if (input === undefined) return MISSING;
  if (Array.isArray(options) && options.length > 0) return sayChoices(options.filter((option) => option !== undefined).map(say));
  const issues = errors.flat().filter((issue) => issue.path.length === 0);
  // It has the right type, and another fault.
  const reason = issues.find(({ code }) => code !== "invalid_type" && code !== "invalid_value" && code !== "invalid_union");
  if (reason) return reason.message;
  const choices = issues.flatMap((issue) => (issue.code === "invalid_value" ? issue.values.map(say) : []));
  const nouns = issues.flatMap((issue) => (issue.code === "invalid_type" && NOUNS.has(issue.expected) ? [nounOf(issue.expected)] : []));
  const allowed = [...new Set([...choices, ...nouns])];
  return nouns.length === 0 && allowed.length > 0 ? sayChoices(allowed) : `expected ${listed(allowed) || "another type"}`;
}

function sayBounds(issue: Raw<"too_small"> | Raw<"too_big">): string {
  const { schema, origin } = issue;
  const { minimum, maximum } = boundsOf(schema);
  if (origin === "number" || origin === "int") return sayRange(issue, minimum, maximum);
  // A schema that transforms text first does not reveal its bounds; the issue has the broken one.
  const least = minimum ?? (issue.code === "too_small" ? Number(issue.minimum) : undefined);
  const most = maximum ?? (issue.code === "too_big" ? Number(issue.maximum) : undefined);
  if (origin === "string") return sayLength("characters", "character", least, most);
  if (origin === "array" || origin === "set") return sayLength("items", "item", least, most);
  return issue.code === "too_small" ? "is too small" : "is too large";
}

interface Bounds {
  readonly minimum: number | undefined;
  readonly maximum: number | undefined;
}

/** The schema's bounds, whichever was broken, so that a range is stated whole. */
function boundsOf(schema: z.core.$ZodType | undefined): Bounds {
  let [minimum, maximum]: [number | undefined, number | undefined] = [undefined, undefined];
  for (const check of schema?._zod.def.checks ?? []) {
    const stated: { check: string; minimum?: unknown; maximum?: unknown; value?: unknown; inclusive?: unknown } = check._zod.def;
    if (stated.check === "min_length") minimum = Number(stated.minimum);
    if (stated.check === "max_length") maximum = Number(stated.maximum);
    if (stated.check === "greater_than" && stated.inclusive === true) minimum = Number(stated.value);
    if (stated.check === "less_than" && stated.inclusive === true) maximum = Number(stated.value);
  }
  return { minimum, maximum };
}

function sayLength(many: string, one: string, minimum: number | undefined, maximum: number | undefined): string {
  const named = (count: number) => `${count} ${count === 1 ? one : many}`;
  if (minimum === maximum && minimum !== undefined) return `must have ${named(minimum)}`;
  if (minimum === undefined || minimum === 0) return `must have at most ${named(maximum ?? 0)}`;
  return maximum === undefined
    ? minimum === 1
      ? "must not be empty"
      : `must have at least ${named(minimum)}`
    : `must have ${minimum} to ${named(maximum)}`;
}

function sayRange(issue: Raw<"too_small"> | Raw<"too_big">, minimum: number | undefined, maximum: number | undefined): string {
  const unit = issue.schema === undefined ? undefined : unitOf(issue.schema);
  const ending = unit === undefined ? "" : ` ${unit}`;
  if (minimum !== undefined && maximum !== undefined) return `must be from ${minimum} to ${maximum}${ending}`;
  if (issue.code === "too_small") return `must be ${issue.inclusive ? "at least" : "more than"} ${issue.minimum}${ending}`;
  return `must be ${issue.inclusive ? "at most" : "less than"} ${issue.maximum}${ending}`;
}

function sayUnknown(keys: readonly string[], fields: readonly string[]): string {
  return keys
    .slice(0, UNKNOWN_SAID_MAX)
    .map((key) => {
      const meant = closest(fields, key, CLOSEST);
      return meant.length === 0 ? UNKNOWN_NAME : `${UNKNOWN_NAME}; the closest that are: ${meant.join(", ")}`;
    })
    .join(UNKNOWN_FIELDS_SEPARATOR);
}

function fieldsOf(schema: unknown): readonly string[] {
  if (schema instanceof z.ZodObject) return Object.keys(schema.shape);
  return schema instanceof z.ZodRecord && schema.keyType instanceof z.ZodEnum ? schema.keyType.options.map(String) : [];
}

// Suggests existing names close to an unknown one.

interface ClosestOptions<Item> {
  /** An item with several names is as close as its closest one. */
  readonly namesOf: (item: Item) => readonly string[];
  readonly count: number;
  /** Longer text is cut before comparing, which bounds the cost. */
  readonly charsMax: number;
}

/** The items with the fewest edits from `wanted`, closest first; ignores case. */
export function closest<Item>(items: readonly Item[], wanted: string, { namesOf, count, charsMax }: ClosestOptions<Item>): readonly Item[] {
  const compared = wanted.slice(0, charsMax).toLowerCase();
  return items
    .map((item) => ({ item, edits: least(namesOf(item).map((name) => distance(compared, name.toLowerCase()))) }))
    .sort((one, other) => one.edits - other.edits)
    .slice(0, count)
    .map(({ item }) => item);
}
