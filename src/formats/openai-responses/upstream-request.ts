/** A chat as a request of OpenAI's Responses format, for an upstream that speaks it. */
import { isRecord, recordsOf } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { repairHistory } from "../openai-chat/repair.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { refuse } from "../upstream-error.js";
import { SIGNED_FORMAT } from "./upstream-answer.js";

// Messages of a chat as items of the Responses format, where tool calls and their results are separate items.

interface ResponsesInput {
  /** The system message at the start, if any. */
  readonly instructions: string | null;
  readonly input: readonly Loose[];
  readonly warnings: readonly string[];
}

/** Throws a ProviderError of status 400 for a part that no item can hold. */
function toInput(messages: unknown): ResponsesInput {
  const writer = new InputWriter();
  // Outputs of tools hold pictures in this format.
  const { messages: all, warnings } = repairHistory(recordsOf(messages), { field: "messages", showsMediaApart: false });
  // An empty input is invalid.
  const instructions = all.length > 1 ? instructionsOf(all[0]) : null;
  for (const [index, message] of all.entries()) {
    if (index > 0 || instructions === null) writer.add(message, `messages.${index}`);
  }
  return { instructions, input: writer.items, warnings: [...warnings, ...writer.warnings] };
}

class InputWriter {
  readonly items: Loose[] = [];
  readonly warnings = new Set<string>();
  /** Calls of the older form have no ids. */
  private unnamedCalls = 0;
  /** Calls of tools that take plain text. */
  private readonly customCalls = new Set<unknown>();

  add(message: Loose, path: string): void {
    const { role, content } = message;
    if (message.name !== undefined && role !== "function") this.warnings.add("messages.name: this upstream knows no names.");
    if (role === "assistant") this.addTurn(message, path);
    else if (role === "tool") this.addOutput(message.tool_call_id, content, path);
    else if (role === "function") this.addOutput(this.unnamedId(), content, path);
    else this.items.push({ role: String(role), content: toContent(content, path) });
  }

  private addTurn(message: Loose, path: string): void {
    const { content, refusal, tool_calls: calls, function_call: called } = message;
    const signed = recordsOf(message.reasoning_details).filter(({ format }) => format === SIGNED_FORMAT);
    for (const { id, data } of signed) {
      this.items.push({ type: "reasoning", ...(typeof id === "string" && { id }), summary: [], encrypted_content: data });
    }
    if (signed.length === 0 && (message.reasoning_content != null || message.reasoning != null)) {
      this.warnings.add("messages.reasoning_content: earlier thoughts are not given to this upstream.");
    }
    const parts = typeof content === "string" ? textsOf(content) : recordsOf(content).map((part, index) => toSaidPart(part, path, index));
    if (typeof refusal === "string" && refusal !== "") parts.push({ type: "refusal", refusal });
    if (parts.length > 0) this.items.push({ type: "message", role: "assistant", content: parts });
    for (const call of recordsOf(calls)) {
      if (isRecord(call.custom)) this.customCalls.add(call.id);
      this.items.push(toCall(call));
    }
    if (!isRecord(called)) return;
    this.unnamedCalls += 1;
    this.items.push(toCall({ id: this.unnamedId(), function: called }));
  }

  private addOutput(callId: unknown, content: unknown, path: string): void {
    const parts = recordsOf(content);
    const isText = parts.every(({ type }) => type === "text");
    const output = isText && Array.isArray(content) ? parts.map(({ text }) => String(text ?? "")).join("") : toContent(content, path);
    const type = this.customCalls.has(callId) ? "custom_tool_call_output" : "function_call_output";
    this.items.push({ type, call_id: String(callId ?? ""), output });
  }

  private unnamedId(): string {
    return `call_${this.unnamedCalls}`;
  }
}

function instructionsOf(first: Loose | undefined): string | null {
  const isInstruction = first?.role === "system" || first?.role === "developer";
  return isInstruction && typeof first?.content === "string" ? first.content : null;
}

function textsOf(text: string): Loose[] {
  return text === "" ? [] : [{ type: "output_text", text }];
}

function toCall(call: Loose): Loose {
  const called: Loose = isRecord(call.function) ? call.function : {};
  const callId = String(call.id ?? "");
  if (isRecord(call.custom)) return { type: "custom_tool_call", call_id: callId, name: call.custom.name, input: call.custom.input ?? "" };
  return { type: "function_call", call_id: callId, name: String(called.name ?? ""), arguments: String(called.arguments ?? "") };
}

function toContent(content: unknown, path: string): string | Loose[] {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  return recordsOf(content).map((part, index) => toPart(part, `${path}.content.${index}`));
}

/** A part of input. */
function toPart(part: Loose, path: string): Loose {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "refusal":
      return { type: "input_text", text: part.refusal };
    case "image_url": {
      const image = isRecord(part.image_url) ? part.image_url : { url: part.image_url };
      return { type: "input_image", image_url: image.url, detail: image.detail ?? "auto" };
    }
    case "input_audio":
      return { type: "input_audio", input_audio: part.input_audio };
    case "file":
      return { type: "input_file", ...(isRecord(part.file) ? part.file : {}) };
    default:
      throw refuse(`This model's upstream takes no content of type ${JSON.stringify(part.type)}.`, `${path}.type`);
  }
}

/** A part of output. */
function toSaidPart(part: Loose, path: string, index: number): Loose {
  if (part.type === "text") return { type: "output_text", text: part.text };
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  throw refuse(`An assistant's message holds no content of type ${JSON.stringify(part.type)}.`, `${path}.content.${index}.type`);
}

// A chat-completions body as a request of OpenAI's Responses format ("Create a model response"), stateless: everything is in the request.
// Options that the format cannot express become warnings; unknown fields are passed on.

type Loose = Readonly<Record<string, unknown>>;

export interface ResponsesRequest {
  readonly fields: Loose;
  readonly warnings: readonly string[];
}

/** Chat fields that are translated below, or do not apply to the other format. */
const READ_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "stream",
  "stream_options",
  "max_tokens",
  "max_completion_tokens",
  "tools",
  "tool_choice",
  "functions",
  "function_call",
  "response_format",
  "verbosity",
  "reasoning_effort",
  "logprobs",
  "modalities",
  "store",
]);
/** Chat fields without an equivalent, and their neutral values. */
const UNKNOWN_FIELDS: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ["n", 1],
  ["stop", undefined],
  ["seed", undefined],
  ["presence_penalty", 0],
  ["frequency_penalty", 0],
  ["logit_bias", undefined],
  ["prediction", undefined],
  ["audio", undefined],
  ["web_search_options", undefined],
]);

/** Throws a ProviderError of status 400 for content that no item can hold. */
export function toResponsesRequest(body: ChatBody, upstreamModel: string, isStreamed: boolean): ResponsesRequest {
  const { instructions, input, warnings } = toInput(body.messages);
  const { reasoning_effort: effort, logprobs, top_logprobs: topLogprobs } = body;
  const cap = body.max_completion_tokens ?? body.max_tokens;
  const fields = {
    ...passed(body),
    model: upstreamModel,
    ...(instructions !== null && { instructions }),
    input,
    ...(typeof cap === "number" && { max_output_tokens: cap }),
    ...toTools(body),
    ...toText(body),
    ...(typeof effort === "string" && { reasoning: { ...(isRecord(body.reasoning) ? body.reasoning : {}), effort } }),
    ...(logprobs === true && { include: [...textsIn(body.include), "message.output_text.logprobs"], top_logprobs: topLogprobs ?? 0 }),
    // Nothing is stored at an upstream unless the client asks for it.
    store: body.store === true,
    stream: isStreamed,
  };
  return { fields, warnings: [...warnings, ...unexpressed(body)] };
}

function passed(body: ChatBody): Loose {
  const isPassed = ([name, value]: [string, unknown]) => value != null && !READ_FIELDS.has(name) && !UNKNOWN_FIELDS.has(name);
  return Object.fromEntries(Object.entries(body).filter(isPassed));
}

function unexpressed(body: ChatBody): string[] {
  const isAsked = (value: unknown, idle: unknown) => value !== undefined && value !== null && value !== idle;
  const asked = [...UNKNOWN_FIELDS].filter(([name, idle]) => isAsked(ownValue(body, name), idle));
  return asked.map(([name]) => (name === "n" ? "n: this upstream gives one choice." : `${name}: this upstream has no such option.`));
}

/** `strict` defaults to false in the chat format, and to true in the other one. */
function toTools(body: ChatBody): Loose {
  const older = recordsOf(body.functions).map((definition) => ({ type: "function", function: definition }));
  const tools = [...recordsOf(body.tools), ...older].map(toTool);
  const choice = body.tool_choice ?? toNewerChoice(body.function_call);
  if (tools.length === 0) return {};
  return { tools, ...(choice != null && { tool_choice: toToolChoice(choice) }) };
}

function toTool(tool: Loose): Loose {
  if (tool.type === "function" && isRecord(tool.function)) {
    const { parameters, strict, ...definition } = tool.function;
    return {
      type: "function",
      ...definition,
      parameters: isRecord(parameters) ? parameters : { type: "object", properties: {} },
      strict: strict === true,
    };
  }
  if (tool.type !== "custom" || !isRecord(tool.custom)) return tool;
  const { format, ...definition } = tool.custom;
  const grammar = isRecord(format) && isRecord(format.grammar) ? { type: "grammar", ...format.grammar } : format;
  return { type: "custom", ...definition, ...(grammar !== undefined && { format: grammar }) };
}

/** Translates the parameter that preceded tool_choice. */
function toNewerChoice(choice: unknown): unknown {
  return isRecord(choice) ? { type: "function", function: choice } : choice;
}

function toToolChoice(choice: unknown): unknown {
  if (!isRecord(choice)) return choice;
  if (isRecord(choice.function)) return { type: "function", name: choice.function.name };
  if (isRecord(choice.custom)) return { type: "custom", name: choice.custom.name };
  if (!isRecord(choice.allowed_tools)) return choice;
  const { mode, tools } = choice.allowed_tools;
  return { type: "allowed_tools", mode, tools: recordsOf(tools).map(toToolChoice) };
}

function toText({ response_format: format, verbosity }: ChatBody): Loose {
  const text = { ...toFormat(format), ...(typeof verbosity === "string" && { verbosity }) };
  return Object.keys(text).length === 0 ? {} : { text };
}

function toFormat(format: unknown): Loose {
  if (!isRecord(format)) return {};
  if (format.type !== "json_schema" || !isRecord(format.json_schema)) return { format: { type: format.type } };
  return { format: { type: "json_schema", ...format.json_schema } };
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}
