/** Names from outside find only values that the gateway put there: docs/architecture.md, "Names from outside". */
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ownValue, setOwnValue, withFields } from "../../src/lib/own-values.js";
import { findOutsideNames } from "../support/outside-names.js";

/** Where it is done once, for everybody. */
const OWN_VALUES = "src/lib/own-values.ts";

const root = process.cwd();
/** Below node_modules, so that its imports are found. */
const directory = join(root, "node_modules", ".cache", "sluice", `outside-names-${process.pid}`);

beforeAll(() => mkdir(directory, { recursive: true }));
afterAll(() => rm(directory, { recursive: true }));

async function writeProject(name: string, content: object): Promise<string> {
  await writeFile(join(directory, name), JSON.stringify(content));
  return join(directory, name);
}

describe("an object", () => {
  it("is looked up by a name from outside through a Map, Object.hasOwn or ownValue, in all of src", async () => {
    const isJudged = (file: string) => file.startsWith("src/") && !/^src\/(?:store|graphql)\/generated\//.test(file) && file !== OWN_VALUES;

    // The sources alone are read in half the time.
    const config = await writeProject("src.json", { extends: join(root, "tsconfig.json"), include: [join(root, "src")] });
    const { files, found } = findOutsideNames(config, root, isJudged);

    expect(files).toBeGreaterThan(500);
    expect(found).toEqual([]);
  });

  it("is recognized by the type of the name: any text is found, and one of a few names is not", async () => {
    const compilerOptions = { strict: true, target: "es2023", module: "nodenext", noEmit: true, types: [] };
    const config = await writeProject("shapes.json", { compilerOptions, files: ["a.ts"] });
    await writeFile(join(directory, "a.ts"), `${[...HEAD, ...REFUSED, ...ALLOWED].join("\n")}\n`);

    const { found } = findOutsideNames(config, directory, (file) => file === "a.ts");

    const lines = new Set(found.map((each) => Number(/:(\d+) /.exec(each)?.[1])));
    expect([...lines].map((line) => [...HEAD, ...REFUSED, ...ALLOWED][line - 1])).toEqual(REFUSED);
  });

  it("has no inherited constructor and no __proto__", () => {
    const object: Record<string, string> = { a: "b" };

    setOwnValue(object, "__proto__", "c");

    expect(["a", "__proto__", "constructor", "toString"].map((name) => ownValue(object, name))).toEqual(["b", "c", undefined, undefined]);
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    expect(ownValue({}, "__proto__")).toBeUndefined();
  });

  it("is copied with its own fields alone", () => {
    const plain: Record<string, unknown> = { a: 1, b: 2 };
    const hostile: Record<string, unknown> = JSON.parse('{"a":1,"__proto__":{"b":2}}');

    expect(withFields(plain, { b: 3, c: 4 })).toEqual({ a: 1, b: 3, c: 4 });
    expect(plain).toEqual({ a: 1, b: 2 });
    const copy = withFields(hostile, { c: 4 });
    expect(JSON.stringify(copy)).toBe('{"a":1,"__proto__":{"b":2},"c":4}');
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect(ownValue(copy as Record<string, unknown>, "b")).toBeUndefined();
  });
});

const HEAD = [
  'type Known = "a" | "b";',
  "declare const table: Readonly<Record<string, string>>;",
  "declare const ofKnown: Readonly<Record<Known, string>>;",
  "declare const few: { a: string };",
  "declare const name: string;",
  "declare const known: Known;",
  "declare const unsure: Known | string;",
  "declare const anything: any;",
  "declare const row: { type: string };",
  "declare const list: readonly string[];",
  "declare const key: unique symbol;",
];
const REFUSED = [
  "export const a = name in table;",
  "export const c = table[name];",
  "export const d = table?.[name.toLowerCase()];",
  "export const e = table[`${" + "name}/x`];",
  "export const f = table[unsure];",
  "export const g = ofKnown[anything];",
  "export const h = ofKnown[name as Known];",
  "export const w = ofKnown[(name as string) as Known];",
  "export const i = few[name as keyof typeof few];",
  "export const j = table[row.type];",
  "export const { [name]: k } = table;",
  "export function l<Name extends string>(given: Name) { return table[given]; }",
  "(table as Record<string, string>)[name] = name;",
  "export const m = (object: Record<string, unknown>, path: string[]) => path.map((step) => object[step]);",
];
const ALLOWED = [
  "export const b = known in table;",
  "export const n = ofKnown[known];",
  "export const o = list[0];",
  "export const x = list[list.length as number];",
  "export const p = list[list.length - 1];",
  'export const q = "type" in row;',
  "export const r = key in row;",
  'export const s = table["a"];',
  "export const t = <Name extends Known>(given: Name) => ofKnown[given];",
  "export const u = Object.hasOwn(table, name);",
  "export const v = Object.keys(ofKnown).map((each) => each);",
];
