/**
 * Modules that are loaded on demand, in the built server: a bundler gives a CommonJS package that is imported on demand
 * one export, `default`, where Node would give it its names, so code that works from the sources may fail in the
 * product.
 */
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import { join, posix } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { projectRoot } from "../../scripts/build.mjs";
import { filesBelow } from "../setup/files-below.js";
import { findLateImports, type LateImport } from "../support/late-imports.js";

/** They run elsewhere: one in Deno, with an agent's program; one only where the sources are run. */
const NOT_IN_THE_BUNDLE = ["src/services/agents/sandbox/guest-program.ts"];
const OWN_SOURCE = /^(?:src|packages)\//;
/** Takes the exports of a module out of its `default`, where a bundler has put them. */
const UNPACK = "exportsOf";

interface BuiltImport extends LateImport {
  readonly file: string;
  /** Of the project's sources, where it was written; null in a package. */
  readonly origin: string | null;
}

function readBuilt(): BuiltImport[] {
  const dist = join(projectRoot, "dist");
  return readdirSync(dist)
    .filter((file) => file.endsWith(".js") && file !== "guest-program.js")
    .flatMap((file) => {
      const text = readFileSync(join(dist, file), "utf8");
      const found = findLateImports(text, "js");
      if (found.length === 0) return [];
      const map = new SourceMap(JSON.parse(readFileSync(join(dist, `${file}.map`), "utf8")));
      return found.map((each) => ({ ...each, file, origin: originOf(map, text, each.offset) }));
    });
}

function originOf(map: SourceMap, text: string, offset: number): string | null {
  const before = text.slice(0, offset);
  const line = before.split("\n").length - 1;
  const entry = map.findEntry(line, offset - (before.lastIndexOf("\n") + 1));
  const source = "originalSource" in entry ? posix.join("dist", entry.originalSource) : "";
  return OWN_SOURCE.test(source) ? source : null;
}

function readSources(): Map<string, LateImport[]> {
  const files = ["src", "packages"]
    .flatMap((folder) => filesBelow(join(projectRoot, folder)).map((file) => `${folder}/${file}`))
    .filter((file) => file.endsWith(".ts") && !file.includes("/generated/") && !NOT_IN_THE_BUNDLE.includes(file));
  const all = files.map((file): [string, LateImport[]] => [file, findLateImports(readFileSync(join(projectRoot, file), "utf8"), "ts")]);
  return new Map(all.filter(([, found]) => found.length > 0));
}

/** Loads each in a process of its own. The names of those that could be, and the errors of the others. */
async function load(targets: readonly string[]): Promise<Map<string, { readonly names?: string[]; readonly error?: string }>> {
  const program = `
    const loaded = {};
    for (const target of JSON.parse(process.argv[1])) {
      loaded[target] = await import(target).then(
        (module) => ({ names: Object.keys(module).filter((name) => module[name] !== undefined) }),
        (error) => ({ error: error.message }),
      );
    }
    process.stdout.write(JSON.stringify(loaded), () => process.exit());`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ["--no-warnings", "--input-type=module", "--eval", program, JSON.stringify(targets)],
    { cwd: projectRoot, maxBuffer: 64 * 1024 * 1024 },
  );
  return new Map(Object.entries(JSON.parse(stdout)));
}

const specifierOf = (target: string) => (target.startsWith(".") ? `./${posix.join("dist", target)}` : target);

describe("what the built server loads on demand", () => {
  const built = readBuilt();
  const ours = built.filter(({ origin }) => origin !== null);

  it("is exactly the set of dynamic imports in the sources, each of them named", () => {
    const written = readSources();
    const inBundle = [...written.keys()].map((file) => [file, ours.filter(({ origin }) => origin === file).length]);

    expect(written.size).toBeGreaterThan(20);
    expect(inBundle).toEqual([...written].map(([file, found]) => [file, found.length]));
    expect(ours.filter(({ target }) => target === null)).toEqual([]);
  });

  it("can be loaded, and has the names that are taken of it", async () => {
    const targets = [...new Set(built.flatMap(({ target }) => target ?? []))];
    const loaded = await load(targets.map(specifierOf));

    const failures = built.flatMap(({ file, origin, target, names, passedTo }) => {
      const { names: has = [], error } = loaded.get(specifierOf(target ?? "")) ?? {};
      const where = `${origin ?? file}: ${target}`;
      if (error !== undefined) return [`${where} cannot be loaded: ${error}`];
      if (origin === null) return [];
      if (names === null)
        return has.length === 1 && has[0] === "default" && passedTo !== UNPACK
          ? [`${where} has a default alone, and is taken as a whole`]
          : [];
      return names.filter((name) => !has.includes(name)).map((name) => `${where} has no ${name}`);
    });

    expect(failures).toEqual([]);
  });
});

describe("the reader of imports on demand", () => {
  it.each<[string, readonly string[] | null]>([
    ['const { a, "b": c } = await import("x");', ["a", "b"]],
    ['const [{ a }, { b }] = await Promise.all([import("y"), import("x")]);', ["b"]],
    ['async () => (await import("x")).a();', ["a"]],
    ['import("x").then(({ default: a }) => a());', ["default"]],
    ['import("x").then((module) => module.a);', ["a"]],
    ['async function f() { const m = await import("x"); return m.a + m.b; }', ["a", "b"]],
    ['async function f() { const m = await import("x"); return { ...m, a: m.a }; }', null],
    ['const { ...rest } = await import("x");', null],
    ['const f = async () => import("x");', null],
    ['const f = async (name: string) => (await import("x"))[name];', null],
  ])("finds the names in %s", (text, names) => {
    expect(findLateImports(text, "ts").find(({ target }) => target === "x")?.names).toEqual(names);
  });

  it("reports the function that a module is passed to", () => {
    expect(findLateImports('const f = async () => unpack(await import("x"));', "ts")).toMatchObject([{ names: null, passedTo: "unpack" }]);
  });

  it("reports a module with a computed target", () => {
    expect(findLateImports("const { a } = await import(url);", "ts")).toEqual([{ target: null, offset: 20, names: ["a"], passedTo: null }]);
  });
});
