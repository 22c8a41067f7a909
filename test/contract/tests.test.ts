/**
 * The rules for every test: it can fail, by its assertions, and it uses the public side of its subject. Checked by
 * syntax.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "graphql";
import { describe, expect, it } from "vitest";
import { filesBelow } from "../setup/files-below.js";
import { type Syntax, syntaxOf, visit } from "../support/syntax.js";

const root = fileURLToPath(new URL("../", import.meta.url));
const all = filesBelow(root);
const read = (file: string) => readFileSync(join(root, file), "utf8");
const files = all
  .filter((file) => file.endsWith(".ts") && !file.startsWith("operations/generated/"))
  .map((file) => ({ file, source: toSource(read(file)) }));

const ASSERTIONS = /^(?:expect|assert)/;

/** The syntax of a test, or of a module that tests share. */
interface Source {
  readonly text: string;
  readonly program: Syntax;
}

function toSource(text: string): Source {
  return { text, program: syntaxOf(text) };
}

/** The tests of a file that assert nothing, neither themselves nor in a function of the same file that they call. */
function findSilentTests({ program }: Source): string[] {
  const functions = new Map<string, Syntax>();
  visit(program, (node) => {
    if (node.type === "FunctionDeclaration") functions.set(nameOf(node.id), node);
    if (node.type === "VariableDeclarator" && node.init) functions.set(nameOf(node.id), node.init as Syntax);
  });
  // A function that makes tests from its parameters: `const behind = (name, test) => it(name, ...)`.
  const makers = new Set([...functions].filter(([, body]) => makesTests(body)).map(([name]) => name));
  const silent: string[] = [];
  visit(program, (node) => {
    const test = testOf(node, makers);
    if (test && !asserts(test.body, functions, new Set())) silent.push(test.name);
  });
  return silent;
}

function makesTests(body: Syntax): boolean {
  let isFound = false;
  visit(body, (node) => {
    if (node.type === "CallExpression" && baseOf(node.callee as Syntax) === "it") isFound ||= titleOf(node)?.type === "Identifier";
  });
  return isFound;
}

const titleOf = ({ arguments: given }: Syntax) => (given as Syntax[])[0];

/** Of `it(name, body)`, `it.each(table)(name, body)`, `it.skipIf(condition)(name, options, body)`. */
function testOf(node: Syntax, makers: ReadonlySet<string>): { readonly name: string; readonly body: Syntax } | null {
  if (node.type !== "CallExpression") return null;
  const name = baseOf(node.callee as Syntax);
  const title = titleOf(node);
  // For a maker, its parameter is the test, not the call inside of it.
  if (!title || !(name === "it" || makers.has(name)) || title.type === "Identifier") return null;
  const body = (node.arguments as Syntax[]).slice(1).find(({ type }) => type.endsWith("Function") || type.endsWith("FunctionExpression"));
  return body ? { name: String(title.value ?? "a test without a name of its own"), body } : null;
}

/** `it` in `it`, `it.each` and `it.each(table)`. */
function baseOf(callee: Syntax): string {
  if (callee.type === "Identifier") return nameOf(callee);
  if (callee.type === "MemberExpression") return baseOf(callee.object as Syntax);
  if (callee.type === "CallExpression") return baseOf(callee.callee as Syntax);
  return callee.type === "TaggedTemplateExpression" ? baseOf(callee.tag as Syntax) : "";
}

function asserts(body: Syntax, functions: ReadonlyMap<string, Syntax>, seen: Set<string>): boolean {
  let isFound = false;
  visit(body, (node) => {
    if (isFound || node.type !== "Identifier") return;
    const name = nameOf(node);
    if (ASSERTIONS.test(name)) isFound = true;
    const called = functions.get(name);
    if (isFound || !called || seen.has(name)) return;
    seen.add(name);
    isFound = asserts(called, functions, seen);
  });
  return isFound;
}

/** What looks a private field up behind the compiler's back: by reflection, or by a cast of a part of the gateway to a shape of one's own. */
function findPryings({ text, program }: Source): string[] {
  const found: string[] = [];
  visit(program, (node) => {
    if (isReflected(node) || isRecast(node, text)) found.push(sourceOf(node, text));
  });
  return found;
}

function isReflected({ type, object, property }: Syntax): boolean {
  return type === "MemberExpression" && nameOf(object) === "Reflect" && REFLECTIONS.has(nameOf(property));
}
const REFLECTIONS = new Set(["get", "set", "apply", "defineProperty", "getOwnPropertyDescriptor"]);

function isRecast({ type, expression, typeAnnotation }: Syntax, text: string): boolean {
  if (type !== "TSAsExpression") return false;
  const { type: given, typeAnnotation: via } = expression as Syntax;
  const isOwnShape =
    (typeAnnotation as Syntax).type === "TSTypeLiteral" || (given === "TSAsExpression" && (via as Syntax).type === "TSUnknownKeyword");
  return isOwnShape && PARTS_OF_A_GATEWAY.test(sourceOf(expression as Syntax, text));
}
const PARTS_OF_A_GATEWAY = /^\(?\w+\.(?:services|infrastructure)\.\w+(?! ?\()(?:\)| |$)/;

/** Where the data of an answer is said to be of another type than its document's. */
function findCastData({ text, program }: Source): string[] {
  const found: string[] = [];
  visit(program, (node) => {
    if (node.type === "TSAsExpression" && isData(node.expression as Syntax)) found.push(sourceOf(node, text));
  });
  return found;
}

/** `answer.data`, or a part of it. */
function isData({ type, expression, object, property }: Syntax): boolean {
  if (type === "TSAsExpression" || type === "ChainExpression" || type === "TSNonNullExpression") return isData(expression as Syntax);
  return type === "MemberExpression" && (nameOf(property) === "data" || isData(object as Syntax));
}

const sourceOf = ({ start, end }: Syntax, text: string) => text.slice(Number(start), Number(end));

const nameOf = (node: unknown) => String((node as Syntax | null)?.name ?? "");

describe("every test", () => {
  it("asserts something", () => {
    const tests = files.filter(({ file }) => file.endsWith(".test.ts"));
    const silent = tests.flatMap(({ file, source }) => findSilentTests(source).map((name) => `${file}: ${name}`));

    expect(tests.length).toBeGreaterThan(200);
    expect(silent).toEqual([]);
  });
});

it("uses the public side of its subject, and so do modules that tests share", () => {
  expect(files.flatMap(({ file, source }) => findPryings(source).map((found) => `${file}: ${found}`))).toEqual([]);
});

describe("a test of the graph", () => {
  const documents = all.filter((file) => file.endsWith(".graphql")).map(read);
  const definitions = documents.flatMap((text) => parse(text).definitions);

  it("takes data in the type of its document", () => {
    const graphs = files.filter(
      ({ file, source }) => (file.startsWith("graphql/") && file !== "graphql/client.ts") || source.text.includes("graphql/client.js"),
    );

    expect(graphs.length).toBeGreaterThan(30);
    expect(graphs.flatMap(({ file, source }) => findCastData(source).map((found) => `${file}: ${found}`))).toEqual([]);
  });

  it("uses every operation", () => {
    const operations = definitions.flatMap((definition) => (definition.kind === "OperationDefinition" ? [definition.name?.value] : []));
    const named = new Set(files.flatMap(({ source }) => source.text.match(/\b[A-Z]\w+Document\b/g) ?? []));

    expect(operations.length).toBeGreaterThan(40);
    expect(operations.filter((name) => !named.has(`${name}Document`))).toEqual([]);
  });

  it("spreads each fragment", () => {
    const fragments = definitions.flatMap((definition) => (definition.kind === "FragmentDefinition" ? [definition.name.value] : []));
    const spread = new Set(documents.flatMap((text) => text.match(/\.\.\.\w+/g) ?? []));

    expect(fragments.filter((name) => !spread.has(`...${name}`))).toEqual([]);
  });
});

describe("a cast of an answer's data", () => {
  it.each([
    "const { me } = answer.data as { me: object };",
    "const usage = answer.data?.me as Usage | undefined;",
    "const usage = (await ask()).data?.me?.usage as unknown as Usage;",
  ])("is found: %s", (text) => {
    expect(findCastData(toSource(text))).not.toEqual([]);
  });

  it.each(["const { me } = ok(answer);", "const answer = (await response.json()) as Answer;", "const id = answer.data?.me?.id;"])(
    "is distinguished from: %s",
    (text) => {
      expect(findCastData(toSource(text))).toEqual([]);
    },
  );
});

describe("a use of a private field", () => {
  it.each([
    'const { pool } = Reflect.get(app.services.usage, "database") as Database;',
    'Reflect.set(quotas, "freeBytes", async () => 0);',
    "const { box } = app.services.models as unknown as { box: SecretBox };",
    "(app.services.jobs as unknown as Jobs).runner.stop();",
    "const events = app.infrastructure.events as { emitter: Emitter };",
  ])("is found: %s", (text) => {
    expect(findPryings(toSource(text))).toHaveLength(1);
  });

  it.each([
    "const caller = (await app.services.apiKeys.authenticate(key)) as KeyCaller;",
    "const { pool } = app.database;",
    "const model = { id } as unknown as Model;",
    "const body = (await response.json()) as { error: { code: string } };",
    "const names = Reflect.ownKeys(target);",
  ])("is distinguished from: %s", (text) => {
    expect(findPryings(toSource(text))).toEqual([]);
  });
});

describe("a test that asserts nothing", () => {
  it.each([
    "it('hangs', async () => { await request.closedByClient; });",
    "it.each([1])('hangs %i', async (a) => { await left; });",
    "const wait = () => left; it('hangs', async () => { await wait(); });",
    "const behind = (name, run) => it(name, () => run()); behind('hangs', async () => { await left; });",
    "it('only says so', () => { tell('expect(1)'); });",
    "it('hangs', { timeout: 1 }, async () => { await left; });",
  ])("is found: %s", (text) => {
    expect(findSilentTests(toSource(text))).toHaveLength(1);
  });

  it.each([
    "it('asserts', () => { expect(1).toBe(1); });",
    "it('asserts', () => expectEnvelope(answer));",
    "function check() { expect(1).toBe(1); } const all = () => check(); it('asserts', () => { all(); });",
    "it.each([1])('asserts', async (a) => { await expect.poll(() => a).toBe(1); });",
  ])("is distinguished from: %s", (text) => {
    expect(findSilentTests(toSource(text))).toEqual([]);
  });
});
