/** Values of a query string, which are text and read strictly (docs/spec/http.md#bodies-and-query-values). */
import * as z from "zod";
import { inUnit } from "../../lib/issue-words.js";
import { parseNanocredits } from "../../lib/money.js";
import { ownValue } from "../../lib/own-values.js";
import { isStorableTime, STORABLE_YEARS } from "../../lib/storable-time.js";
import { CREDITS_MAX, USAGE_DAYS_MAX } from "../../limits.js";

/** true, false, 1 and 0 only; described as a boolean. */
export const queryFlag = z
  .enum(["true", "false", "1", "0"], "expected true, false, 1 or 0")
  .transform((value) => value === "true" || value === "1")
  .meta({ enum: undefined, type: "boolean" });

export const queryUsageDays = () => queryInteger(inUnit(z.int().min(1).max(USAGE_DAYS_MAX), "days"));

/** Digits with or without a minus: `1e3`, `5.0` and ` 5` are refused. Bounded and described by `number`. */
export function queryInteger(number: z.ZodType<number, number>) {
  return z
    .string()
    .regex(/^-?\d{1,16}$/, "expected a whole number")
    .transform(Number)
    .pipe(number)
    .meta(descriptionOf(number));
}

/** As above, with or without decimals. */
export function queryNumber(number: z.ZodType<number, number>) {
  return z
    .string()
    .regex(/^-?\d{1,16}(?:\.\d{1,20})?$/, "expected a number")
    .transform(Number)
    .pipe(number)
    .meta(descriptionOf(number));
}

/** An ISO 8601 time with its zone. */
export const queryTime = () =>
  z.iso
    .datetime({ offset: true, error: "must be an ISO 8601 time such as 2026-01-31T12:00:00.000Z" })
    .transform((text) => new Date(text))
    .refine(isStorableTime, STORABLE_YEARS);

/** An amount of credits, in nanocredits. */
export const queryCredits = () =>
  z
    .string()
    .transform((text, issues) => {
      const nanocredits = parseNanocredits(text);
      if (nanocredits !== null && nanocredits >= 0n && nanocredits <= BigInt(CREDITS_MAX) * 10n ** 9n) return nanocredits;
      issues.addIssue(`must be an amount of credits from 0 to ${CREDITS_MAX}, such as 0.25`);
      return z.NEVER;
    })
    .meta({ pattern: "^\\d+(?:\\.\\d{1,9})?$" });

/** Values separated by commas; surrounding blanks are dropped. */
export function queryList<Item>(list: z.ZodType<Item[], Item[] | string[]> | z.ZodType<Item[], string[]>) {
  return z
    .string()
    .transform((text) =>
      text
        .split(",")
        .map((item) => item.trim())
        .filter(Boolean),
    )
    .pipe(list as z.ZodType<Item[], string[]>)
    .meta({ pattern: "^[^\\u0000]*$", allOf: [{ pattern: "[^\\s,]" }] });
}

function descriptionOf(number: z.ZodType<number, number>) {
  const { $schema: _, ...described } = z.toJSONSchema(number, { io: "input" });
  return { pattern: undefined, ...described };
}

/** A whole number: text in a form, a number in JSON. */
export function formInteger(number: z.ZodType<number, number>) {
  return z.preprocess((value) => (typeof value === "string" && /^-?\d{1,16}$/.test(value) ? Number(value) : value), number.nullish());
}

/** The same for booleans; `flag` bounds and describes them. */
export function formFlag<Value>(flag: z.ZodType<Value, Value>) {
  return z.preprocess((value) => (typeof value === "string" ? (ownValue(FLAGS, value) ?? value) : value), flag.nullish());
}

const FLAGS: Readonly<Record<string, boolean>> = { true: true, "1": true, false: false, "0": false };
