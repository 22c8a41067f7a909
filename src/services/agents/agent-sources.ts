/** The source files of an agent: agent.ts and its relative imports of the same commit. */
import { posix } from "node:path";
import { jsonExcess } from "../../lib/json-bounds.js";
import { ownValue } from "../../lib/own-values.js";
import type { GitFiles } from "./git-files.js";
import { AGENT_FILES_MAX, AGENT_JSON_BOUNDS, AGENT_SCRIPT_BYTES_MAX, AGENT_SOURCES_BYTES_MAX } from "./limits.js";
import { RepositoryError } from "./repository-error.js";

export interface AgentSource {
  readonly contents: string;
  readonly loader: "ts" | "js" | "json";
}

export const AGENT_FILE = "agent.ts";

const MESSAGE_CHARS_MAX = 300;
const LOADERS: Readonly<Record<string, AgentSource["loader"]>> = { ".ts": "ts", ".mts": "ts", ".js": "js", ".mjs": "js", ".json": "json" };
/** Candidates for `./name`; TypeScript writes `.js` for `.ts`. */
const ENDINGS = ["", ".ts", ".js", ".json", "/index.ts", "/index.js"];
const TYPESCRIPT_OF: Readonly<Record<string, string>> = { ".js": ".ts", ".mjs": ".mts" };
const decoder = new TextDecoder("utf-8", { fatal: true });

/** Every method throws a RepositoryError for a file that cannot be imported. */
export class AgentSources {
  private readonly taken = new Set<string>();
  private bytes = 0;

  constructor(private readonly files: GitFiles) {
    const entry = files.find(AGENT_FILE);
    if (entry === null || entry.kind === "folder") throw content("The repository holds no file agent.ts at its root.");
    this.load(AGENT_FILE);
  }

  /** Resolves `specifier` as imported by the file `importer`. */
  resolve(specifier: string, importer: string): string {
    const name = shown(specifier);
    if (!/^\.\.?\//.test(specifier)) throw content(`"${name}" cannot be imported: only files of the repository can, by a relative path.`);
    const path = posix.join(posix.dirname(importer), specifier);
    if (path.startsWith("../")) throw content(`"${name}" lies outside of the repository.`);
    const found = this.candidates(path).find((candidate) => (this.files.find(candidate)?.kind ?? "folder") !== "folder");
    if (found === undefined) throw content(`There is no file "${name}".`);
    if (ownValue(LOADERS, posix.extname(found)) === undefined) {
      throw content(`"${name}" cannot be imported: only ${Object.keys(LOADERS).join(", ")} can.`);
    }
    return found;
  }

  load(path: string): AgentSource {
    const contents = this.read(path);
    const loader = ownValue(LOADERS, posix.extname(path));
    if (loader === undefined) throw content(`There is no file "${shown(path)}".`);
    const excess = loader === "json" ? jsonExcess(Buffer.from(contents), AGENT_JSON_BOUNDS) : null;
    if (excess !== null) throw content(`${shown(path)} ${excess}.`);
    return { contents, loader };
  }

  private candidates(path: string): readonly string[] {
    const ending = posix.extname(path);
    const typescript = ownValue(TYPESCRIPT_OF, ending);
    const written = ENDINGS.map((end) => path + end);
    return typescript === undefined ? written : [...written, path.slice(0, -ending.length) + typescript];
  }

  private read(path: string): string {
    const name = shown(path);
    const file = this.files.find(path);
    if (file === null || file.kind === "folder") throw content(`There is no file "${name}".`);
    if (file.kind === "link") throw content(`${name} is a symbolic link, which is not followed.`);
    if (file.kind === "submodule") throw content(`${name} is a submodule, which is not fetched.`);
    if (file.kind === "large" || file.bytes.length > AGENT_SCRIPT_BYTES_MAX) {
      throw content(`${name} has more than ${AGENT_SCRIPT_BYTES_MAX} bytes.`);
    }
    this.count(path, file.bytes.length);
    try {
      if (!file.bytes.includes(0)) return decoder.decode(file.bytes);
    } catch {
      // Reported below, like any other file that is not text.
    }
    throw content(`${name} is not text in UTF-8.`);
  }

  private count(path: string, bytes: number): void {
    if (this.taken.has(path)) return;
    this.taken.add(path);
    this.bytes += bytes;
    if (this.taken.size > AGENT_FILES_MAX) throw content(`agent.ts and what it imports are more than ${AGENT_FILES_MAX} files.`);
    if (this.bytes > AGENT_SOURCES_BYTES_MAX)
      throw content(`agent.ts and what it imports have more than ${AGENT_SOURCES_BYTES_MAX} bytes.`);
  }
}

/** Cleans a name from the repository for a message: no control characters, bounded length. */
export function shown(text: string): string {
  const plain = text.replace(/\p{Cc}+/gu, " ");
  return plain.length > MESSAGE_CHARS_MAX ? `${plain.slice(0, MESSAGE_CHARS_MAX)}…` : plain;
}

function content(message: string): RepositoryError {
  return new RepositoryError("content", message);
}
