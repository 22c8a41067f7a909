/** zod's findings as the error that callers see: every wrong field by its dotted path (decisions "Errors"). */
import * as z from "zod";
import { AppError } from "../errors.js";

/** Unspecified: findings told at once. A body can hold thousands of wrong items, and nobody reads more than these. */
const FINDINGS_MAX = 20;

interface Finding {
  /** Empty: about the whole input. */
  readonly path: string;
  readonly message: string;
}

/** Text that is stored: PostgreSQL's holds no NUL character. */
export const storableText = z.string().refine((text) => !text.includes("\0"), "must not hold a NUL character");

/** The parsed input, or BAD_REQUEST with `param` naming the first wrong field. */
export function parseInput<Output>(schema: z.ZodType<Output>, input: unknown): Output {
  const result = schema.safeParse(input);
  if (result.success) return result.data;
  throw toInputError(result.error);
}

export function toInputError(error: z.ZodError): AppError {
  const findings = error.issues.flatMap((issue) => toFindings(issue, []));
  const first = findings[0] ?? { path: "", message: "Invalid input" };
  const others = findings.length - 1;
  const message = (first.path ? `${first.path}: ${first.message}` : first.message) + (others > 0 ? ` (and ${others} more)` : "");
  const details = toDetails(findings.slice(0, FINDINGS_MAX));
  return new AppError("BAD_REQUEST", message, first.path ? { param: first.path, details } : { details });
}

function toDetails(findings: readonly Finding[]) {
  const fieldErrors = new Map<string, string[]>();
  const formErrors: string[] = [];
  for (const { path, message } of findings) {
    if (path === "") formErrors.push(message);
    else fieldErrors.set(path, [...(fieldErrors.get(path) ?? []), message]);
  }
  return { fieldErrors: Object.fromEntries(fieldErrors), formErrors };
}

function toFindings(issue: z.core.$ZodIssue, parents: readonly PropertyKey[]): Finding[] {
  const path = [...parents, ...issue.path];
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({ path: [...path, key].map(String).join("."), message: "Unknown field" }));
  }
  if (issue.code === "invalid_union") {
    const closest = closestVariant(issue.errors);
    if (closest !== null) return closest.flatMap((nested) => toFindings(nested, path));
  }
  return [{ path: path.map(String).join("."), message: issue.message }];
}

/**
 * Of a union's variants, the one that the caller seems to have meant: the input agreed with it deepest. Null when the
 * input had the wrong type for all of them, where zod's own words for the union say more.
 */
function closestVariant(variants: readonly (readonly z.core.$ZodIssue[])[]): readonly z.core.$ZodIssue[] | null {
  let closest: readonly z.core.$ZodIssue[] | null = null;
  let closestDepth = 0;
  for (const issues of variants) {
    const depth = Math.max(0, ...issues.map((issue) => issue.path.length));
    if (depth > closestDepth || (depth === closestDepth && closest !== null && issues.length < closest.length)) {
      closest = issues;
      closestDepth = depth;
    }
  }
  return closest;
}
