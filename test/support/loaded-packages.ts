/**
 * The packages that a process of the server has loaded, from the coverage that Node writes (NODE_V8_COVERAGE) when it
 * ends.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** `directory` is what NODE_V8_COVERAGE named. Answers the files below node_modules that ran, alone or as part of the bundle. */
export function readLoadedPackageFiles(directory: string): readonly string[] {
  const reports = readdirSync(directory).map((name) => JSON.parse(readFileSync(join(directory, name), "utf8")) as Report);
  const urls = reports.flatMap(({ result }) => result.map(({ url }) => url)).filter((url) => url.startsWith("file:"));
  const files = [...new Set(urls)].map((url) => fileURLToPath(url)).flatMap((file) => [file, ...bundledIn(file)]);
  const found = files.flatMap((file) => /node_modules\/(?!.*\/node_modules\/)(.+)$/.exec(file)?.[1] ?? []);
  return [...new Set(found)].sort();
}

interface Report {
  readonly result: readonly { readonly url: string }[];
}

function bundledIn(file: string): readonly string[] {
  const map = `${file}.map`;
  if (!existsSync(map)) return [];
  return (JSON.parse(readFileSync(map, "utf8")) as { readonly sources: readonly string[] }).sources;
}
