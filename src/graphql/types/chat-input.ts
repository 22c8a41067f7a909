/**
 * What a chat completion is asked with: the documented parameters as typed fields, anything else in `extra`. It becomes
 * the body of POST /v1/chat/completions, and the service's own schema checks that, so both faces refuse the same things
 * in the same words; `param` and `details` of an error name the fields as they are called here (`../input-names.ts`).
 */
import { invalidInput } from "../../errors.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { SafetyFeature } from "./models.js";

const ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;
export type ChatRoleName = (typeof ROLES)[number];

export const ChatRole = builder.enumType("ChatRole", {
  description: "Who says something in a conversation.",
  values: {
    SYSTEM: { value: "system", description: "The application, which says how the model shall behave." },
    DEVELOPER: { value: "developer", description: "The same, as newer models call it." },
    USER: { value: "user", description: "Whoever talks to the model." },
    ASSISTANT: { value: "assistant", description: "The model." },
    TOOL: { value: "tool", description: "A tool, which answers a call of the model." },
    FUNCTION: { value: "function", description: "The same, as older models call it." },
  } satisfies Record<string, { value: ChatRoleName; description: string }>,
});

export function isChatRole(role: unknown): role is ChatRoleName {
  return ROLES.some((known) => known === role);
}

const ChatFunctionCallInput = builder.inputType("ChatFunctionCallInput", {
  description: "Which function a model has called, and with what.",
  fields: (t) => ({
    name: t.string({ required: true, description: "Of the function." }),
    arguments: t.string({ required: true, description: "JSON text." }),
  }),
});

const ChatToolCallInput = builder.inputType("ChatToolCallInput", {
  description: "A tool call of an earlier answer, sent back with the assistant's message.",
  fields: (t) => ({
    id: t.string({ required: true, description: "As the model has named the call." }),
    type: t.string({ defaultValue: "function", description: "What kind of tool was called." }),
    function: t.field({ type: ChatFunctionCallInput, required: true, description: "The function that was called." }),
  }),
});

const ImageDetail = builder.enumType("ImageDetail", {
  description: "How closely a model looks at a picture.",
  values: {
    AUTO: { value: "auto", description: "The model decides." },
    LOW: { value: "low", description: "At a small copy, for few tokens." },
    HIGH: { value: "high", description: "At every part of it, for more tokens." },
  } as const,
});

const ChatImagePartInput = builder.inputType("ChatImagePartInput", {
  description: "A picture in a message.",
  fields: (t) => ({
    url: t.string({ required: true, description: "An https address or a data: URL." }),
    detail: t.field({ type: ImageDetail, description: "Omitted: the model decides." }),
  }),
});

const ChatAudioPartInput = builder.inputType("ChatAudioPartInput", {
  description: "A sound in a message.",
  fields: (t) => ({
    data: t.string({ required: true, description: "Base64." }),
    format: t.string({ required: true, description: "Such as `wav` or `mp3`." }),
  }),
});

const ChatFilePartInput = builder.inputType("ChatFilePartInput", {
  description: "A document in a message.",
  fields: (t) => ({
    filename: t.string({ description: "What it is called." }),
    data: t.string({ required: true, description: "A data: URL.", extensions: { wireName: "file_data" } }),
  }),
});

const ChatVideoPartInput = builder.inputType("ChatVideoPartInput", {
  description: "A film in a message.",
  fields: (t) => ({ url: t.string({ required: true, description: "An https address or a data: URL." }) }),
});

const ChatContentPartInput = builder.inputType("ChatContentPartInput", {
  description: "A part of a message: exactly one of these.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "A text." }),
    image: t.field({ type: ChatImagePartInput, description: "A picture.", extensions: { wireName: "image_url" } }),
    audio: t.field({ type: ChatAudioPartInput, description: "A sound.", extensions: { wireName: "input_audio" } }),
    file: t.field({ type: ChatFilePartInput, description: "A document." }),
    video: t.field({ type: ChatVideoPartInput, description: "A film.", extensions: { wireName: "video_url" } }),
    refusal: t.string({ description: "Of an earlier answer: what the model refused with." }),
    raw: t.field({
      type: "JSON",
      description: 'A part by its wire names, such as `{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }`.',
    }),
  }),
});

const ChatMessageInput = builder.inputType("ChatMessageInput", {
  description: "A message of a conversation.",
  fields: (t) => ({
    role: t.field({ type: ChatRole, required: true, description: "Who says it." }),
    content: t.string({ description: "The text of the message." }),
    parts: t.field({
      type: [ChatContentPartInput],
      description: "Instead of `content`: what the message is made of.",
      extensions: { wireName: "content" },
    }),
    name: t.string({ description: "Tells participants of one role apart." }),
    toolCalls: t.field({ type: [ChatToolCallInput], description: "With the role ASSISTANT: what the model has called." }),
    toolCallId: t.string({ description: "With the role TOOL: the call that this message answers." }),
  }),
});

const ChatFunctionInput = builder.inputType("ChatFunctionInput", {
  description: "A function as the model is told of it.",
  fields: (t) => ({
    name: t.string({ required: true, description: "What the model calls it." }),
    description: t.string({ description: "What it does, and when to call it." }),
    parameters: t.field({ type: "JSON", description: "A JSON Schema." }),
    isStrict: t.boolean({ description: "The model keeps to the schema exactly.", extensions: { wireName: "strict" } }),
  }),
});

const ChatToolInput = builder.inputType("ChatToolInput", {
  description: "A function that the model may call. Tools of other types go in `extra.tools`, then all of them do.",
  fields: (t) => ({ function: t.field({ type: ChatFunctionInput, required: true, description: "The function." }) }),
});

const ChatResponseFormatType = builder.enumType("ChatResponseFormatType", {
  description: "What an answer looks like.",
  values: {
    TEXT: { value: "text", description: "Text." },
    JSON_OBJECT: { value: "json_object", description: "A JSON object." },
    JSON_SCHEMA: { value: "json_schema", description: "JSON that keeps to a schema." },
  } as const,
});

const ChatJsonSchemaInput = builder.inputType("ChatJsonSchemaInput", {
  description: "The schema that an answer keeps to.",
  fields: (t) => ({
    name: t.string({ required: true, description: "What the model calls it." }),
    description: t.string({ description: "What it is for." }),
    schema: t.field({ type: "JSON", description: "A JSON Schema." }),
    isStrict: t.boolean({ description: "The model keeps to the schema exactly.", extensions: { wireName: "strict" } }),
  }),
});

const ChatResponseFormatInput = builder.inputType("ChatResponseFormatInput", {
  description: "What the answer shall look like.",
  fields: (t) => ({
    type: t.field({ type: ChatResponseFormatType, required: true, description: "What kind of answer." }),
    jsonSchema: t.field({ type: ChatJsonSchemaInput, description: "With the type JSON_SCHEMA." }),
  }),
});

export const ReasoningEffort = builder.enumType("ReasoningEffort", {
  description: "How long a model thinks before it answers. Models that do not know one take the nearest that they know, or refuse it.",
  values: {
    NONE: { value: "none", description: "Not at all." },
    MINIMAL: { value: "minimal", description: "As little as it can." },
    LOW: { value: "low", description: "A little." },
    MEDIUM: { value: "medium", description: "As usual." },
    HIGH: { value: "high", description: "Long." },
    XHIGH: { value: "xhigh", description: "As long as it can." },
  } as const,
});

export const ChatCompletionInput = builder.inputType("ChatCompletionInput", {
  description: "A conversation, and how it shall be answered.",
  fields: (t) => ({
    model: t.string({ description: "An id or alias. Omitted: the default text model." }),
    messages: t.field({ type: [ChatMessageInput], required: true, description: "The conversation, oldest message first." }),
    temperature: t.float({ description: "How freely the model chooses its words: 0 to 2." }),
    topP: t.float({ description: "The share of likely words that the model chooses from: 0 to 1." }),
    seed: t.int({ description: "Makes answers repeatable, as far as the model can. -1: a random one." }),
    n: t.int({ description: "How many answers, 1 to 128. One unless stated." }),
    maxTokens: t.int({ description: "How long the answer may be, in tokens." }),
    maxCompletionTokens: t.int({ description: "The same, as newer models call it." }),
    stop: t.stringList({ description: "Texts that end the answer." }),
    presencePenalty: t.float({ description: "How much the model avoids what it has said: -2 to 2." }),
    frequencyPenalty: t.float({ description: "How much the model avoids what it has said often: -2 to 2." }),
    hasLogprobs: t.boolean({
      description: "Tell how likely each token of the answer was.",
      extensions: { wireName: "logprobs" },
    }),
    topLogprobs: t.int({ description: "With `hasLogprobs`: of how many other tokens to tell it, too, 0 to 20." }),
    reasoningEffort: t.field({ type: ReasoningEffort, description: "How long to think. Omitted: as the model does by itself." }),
    tools: t.field({ type: [ChatToolInput], description: "Functions that the model may call." }),
    toolChoice: t.field({ type: "JSON", description: '`"auto"`, `"none"`, `"required"`, or the function to call.' }),
    hasParallelToolCalls: t.boolean({
      description: "Whether the model may call several functions at once.",
      extensions: { wireName: "parallel_tool_calls" },
    }),
    responseFormat: t.field({ type: ChatResponseFormatInput, description: "What the answer shall look like. Text unless stated." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

type Input = typeof ChatCompletionInput.$inferInput;
type MessageInput = typeof ChatMessageInput.$inferInput;
type PartInput = typeof ChatContentPartInput.$inferInput;

/** What the operation itself decides. */
const RESERVED_FIELDS = ["stream", "stream_options"];

/** The body of POST /v1/chat/completions; fields that are null or absent are left out. Throws BAD_REQUEST. */
export function toChatBody(input: Input): Record<string, unknown> {
  const body = present({
    model: input.model,
    messages: input.messages.map(toMessage),
    temperature: input.temperature,
    top_p: input.topP,
    seed: input.seed,
    n: input.n,
    max_tokens: input.maxTokens,
    max_completion_tokens: input.maxCompletionTokens,
    stop: input.stop,
    presence_penalty: input.presencePenalty,
    frequency_penalty: input.frequencyPenalty,
    logprobs: input.hasLogprobs,
    top_logprobs: input.topLogprobs,
    reasoning_effort: input.reasoningEffort,
    tools: input.tools?.map((tool) => ({ type: "function", function: withStrict(tool.function) })),
    tool_choice: input.toolChoice,
    parallel_tool_calls: input.hasParallelToolCalls,
    response_format: input.responseFormat && toResponseFormat(input.responseFormat),
    safe: toSafeText(input.safe),
  });
  return withExtra(body, input.extra, RESERVED_FIELDS);
}

function toMessage(message: MessageInput, index: number): Record<string, unknown> {
  const { role, content, parts, name, toolCalls, toolCallId } = message;
  if (isPresent(content) && isPresent(parts)) throw invalidInput("A message has either content or parts.", `messages.${index}.parts`);
  return present({
    role,
    content: content ?? parts?.map(toPart),
    name,
    tool_calls: toolCalls?.map((call) => ({ id: call.id, type: call.type ?? "function", function: call.function })),
    tool_call_id: toolCallId,
  });
}

/** By its wire names. */
function toPart({ text, image, audio, file, video, refusal, raw }: PartInput): unknown {
  if (isPresent(text)) return { type: "text", text };
  if (isPresent(image)) return { type: "image_url", image_url: present(image) };
  if (isPresent(audio)) return { type: "input_audio", input_audio: audio };
  if (isPresent(file)) return { type: "file", file: present({ filename: file.filename, file_data: file.data }) };
  if (isPresent(video)) return { type: "video_url", video_url: video };
  return isPresent(refusal) ? { type: "refusal", refusal } : raw;
}

function toResponseFormat({ type, jsonSchema }: NonNullable<Input["responseFormat"]>): Record<string, unknown> {
  return present({ type, json_schema: jsonSchema && withStrict(jsonSchema) });
}

function withStrict({ isStrict, ...same }: { readonly isStrict?: boolean | null | undefined }): Record<string, unknown> {
  return present({ ...same, strict: isStrict });
}

export function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isPresent(value)));
}

function isPresent<Value>(value: Value): value is NonNullable<Value> {
  return value !== undefined && value !== null;
}
