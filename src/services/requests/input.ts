/**
 * zod's findings as the error that callers see: every wrong field by its dotted path
 * (docs/spec/errors.md#envelope). The words are `issue-words.ts`'s.
 */
import * as z from "zod";
import { AppError } from "../../errors.js";
import { MISSING, NOT_ALLOWED, sayChoices, sayIssue, UNKNOWN_FIELDS_SEPARATOR } from "../../lib/issue-words.js";
import { ownValue } from "../../lib/own-values.js";
import { BIDI_CONTROL, unstorableIn } from "../../lib/storable-text.js";

/** Unspecified: findings told at once. A body can hold thousands of wrong items, and nobody reads more than these. */
const FINDINGS_MAX = 20;
/** Unspecified: of these, the fields that the message itself tells. */
const FIELDS_SAID_MAX = 3;
/** Unspecified: how much of a path the message repeats: an unknown field has whatever name the caller gave it. */
const PATH_CHARS_MAX = 200;
const PARSING = { error: sayIssue };
/** A list or an object that is found wrong is not read to its end. */
const UNTIL_WRONG: z.core.ParseContext<z.core.$ZodIssue> & Pick<z.core.ParseContextInternal, "abortEarly"> = {
  error: sayIssue,
  abortEarly: true,
};

interface Finding {
  /** Empty: about the whole input. */
  readonly path: string;
  readonly message: string;
}

/** Text that is stored. What comes over HTTP has been looked at where it was read. */
export const storableText = z
  .string()
  .superRefine((text, issues) => {
    const problem = unstorableIn(text);
    if (problem !== null) issues.addIssue({ code: "custom", message: problem, input: text });
  })
  .meta({ pattern: "^[^\\u0000]*$" });

/** A name or a title, which others see among words of ours: text that turns their direction around would let it look like another. */
export const shownText = storableText
  .refine((text) => !BIDI_CONTROL.test(text), "must not hold characters that change the direction of text (such as U+202E)")
  .meta({ pattern: "^[^\\u0000\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$" });

/** Text that says something; what an upstream is to read. */
export const nonBlankText = storableText.refine((text) => text.trim() !== "", "must not be empty").meta({ allOf: [{ pattern: "\\S" }] });

interface PairBounds {
  readonly countMax: number;
  readonly nameCharsMax: number;
  readonly valueCharsMax: number;
}

/** Texts by names that the caller chooses. The first that is wrong is told: a record of zod's reads every one. */
export function textPairs({ countMax, nameCharsMax, valueCharsMax }: PairBounds) {
  const problemOf = (name: string, value: unknown) => {
    if (name.length > nameCharsMax) return `must have a name of at most ${nameCharsMax} characters`;
    if (typeof value !== "string") return "expected a string";
    return value.length > valueCharsMax ? `must have at most ${valueCharsMax} characters` : null;
  };
  return z
    .looseObject({})
    .superRefine((pairs, issues) => {
      const names = Object.keys(pairs);
      if (names.length > countMax)
        return issues.addIssue({ code: "custom", message: `must have at most ${countMax} fields`, input: pairs });
      for (const name of names) {
        const message = problemOf(name, ownValue(pairs, name));
        if (message !== null) return issues.addIssue({ code: "custom", path: [name], message, input: pairs });
      }
    })
    .transform((pairs) => pairs as Readonly<Record<string, string>>)
    .meta({
      maxProperties: countMax,
      propertyNames: { type: "string", maxLength: nameCharsMax },
      additionalProperties: { type: "string", maxLength: valueCharsMax },
    });
}

/** A list that holds nothing twice. */
export function distinct<Item extends z.ZodType<string>>(list: z.ZodArray<Item>) {
  return list.superRefine(refuseDuplicates).meta({ uniqueItems: true });
}

/** Names the first item that is there a second time. A list may be long: it is looked through once. */
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
 * Schemas of what is asked for at every turn, with what zod compiles of each: code that checks a good input in a tenth of the time, and
 * leaves one that is not good to the schema itself, whose words are told. It is compiled when it is used, not when the process starts.
 */
const frequent = new WeakMap<z.ZodType, z.ZodType | null>();

/** The same schema, which is compiled from its first input on. */
export function parsedOften<Schema extends z.ZodType>(schema: Schema): Schema {
  if (!frequent.has(schema)) frequent.set(schema, null);
  return schema;
}

/** The parsed input, or BAD_REQUEST with `param` naming the first wrong field. */
export function parseInput<Output>(schema: z.ZodType<Output>, input: unknown): Output {
  const first = quickest(schema).safeParse(input, UNTIL_WRONG);
  if (first.success) return first.data;
  // Of an input that is small everything that is wrong is told.
  const result = isSmall(input) ? schema.safeParse(input, PARSING) : first;
  if (result.success) return result.data;
  throw toInputError(result.error, input);
}

/** Unspecified: values of an input, of which each may be wrong in several ways, that are all looked for. */
const SMALL_VALUES_MAX = 1_000;

function isSmall(input: unknown): boolean {
  return countValues(input, SMALL_VALUES_MAX) <= SMALL_VALUES_MAX;
}

/** As far as one more than `most`. */
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
  const untold = issues.reduce(
    (sum, issue) => sum + (issue.code === "unrecognized_keys" ? Math.max(0, issue.keys.length - FINDINGS_MAX) : 0),
    0,
  );
  const messages = byField(findings);
  const param = [...messages.keys()].find((path) => path !== "");
  const { "": formErrors = [], ...fieldErrors } = Object.fromEntries(byField(findings.slice(0, FINDINGS_MAX)));
  return new AppError("BAD_REQUEST", toSentence(messages, untold), {
    ...(param !== undefined && { param }),
    details: { fieldErrors, formErrors },
  });
}

/** A value of a wrong type breaks bounds that are none of its own: of such a field only the type is told. */
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

/** "name: is required", or "2 fields are wrong: name: is required; type: must be one of secret or publishable". `untold`: fields beside those. */
function toSentence(messages: ReadonlyMap<string, readonly string[]>, untold: number): string {
  const said = [...messages]
    .slice(0, FIELDS_SAID_MAX)
    .map(([path, about]) => (path === "" ? "" : `${shortened(path)}: `) + about.join(", "));
  const count = messages.size + untold;
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

/** Whether a value that is not there is told so; a schema's own words are about one that is. */
function isAboutMissing({ code, path }: z.core.$ZodIssue): boolean {
  return path.length > 0 && (code === "invalid_type" || code === "invalid_value" || code === "invalid_union");
}

/** Of what was sent: a list that a schema makes of a text has places that nobody could have filled. */
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
 * Of a union's variants, the one that the caller seems to have meant: that whose tag (`type: "function_call"`) the input has, else
 * the one with the fewest mistakes. Null when the input had the wrong type for all of them, where the union's own message says more.
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

/** A list whose items have a wrong type is one of another variant. */
function isOfWrongItem({ code, path }: z.core.$ZodIssue): boolean {
  return path.length === 1 && typeof path[0] === "number" && code === "invalid_type";
}

/** With as few mistakes as any, and of those the one that the input agrees with deepest. */
function fewest(variants: readonly Issues[]): Issues | null {
  return variants.reduce<Issues | null>((best, issues) => {
    if (best === null || issues.length < best.length) return issues;
    return issues.length === best.length && depthOf(issues) > depthOf(best) ? issues : best;
  }, null);
}

function depthOf(issues: Issues): number {
  return issues.reduce((depth, { path }) => Math.max(depth, path.length), 0);
}

/** About a field that may have a single value: what tells the variants of a union apart. */
function isOfTag(issue: z.core.$ZodIssue): issue is z.core.$ZodIssueInvalidValue {
  return issue.code === "invalid_value" && issue.values.length === 1 && issue.path.length === 1;
}

/** When the input has the tag of no variant, that is what is wrong with it: the tags of all of them. */
function toTagIssue(variants: readonly Issues[]): Issues | null {
  const tags = variants.map((issues) => issues.find(isOfTag)).filter((issue) => issue !== undefined);
  const [first] = tags;
  if (!first || tags.some(({ path }) => path[0] !== first.path[0])) return null;
  const values = [...new Set(tags.flatMap((issue) => issue.values))];
  return [{ ...first, values, message: sayChoices(values.map(String)) }];
}
