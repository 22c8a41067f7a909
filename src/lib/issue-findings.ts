/** The wrong fields of an input, by path and message, from zod's issues. Issues are parsed with `sayIssue` (`issue-words.ts`). */
import type * as z from "zod";
import { MISSING, NOT_ALLOWED, sayChoices, UNKNOWN_FIELDS_SEPARATOR } from "./issue-words.js";
import { ownValue } from "./own-values.js";

/** Unspecified: unknown fields of one object; a body can hold thousands. */
const UNKNOWN_MAX = 20;

export interface Finding {
  /** Dotted. Empty: the whole input. */
  readonly path: string;
  readonly message: string;
}

export interface Findings {
  readonly found: readonly Finding[];
  /** Unknown fields that `found` lacks. */
  readonly further: number;
}

export function findingsOf({ issues }: z.ZodError, input: unknown): Findings {
  const causes = withoutConsequences(issues);
  return {
    found: causes.flatMap((issue) => toFindings(issue, [], input)),
    further: causes.reduce(
      (sum, issue) => sum + (issue.code === "unrecognized_keys" ? Math.max(0, issue.keys.length - UNKNOWN_MAX) : 0),
      0,
    ),
  };
}

/** Drops the issues on bounds of a field that already has the wrong type. */
function withoutConsequences(issues: readonly z.core.$ZodIssue[]): readonly z.core.$ZodIssue[] {
  if (issues.length === 1) return issues;
  const wrong = new Set(issues.filter(({ code }) => code === "invalid_type").map(({ path }) => dotted(path)));
  return issues.filter(({ code, path }) => code === "invalid_type" || !wrong.has(dotted(path)));
}

function toFindings(issue: z.core.$ZodIssue, parents: readonly PropertyKey[], input: unknown): Finding[] {
  const path = [...parents, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    const messages = issue.message.split(UNKNOWN_FIELDS_SEPARATOR);
    return issue.keys
      .slice(0, UNKNOWN_MAX)
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
