/**
 * Removes every package from `node_modules` that the bundle in `dist` does not load: the last step of an image. With `--without-sandbox` it
 * also removes the packages of the sandbox's images, videos, speech and music.
 */
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const SANDBOX = "@sluice/sandbox";

const manifestOf = (folder) => JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
const own = manifestOf(root);
const sandbox = manifestOf(join(root, "packages/sandbox"));
const ownNames = new Set(Object.keys(own.dependencies));
const sandboxNames = new Set(Object.keys({ ...sandbox.dependencies, ...sandbox.optionalDependencies }));
const isLeftOut = process.argv.includes("--without-sandbox")
  ? (name) => name === SANDBOX || (sandboxNames.has(name) && !ownNames.has(name))
  : () => false;

const kept = new Set();
const bundle = readdirSync(join(root, "dist"))
  .filter((name) => name.endsWith(".js"))
  .map((name) => readFileSync(join(root, "dist", name), "utf8"))
  .join("\n");
const loaded = new Set([...bundle.matchAll(/(?:from|import|require|resolve) ?\(?"((?:@[\w.-]+\/)?[\w.-]+)/g)].map(([, name]) => name));
const readFiles = [...bundle.matchAll(/"((?:@[\w.-]+\/)?[\w.-]+\/[\w./-]+\.(?:ttf|json|wasm|data))"/g)].map(([, file]) => file);
for (const name of installed()) if (isLoaded(name) && !isLeftOut(name)) keep(join(root, "node_modules", name));
for (const name of installed())
  if (!kept.has(join(root, "node_modules", name))) rmSync(join(root, "node_modules", name), { recursive: true });
rmSync(join(root, "node_modules/.cache"), { recursive: true, force: true });
console.log(`kept ${installed().length} packages`);

/** The names of the packages directly in `node_modules`. */
function installed() {
  return readdirSync(join(root, "node_modules")).flatMap((name) => {
    if (!name.startsWith("@")) return name.startsWith(".") ? [] : [name];
    return readdirSync(join(root, "node_modules", name)).map((part) => `${name}/${part}`);
  });
}

/** By an import, or by the name of a file that the bundle reads. */
function isLoaded(name) {
  return name === SANDBOX || loaded.has(name) || readFiles.some((file) => file.startsWith(`${name}/`));
}

function keep(folder) {
  if (kept.has(folder)) return;
  kept.add(folder);
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta = {} } = manifestOf(folder);
  const peers = Object.keys(peerDependencies ?? {}).filter((name) => !peerDependenciesMeta[name]?.optional);
  for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers]) {
    const found = find(name, folder);
    if (found && !isLeftOut(name)) keep(found);
  }
}

function find(name, from) {
  for (let folder = from; folder.startsWith(root); folder = dirname(folder)) {
    const candidate = join(folder, "node_modules", name);
    if (existsSync(candidate)) return candidate;
  }
  return null;
}
