/**
 * One script of agent.ts and of what it imports. Nothing of it is run, and nothing but the files of its commit is read: a bundler
 * resolves every import through this, and what is not a relative path to a file of the repository is refused.
 *
 * Sources may be made to exhaust a parser. So they are few and small, one agent is bundled at a time, and the bundler is a process of
 * its own, which is ended when it does not answer in time.
 */
import { posix } from "node:path";
import type { BuildFailure, OnLoadResult, OnResolveArgs, OnResolveResult, Plugin } from "esbuild";
import { jsonDepthExceeds } from "../../lib/json-depth.js";
import { AGENT_SCRIPT_BYTES_MAX } from "../../limits-agents.js";
import { AGENT_BUNDLE_BYTES_MAX, AGENT_FILES_MAX, AGENT_JSON_DEPTH_MAX, AGENT_SOURCES_BYTES_MAX } from "../../limits-repositories.js";
import type { GitFiles } from "./git-files.js";
import { RepositoryError } from "./repository-error.js";

const ENTRY = "agent.ts";
const NAMESPACE = "repository";
/** What runs it: a feature that this version of it has not is rewritten. */
const TARGET = "deno2";
const MESSAGE_CHARS_MAX = 300;
const LOADERS = { ".ts": "ts", ".mts": "ts", ".js": "js", ".mjs": "js", ".json": "json" } as const;
/** What `./name` may stand for; TypeScript writes `.js` where it means `.ts`. */
const ENDINGS = ["", ".ts", ".js", ".json", "/index.ts", "/index.js"];
const TYPESCRIPT_OF: Readonly<Record<string, string>> = { ".js": ".ts", ".mjs": ".mts" };
const decoder = new TextDecoder("utf-8", { fatal: true });

export class AgentBundler {
  private last: Promise<unknown> = Promise.resolve();

  /** The script as an ES module with a default export. Rejects with a RepositoryError, or with the signal's reason. */
  bundle(files: GitFiles, signal: AbortSignal): Promise<string> {
    const bundled = this.last.then(() => bundleNow(files, signal));
    this.last = bundled.catch(() => undefined);
    return bundled;
  }
}

async function bundleNow(files: GitFiles, signal: AbortSignal): Promise<string> {
  signal.throwIfAborted();
  assertEntry(files);
  const { build, stop } = await import("esbuild");
  const end = () => void stop();
  signal.addEventListener("abort", end, { once: true });
  try {
    const { outputFiles, metafile } = await build({
      entryPoints: [ENTRY],
      bundle: true,
      write: false,
      metafile: true,
      format: "esm",
      platform: "neutral",
      target: TARGET,
      charset: "utf8",
      legalComments: "none",
      logLevel: "silent",
      tsconfigRaw: "{}",
      plugins: [createPlugin(new Sources(files))],
    });
    const exported = Object.values(metafile.outputs).flatMap((output) => output.exports);
    if (!exported.includes("default")) throw new RepositoryError("content", "agent.ts has no default export.");
    const [output] = outputFiles;
    if (output === undefined || output.contents.length > AGENT_BUNDLE_BYTES_MAX) {
      throw new RepositoryError("content", `agent.ts with what it imports makes a script of more than ${AGENT_BUNDLE_BYTES_MAX} bytes.`);
    }
    return output.text;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof RepositoryError) throw error;
    if (isBuildFailure(error)) throw new RepositoryError("content", messageOf(error), error);
    // The bundler has broken down over these sources; it is started anew for the next.
    await stop();
    throw new RepositoryError("content", "agent.ts cannot be bundled.", error);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

function assertEntry(files: GitFiles): void {
  const entry = files.find(ENTRY);
  if (entry === null || entry.kind === "folder") throw new RepositoryError("content", "The repository holds no file agent.ts at its root.");
  // Said before the bundler says the same of an import.
  new Sources(files).read(ENTRY);
}

/** The files that one bundle is made of. Throws RepositoryErrors. */
class Sources {
  private readonly taken = new Set<string>();
  private bytes = 0;

  constructor(private readonly files: GitFiles) {}

  /** The path of the file that `specifier` means in `importer`; null when there is none. */
  resolve(specifier: string, importer: string): string | null {
    const path = posix.join(posix.dirname(importer), specifier);
    if (path.startsWith("../") || path === "..")
      throw new RepositoryError("content", `"${shown(specifier)}" lies outside of the repository.`);
    const ending = posix.extname(path);
    const typescript = TYPESCRIPT_OF[ending];
    const candidates = ENDINGS.map((end) => path + end);
    if (typescript !== undefined) candidates.push(path.slice(0, -ending.length) + typescript);
    return candidates.find((candidate) => (this.files.find(candidate)?.kind ?? "folder") !== "folder") ?? null;
  }

  read(path: string): string {
    const file = this.files.find(path);
    if (file === null || file.kind === "folder") throw new RepositoryError("content", `There is no file ${shown(path)}.`);
    if (file.kind === "link" || file.kind === "submodule") {
      throw new RepositoryError(
        "content",
        `${shown(path)} is a ${file.kind === "link" ? "symbolic link" : "submodule"}, which is not followed.`,
      );
    }
    if (file.kind === "large" || file.bytes.length > AGENT_SCRIPT_BYTES_MAX) {
      throw new RepositoryError("content", `${shown(path)} has more than ${AGENT_SCRIPT_BYTES_MAX} bytes.`);
    }
    this.count(path, file.bytes.length);
    if (file.bytes.includes(0)) throw notText(path);
    try {
      return decoder.decode(file.bytes);
    } catch {
      throw notText(path);
    }
  }

  private count(path: string, bytes: number): void {
    if (this.taken.has(path)) return;
    this.taken.add(path);
    this.bytes += bytes;
    if (this.taken.size > AGENT_FILES_MAX) throw new RepositoryError("content", `agent.ts imports more than ${AGENT_FILES_MAX} files.`);
    if (this.bytes > AGENT_SOURCES_BYTES_MAX) {
      throw new RepositoryError("content", `agent.ts and what it imports have more than ${AGENT_SOURCES_BYTES_MAX} bytes.`);
    }
  }
}

function createPlugin(sources: Sources): Plugin {
  return {
    name: "repository",
    setup(build) {
      build.onResolve({ filter: /.*/ }, (args) => told(() => resolve(sources, args)));
      build.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path }) => told(() => load(sources, path)));
    },
  };
}

function resolve(sources: Sources, { kind, path, importer }: OnResolveArgs): OnResolveResult {
  if (kind === "entry-point") return { path: ENTRY, namespace: NAMESPACE };
  if (!/^\.\.?\//.test(path)) {
    throw new RepositoryError("content", `"${shown(path)}" cannot be imported: only files of the repository can, by a relative path.`);
  }
  const found = sources.resolve(path, importer);
  if (found === null) throw new RepositoryError("content", `There is no file "${shown(path)}".`);
  if (!(posix.extname(found) in LOADERS)) {
    throw new RepositoryError("content", `"${shown(path)}" cannot be imported: only ${Object.keys(LOADERS).join(", ")} can.`);
  }
  return { path: found, namespace: NAMESPACE };
}

function load(sources: Sources, path: string): OnLoadResult {
  const contents = sources.read(path);
  const loader = LOADERS[posix.extname(path) as keyof typeof LOADERS];
  if (loader === "json" && jsonDepthExceeds(Buffer.from(contents), AGENT_JSON_DEPTH_MAX)) {
    throw new RepositoryError("content", `${shown(path)} nests deeper than ${AGENT_JSON_DEPTH_MAX} levels.`);
  }
  return { contents, loader };
}

/** Told this way the bundler adds the line that imports it. */
function told<Result extends object>(work: () => Result): Result | { readonly errors: { readonly text: string }[] } {
  try {
    return work();
  } catch (error) {
    if (error instanceof RepositoryError) return { errors: [{ text: error.message }] };
    throw error;
  }
}

function isBuildFailure(error: unknown): error is BuildFailure {
  return error instanceof Error && "errors" in error && Array.isArray(error.errors) && error.errors.length > 0;
}

function messageOf({ errors }: BuildFailure): string {
  const [first] = errors;
  const file = first?.location?.file.replace(`${NAMESPACE}:`, "") ?? "";
  const place = first?.location ? `${file}:${first.location.line}: ` : "";
  return shown(place + (first?.text ?? "agent.ts cannot be bundled."));
}

function notText(path: string): RepositoryError {
  return new RepositoryError("content", `${shown(path)} is not text in UTF-8.`);
}

/** Names come from the repository: no control characters, and no more of them than anybody reads. */
function shown(text: string): string {
  const plain = text.replace(/\p{Cc}+/gu, " ");
  return plain.length > MESSAGE_CHARS_MAX ? `${plain.slice(0, MESSAGE_CHARS_MAX)}…` : plain;
}
