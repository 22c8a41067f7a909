/** The installed packages: each is used, none warns about a supported Node, and stand-ins stand for the versions that are asked for. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { major, satisfies } from "semver";
import { expect, it } from "vitest";
import { filesBelow } from "../setup/files-below.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const read = (file: string) => readFileSync(join(root, file), "utf8");

interface Manifest {
  readonly name?: string;
  readonly version: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly engines?: { readonly node?: string };
  readonly optional?: boolean;
  readonly resolved?: string;
}

const lock = Object.entries((JSON.parse(read("package-lock.json")) as { packages: Record<string, Manifest> }).packages);

/** The oldest of each line that is supported, and the newest that this was written for. */
const NODES = ["20.19.0", "22.13.0", "24.0.0", "26.0.0"];

it.each(NODES)("installs without a warning on Node %s", (node) => {
  const warned = lock.filter(([, { engines, optional }]) => !optional && !satisfies(node, engines?.node ?? "*"));

  expect(lock.length).toBeGreaterThan(500);
  expect(warned.map(([path, { engines }]) => `${path}: ${engines?.node}`)).toEqual([]);
});

/** Programs and types, which no source imports. */
const NOT_IMPORTED = /^@types\/|^(?:@biomejs\/biome|typescript)$/;
/** Stand-ins of scripts/left-out, which other packages import. */
const LEFT_OUT = new Set(["@prisma/dev", "@prisma/studio-core", "@whatwg-node/promise-helpers"]);
const FOLDERS = ["src", "test", "bench", "scripts", "dashboard", "packages", "examples"];

it("has no package that nothing imports", () => {
  const sources = [
    ...FOLDERS.flatMap((folder) => filesBelow(join(root, folder)).map((name) => `${folder}/${name}`)),
    ...readdirSync(root).filter((name) => !name.startsWith("package")),
  ].filter((file) => /\.(?:ts|tsx|mts|mjs|css)$/.test(file) && !/\/(?:generated|dist)\//.test(file) && !file.startsWith("test/clients/"));
  const text = sources.map(read).join("\n");
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Manifest;
  const names = Object.keys({ ...dependencies, ...devDependencies });

  const isImported = (name: string) => [`"${name}"`, `"${name}/`, `node_modules/${name}/`].some((reference) => text.includes(reference));
  const unused = names.filter((name) => !NOT_IMPORTED.test(name) && !LEFT_OUT.has(name) && !isImported(name));

  expect(names.length).toBeGreaterThan(90);
  expect(unused).toEqual([]);
});

it("stands in for the versions that packages ask for, so that npm installs no other beside", () => {
  const standIns = readdirSync(join(root, "scripts/left-out")).map((folder) => {
    const { name = "", version } = JSON.parse(read(`scripts/left-out/${folder}/package.json`)) as Manifest;
    return { name, version };
  });

  const others = standIns.flatMap(({ name, version }) => {
    const copies = lock.filter(([path, { resolved = "" }]) => path.endsWith(`node_modules/${name}`) && !resolved.startsWith("scripts/"));
    const newer = copies.filter(([, copy]) => major(copy.version) >= major(version));
    return newer.map(([path, copy]) => `${path}: ${copy.version} beside ${version}`);
  });

  expect(standIns.map(({ name }) => name).sort()).toEqual([...LEFT_OUT].sort());
  expect(others).toEqual([]);
});
