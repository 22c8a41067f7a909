/** Numbers that bound agents (Spec 8, decisions "Agents and community models"). */

/** Spec 8. */
export const SYSTEM_PROMPT_CHARS_MAX = 8_000;
export const MCP_SERVERS_MAX = 6;

/** Decisions: a prompt agent's loop. */
export const AGENT_MODEL_STEPS_MAX = 8;
export const AGENT_TOOL_CALLS_MAX = 16;
/** Decisions: a run token's life. */
export const RUN_TOKEN_MS = 30 * 60_000;

/** Decisions: code agents. */
export const AGENT_SCRIPT_BYTES_MAX = 64 * 1024;
export const SYNC_INTERVAL_MS = 30_000;
export const CODE_RUN_CPU_SECONDS = 5;
export const CODE_RUN_MEMORY_BYTES_MAX = 256 * 1024 * 1024;
export const CODE_RUN_WALL_MS = 60_000;
export const CODE_RUNS_PER_OWNER_MAX = 2;
