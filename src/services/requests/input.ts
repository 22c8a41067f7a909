/**
 * Turns zod's issues into the error envelope: every wrong field by its dotted path (docs/spec/errors.md#envelope). The words are in
 * `issue-words.ts`.
 */
import * as z from "zod";
import { AppError } from "../../errors.js";
import { MISSING, NOT_ALLOWED, sayChoices, sayIssue, UNKNOWN_FIELDS_SEPARATOR } from "../../lib/issue-words.js";
import { ownValue } from "../../lib/own-values.js";
import { BIDI_CONTROL, unstorableIn } from "../../lib/storable-text.js";

/** Unspecified: issues reported at once; a body can hold thousands. */
const FINDINGS_MAX = 20;
/** Unspecified: fields named in the message itself. */
const FIELDS_SAID_MAX = 3;
/** Unspecified: characters of a path in the message, as clients choose the names of unknown fields. */
const PATH_CHARS_MAX = 200;
const PARSING = { error: sayIssue };
/** Stops at the first issue of a list or object. */
const UNTIL_WRONG: z.core.ParseContext<z.core.$ZodIssue> & Pick<z.core.ParseContextInternal, "abortEarly"> = {
  error: sayIssue,
  abortEarly: true,
};

interface Finding {
  /** Empty: the whole input. */
  readonly path: string;
  readonly message: string;
}

/** Text that can be stored. Bodies over HTTP are checked when they are read. */
export const storableText = z
  .string()
  .superRefine((text, issues) => {
    const problem = unstorableIn(text);
    if (problem !== null) issues.addIssue({ code: "custom", message: problem, input: text });
  })
  .meta({ pattern: "^[^\\u0000]*$" });

/**
 * A name or title that others see beside our own words: without characters that reverse the text direction and so could imitate another
 * name.
 */
export const shownText = storableText
  .refine((text) => !BIDI_CONTROL.test(text), "must not hold characters that change the direction of text (such as U+202E)")
  .meta({ pattern: "^[^\\u0000\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$" });

export const nonBlankText = storableText.refine((text) => text.trim() !== "", "must not be empty").meta({ allOf: [{ pattern: "\\S" }] });

/** A list without duplicates. */
export function distinct<Item extends z.ZodType<string>>(list: z.ZodArray<Item>) {
  return list.superRefine(refuseDuplicates).meta({ uniqueItems: true });
}

/** Names the first duplicate, in one pass, as a list may be long. */
function refuseDuplicates(items: readonly string[], issues: z.RefinementCtx<readonly string[]>): void {
  const seen = new Set<string>();
  const place = items.findIndex((item) => {
    if (seen.has(item)) return true;
    seen.add(item);
    return false;
  });
  if (place !== -1) issues.addIssue({ code: "custom", path: [place], message: "is there twice", input: items as string[] });
}

/**
 * Schemas that are used constantly, with their compiled form, which checks good input in a tenth of the time. Bad input goes to the schema
 * itself for its messages. Compiled on first use, not at the start.
 */
const frequent = new WeakMap<z.ZodType, z.ZodType | null>();

/** Compiles the schema from its first input on. */
export function parsedOften<Schema extends z.ZodType>(schema: Schema): Schema {
  if (!frequent.has(schema)) frequent.set(schema, null);
  return schema;
}

/** Returns the parsed input, or throws BAD_REQUEST with `param` naming the first wrong field. */
export function parseInput<Output>(schema: z.ZodType<Output>, input: unknown): Output {
  const first = quickest(schema).safeParse(input, UNTIL_WRONG);
  if (first.success) return first.data;
  // A small input is checked completely.
  const result = isSmall(input) ? schema.safeParse(input, PARSING) : first;
  if (result.success) return result.data;
  throw toInputError(result.error, input);
}

/** Unspecified: values of an input that is checked completely. */
const SMALL_VALUES_MAX = 1_000;

function isSmall(input: unknown): boolean {
  return countValues(input, SMALL_VALUES_MAX) <= SMALL_VALUES_MAX;
}

/** Counts values up to one more than `most`. */
function countValues(value: unknown, most: number): number {
  if (typeof value !== "object" || value === null) return 1;
  const inner = Array.isArray(value) ? value : Object.values(value);
  if (inner.length > most) return most + 1;
  let count = 1;
  for (const each of inner) {
    count += countValues(each, most - count);
    if (count > most) break;
  }
  return count;
}

function quickest<Output>(schema: z.ZodType<Output>): z.ZodType<Output> {
  const known = frequent.get(schema);
  if (known === undefined) return schema;
  const compiled = known ?? z.compile(schema);
  if (known === null) frequent.set(schema, compiled);
  return compiled as z.ZodType<Output>;
}

function toInputError(error: z.ZodError, input: unknown): AppError {
  const issues = withoutConsequences(error.issues);
  const findings = issues.flatMap((issue) => toFindings(issue, [], input));
  const further = issues.reduce(
    (sum, issue) => sum + (issue.code === "unrecognized_keys" ? Math.max(0, issue.keys.length - FINDINGS_MAX) : 0),
    0,
  );
  const messages = byField(findings);
  const param = [...messages.keys()].find((path) => path !== "");
  const { "": formErrors = [], ...fieldErrors } = Object.fromEntries(byField(findings.slice(0, FINDINGS_MAX)));
  return new AppError("BAD_REQUEST", toSentence(messages, further), {
    ...(param !== undefined && { param }),
    details: { fieldErrors, formErrors },
  });
}

/** Drops the issues on bounds of a field that already has the wrong type. */
function withoutConsequences(issues: readonly z.core.$ZodIssue[]): readonly z.core.$ZodIssue[] {
  if (issues.length === 1) return issues;
  const wrong = new Set(issues.filter(({ code }) => code === "invalid_type").map(({ path }) => dotted(path)));
  return issues.filter(({ code, path }) => code === "invalid_type" || !wrong.has(dotted(path)));
}

function byField(findings: readonly Finding[]): ReadonlyMap<string, readonly string[]> {
  const messages = new Map<string, string[]>();
  for (const { path, message } of findings) {
    const said = messages.get(path);
    if (said === undefined) messages.set(path, [message]);
    else if (!said.includes(message)) said.push(message);
  }
  return messages;
}

/**
 * "name: is required", or "2 fields are wrong: name: is required; type: must be one of secret or publishable". `further`: fields that
 * `messages` lacks.
 */
function toSentence(messages: ReadonlyMap<string, readonly string[]>, further: number): string {
  const said = [...messages]
    .slice(0, FIELDS_SAID_MAX)
    .map(([path, about]) => (path === "" ? "" : `${shortened(path)}: `) + about.join(", "));
  const count = messages.size + further;
  if (count === 1) return said.join("");
  const others = count - said.length;
  return `${count} fields are wrong: ${said.join("; ")}${others > 0 ? `; and ${others} more` : ""}`;
}

function shortened(path: string): string {
  return path.length > PATH_CHARS_MAX ? `${path.slice(0, PATH_CHARS_MAX)}…` : path;
}

function toFindings(issue: z.core.$ZodIssue, parents: readonly PropertyKey[], input: unknown): Finding[] {
  const path = [...parents, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const messages = issue.message.split(UNKNOWN_FIELDS_SEPARATOR);
    return issue.keys
      .slice(0, FINDINGS_MAX)
      .map((key, index) => ({ path: dotted([...path, key]), message: messages[index] ?? issue.message }));
  }
  if (isAboutMissing(issue) && isMissing(input, path)) return [{ path: dotted(path), message: MISSING }];
  if (issue.code === "invalid_union") {
    const closest = closestVariant(issue.errors);
    if (closest !== null) return closest.flatMap((nested) => toFindings(nested, path, input));
  }
  return [{ path: dotted(path), message: issue.message }];
}

function dotted(path: readonly PropertyKey[]): string {
  return path.map(String).join(".");
}

/** Whether the issue is about a missing value, which has its own message. */
function isAboutMissing({ code, path }: z.core.$ZodIssue): boolean {
  return path.length > 0 && (code === "invalid_type" || code === "invalid_value" || code === "invalid_union");
}

/** Whether the input lacks the value. A list that a schema makes from text has places that the client did not write. */
function isMissing(input: unknown, path: readonly PropertyKey[]): boolean {
  const holder = valueAt(input, path.slice(0, -1));
  return typeof holder === "object" && holder !== null && valueAt(input, path) === undefined;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>((value, name) => {
    return typeof value === "object" && value !== null ? ownValue(value as Record<string, unknown>, String(name)) : undefined;
  }, input);
}

type Issues = readonly z.core.$ZodIssue[];

/**
 * Chooses the union variant that the client probably meant: the one whose tag (`type: "function_call"`) matches, else the one with the
 * fewest issues. Null when the input has the wrong type for all, where the union's own message says more.
 */
function closestVariant(variants: readonly Issues[]): Issues | null {
  const ofRightType = variants.filter((issues) => !issues.some(isOfWrongType));
  const ofRightItems = ofRightType.filter((issues) => !issues.some(isOfWrongItem));
  const possible = ofRightItems.length > 0 ? ofRightItems : ofRightType;
  const tagged = possible.filter((issues) => !issues.some((issue) => isOfTag(issue) || issue.message === NOT_ALLOWED));
  if (tagged.length === 0 && possible.length > 1) return toTagIssue(possible) ?? fewest(possible);
  return fewest(tagged.length > 0 ? tagged : possible);
}

function isOfWrongType({ code, path }: z.core.$ZodIssue): boolean {
  return path.length === 0 && (code === "invalid_type" || code === "invalid_value" || code === "invalid_union");
}

/** A list whose items have the wrong type belongs to another variant. */
function isOfWrongItem({ code, path }: z.core.$ZodIssue): boolean {
  return path.length === 1 && typeof path[0] === "number" && code === "invalid_type";
}

/** The variant with the fewest issues, and among those the deepest match. */
function fewest(variants: readonly Issues[]): Issues | null {
  return variants.reduce<Issues | null>((best, issues) => {
    if (best === null || issues.length < best.length) return issues;
    return issues.length === best.length && depthOf(issues) > depthOf(best) ? issues : best;
  }, null);
}

function depthOf(issues: Issues): number {
  return issues.reduce((depth, { path }) => Math.max(depth, path.length), 0);
}

/** About a field with a single value, which tells the variants apart. */
function isOfTag(issue: z.core.$ZodIssue): issue is z.core.$ZodIssueInvalidValue {
  return issue.code === "invalid_value" && issue.values.length === 1 && issue.path.length === 1;
}

/** The issue for an input with the tag of no variant: lists all tags. */
function toTagIssue(variants: readonly Issues[]): Issues | null {
  const tags = variants.map((issues) => issues.find(isOfTag)).filter((issue) => issue !== undefined);
  const [first] = tags;
  if (!first || tags.some(({ path }) => path[0] !== first.path[0])) return null;
  const values = [...new Set(tags.flatMap((issue) => issue.values))];
  return [{ ...first, values, message: sayChoices(values.map(String)) }];
}
