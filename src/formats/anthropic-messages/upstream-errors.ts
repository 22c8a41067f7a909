/** Names the field of a chat that a refusal of Anthropic's begins with: `max_tokens: 5 > 4`, `messages.3.content.0.text: ...`. */
import { ProviderError } from "../upstream-error.js";

const FIELD = /^([a-z_]{1,40})((?:\.[a-z0-9_]{1,40}){0,12}): /;
/** A chat's names for the format's fields; places within them differ. */
const NAMES: ReadonlyMap<string, string> = new Map([
  ...["max_tokens", "temperature", "top_p", "top_k", "tools", "tool_choice", "messages"].map((name): [string, string] => [name, name]),
  ["system", "messages"],
  ["stop_sequences", "stop"],
  ["thinking", "reasoning_effort"],
  ["output_config", "reasoning_effort"],
  ["metadata", "user"],
]);

export function withNamedField(error: unknown): unknown {
  if (!(error instanceof ProviderError) || error.kind !== "status" || error.upstreamParam !== undefined) return error;
  const { status, upstreamMessage, upstreamCode, retryAfterSeconds, cause } = error;
  const [, field = "", place = ""] = FIELD.exec(upstreamMessage ?? "") ?? [];
  const named = place.startsWith(".format") && field === "output_config" ? "response_format" : NAMES.get(field);
  if (status !== 400 || named === undefined) return error;
  return new ProviderError("status", error.message, {
    status,
    cause,
    upstreamParam: named,
    ...(upstreamMessage !== undefined && { upstreamMessage }),
    ...(upstreamCode !== undefined && { upstreamCode }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}

/** The upstream refuses the signature of an earlier thought: of another account, another vendor, or changed on the way. */
export function refusesSignature(error: unknown): boolean {
  if (!(error instanceof ProviderError) || error.status !== 400) return false;
  const said = error.upstreamMessage?.toLowerCase() ?? "";
  return said.includes("signature") && said.includes("thinking");
}
