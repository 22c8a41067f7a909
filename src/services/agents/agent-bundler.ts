/**
 * Bundles agent.ts and its imports into one script, without running it.
 *
 * A few kilobytes of source can make a parser take gigabytes. So each bundle is made in its own process, one at a time, with memory bounded
 * by the system and a time limit. This process answers its questions about files.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { resolveWorkerFile } from "../../lib/worker-file.js";
import { AGENT_FILE, AgentSources, shown } from "./agent-sources.js";
import type { BundleAnswer, BundleMessage, BundleQuestion, BundleResult } from "./bundle-program.js";
import type { GitFiles } from "./git-files.js";
import { AGENT_BUNDLE_BYTES_MAX, BUNDLER_MEMORY_BYTES_MAX } from "./limits.js";
import { RepositoryError } from "./repository-error.js";

/** Sets the bound where the system has it, then becomes the program. */
const BOUNDED = 'ulimit -d "$0" 2>/dev/null; exec "$@"';

/** Newer engines reserve 512 MB for compiled code, which counts as used. A process that compiles nothing does without. */
const WITHOUT_COMPILED_CODE = "--jitless";

export class AgentBundler {
  private last: Promise<unknown> = Promise.resolve();
  private program: Promise<string> | undefined;

  /** Returns the script, an ES module with a default export. Rejects with a RepositoryError, or with the signal's reason. */
  async bundle(files: GitFiles, signal: AbortSignal): Promise<string> {
    const sources = new AgentSources(files);
    const result = this.last.then(() => this.run(sources, signal));
    this.last = result.catch(() => undefined);
    return toScript(await result);
  }

  private async run(sources: AgentSources, signal: AbortSignal): Promise<BundleResult> {
    signal.throwIfAborted();
    this.program ??= resolveWorkerFile("services/agents/bundle-program");
    const child = start(await this.program);
    const kill = () => killGroup(child);
    signal.addEventListener("abort", kill, { once: true });
    try {
      const result = await resultOf(child, sources);
      signal.throwIfAborted();
      return result;
    } finally {
      signal.removeEventListener("abort", kill);
      kill();
    }
  }
}

/** Starts a process group, which includes the parser, with an empty environment. */
function start(program: string): ChildProcess {
  const bound = String(BUNDLER_MEMORY_BYTES_MAX / 1024);
  return spawn("/bin/sh", ["-c", BOUNDED, bound, process.execPath, WITHOUT_COMPILED_CODE, program], {
    env: {},
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    detached: true,
  });
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // Already ended.
  }
}

/** Rejects for a process that ends without a result, because it crashed on these sources. */
function resultOf(child: ChildProcess, sources: AgentSources): Promise<BundleResult> {
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", () => resolve({ problem: "" }));
    child.on("message", (message: BundleMessage) => {
      if ("result" in message) resolve(message.result);
      else answer(child, message.question, sources).catch(reject);
    });
  });
}

async function answer(child: ChildProcess, question: BundleQuestion, sources: AgentSources): Promise<void> {
  // It may have been killed meanwhile.
  child.send(answerTo(question, sources), () => undefined);
}

function answerTo(question: BundleQuestion, sources: AgentSources): BundleAnswer {
  const { id } = question;
  try {
    if (question.kind === "resolve") return { id, path: sources.resolve(question.specifier, question.importer) };
    return { id, ...sources.load(question.path) };
  } catch (error) {
    if (error instanceof RepositoryError) return { id, problem: error.message };
    throw error;
  }
}

function toScript(result: BundleResult): string {
  if ("problem" in result) throw new RepositoryError("content", shown(result.problem || `${AGENT_FILE} cannot be bundled.`));
  const { script, exports } = result;
  if (!exports.includes("default")) throw new RepositoryError("content", `${AGENT_FILE} has no default export.`);
  if (Buffer.byteLength(script) > AGENT_BUNDLE_BYTES_MAX) {
    throw new RepositoryError("content", `${AGENT_FILE} with what it imports makes a script of more than ${AGENT_BUNDLE_BYTES_MAX} bytes.`);
  }
  return script;
}
