/**
 * Calls whose number of arguments is that of a list: each argument takes a place on the stack, so that `push(...list)` and
 * `Math.max(...list)` of some 100,000 items throw a RangeError, and of fewer copy the list.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAst } from "vitest/node";
import { type Syntax, visit } from "./syntax.js";

/**
 * Reports calls such as `lib/money.ts: fn(...list)`, except spreads of constant size and of a function's own rest
 * parameters.
 */
export function findSpreadArguments(root: string): string[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .map((file) => file.replaceAll("\\", "/"))
    .filter((file) => /\.tsx?$/.test(file) && !file.includes("generated") && !/(?:^|\/)dist\//.test(file))
    .flatMap((file) => {
      const calls = spreadsIn(readFileSync(join(root, file), "utf8"), file.endsWith("x") ? "tsx" : "ts");
      return calls.map((call) => `${file}: ${call}`);
    });
}

export function spreadsIn(text: string, lang: "ts" | "tsx" = "ts"): string[] {
  const program = parseAst(text, { lang }) as unknown as Syntax;
  const found: string[] = [];
  const enter = (node: unknown, rest: ReadonlySet<string>): void => {
    if (typeof node !== "object" || node === null) return;
    if (Array.isArray(node)) {
      for (const item of node) enter(item, rest);
      return;
    }
    const syntax = node as Syntax;
    const own = "params" in syntax ? new Set([...rest, ...restNames(syntax.params)]) : rest;
    if (syntax.type === "CallExpression" || syntax.type === "NewExpression") {
      if (appliesAList(syntax)) found.push(`${textOf(syntax.callee as Syntax, text)}(…)`);
      for (const argument of syntax.arguments as Syntax[]) {
        if (argument.type === "SpreadElement" && !isBounded(argument.argument as Syntax, own)) {
          found.push(`${textOf(syntax.callee as Syntax, text)}(${textOf(argument, text)})`);
        }
      }
    }
    for (const part of Object.values(syntax)) enter(part, own);
  };
  enter(program, new Set());
  return found;
}

/** `fn.apply(owner, list)`, which is the same in other words. */
function appliesAList({ callee, arguments: given }: Syntax): boolean {
  const { object, property } = callee as { object?: Syntax; property?: Syntax };
  const list = (given as Syntax[]).at(-1);
  return property?.name === "apply" && (object as Syntax).name !== "Reflect" && list?.type !== "ArrayExpression";
}

function restNames(params: unknown): string[] {
  const names: string[] = [];
  visit(params, (node) => {
    if (node.type === "RestElement") names.push(String((node.argument as Syntax).name));
  });
  return names;
}

/**
 * A literal list without a spread, one of two such, a constant, a list made from one, or the function's own rest
 * parameter.
 */
function isBounded(node: Syntax, rest: ReadonlySet<string>): boolean {
  if (node.type === "Identifier") return rest.has(String(node.name)) || CONSTANT.test(String(node.name));
  if (node.type === "CallExpression") {
    const { object, property } = node.callee as { object?: Syntax; property?: Syntax };
    return object !== undefined && SHAPE_KEEPING.has(String(property?.name)) && isBounded(object, rest);
  }
  if (node.type === "ConditionalExpression") return isBounded(node.consequent as Syntax, rest) && isBounded(node.alternate as Syntax, rest);
  if (node.type === "TSAsExpression" || node.type === "ParenthesizedExpression") return isBounded(node.expression as Syntax, rest);
  return node.type === "ArrayExpression" && (node.elements as (Syntax | null)[]).every((element) => element?.type !== "SpreadElement");
}

const CONSTANT = /^[A-Z][A-Z0-9_]*$/;
/** They answer no more items than they are given. */
const SHAPE_KEEPING: ReadonlySet<string> = new Set(["map", "filter", "values", "keys", "entries", "slice"]);

function textOf(node: Syntax, text: string): string {
  return text.slice(Number(node.start), Number(node.end)).replace(/\s+/g, " ");
}
