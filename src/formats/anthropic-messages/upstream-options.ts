/**
 * `provider_options.anthropic` of a chat as fields of a Messages request, under the format's names or those of the AI SDK's package. Which
 * options a caller may state is decided by services/catalog/billed-options.ts.
 */
import { isRecord } from "../../lib/json.js";
import { setOwnValue } from "../../lib/own-values.js";

type Loose = Readonly<Record<string, unknown>>;

export interface UpstreamOptions {
  readonly thinking: Loose | null;
  /** `output_config`. */
  readonly output: Loose;
  readonly betas: readonly string[];
  readonly isSerial: boolean;
  /** Thoughts of earlier turns are sent back. */
  readonly sendsThoughts: boolean;
  /** The other fields of the request. */
  readonly fields: Loose;
}

/** Of the package alone. */
const DROPPED: ReadonlySet<string> = new Set(["structured_output_mode", "tool_streaming"]);
const BETAS_MAX = 32;
const BETA = /^[a-z0-9-]{1,80}$/;

export function readOptions(body: Loose): UpstreamOptions {
  const all = body.provider_options ?? body.providerOptions;
  const stated = isRecord(all) && isRecord(all.anthropic) ? toSnakeFields(all.anthropic) : {};
  const { thinking, effort, task_budget: budget, output_config: output, betas, disable_parallel_tool_use: isSerial, ...more } = stated;
  const { send_reasoning: sendsThoughts, ...others } = more;
  const fields: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(others)) if (!DROPPED.has(name)) setOwnValue(fields, name, value);
  return {
    thinking: isRecord(thinking) && typeof thinking.type === "string" ? toSnakeFields(thinking) : null,
    output: { ...(isRecord(output) && output), ...(effort != null && { effort }), ...(budget != null && { task_budget: budget }) },
    betas: toBetas(betas),
    isSerial: isSerial === true,
    sendsThoughts: sendsThoughts !== false,
    fields: isRecord(fields.metadata) ? { ...fields, metadata: toSnakeFields(fields.metadata) } : fields,
  };
}

/** Names that can stand in a header. */
export function toBetas(names: unknown): readonly string[] {
  if (!Array.isArray(names)) return [];
  return [...new Set(names.filter((name) => typeof name === "string" && BETA.test(name)))].slice(0, BETAS_MAX);
}

function toSnakeFields(fields: Loose): Record<string, unknown> {
  const snake: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value != null)
      setOwnValue(
        snake,
        name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
        value,
      );
  }
  return snake;
}
