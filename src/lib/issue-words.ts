/**
 * What is wrong with an input, in words for whoever sent it. Every schema that reads what callers send is parsed with `sayIssue`, so
 * that a schema states a message of its own only where it knows more than its type, its bounds and its choices. Such a message
 * goes on after the name of its field and a colon ("size: must be WIDTHxHEIGHT"): it begins with a small letter and does not name the field.
 */

import { distance } from "fastest-levenshtein";
import * as z from "zod";
import { least } from "./collections.js";

/** What a number counts, by its schema: said with its bounds, and described with it. */
const units = z.registry<{ readonly unit: string }>();

/** Marks what a number counts, in the plural: "seconds". It must be the last that is said of the number itself, before nullish() and default(). */
export function inUnit<Schema extends z.ZodType>(schema: Schema, unit: string): Schema {
  units.add(schema, { unit });
  return schema;
}

export function unitOf(schema: z.core.$ZodType): string | undefined {
  return units.get(schema)?.unit;
}

/** The words for each field of several, in one text: zod has one message for all unknown fields of an object. */
export const UNKNOWN_FIELDS_SEPARATOR = "\n";
/** Unspecified: an object may hold thousands of unknown fields; of so many something is said. */
const UNKNOWN_SAID_MAX = 20;
/** Of a field that is unknown: how many are named to its sender, and how much of its own name is looked at. */
const CLOSEST = { namesOf: (name: string) => [name], count: 3, charsMax: 64 } as const;

/** The JSON types by zod's names for them. What is not here has no JSON type of its own. */
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
/** Of a rule without words of its own: in a union it says that the input is meant for another variant. */
export const NOT_ALLOWED = "is not allowed";

/** For `safeParse(input, { error: sayIssue })`; a message of the schema's own goes first. */
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

/** Of a value that has none of the types: what it may be. What is wrong inside of one of them is for whoever reads `errors`. */
function sayUnion({ input, errors, options }: Raw<"invalid_union">): string {
  if (input === undefined) return MISSING;
  if (Array.isArray(options) && options.length > 0) return sayChoices(options.filter((option) => option !== undefined).map(say));
  const issues = errors.flat().filter((issue) => issue.path.length === 0);
  // It has the type of one, which refuses it for another reason.
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
  // A schema that changes a text before it looks at it does not tell its bounds: the one that was broken is known all the same.
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

/** Those that the schema states, whichever of them was broken; a range is said as a whole. */
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
      return meant.length === 0 ? "is not known here" : `is not known here; the closest that are: ${meant.join(", ")}`;
    })
    .join(UNKNOWN_FIELDS_SEPARATOR);
}

function fieldsOf(schema: unknown): readonly string[] {
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

// Which of the names that there are somebody who wrote another one may have meant.

interface ClosestOptions<Item> {
  /** A thing that goes by several names is as near as its nearest. */
  readonly namesOf: (item: Item) => readonly string[];
  /** How many are answered. */
  readonly count: number;
  /** What is longer than every name is compared by its beginning, so that no request makes this expensive. */
  readonly charsMax: number;
}

/** The items whose names are the fewest edits from `wanted`, nearest first; case does not count. */
export function closest<Item>(items: readonly Item[], wanted: string, { namesOf, count, charsMax }: ClosestOptions<Item>): readonly Item[] {
  const compared = wanted.slice(0, charsMax).toLowerCase();
  return items
    .map((item) => ({ item, edits: least(namesOf(item).map((name) => distance(compared, name.toLowerCase()))) }))
    .sort((one, other) => one.edits - other.edits)
    .slice(0, count)
    .map(({ item }) => item);
}
