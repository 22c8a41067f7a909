/** The syntax of a source, for tests that read something off it. */
import { parseAst } from "vitest/node";

export interface Syntax {
  readonly type: string;
  readonly [field: string]: unknown;
}

export function syntaxOf(text: string, lang: "ts" | "tsx" = "ts"): Syntax {
  return parseAst(text, { lang }) as unknown as Syntax;
}

/** Calls `see` with each node, a node before its children. */
export function visit(value: unknown, see: (node: Syntax) => void): void {
  if (typeof value !== "object" || value === null) return;
  if ("type" in value && typeof value.type === "string") see(value as Syntax);
  for (const part of Object.values(value)) visit(part, see);
}
