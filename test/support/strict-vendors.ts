/**
 * What each bundled vendor of OpenAI's chat format refuses, as its real server does: roles, fields and places, with the error in its form.
 * Sources: the vendors' API references, and the errors that their users report.
 */
import { isRecord } from "../../src/lib/json.js";
import type { RecordedRequest } from "./fake-upstream.js";
import { chatChunk, chatCompletion, usageChunk, wireUsage } from "./openai-bodies.js";
import { handler, type Reply } from "./upstream-replies.js";

type Loose = Readonly<Record<string, unknown>>;
type Refusal = { readonly status: number; readonly body: unknown };

export interface StrictVendor {
  readonly id: string;
  readonly host: string;
  readonly roles: readonly string[];
  /** The only fields of a body; null: others are read past. */
  readonly bodyFields: readonly string[] | null;
  /** The only fields of messages, by role; null: others are read past. */
  readonly messageFields: Readonly<Record<string, readonly string[]>> | null;
  /** Contents are texts alone. */
  readonly textOnly?: boolean;
  /** Earlier tool calls must have thoughts in this field. */
  readonly needsThoughts?: string;
  /** Where its answers have thoughts, and where it takes them back; null: nowhere. */
  readonly answers: "reasoning_content" | "reasoning" | "content" | null;
  refuse(problem: Problem): Refusal;
}

export interface Problem {
  readonly kind: "role" | "body field" | "message field" | "content" | "thoughts" | "tools";
  readonly path: readonly (string | number)[];
  readonly value: unknown;
}

const SAMPLING = "model messages stream temperature top_p stop n tools tool_choice response_format presence_penalty frequency_penalty";

function words(text: string): readonly string[] {
  return text.split(" ");
}

const OPENAI_STYLE =
  (message: (problem: Problem) => string, type = "invalid_request_error") =>
  (problem: Problem) => ({
    status: 400,
    body: { error: { message: message(problem), type, param: null, code: type } },
  });

const nameOf = ({ path }: Problem) => String(path.at(-1));

export const STRICT_VENDORS: readonly StrictVendor[] = [
  {
    id: "openai",
    host: "api.openai.com",
    roles: words("system developer user assistant tool function"),
    bodyFields: words(
      `${SAMPLING} max_tokens max_completion_tokens stream_options seed parallel_tool_calls logprobs top_logprobs logit_bias user store metadata reasoning_effort verbosity service_tier`,
    ),
    messageFields: {
      system: words("content name"),
      developer: words("content name"),
      user: words("content name"),
      assistant: words("content name tool_calls refusal audio function_call annotations"),
      tool: words("content tool_call_id"),
    },
    answers: null,
    refuse: (problem) => ({
      status: 400,
      body: {
        error: {
          message: `Unknown parameter: '${toParam(problem.path)}'.`,
          type: "invalid_request_error",
          param: toParam(problem.path),
          code: "unknown_parameter",
        },
      },
    }),
  },
  {
    id: "mistral",
    host: "api.mistral.ai",
    roles: words("system user assistant tool"),
    bodyFields: words(
      `${SAMPLING} max_tokens random_seed parallel_tool_calls prediction prompt_mode reasoning_effort safe_prompt metadata guardrails`,
    ),
    messageFields: {
      system: ["content"],
      user: ["content"],
      assistant: words("content tool_calls prefix"),
      tool: words("content tool_call_id name"),
    },
    answers: "content",
    refuse: ({ kind, path, value }) => ({
      status: 422,
      body: {
        object: "error",
        message: {
          detail: [
            kind === "role"
              ? {
                  type: "union_tag_invalid",
                  loc: ["body", ...path],
                  msg: `Input tag '${String(value)}' found using 'role' does not match`,
                  input: value,
                }
              : { type: "extra_forbidden", loc: ["body", ...path], msg: "Extra inputs are not permitted", input: value },
          ],
        },
        type: "invalid_request_error",
        param: null,
        code: null,
      },
    }),
  },
  {
    id: "groq",
    host: "api.groq.com",
    roles: words("system user assistant tool function"),
    bodyFields: words(
      `${SAMPLING} max_tokens max_completion_tokens stream_options seed parallel_tool_calls user store metadata reasoning_effort reasoning_format service_tier include_reasoning`,
    ),
    messageFields: {
      system: ["content"],
      user: ["content"],
      assistant: words("content tool_calls reasoning function_call"),
      tool: words("content tool_call_id"),
    },
    answers: "reasoning",
    refuse: OPENAI_STYLE((problem) => {
      if (problem.kind !== "message field") return `property '${nameOf(problem)}' is unsupported`;
      const at = `messages.${String(problem.path[1])}`;
      return `'${at}' : for 'role:assistant' the following must be satisfied[('${at}' : property '${nameOf(problem)}' is unsupported)]`;
    }),
  },
  {
    id: "deepseek",
    host: "api.deepseek.com",
    roles: words("system user assistant tool"),
    bodyFields: null,
    messageFields: null,
    textOnly: true,
    needsThoughts: "reasoning_content",
    answers: "reasoning_content",
    refuse: OPENAI_STYLE((problem) => {
      if (problem.kind === "thoughts") return "The `reasoning_content` in the thinking mode must be passed back to the API.";
      if (problem.kind === "role") {
        return `Failed to deserialize the JSON body into the target type: messages[${String(problem.path[1])}].role: unknown variant \`${String(problem.value)}\`, expected one of \`system\`, \`user\`, \`assistant\`, \`tool\` at line 1 column 47`;
      }
      return `Failed to deserialize the JSON body into the target type: ${toParam(problem.path)}: invalid type: sequence, expected a string`;
    }),
  },
  {
    id: "xai",
    host: "api.x.ai",
    roles: words("system user assistant tool function"),
    bodyFields: null,
    messageFields: null,
    answers: "reasoning_content",
    refuse: OPENAI_STYLE((problem) => `unknown variant \`${String(problem.value)}\``),
  },
  {
    id: "moonshot",
    host: "api.moonshot.ai",
    roles: words("system user assistant tool"),
    bodyFields: null,
    messageFields: null,
    needsThoughts: "reasoning_content",
    answers: "reasoning_content",
    refuse: OPENAI_STYLE((problem) =>
      problem.kind === "thoughts"
        ? `thinking is enabled but reasoning_content is missing in assistant tool call message at index ${String(problem.path[1])}`
        : `invalid role: ${String(problem.value)}`,
    ),
  },
  {
    id: "zai",
    host: "api.z.ai",
    roles: words("system user assistant tool"),
    bodyFields: null,
    messageFields: null,
    answers: "reasoning_content",
    refuse: () => ({
      status: 400,
      body: { error: { code: "1214", message: "messages parameter is illegal, please check the documentation." } },
    }),
  },
  {
    id: "cerebras",
    host: "api.cerebras.ai",
    roles: words("system user assistant tool"),
    bodyFields: words(
      "model messages stream temperature top_p stop tools tool_choice response_format max_completion_tokens stream_options seed logprobs top_logprobs user parallel_tool_calls reasoning_effort",
    ),
    messageFields: {
      system: words("content name"),
      user: words("content name"),
      assistant: words("content name tool_calls reasoning"),
      tool: words("content name tool_call_id"),
    },
    answers: "reasoning",
    refuse: ({ path, value, kind }) => {
      const at = kind === "message field" ? `messages.${String(path[1])}.assistant.${String(path.at(-1))}` : path.join(".");
      return {
        status: kind === "role" ? 422 : 400,
        body: {
          message: kind === "role" ? `${at}: unsupported role '${String(value)}'` : `${at}: property '${at}' is unsupported`,
          type: "invalid_request_error",
          param: "validation_error",
          code: "wrong_api_format",
        },
      };
    },
  },
  {
    id: "openrouter",
    host: "openrouter.ai",
    roles: words("system user assistant tool developer"),
    bodyFields: null,
    messageFields: null,
    answers: "reasoning",
    refuse: OPENAI_STYLE((problem) => `unsupported: ${problem.path.join(".")}`),
  },
];

function toParam(path: readonly (string | number)[]): string {
  return path.reduce<string>((text, step) => (typeof step === "number" ? `${text}[${step}]` : text === "" ? step : `${text}.${step}`), "");
}

/** The first problem of a request; null: the vendor takes it. */
export function problemIn(vendor: StrictVendor, body: Loose): Problem | null {
  for (const name of Object.keys(body)) {
    if (vendor.bodyFields && !vendor.bodyFields.includes(name)) return { kind: "body field", path: [name], value: body[name] };
  }
  if (Array.isArray(body.tools) && body.tools.length === 0) return { kind: "tools", path: ["tools"], value: body.tools };
  if (body.tool_choice !== undefined && body.tools === undefined) return { kind: "tools", path: ["tool_choice"], value: body.tool_choice };
  for (const [index, message] of (body.messages as readonly Loose[]).entries()) {
    const problem = problemInMessage(vendor, message, index);
    if (problem) return problem;
  }
  return null;
}

function problemInMessage(vendor: StrictVendor, message: Loose, index: number): Problem | null {
  const role = String(message.role);
  if (!vendor.roles.includes(role)) return { kind: "role", path: ["messages", index, "role"], value: role };
  const known = vendor.messageFields?.[role];
  for (const name of Object.keys(message)) {
    if (name === "role" || !known || known.includes(name)) continue;
    // Pydantic and others name the role before the field.
    const path = vendor.id === "mistral" ? ["messages", index, role, name] : ["messages", index, name];
    return { kind: "message field", path, value: message[name] };
  }
  if (vendor.textOnly && Array.isArray(message.content))
    return { kind: "content", path: ["messages", index, "content"], value: message.content };
  const { needsThoughts } = vendor;
  if (needsThoughts && Array.isArray(message.tool_calls) && !message[needsThoughts]) {
    return { kind: "thoughts", path: ["messages", index, needsThoughts], value: undefined };
  }
  return null;
}

/** Where a message of a request has thoughts, in the vendor's place; null: nowhere. */
export function thoughtsAt(vendor: StrictVendor, message: Loose): string | null {
  if (vendor.answers === null) return null;
  if (vendor.answers !== "content") return typeof message[vendor.answers] === "string" ? (message[vendor.answers] as string) : null;
  const parts = Array.isArray(message.content) ? message.content.filter(isRecord) : [];
  const thinking = parts.find(({ type }) => type === "thinking")?.thinking;
  return Array.isArray(thinking) ? thinking.map((part) => String((part as Loose).text)).join("") : null;
}

const CALLS = [
  { id: "callOslo1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } },
  { id: "callTime2", type: "function", function: { name: "get_time", arguments: '{"zone":"CET"}' } },
];

/**
 * Refuses as the vendor does; else answers two calls with thoughts, or a text once the conversation has an answer. Adds its refusals to
 * `refusals`.
 */
export function strictReply(vendor: StrictVendor, refusals: Problem[] = []): Reply {
  return handler(({ json }: RecordedRequest, response) => {
    const body = json as Loose;
    const send = (status: number, type: string, text: string) => void response.writeHead(status, { "content-type": type }).end(text);
    const problem = problemIn(vendor, body);
    if (problem) {
      const { status, body: error } = vendor.refuse(problem);
      refusals.push(problem);
      return send(status, "application/json", JSON.stringify(error));
    }
    const messages = body.messages as readonly Loose[];
    const hasAnswer = messages.some(({ role }) => role === "assistant");
    const said = hasAnswer ? `Turn ${messages.length}.` : null;
    if (body.stream !== true) return send(200, "application/json", JSON.stringify(whole(vendor, said)));
    const events = [...streamed(vendor, said).map((chunk) => JSON.stringify(chunk)), "[DONE]"];
    return send(200, "text/event-stream", events.map((data) => `data: ${data}\n\n`).join(""));
  });
}

export const THOUGHT = "Ask both.";

function delta(vendor: StrictVendor, said: string | null): Loose {
  const calls = said === null ? { tool_calls: CALLS.map((call, index) => ({ index, ...call })) } : {};
  const thought = said === null ? THOUGHT : "Now I know.";
  if (vendor.answers === "content") {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: thought }] };
    return { role: "assistant", content: said === null ? [thinking] : [thinking, { type: "text", text: said }], ...calls };
  }
  return { role: "assistant", content: said, ...(vendor.answers && { [vendor.answers]: thought }), ...calls };
}

function whole(vendor: StrictVendor, said: string | null): Loose {
  const body = chatCompletion({ content: "", usage: wireUsage(10, 4) });
  return { ...body, choices: [{ index: 0, message: delta(vendor, said), finish_reason: said === null ? "tool_calls" : "stop" }] };
}

function streamed(vendor: StrictVendor, said: string | null): readonly Loose[] {
  return [chatChunk(delta(vendor, said)), chatChunk({}, said === null ? "tool_calls" : "stop"), usageChunk(wireUsage(10, 4))];
}
