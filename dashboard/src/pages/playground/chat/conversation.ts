/** A conversation: turns of a person, each with what one model, or two beside each other, have answered. */
import type {
  ChatCompletionInput,
  ChatMessageInput,
  ChatToolInput,
  PlaygroundReceiptFragment,
  ReasoningEffort,
} from "../../../client/generated/graphql.js";
import { type Request, wireNames } from "../snippets.js";
import { findJsonFault } from "./json-fault.js";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON text, as far as it has come. */
  readonly arguments: string;
}

export interface Answer {
  readonly modelId: string;
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly ToolCall[];
  /** How it ended: "running" is also what a reload found unfinished. */
  readonly state: "running" | "done" | "stopped" | "failed";
  readonly finishReason: string | null;
  /** Why it failed, in the gateway's words. */
  readonly failure: string | null;
  readonly generationId: string | null;
  readonly receipt: PlaygroundReceiptFragment | null;
  /** Exact, once it is known; of a stopped answer the account's feed tells it. */
  readonly cost: string | null;
}

export interface Turn {
  readonly id: string;
  /** What the person said; null where the turn brings results of tools. */
  readonly text: string | null;
  /** By the id of the call. */
  readonly results: Readonly<Record<string, string>> | null;
  /** One for each side; null where that side was not asked. */
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
  /** One a line. */
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

/** The conversation as one side has seen it, up to the turn and without its answer. */
export function messagesFor(turns: readonly Turn[], upTo: string, side: number, systemPrompt: string): ChatMessageInput[] {
  const messages: ChatMessageInput[] = systemPrompt.trim() === "" ? [] : [{ role: "SYSTEM", content: systemPrompt }];
  for (const { id, text, results, answers } of turns) {
    const answer = answers[side];
    if (text !== null) messages.push({ role: "USER", content: text });
    else if (answer)
      for (const [toolCallId, content] of Object.entries(results ?? {})) messages.push({ role: "TOOL", toolCallId, content });
    if (id === upTo) return messages;
    if (answer && (answer.text !== "" || answer.toolCalls.length > 0)) messages.push(toMessage(answer));
  }
  return messages;
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

/** What is left empty is not sent: the model, or the gateway, decides. */
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

/** As programs ask for it. */
export function chatRequest(input: ChatCompletionInput): Request {
  const { messages, tools, ...rest } = input;
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
      input: { ...input },
    },
    print: { python: "print(answer.choices[0].message)", node: "console.log(answer.choices[0].message);" },
  };
}

function toWire({ role, content, toolCalls, toolCallId }: ChatMessageInput) {
  return {
    role: role.toLowerCase(),
    ...(content !== undefined && { content }),
    ...(toolCalls && { tool_calls: toolCalls.map((call) => ({ type: "function", ...call })) }),
    ...(toolCallId !== undefined && { tool_call_id: toolCallId }),
  };
}

/** As OpenAI writes them, or functions by themselves. Throws where the text is no list of functions in JSON, and says where. */
function readTools(text: string): ChatToolInput[] {
  if (text.trim() === "") return [];
  const fault = findJsonFault(text);
  if (fault) throw new TypeError(`This is no JSON at line ${fault.line}, column ${fault.column}: ${fault.expected} is expected there.`);
  const list: unknown = JSON.parse(text);
  if (!Array.isArray(list)) throw new TypeError("Tools are a list: [ ... ]");
  return list.map((item: unknown, index) => {
    const given = isObject(item) && isObject(item.function) ? item.function : item;
    if (!isObject(given) || typeof given.name !== "string") throw new TypeError(`Tool ${index + 1} needs a "name".`);
    if (given.parameters !== undefined && !isObject(given.parameters)) {
      throw new TypeError(`The "parameters" of tool ${index + 1} are a JSON Schema: { ... }`);
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

/** Why the text is no list of tools; null where it is one. */
export function toolsProblem(text: string): string | null {
  try {
    readTools(text);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : "This is no list of tools.";
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function charactersOf(messages: readonly ChatMessageInput[]): number {
  return messages.reduce((sum, { content }) => sum + (content?.length ?? 0), 0);
}

export const titleOf = (turns: readonly Turn[]): string => (turns[0]?.text ?? "").trim().slice(0, 200) || "Without words";
