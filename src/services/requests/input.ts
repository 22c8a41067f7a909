/**
 * Turns zod's issues into the error envelope: every wrong field by its dotted path (docs/spec/errors.md#envelope). The words are in
 * `issue-words.ts`.
 */
import * as z from "zod";
import { AppError } from "../../errors.js";
import { type Finding, findingsOf } from "../../lib/issue-findings.js";
import { sayIssue } from "../../lib/issue-words.js";
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
  const { found, further } = findingsOf(error, input);
  const messages = byField(found);
  const param = [...messages.keys()].find((path) => path !== "");
  const { "": formErrors = [], ...fieldErrors } = Object.fromEntries(byField(found.slice(0, FINDINGS_MAX)));
  return new AppError("BAD_REQUEST", toSentence(messages, further), {
    ...(param !== undefined && { param }),
    details: { fieldErrors, formErrors },
  });
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
