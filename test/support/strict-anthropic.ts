/** What Anthropic's Messages API refuses, in its words, so that tests fail where it would. Null: it accepts the request. */

type Loose = Record<string, unknown>;

const ID = /^[a-zA-Z0-9_-]+$/;
const FIELDS = new Set(
  (
    "model max_tokens messages system metadata stop_sequences stream temperature top_p top_k tools tool_choice thinking output_config " +
    "cache_control service_tier context_management container mcp_servers speed inference_geo"
  ).split(" "),
);
const BLOCK_FIELDS: Readonly<Record<string, string>> = {
  text: "text citations cache_control",
  image: "source cache_control",
  document: "source title context citations cache_control",
  search_result: "source title content citations cache_control",
  thinking: "thinking signature",
  redacted_thinking: "data",
  tool_use: "id name input cache_control caller",
  tool_result: "tool_use_id content is_error cache_control",
};
const CACHE_MARKS_MAX = 4;

export function refusalOf(body: Loose, signatures: ReadonlySet<unknown> | null = null): string | null {
  const { max_tokens: maxTokens, messages, thinking, tools, tool_choice: choice } = body;
  for (const name of Object.keys(body)) if (!FIELDS.has(name)) return `${name}: Extra inputs are not permitted`;
  if (typeof maxTokens !== "number") return "max_tokens: Field required";
  if (!Array.isArray(messages) || messages.length === 0) return "messages: at least one message is required";
  if (messages[0].role !== "user") return "messages: first message must use the `user` role";
  const budget = isObject(thinking) && thinking.type === "enabled" ? Number(thinking.budget_tokens) : 0;
  if (isObject(thinking) && thinking.type === "enabled" && budget < 1_024)
    return "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024";
  if (budget >= maxTokens) return "max_tokens: must be greater than thinking.budget_tokens";
  const isThinking = isObject(thinking) && thinking.type !== "disabled";
  if (isThinking && typeof body.temperature === "number" && body.temperature !== 1)
    return "temperature: may only be set to 1 when thinking is enabled";
  if (isThinking && body.top_k !== undefined) return "top_k: must be unset when thinking is enabled";
  if (isThinking && isObject(choice) && (choice.type === "any" || choice.type === "tool"))
    return "Thinking may not be enabled when tool_choice forces tool use.";
  if (choice !== undefined && !Array.isArray(tools)) return "tool_choice: may only be specified while providing tools";
  const marks = JSON.stringify(body).split('"cache_control":{').length - 1;
  if (marks > CACHE_MARKS_MAX) return `A maximum of 4 blocks with cache_control may be provided. Found ${marks}.`;
  return refusalOfMessages(messages as Loose[], isThinking, signatures);
}

function refusalOfMessages(messages: readonly Loose[], isThinking: boolean, signatures: ReadonlySet<unknown> | null): string | null {
  const seen = new Set<unknown>();
  let open: unknown[] = [];
  for (const [index, { role, content }] of messages.entries()) {
    const at = `messages.${index}`;
    const blocks = typeof content === "string" ? [{ type: "text", text: content }] : (content as Loose[]);
    if (!Array.isArray(blocks) || blocks.length === 0) return `${at}: all messages must have non-empty content`;
    for (const [place, block] of blocks.entries()) {
      const refusal = refusalOfBlock(block, `${at}.content.${place}`, signatures);
      if (refusal !== null) return refusal;
    }
    const results = blocks.filter(({ type }) => type === "tool_result").map((block) => block.tool_use_id);
    if (open.length > 0 && !open.every((id) => results.includes(id)))
      return `${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(", ")}`;
    const extra = results.find((id) => !open.includes(id));
    if (extra !== undefined) return `${at}.content.0: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${String(extra)}`;
    if (results.length > 0 && blocks[0]?.type !== "tool_result") return `${at}: \`tool_result\` blocks must come first`;
    open = role === "assistant" ? blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id) : [];
    for (const id of open) {
      if (seen.has(id)) return `${at}: \`tool_use\` ids must be unique`;
      seen.add(id);
    }
    const isLastAnswer = role === "assistant" && !messages.slice(index + 1).some((other) => other.role === "assistant");
    const [first] = blocks;
    if (isThinking && isLastAnswer && open.length > 0 && first?.type !== "thinking" && first?.type !== "redacted_thinking")
      return `${at}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${String(first?.type)}\`.`;
    const last = blocks.at(-1);
    if (index === messages.length - 1 && role === "assistant" && /\s$/.test(String(last?.text ?? "")))
      return "messages: final assistant content cannot end with trailing whitespace";
  }
  return open.length > 0 ? "messages: `tool_use` ids were found without `tool_result` blocks immediately after" : null;
}

function refusalOfBlock(block: Loose, at: string, signatures: ReadonlySet<unknown> | null): string | null {
  const type = String(block.type);
  const fields = BLOCK_FIELDS[type]?.split(" ");
  if (!fields)
    return /_tool_result$|^server_tool_use$/.test(type)
      ? null
      : `${at}: Input tag '${type}' found using 'type' does not match any of the expected tags`;
  for (const name of Object.keys(block))
    if (name !== "type" && !fields.includes(name)) return `${at}.${type}.${name}: Extra inputs are not permitted`;
  if (type === "text" && String(block.text).trim() === "") return `${at}: text content blocks must contain non-whitespace text`;
  if (type === "tool_use" && !ID.test(String(block.id))) return `${at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
  if (type === "tool_use" && !isObject(block.input)) return `${at}.tool_use.input: Input should be a valid dictionary`;
  if (type === "thinking" && (typeof block.signature !== "string" || block.signature === ""))
    return `${at}.thinking.signature: Field required`;
  if (type === "thinking" && signatures !== null && !signatures.has(block.signature))
    return `${at}: Invalid \`signature\` in \`thinking\` block`;
  return null;
}

function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
