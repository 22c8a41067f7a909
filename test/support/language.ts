/** Texts of the project that people read: comments, descriptions, names of tests, words of the dashboard. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { filesBelow } from "../setup/files-below.js";
import { type Syntax, syntaxOf, visit } from "./syntax.js";

export interface ReadableText {
  /** Relative to the project's root. */
  readonly file: string;
  readonly text: string;
}

/** Applied migrations never change. */
const SKIPPED = /generated\/|\/dist\/|node_modules\/|^prisma\/migrations\//;
const SOURCE = /\.(?:ts|tsx|mts|mjs|css)$/;
const CODE_FOLDERS = ["src", "packages", "dashboard", "test", "scripts", "bench", "examples", "prisma", ".ci"];
const ROOT_FILES = ["codegen.ts", "prisma.config.ts", "vitest.config.ts", ".env.example"];
const CONTRACTS = ["schema/schema.graphql", "schema/openapi.json"];
/** What prose in a file of code is written in. */
const COMMENT = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm;
const HASH_COMMENT = /^\s*#.*$/gm;
const SQL_COMMENT = /--.*$/gm;
const PRISMA_COMMENT = /\/\/.*$/gm;
const TESTS = new Set(["it", "test", "describe"]);

export function readTexts(root: string): ReadableText[] {
  const files = CODE_FOLDERS.flatMap((folder) => filesIn(root, folder));
  return [
    ...files.flatMap((file) => textsIn(file, readFileSync(join(root, file), "utf8"))),
    ...ROOT_FILES.flatMap((file) => textsIn(file, readFileSync(join(root, file), "utf8"))),
    ...[...filesIn(root, "docs"), "README.md"].filter((file) => file.endsWith(".md")).map((file) => whole(root, file)),
    ...CONTRACTS.map((file) => whole(root, file)),
  ];
}

const whole = (root: string, file: string): ReadableText => ({ file, text: readFileSync(join(root, file), "utf8") });

function filesIn(root: string, folder: string): string[] {
  return filesBelow(join(root, folder))
    .map((name) => `${folder}/${name}`)
    .filter((file) => !SKIPPED.test(file) && /\.\w+$/.test(file));
}

function textsIn(file: string, text: string): ReadableText[] {
  if (file.endsWith(".sql")) return matches(file, text, SQL_COMMENT);
  if (file.endsWith(".prisma")) return matches(file, text, PRISMA_COMMENT);
  if (file.endsWith(".example") || file.startsWith(".ci/")) return matches(file, text, HASH_COMMENT);
  if (!SOURCE.test(file)) return [];
  const comments = matches(file, text, COMMENT);
  if (file.startsWith("test/") && file.endsWith(".test.ts")) return [...comments, ...testNames(file, text)];
  if (file.startsWith("dashboard/src/") && /\.tsx?$/.test(file)) return [...comments, ...wordsOfPages(file, text)];
  return comments;
}

function matches(file: string, text: string, pattern: RegExp): ReadableText[] {
  return [...text.matchAll(pattern)].map(([found]) => ({ file, text: found }));
}

function testNames(file: string, text: string): ReadableText[] {
  const names: ReadableText[] = [];
  visit(syntaxOf(text), (node) => {
    if (node.type !== "CallExpression" || !TESTS.has(calledName(node.callee as Syntax))) return;
    const [name] = node.arguments as Syntax[];
    if (name?.type === "Literal" && typeof name.value === "string") names.push({ file, text: name.value });
  });
  return names;
}

/** `it` of `it(...)`, `it.each(...)(...)`, `describe.skipIf(...)(...)`. */
function calledName({ type, name, object, callee }: Syntax): string {
  if (type === "Identifier") return String(name);
  if (type === "MemberExpression") return calledName(object as Syntax);
  return type === "CallExpression" ? calledName(callee as Syntax) : "";
}

/** Sentences of the pages: JSX text, and texts and templates of several words. */
function wordsOfPages(file: string, text: string): ReadableText[] {
  const words: ReadableText[] = [];
  visit(syntaxOf(text, file.endsWith(".tsx") ? "tsx" : "ts"), ({ type, value }) => {
    const shown = type === "TemplateElement" ? (value as { cooked?: string }).cooked : value;
    const isText = type === "JSXText" || type === "Literal" || type === "TemplateElement";
    if (isText && typeof shown === "string" && /\S\s+\S/.test(shown)) words.push({ file, text: shown });
  });
  return words;
}
