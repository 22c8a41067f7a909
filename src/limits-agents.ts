/** Numbers that bound agents (Spec 8, decisions "Agents and community models"). */

/** Spec 8. */
export const SYSTEM_PROMPT_CHARS_MAX = 8_000;
export const MCP_SERVERS_MAX = 6;

/** Unspecified: of a repository's address. */
export const REPOSITORY_CHARS_MAX = 2_048;

/** Decisions: a prompt agent's loop. */
export const AGENT_MODEL_STEPS_MAX = 8;
export const AGENT_TOOL_CALLS_MAX = 16;
/** Unspecified: tools that a model is offered; more is refused by several upstreams. */
export const AGENT_TOOLS_MAX = 128;
/** OpenAI's bound for the name of a tool. */
export const TOOL_NAME_CHARS_MAX = 64;
/** Unspecified: what a model is shown of a tool's answer. What is longer is cut, and larger pictures are left out. */
export const TOOL_RESULT_CHARS_MAX = 50_000;
export const TOOL_RESULT_IMAGES_MAX = 4;
/** In base64. */
export const TOOL_RESULT_IMAGE_CHARS_MAX = 6 * 1024 * 1024;
/** Unspecified: runs of one process whose costs are told with their answers. */
export const AGENT_RUNS_NOTED_MAX = 10_000;
/** Unspecified: agents whose definition one process keeps in memory. */
export const AGENT_CACHE_ENTRIES_MAX = 1_000;
/** Decisions: a run token's life. */
export const RUN_TOKEN_MS = 30 * 60_000;

/** Decisions: of what a caller has, what a run may cost unless they say otherwise, as a divisor. */
export const RUN_SHARE = 10n;
/** Runs whose spending one process counts: more than can have a good run token at once. */
export const RUN_BUDGETS_MAX = 200_000;

/** Decisions: code agents. */
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
