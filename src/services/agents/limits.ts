/** Limits of agents (docs/spec/agents.md) and of reading the repositories that they come from. */
import type { JsonBounds } from "../../lib/json-bounds.js";

/** See docs/spec/limits.md. */
export const SYSTEM_PROMPT_CHARS_MAX = 8_000;
export const MCP_SERVERS_MAX = 6;

/** Unspecified: of a repository's address. */
export const REPOSITORY_CHARS_MAX = 2_048;

/** A prompt agent's loop (docs/spec/agents.md#prompt-agents). */
export const AGENT_MODEL_STEPS_MAX = 8;
export const AGENT_TOOL_CALLS_MAX = 16;
/** Unspecified: tools that a model is offered; more is refused by several upstreams. */
export const AGENT_TOOLS_MAX = 128;
/** OpenAI's bound for the name of a tool. */
export const TOOL_NAME_CHARS_MAX = 64;
/** Unspecified: what a model is shown of a tool's answer. What is longer is cut, and larger pictures are left out. */
export const TOOL_RESULT_CHARS_MAX = 50_000;
export const TOOL_RESULT_IMAGES_MAX = 4;
export const TOOL_RESULT_SOUNDS_MAX = 4;
/** Of a picture or a sound in base64. */
export const TOOL_RESULT_IMAGE_CHARS_MAX = 6 * 1024 * 1024;
/** Unspecified: a text of a structured result that long, which stands in the result's own text too, is shown once. */
export const TOOL_RESULT_REPEATED_CHARS_MIN = 200;
/** Unspecified: agents whose definition one process keeps in memory. */
export const AGENT_CACHE_ENTRIES_MAX = 1_000;

/** Of what a caller has, what a run may cost unless they say otherwise, as a divisor (docs/spec/agents.md#run-budget). */
export const RUN_SHARE = 10n;

/** Code agents (docs/spec/agents.md#code-agents). */
export const AGENT_SCRIPT_BYTES_MAX = 64 * 1024;
export const SYNC_INTERVAL_MS = 30_000;
export const CODE_RUN_CPU_SECONDS = 5;
export const CODE_RUN_MEMORY_BYTES_MAX = 256 * 1024 * 1024;
export const CODE_RUN_WALL_MS = 60_000;
export const CODE_RUNS_PER_OWNER_MAX = 2;
/** Unspecified: runs that wait for their turn, of one owner's agents and in all. */
export const CODE_RUNS_WAITING_PER_OWNER_MAX = 16;
export const CODE_RUNS_WAITING_MAX = 128;
/** Unspecified: how many go on at once in one process of the gateway, for each processor: more would only take turns, and the gateway's with them. */
export const CODE_RUNS_PER_PROCESSOR_MAX = 2;
/** Unspecified: what an agent asks of the gateway in one run, `sluice` and `mcp` together. */
export const CODE_RUN_CALLS_MAX = 20;
/** Unspecified: everything that a run sends out: its answer, and what it asks with. */
export const CODE_RUN_OUTPUT_BYTES_MAX = 10 * 1024 * 1024;
/** Unspecified: one answer of the gateway's to an agent. */
export const CODE_RUN_REPLY_BYTES_MAX = 32 * 1024 * 1024;
/** Unspecified: what a run may print, and how much of it is kept for the log. */
export const CODE_RUN_PRINT_BYTES_MAX = 1024 * 1024;
export const CODE_RUN_LOG_BYTES_MAX = 4 * 1024;
/** Unspecified: runs of one agent that its owner can look at. */
export const CODE_RUNS_KEPT_MAX = 20;
/** Unspecified: runs of one process's that are not written down yet. */
export const CODE_RUNS_UNWRITTEN_MAX = 1_000;
export const CODE_RUNS_FLUSH_MS = 500;
/** Unspecified: one message of a run, without its bytes; the arguments of a tool are part of it. */
export const CODE_RUN_MESSAGE_BYTES_MAX = 1024 * 1024;
/**
 * How often a run's memory and processor time are looked at. A process that filled memory as fast as it could was found 20 MiB past
 * its bound at 20 ms.
 */
export const CODE_RUN_WATCH_MS = 20;
/** Unspecified: how long the place of a run stays taken that was ended at a limit: to start a process costs the gateway more than to end one. */
export const CODE_RUN_REST_MS = 1_000;
/** A wall of the kernel's behind the watch: V8 reserves space at its start, and does not start with 512 MiB. */
export const CODE_RUN_DATA_BYTES_MAX = 1024 * 1024 * 1024;
/** V8's own, below the bound on memory: an agent that only wastes objects is told by its engine. */
export const CODE_RUN_HEAP_MEGABYTES = 160;
export const CODE_RUN_FILES_MAX = 256;
/** Threads, of which Deno takes a dozen. */
export const CODE_RUN_THREADS_MAX = 64;
/** Of 19: agents work with what the gateway leaves of the processors, and still get somewhere on a machine that is busy. */
export const CODE_RUN_NICENESS = 10;
/** Unspecified: scripts of agents that are kept in memory, those called last. */
export const CODE_SCRIPTS_BYTES_MAX = 64 * 1024 * 1024;

/** From the first byte that is asked for to the finished bundle. */
export const REPOSITORY_TIMEOUT_MS = 20_000;
/** The latest commit as its host packs it. */
export const REPOSITORY_PACK_BYTES_MAX = 20 * 1024 * 1024;
/** Everything in it, unpacked. */
export const REPOSITORY_UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
/** One file of it, unless its host can leave large ones out: unpacking one is a single step, in which nobody else is served. */
export const REPOSITORY_FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Files and folders of the latest commit. */
export const REPOSITORY_OBJECTS_MAX = 20_000;
/** What a host lists before the branch that it names as its default. */
export const REPOSITORY_ADVERTISEMENT_BYTES_MAX = 256 * 1024;
/** Hosts redirect `owner/name` to `owner/name.git`, and repositories that were renamed or moved. */
export const REPOSITORY_REDIRECTS_MAX = 3;
/** Repositories that one process fetches at the same time. */
export const REPOSITORIES_AT_ONCE_MAX = 4;
/** How long a host is asked for the description of a repository: without an answer an agent has none. */
export const REPOSITORY_DESCRIPTION_TIMEOUT_MS = 3_000;
export const REPOSITORY_DESCRIPTION_BYTES_MAX = 512 * 1024;

/** Of agent.ts and everything that it imports. */
export const AGENT_SOURCES_BYTES_MAX = 512 * 1024;
export const AGENT_FILES_MAX = 100;
export const AGENT_BUNDLE_BYTES_MAX = 1024 * 1024;
/** Of each of the two processes that make a bundle, without its program. One of sources that nest no deeper than people write takes 100 MB. */
export const BUNDLER_MEMORY_BYTES_MAX = 320 * 1024 * 1024;
/** JSON that an agent imports; its keys and values are bounded by its bytes. */
export const AGENT_JSON_BOUNDS: JsonBounds = {
  depthMax: 100,
  keysMax: Number.POSITIVE_INFINITY,
  valuesMax: Number.POSITIVE_INFINITY,
  textsMax: Number.POSITIVE_INFINITY,
};
