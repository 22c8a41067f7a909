/** What a program imports on demand, read off its text, and which names of it the program uses. */
import { parseAst } from "vitest/node";
import { type Syntax, visit } from "./syntax.js";

export interface LateImport {
  /** As it is written; null for one that the program computes. */
  readonly target: string | null;
  /** Where it stands in the text, in UTF-16 units. */
  readonly offset: number;
  /** The names that are taken of the module. Null: the module is passed on as a whole. */
  readonly names: readonly string[] | null;
  /** The function that the module is passed to. */
  readonly passedTo: string | null;
}

export function findLateImports(text: string, lang: "js" | "ts"): LateImport[] {
  // Parsing a bundle of megabytes takes long, and most have none.
  if (!/\bimport\(/.test(text)) return [];
  const found: LateImport[] = [];
  walk(parseAst(text, { lang }) as unknown as Syntax, [], (node, parents) => {
    if (node.type !== "ImportExpression") return;
    const source = node.source as Syntax;
    found.push({
      target: source.type === "Literal" ? String(source.value) : null,
      offset: node.start as number,
      names: namesTaken(node, parents),
      passedTo: functionCalled(parents),
    });
  });
  return found;
}

/** Of `called(await import(x))`. */
function functionCalled(parents: readonly Syntax[]): string | null {
  const [call, awaited] = parents.slice(-2);
  if (call?.type !== "CallExpression" || awaited?.type !== "AwaitExpression") return null;
  return String((call.callee as Syntax).name);
}

/** `parents` has the nearest last. */
function walk(value: unknown, parents: Syntax[], see: (node: Syntax, parents: readonly Syntax[]) => void): void {
  if (typeof value !== "object" || value === null) return;
  const node = "type" in value && typeof value.type === "string" ? (value as Syntax) : null;
  if (node) {
    see(node, parents);
    parents.push(node);
  }
  for (const part of Object.values(value)) walk(part, parents, see);
  if (node) parents.pop();
}

/**
 * Understands `const { a } = await import(x)`, `(await import(x)).a`, `import(x).then(({ a }) => ...)`, and the first of them of several
 * with Promise.all. A module that is given a name is passed on as a whole when anything but its fields is used.
 */
function namesTaken(node: Syntax, parents: readonly Syntax[]): readonly string[] | null {
  let depth = parents.length - 1;
  const parent = () => parents[depth];
  let inner = node;
  const climb = () => {
    inner = parent() as Syntax;
    depth -= 1;
  };
  while (parent()?.type === "AwaitExpression" || parent()?.type === "ParenthesizedExpression") climb();
  const outer = parent();
  if (outer?.type === "MemberExpression") {
    const callback = inner === node ? callbackOf(outer, parents[depth - 1]) : null;
    return callback ? namesOfPattern(callback.parameter, callback.body) : nameOfField(outer);
  }
  if (outer?.type === "VariableDeclarator") return namesOfPattern(outer.id as Syntax, parents);
  if (outer?.type === "ArrayExpression") {
    const index = (outer.elements as unknown[]).indexOf(inner);
    const declarator = parents.slice(0, depth).findLast(({ type }) => type === "VariableDeclarator");
    const pattern = declarator?.id as Syntax | undefined;
    const element = pattern?.type === "ArrayPattern" ? (pattern.elements as Syntax[])[index] : undefined;
    return element ? namesOfPattern(element, parents) : null;
  }
  return null;
}

/** Of `promise.then(callback)`. */
function callbackOf(member: Syntax, call: Syntax | undefined): { readonly parameter: Syntax; readonly body: Syntax } | null {
  if (call?.type !== "CallExpression" || (member.property as Syntax).name !== "then") return null;
  const [callback] = call.arguments as Syntax[];
  const [parameter] = (callback?.params ?? []) as Syntax[];
  return callback && parameter ? { parameter, body: callback.body as Syntax } : null;
}

function nameOfField({ property, computed }: Syntax): readonly string[] | null {
  return computed ? null : [String((property as Syntax).name)];
}

function namesOfPattern(pattern: Syntax, scope: unknown): readonly string[] | null {
  if (pattern.type === "ObjectPattern") {
    const properties = pattern.properties as Syntax[];
    if (properties.some(({ type, computed }) => type !== "Property" || computed)) return null;
    return properties.map(({ key }) => String((key as Syntax).name ?? (key as Syntax).value));
  }
  return pattern.type === "Identifier" ? namesOfVariable(String(pattern.name), scope) : null;
}

/** The fields that a variable is read for; null when it is used in another way. */
function namesOfVariable(name: string, scope: unknown): readonly string[] | null {
  const names = new Set<string>();
  let [uses, reads] = [0, 0];
  visit(Array.isArray(scope) ? nearestFunction(scope) : scope, (node) => {
    if (node.type === "Identifier" && node.name === name) uses += 1;
    const object = node.type === "MemberExpression" && !node.computed ? (node.object as Syntax) : null;
    if (object?.type !== "Identifier" || object.name !== name) return;
    reads += 1;
    names.add(String((node.property as Syntax).name));
  });
  const declarations = Array.isArray(scope) ? 1 : 0;
  return reads > 0 && uses === reads + declarations ? [...names] : null;
}

function nearestFunction(parents: readonly Syntax[]): Syntax | undefined {
  return parents.findLast(({ type }) => /Function/.test(type)) ?? parents[0];
}
