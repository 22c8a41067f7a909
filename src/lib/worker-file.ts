/** Finds the code of another thread or process: bundled beside this module, or bundled now when running from sources. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * Returns a file that Node can load for a source file: `sourcePath` is below `src` and without its extension, such as
 * `store/embedded-worker`. The build must have it as an entry.
 */
export async function resolveWorkerFile(sourcePath: string): Promise<string> {
  const name = basename(sourcePath);
  if (!import.meta.url.endsWith(".ts")) return fileURLToPath(new URL(`./${name}.js`, import.meta.url));

  // Node cannot load TypeScript, and only esbuild resolves the worker's imports; both exist where sources are run.
  const { build } = await import("esbuild");
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL(`../${sourcePath}.ts`, import.meta.url))],
    bundle: true,
    packages: "external",
    platform: "node",
    format: "esm",
    write: false,
    logLevel: "silent",
  });
  const code = outputFiles[0]?.contents ?? new Uint8Array();
  const directory = fileURLToPath(new URL("../../node_modules/.cache/sluice/workers/", import.meta.url));
  const file = join(directory, `${name}-${createHash("sha256").update(code).digest("hex").slice(0, 16)}.mjs`);
  if (!existsSync(file)) {
    mkdirSync(directory, { recursive: true });
    const draft = `${file}.${process.pid}`;
    writeFileSync(draft, code);
    renameSync(draft, file);
  }
  return file;
}
