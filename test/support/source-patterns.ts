/** Every regular expression of the sources: the literals, and those that `new RegExp` makes of constants. */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Syntax, syntaxOf, visit } from "./syntax.js";

export interface SourcePattern {
  /** `lib/money.ts: /^a+$/`: what a list of exceptions names it by. */
  readonly name: string;
  readonly pattern: RegExp;
}

export async function findPatterns(root: string): Promise<SourcePattern[]> {
  const found: SourcePattern[] = [];
  for (const file of readdirSync(root, { recursive: true, encoding: "utf8" })) {
    if (!file.endsWith(".ts") || file.includes("generated")) continue;
    const program = syntaxOf(readFileSync(join(root, file), "utf8"));
    const add = (pattern: RegExp) => found.push({ name: `${file.replaceAll("\\", "/")}: ${pattern}`, pattern });
    const made: Syntax[] = [];
    visit(program, (node) => {
      if (node.type === "Literal" && node.regex) {
        const { pattern, flags } = node.regex as { pattern: string; flags: string };
        add(new RegExp(pattern, flags));
      }
      const isMade = (node.type === "NewExpression" || node.type === "CallExpression") && (node.callee as Syntax).name === "RegExp";
      if (isMade) made.push(node);
    });
    if (made.length === 0) continue;
    const scope = new Scope(program, join(root, file));
    for (const node of made) {
      const [source, flags] = await Promise.all((node.arguments as Syntax[]).map((argument) => scope.evaluate(argument)));
      add(new RegExp(source as string, flags as string | undefined));
    }
  }
  return found;
}

/** Constants of a module, as far as patterns are built from them. An expression that it cannot read fails the test. */
class Scope {
  private readonly constants = new Map<string, Syntax>();
  private readonly imports = new Map<string, { readonly from: string; readonly name: string }>();

  constructor(
    program: Syntax,
    private readonly file: string,
  ) {
    visit(program, (node) => {
      if (node.type === "VariableDeclarator" && node.init) this.constants.set(String((node.id as Syntax).name), node.init as Syntax);
      if (node.type !== "ImportDeclaration") return;
      for (const specifier of node.specifiers as Syntax[]) {
        if (specifier.type !== "ImportSpecifier") continue;
        const name = String((specifier.imported as Syntax).name);
        this.imports.set(String((specifier.local as Syntax).name), { from: String((node.source as Syntax).value), name });
      }
    });
  }

  async evaluate(node: Syntax): Promise<unknown> {
    if (node.type === "Literal") return node.regex ? new RegExp((node.regex as { pattern: string }).pattern) : node.value;
    if (node.type === "TemplateLiteral") {
      const values = await Promise.all((node.expressions as Syntax[]).map((expression) => this.evaluate(expression)));
      const texts = (node.quasis as Syntax[]).map((quasi) => (quasi.value as { cooked: string }).cooked);
      return texts.map((text, index) => text + (values[index] ?? "")).join("");
    }
    if (node.type === "MemberExpression") {
      const object = (await this.evaluate(node.object as Syntax)) as Record<string, unknown>;
      return object[String((node.property as Syntax).name)];
    }
    if (node.type === "Identifier") {
      const name = String(node.name);
      const constant = this.constants.get(name);
      if (constant) return this.evaluate(constant);
      const imported = this.imports.get(name);
      if (imported) return this.load(imported);
    }
    throw new Error(`${this.file} makes a pattern of what is not constant (${node.type}): write it so that it can be tested.`);
  }

  private async load({ from, name }: { readonly from: string; readonly name: string }): Promise<unknown> {
    const target = from.startsWith(".") ? pathToFileURL(join(dirname(this.file), from.replace(/\.js$/, ".ts"))).href : from;
    return ((await import(target)) as Record<string, unknown>)[name];
  }
}
