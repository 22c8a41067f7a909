/** Limits of agents (docs/spec/agents.md) and of reading their repositories. */
import type { JsonBounds } from "../../lib/json-bounds.js";

/** See docs/spec/limits.md. */
export const SYSTEM_PROMPT_CHARS_MAX = 8_000;
export const MCP_SERVERS_MAX = 6;

/** Unspecified: length of a repository's address. */
export const REPOSITORY_CHARS_MAX = 2_048;

/** A prompt agent's loop (docs/spec/agents.md#prompt-agents). */
export const AGENT_MODEL_STEPS_MAX = 8;
export const AGENT_TOOL_CALLS_MAX = 16;
/** Unspecified: tools offered to a model; several upstreams refuse more. */
export const AGENT_TOOLS_MAX = 128;
/** OpenAI's bound on a tool name. */
export const TOOL_NAME_CHARS_MAX = 64;
/** Unspecified: characters of a tool's answer shown to a model. Longer text is cut, larger images are left out. */
export const TOOL_RESULT_CHARS_MAX = 50_000;
export const TOOL_RESULT_IMAGES_MAX = 4;
export const TOOL_RESULT_SOUNDS_MAX = 4;
/** Of an image or sound in base64. */
export const TOOL_RESULT_IMAGE_CHARS_MAX = 6 * 1024 * 1024;
/** Unspecified: a text of a structured result this long that the result's text also has is shown once. */
export const TOOL_RESULT_REPEATED_CHARS_MIN = 200;
/** Unspecified: agent definitions in one process's cache. */
export const AGENT_CACHE_ENTRIES_MAX = 1_000;

/** Default cost limit of a run as a divisor of the caller's available credits (docs/spec/agents.md#run-budget). */
export const RUN_SHARE = 10n;

/** Code agents (docs/spec/agents.md#code-agents). */
export const AGENT_SCRIPT_BYTES_MAX = 64 * 1024;
export const SYNC_INTERVAL_MS = 30_000;
export const CODE_RUN_CPU_SECONDS = 5;
export const CODE_RUN_MEMORY_BYTES_MAX = 256 * 1024 * 1024;
export const CODE_RUN_WALL_MS = 60_000;
export const CODE_RUNS_PER_OWNER_MAX = 2;
/** Unspecified: waiting runs of one owner's agents, and in all. */
export const CODE_RUNS_WAITING_PER_OWNER_MAX = 16;
export const CODE_RUNS_WAITING_MAX = 128;
/** Unspecified: concurrent runs of one gateway process per processor; more would slow each other and the gateway. */
export const CODE_RUNS_PER_PROCESSOR_MAX = 2;
/** Unspecified: an agent's calls to the gateway in one run, `sluice` and `mcp` together. */
export const CODE_RUN_CALLS_MAX = 20;
/** Unspecified: bytes that a run sends: its answer and its calls. */
export const CODE_RUN_OUTPUT_BYTES_MAX = 10 * 1024 * 1024;
/** Unspecified: one answer of the gateway to an agent. */
export const CODE_RUN_REPLY_BYTES_MAX = 32 * 1024 * 1024;
/** Unspecified: bytes that a run may print, and the part kept for the log. */
export const CODE_RUN_PRINT_BYTES_MAX = 1024 * 1024;
export const CODE_RUN_LOG_BYTES_MAX = 4 * 1024;
/** Unspecified: runs of one agent in its log. */
export const CODE_RUNS_KEPT_MAX = 20;
/** Unspecified: runs of one process not stored yet. */
export const CODE_RUNS_UNWRITTEN_MAX = 1_000;
export const CODE_RUNS_FLUSH_MS = 500;
/** Unspecified: one message of a run without its bytes; it includes a tool's arguments. */
export const CODE_RUN_MESSAGE_BYTES_MAX = 1024 * 1024;
/**
 * Interval of checks on a run's memory and processor time. At 20 ms a process that filled memory at full speed was found 20 MiB past its
 * bound.
 */
export const CODE_RUN_WATCH_MS = 20;
/** Unspecified: a run that was ended at a limit keeps its place this long, as starting a process costs more than ending one. */
export const CODE_RUN_REST_MS = 1_000;
/** The kernel's limit behind the checks: V8 reserves address space, and does not start with 512 MiB. */
export const CODE_RUN_DATA_BYTES_MAX = 1024 * 1024 * 1024;
/** V8's heap limit, below the memory bound, so that an agent that wastes objects gets an error from its engine. */
export const CODE_RUN_HEAP_MEGABYTES = 160;
export const CODE_RUN_FILES_MAX = 256;
/** Threads; Deno takes a dozen. */
export const CODE_RUN_THREADS_MAX = 64;
/** Of 19: agents get the processor time that the gateway leaves, and still progress on a busy machine. */
export const CODE_RUN_NICENESS = 10;
/** Unspecified: cache of agents' scripts, least recently used evicted first. */
export const CODE_SCRIPTS_BYTES_MAX = 64 * 1024 * 1024;

/** From the first request to the finished bundle. */
export const REPOSITORY_TIMEOUT_MS = 20_000;
/** The latest commit as packed by its host. */
export const REPOSITORY_PACK_BYTES_MAX = 20 * 1024 * 1024;
export const REPOSITORY_UNPACKED_BYTES_MAX = 64 * 1024 * 1024;
/** One file, unless its host can leave large ones out: unpacking it blocks the event loop. */
export const REPOSITORY_FILE_BYTES_MAX = 16 * 1024 * 1024;
/** Files and folders of the latest commit. */
export const REPOSITORY_OBJECTS_MAX = 20_000;
/** Bytes that a host lists before its default branch. */
export const REPOSITORY_ADVERTISEMENT_BYTES_MAX = 256 * 1024;
/** Hosts redirect `owner/name` to `owner/name.git`, and renamed or moved repositories. */
export const REPOSITORY_REDIRECTS_MAX = 3;
/** Concurrent fetches of one process. */
export const REPOSITORIES_AT_ONCE_MAX = 4;
/** Timeout of the request for a repository's description; without an answer the agent has none. */
export const REPOSITORY_DESCRIPTION_TIMEOUT_MS = 3_000;
export const REPOSITORY_DESCRIPTION_BYTES_MAX = 512 * 1024;

/** Of agent.ts and its imports. */
export const AGENT_SOURCES_BYTES_MAX = 512 * 1024;
export const AGENT_FILES_MAX = 100;
export const AGENT_BUNDLE_BYTES_MAX = 1024 * 1024;
/** Of each of the two processes of a bundle, without its program. Sources of usual nesting take 100 MB. */
export const BUNDLER_MEMORY_BYTES_MAX = 320 * 1024 * 1024;
/** JSON that an agent imports; its bytes bound keys and values. */
export const AGENT_JSON_BOUNDS: JsonBounds = {
  depthMax: 100,
  keysMax: Number.POSITIVE_INFINITY,
  valuesMax: Number.POSITIVE_INFINITY,
  textsMax: Number.POSITIVE_INFINITY,
  bracketsMax: Number.POSITIVE_INFINITY,
};
