/** Conversation data: turns of the user, each with the answers of one or two models. */
import type {
  ChatCompletionInput,
  ChatContentPartInput,
  ChatMessageInput,
  ChatToolInput,
  PlaygroundReceiptFragment,
  ReasoningEffort,
} from "../../../client/generated/graphql.js";
import { type Request, wireNames } from "../snippets.js";
import { type Attachment, textWith } from "./attachments.js";
import { findJsonFault } from "./json-fault.js";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, incomplete while it streams. */
  readonly arguments: string;
}

export interface Answer {
  readonly modelId: string;
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** After a reload, "running" means that the answer was interrupted. */
  readonly state: "running" | "done" | "stopped" | "failed";
  readonly finishReason: string | null;
  /** Error message of the gateway. */
  readonly failure: string | null;
  readonly generationId: string | null;
  readonly receipt: PlaygroundReceiptFragment | null;
  /** Exact cost, null while unknown. For stopped answers it comes from the account's feed. */
  readonly cost: string | null;
}

export interface Turn {
  readonly id: string;
  /** Message of the user, null in a turn with tool results. */
  readonly text: string | null;
  /** Files of the message; absent in older conversations. */
  readonly attachments?: readonly Attachment[];
  /** Tool results by the id of the call. */
  readonly results: Readonly<Record<string, string>> | null;
  /** One per side, null for a side without a request. */
  readonly answers: readonly (Answer | null)[];
}

export interface Settings {
  readonly systemPrompt: string;
  readonly temperature: number | string;
  readonly topP: number | string;
  readonly maxTokens: number | string;
  readonly seed: number | string;
  readonly presencePenalty: number | string;
  readonly frequencyPenalty: number | string;
  readonly reasoningEffort: ReasoningEffort | null;
  /** One sequence per line. */
  readonly stop: string;
  /** JSON text. */
  readonly tools: string;
  readonly toolChoice: string | null;
}

export const NO_SETTINGS: Settings = {
  systemPrompt: "",
  temperature: "",
  topP: "",
  maxTokens: "",
  seed: "",
  presencePenalty: "",
  frequencyPenalty: "",
  reasoningEffort: null,
  stop: "",
  tools: "",
  toolChoice: null,
};

export function emptyAnswer(modelId: string): Answer {
  return {
    modelId,
    text: "",
    reasoning: "",
    toolCalls: [],
    state: "running",
    finishReason: null,
    failure: null,
    generationId: null,
    receipt: null,
    cost: null,
  };
}

/** Messages of one side up to a turn, without the answer to that turn. */
export function messagesFor(turns: readonly Turn[], upTo: string, side: number, systemPrompt: string): ChatMessageInput[] {
  const messages: ChatMessageInput[] = systemPrompt.trim() === "" ? [] : [{ role: "SYSTEM", content: systemPrompt }];
  for (const { id, text, attachments = [], results, answers } of turns) {
    const answer = answers[side];
    if (text !== null) messages.push(toQuestion(text, attachments));
    else if (answer)
      for (const [toolCallId, content] of Object.entries(results ?? {})) messages.push({ role: "TOOL", toolCallId, content });
    if (id === upTo) return messages;
    if (answer && (answer.text !== "" || answer.toolCalls.length > 0)) messages.push(toMessage(answer));
  }
  return messages;
}

function toQuestion(text: string, attachments: readonly Attachment[]): ChatMessageInput {
  const content = textWith(text, attachments);
  const media = attachments.flatMap((one): ChatContentPartInput[] => {
    if (one.kind === "picture") return [{ image: { url: one.url } }];
    return one.kind === "pdf" ? [{ file: { filename: one.name, data: one.url } }] : [];
  });
  if (media.length === 0) return { role: "USER", content };
  return { role: "USER", parts: [...(content === "" ? [] : [{ text: content }]), ...media] };
}

function toMessage({ text, toolCalls }: Answer): ChatMessageInput {
  return {
    role: "ASSISTANT",
    ...(text !== "" && { content: text }),
    ...(toolCalls.length > 0 && {
      toolCalls: toolCalls.map(({ id, name, arguments: given }) => ({ id, function: { name, arguments: given } })),
    }),
  };
}

/** Omits empty settings, so that the defaults of the model or the gateway apply. */
export function toInput(model: string, messages: readonly ChatMessageInput[], settings: Settings): ChatCompletionInput {
  const { temperature, topP, maxTokens, seed, presencePenalty, frequencyPenalty, reasoningEffort, toolChoice } = settings;
  const tools = readTools(settings.tools);
  const stop = settings.stop.split("\n").filter((line) => line !== "");
  return {
    model,
    messages,
    ...(temperature !== "" && { temperature: Number(temperature) }),
    ...(topP !== "" && { topP: Number(topP) }),
    ...(maxTokens !== "" && { maxTokens: Number(maxTokens) }),
    ...(seed !== "" && { seed: Number(seed) }),
    ...(presencePenalty !== "" && { presencePenalty: Number(presencePenalty) }),
    ...(frequencyPenalty !== "" && { frequencyPenalty: Number(frequencyPenalty) }),
    ...(reasoningEffort !== null && { reasoningEffort }),
    ...(stop.length > 0 && { stop }),
    ...(tools.length > 0 && { tools, ...(toolChoice !== null && { toolChoice }) }),
  };
}

export function chatRequest(input: ChatCompletionInput): Request {
  const { messages: sent, tools, ...rest } = input;
  const messages = sent.map(withShortFiles);
  return {
    path: "/v1/chat/completions",
    body: {
      ...wireNames({ ...rest }, ["reasoningEffort"]),
      messages: messages.map(toWire),
      ...(tools && {
        tools: tools.map(({ function: { isStrict, ...given } }) => ({
          type: "function",
          function: { ...given, ...(typeof isStrict === "boolean" && { strict: isStrict }) },
        })),
      }),
    },
    sdk: { method: "chat.completions.create" },
    graphql: {
      field: "createChatCompletion",
      type: "ChatCompletionInput",
      selection: "completion { choices { message { content toolCalls { id function { name arguments } } } } } receipt { cost }",
      input: { ...input, messages },
    },
    print: { python: "print(answer.choices[0].message)", node: "console.log(answer.choices[0].message);" },
  };
}

/** The data of a file is left for the reader to fill in: it would hide the rest of the code. */
function withShortFiles(message: ChatMessageInput): ChatMessageInput {
  if (!message.parts) return message;
  return {
    ...message,
    parts: message.parts.map((part) => {
      if (part.image) return { image: { url: "data:image/png;base64,BASE64" } };
      return part.file ? { file: { ...part.file, data: "data:application/pdf;base64,BASE64" } } : part;
    }),
  };
}

function toWire({ role, content, parts, toolCalls, toolCallId }: ChatMessageInput) {
  return {
    role: role.toLowerCase(),
    ...(content !== undefined && { content }),
    ...(parts && {
      content: parts.map(({ text, image, file }) => {
        if (image) return { type: "image_url", image_url: { url: image.url } };
        return file ? { type: "file", file: { filename: file.filename, file_data: file.data } } : { type: "text", text: text ?? "" };
      }),
    }),
    ...(toolCalls && { tool_calls: toolCalls.map((call) => ({ type: "function", ...call })) }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  };
}

/** Reads tools in OpenAI's format, or plain functions. Throws with the position of the error. */
function readTools(text: string): ChatToolInput[] {
  if (text.trim() === "") return [];
  const fault = findJsonFault(text);
  if (fault) throw new TypeError(`Invalid JSON at line ${fault.line}, column ${fault.column}: expected ${fault.expected}.`);
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list)) throw new TypeError("Tools must be a list: [ ... ]");
  return list.map((item: unknown, index) => {
    const given = isObject(item) && isObject(item.function) ? item.function : item;
    if (!isObject(given) || typeof given.name !== "string") throw new TypeError(`Tool ${index + 1} needs a "name".`);
    if (given.parameters !== undefined && !isObject(given.parameters)) {
      throw new TypeError(`The "parameters" of tool ${index + 1} must be a JSON Schema: { ... }`);
    }
    return {
      function: {
        name: given.name,
        ...(typeof given.description === "string" && { description: given.description }),
        ...(given.parameters !== undefined && { parameters: given.parameters }),
        ...(typeof given.strict === "boolean" && { isStrict: given.strict }),
      },
    };
  });
}

/** Error message for an invalid list of tools, null for a valid one. */
export function toolsProblem(text: string): string | null {
  try {
    readTools(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : "This is not a list of tools.";
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function charactersOf(messages: readonly ChatMessageInput[]): number {
  return messages.reduce(
    (sum, { content, parts }) => sum + (content?.length ?? 0) + (parts ?? []).reduce((inner, { text }) => inner + (text?.length ?? 0), 0),
    0,
  );
}

export const titleOf = (turns: readonly Turn[]): string => (turns[0]?.text ?? "").trim().slice(0, 200) || "Untitled";
