/** Which functions of the sources a piece of work calls: V8 counts, and the bundle's source maps say where each is written. */
import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { SourceMap } from "node:module";
import { dirname, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Where a function begins, its line counted from 1. */
export interface CalledFunction {
  readonly file: string;
  readonly line: number;
}

interface ScriptText {
  readonly path: string;
  readonly lineStarts: readonly number[];
  readonly map: SourceMap;
}

/**
 * Functions that `work` calls, in files below `folder` by their path from `root`. Run `work` several times before, so that
 * one-time work is left out.
 */
export async function functionsCalledBy(work: () => Promise<unknown>, root: string, folder: string): Promise<CalledFunction[]> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  try {
    await work();
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return result.flatMap(({ url, functions }) => {
      const called = functions.filter(({ ranges: [whole] }) => (whole?.count ?? 0) > 0);
      const script = called.length === 0 ? null : readScript(url);
      return script === null ? [] : called.flatMap(({ ranges }) => locate(script, ranges[0]?.startOffset ?? 0, root, folder));
    });
  } finally {
    session.disconnect();
  }
}

function readScript(url: string): ScriptText | null {
  if (!url.startsWith("file:")) return null;
  const path = fileURLToPath(url);
  const map = readIfPresent(`${path}.map`);
  if (map === null) return null;
  const lineStarts = [0];
  const text = readFileSync(path, "utf8");
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) lineStarts.push(at + 1);
  return { path, lineStarts, map: new SourceMap(JSON.parse(map)) };
}

function readIfPresent(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function locate({ path, lineStarts, map }: ScriptText, offset: number, root: string, folder: string): CalledFunction[] {
  let line = lineStarts.length - 1;
  while ((lineStarts[line] ?? 0) > offset) line--;
  const entry = map.findEntry(line, offset - (lineStarts[line] ?? 0));
  // Code that the bundler has added has no source.
  if (!("originalSource" in entry) || entry.generatedLine !== line) return [];
  const file = relative(root, resolve(dirname(path), entry.originalSource));
  return file.startsWith(`${folder}/`) ? [{ file, line: entry.originalLine + 1 }] : [];
}
