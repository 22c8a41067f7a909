/**
 * Inputs of chat completions: the documented parameters as typed fields, all others in `extra`. They become the body of POST
 * /v1/chat/completions, and the service's own schema checks that body, so both faces refuse the same requests with the same messages.
 * `param` and `details` of an error use the field names of GraphQL (`../input-names.ts`).
 */
import { invalidInput } from "../../errors.js";
import { builder } from "../builder.js";
import { EXTRA_DESCRIPTION, MAX_COST_DESCRIPTION, SAFE_DESCRIPTION, toSafeText, withExtra } from "../extra.js";
import { MODELS_DESCRIPTION, PRESET_DESCRIPTION, PROVIDER_DESCRIPTION, ProviderInput } from "../wishes.js";
import { SafetyFeature } from "./models.js";

const ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;
export type ChatRoleName = (typeof ROLES)[number];

export const ChatRole = builder.enumType("ChatRole", {
  description: "The author of a message.",
  values: {
    SYSTEM: { value: "system", description: "System instructions for the model." },
    DEVELOPER: { value: "developer", description: "System instructions, as newer models name the role." },
    USER: { value: "user", description: "The user of the application." },
    ASSISTANT: { value: "assistant", description: "The model." },
    TOOL: { value: "tool", description: "A tool, with the result of a call." },
    FUNCTION: { value: "function", description: "A function, as older models name the role." },
  } satisfies Record<string, { value: ChatRoleName; description: string }>,
});

export function isChatRole(role: unknown): role is ChatRoleName {
  return ROLES.some((known) => known === role);
}

const ChatFunctionCallInput = builder.inputType("ChatFunctionCallInput", {
  description: "A function call of the model.",
  fields: (t) => ({
    name: t.string({ required: true, description: "The name of the function." }),
    arguments: t.string({ required: true, description: "The arguments as JSON text." }),
  }),
});

const ChatToolCallInput = builder.inputType("ChatToolCallInput", {
  description: "A tool call of an earlier answer, sent back with the assistant's message.",
  fields: (t) => ({
    id: t.string({ required: true, description: "The ID that the model gave to the call." }),
    type: t.string({ defaultValue: "function", description: "The type of the tool." }),
    function: t.field({ type: ChatFunctionCallInput, required: true, description: "The called function." }),
    extraContent: t.field({ type: "JSON", description: "`extraContent` of the call, as it was answered." }),
  }),
});

const ImageDetail = builder.enumType("ImageDetail", {
  description: "The resolution at which a model reads an image.",
  values: {
    AUTO: { value: "auto", description: "The model decides." },
    LOW: { value: "low", description: "Low resolution, for few tokens." },
    HIGH: { value: "high", description: "High resolution, for more tokens." },
  } as const,
});

export const CacheLifetime = builder.enumType("CacheLifetime", {
  description: "How long the vendor keeps a prompt up to a mark in its cache.",
  values: {
    FIVE_MINUTES: { value: "5m", description: "Five minutes." },
    ONE_HOUR: { value: "1h", description: "One hour, at a price of its own. Refused for models that have none." },
  } as const,
});

const CACHE_DESCRIPTION = "Marks the end of a prompt that the vendor caches, for models with such marks.";

const ChatImagePartInput = builder.inputType("ChatImagePartInput", {
  description: "An image in a message.",
  fields: (t) => ({
    url: t.string({ required: true, description: "An https or data: URL." }),
    detail: t.field({ type: ImageDetail, description: "The resolution. Defaults to the model's choice." }),
  }),
});

const ChatAudioPartInput = builder.inputType("ChatAudioPartInput", {
  description: "Audio in a message.",
  fields: (t) => ({
    data: t.string({ required: true, description: "The audio, as base64." }),
    format: t.string({ required: true, description: "The format, such as `wav` or `mp3`." }),
  }),
});

const ChatFilePartInput = builder.inputType("ChatFilePartInput", {
  description: "A document in a message.",
  fields: (t) => ({
    filename: t.string({ description: "The file name." }),
    data: t.string({ required: true, description: "The content as a data: URL.", extensions: { wireName: "file_data" } }),
    context: t.string({ description: "Remarks about the document, for models of Anthropic. They are not cited." }),
    hasCitations: t.boolean({ description: "Whether the answer cites the document, for models of Anthropic." }),
  }),
});

const ChatVideoPartInput = builder.inputType("ChatVideoPartInput", {
  description: "A video in a message.",
  fields: (t) => ({ url: t.string({ required: true, description: "An https or data: URL." }) }),
});

const ChatContentPartInput = builder.inputType("ChatContentPartInput", {
  description: "A part of a message. Set exactly one field.",
  isOneOf: true,
  fields: (t) => ({
    text: t.string({ description: "Text." }),
    image: t.field({ type: ChatImagePartInput, description: "An image.", extensions: { wireName: "image_url" } }),
    audio: t.field({ type: ChatAudioPartInput, description: "Audio.", extensions: { wireName: "input_audio" } }),
    file: t.field({ type: ChatFilePartInput, description: "A document." }),
    video: t.field({ type: ChatVideoPartInput, description: "A video.", extensions: { wireName: "video_url" } }),
    refusal: t.string({ description: "The refusal of an earlier answer." }),
    raw: t.field({
      type: "JSON",
      description: 'A part with its wire names, such as `{ type: "text", text: "Hi", cache_control: { type: "ephemeral" } }`.',
    }),
  }),
});

const ChatMessageInput = builder.inputType("ChatMessageInput", {
  description: "A message of a conversation.",
  fields: (t) => ({
    role: t.field({ type: ChatRole, required: true, description: "The author of the message." }),
    content: t.string({ description: "The text of the message." }),
    parts: t.field({
      type: [ChatContentPartInput],
      description: "The parts of the message, instead of `content`.",
      extensions: { wireName: "content" },
    }),
    name: t.string({ description: "A name that distinguishes participants of the same role." }),
    toolCalls: t.field({ type: [ChatToolCallInput], description: "With the role ASSISTANT: the tool calls of the model." }),
    reasoning: t.string({
      description: "With the role ASSISTANT: the reasoning of the answer.",
      extensions: { wireName: "reasoning_content" },
    }),
    reasoningDetails: t.field({
      type: ["JSON"],
      description: "With the role ASSISTANT: `reasoningDetails` of the answer. Some vendors demand it back before tool calls.",
    }),
    toolCallId: t.string({ description: "With the role TOOL: the ID of the call that this message answers." }),
    cache: t.field({ type: CacheLifetime, description: CACHE_DESCRIPTION, extensions: { wireName: "content" } }),
    extraContent: t.field({ type: "JSON", description: "`extraContent` of the message, as it was answered." }),
  }),
});

const ChatFunctionInput = builder.inputType("ChatFunctionInput", {
  description: "The definition of a function.",
  fields: (t) => ({
    name: t.string({ required: true, description: "The name of the function." }),
    description: t.string({ description: "The purpose of the function, for the model." }),
    parameters: t.field({ type: "JSON", description: "The parameters as a JSON Schema." }),
    isStrict: t.boolean({ description: "Whether the model must follow the schema exactly.", extensions: { wireName: "strict" } }),
  }),
});

const ChatToolInput = builder.inputType("ChatToolInput", {
  description: "A function that the model may call. To use tools of other types, put all tools into `extra.tools`.",
  fields: (t) => ({
    function: t.field({ type: ChatFunctionInput, required: true, description: "The function." }),
    cache: t.field({ type: CacheLifetime, description: CACHE_DESCRIPTION, extensions: { wireName: "cache_control" } }),
  }),
});

const ChatResponseFormatType = builder.enumType("ChatResponseFormatType", {
  description: "The format of an answer.",
  values: {
    TEXT: { value: "text", description: "Text." },
    JSON_OBJECT: { value: "json_object", description: "A JSON object." },
    JSON_SCHEMA: { value: "json_schema", description: "JSON that follows a schema." },
  } as const,
});

const ChatJsonSchemaInput = builder.inputType("ChatJsonSchemaInput", {
  description: "The JSON schema of an answer.",
  fields: (t) => ({
    name: t.string({ required: true, description: "The name of the schema." }),
    description: t.string({ description: "The purpose of the schema." }),
    schema: t.field({ type: "JSON", description: "A JSON Schema." }),
    isStrict: t.boolean({ description: "Whether the model must follow the schema exactly.", extensions: { wireName: "strict" } }),
  }),
});

const ChatResponseFormatInput = builder.inputType("ChatResponseFormatInput", {
  description: "The requested format of the answer.",
  fields: (t) => ({
    type: t.field({ type: ChatResponseFormatType, required: true, description: "The type of format." }),
    jsonSchema: t.field({ type: ChatJsonSchemaInput, description: "The schema, with the type JSON_SCHEMA." }),
  }),
});

export const ReasoningEffort = builder.enumType("ReasoningEffort", {
  description: "The reasoning effort. A model that does not support a level uses the nearest that it supports, or refuses the request.",
  values: {
    NONE: { value: "none", description: "No reasoning." },
    MINIMAL: { value: "minimal", description: "The least reasoning." },
    LOW: { value: "low", description: "Little reasoning." },
    MEDIUM: { value: "medium", description: "Normal reasoning." },
    HIGH: { value: "high", description: "Much reasoning." },
    XHIGH: { value: "xhigh", description: "The most reasoning." },
  } as const,
});

export const ChatCompletionInput = builder.inputType("ChatCompletionInput", {
  description: "A conversation and the parameters of its completion.",
  fields: (t) => ({
    model: t.string({ description: "A model ID or alias. Defaults to the default text model." }),
    messages: t.field({ type: [ChatMessageInput], required: true, description: "The conversation, oldest message first." }),
    temperature: t.float({ description: "The sampling temperature, 0 to 2." }),
    topP: t.float({ description: "Nucleus sampling: the probability mass to consider, 0 to 1." }),
    seed: t.int({ description: "The random seed, for repeatable answers where the model supports it. -1 draws a random one." }),
    n: t.int({ description: "The number of answers, 1 to 128. Defaults to one." }),
    maxTokens: t.int({ description: "The maximum length of the answer in tokens." }),
    maxCompletionTokens: t.int({ description: "The maximum length of the answer in tokens, as newer models name it." }),
    stop: t.stringList({ description: "Sequences that end the answer." }),
    presencePenalty: t.float({ description: "Penalty for tokens that have already occurred, -2 to 2." }),
    frequencyPenalty: t.float({ description: "Penalty for tokens by how often they occurred, -2 to 2." }),
    hasLogprobs: t.boolean({
      description: "Whether to return the log probabilities of the answer's tokens.",
      extensions: { wireName: "logprobs" },
    }),
    topLogprobs: t.int({ description: "With `hasLogprobs`: the number of alternatives to return for each token, 0 to 20." }),
    reasoningEffort: t.field({ type: ReasoningEffort, description: "The reasoning effort. Defaults to the model's own." }),
    tools: t.field({ type: [ChatToolInput], description: "Functions that the model may call." }),
    toolChoice: t.field({ type: "JSON", description: '`"auto"`, `"none"`, `"required"`, or the function to call.' }),
    hasParallelToolCalls: t.boolean({
      description: "Whether the model may call several functions in parallel.",
      extensions: { wireName: "parallel_tool_calls" },
    }),
    responseFormat: t.field({ type: ChatResponseFormatInput, description: "The format of the answer. Defaults to text." }),
    safe: t.field({ type: [SafetyFeature], description: SAFE_DESCRIPTION }),
    maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
    provider: t.field({ type: ProviderInput, description: PROVIDER_DESCRIPTION }),
    models: t.stringList({ description: MODELS_DESCRIPTION }),
    preset: t.string({ description: PRESET_DESCRIPTION }),
    extra: t.field({ type: "JSON", description: EXTRA_DESCRIPTION }),
  }),
});

type Input = typeof ChatCompletionInput.$inferInput;
type MessageInput = typeof ChatMessageInput.$inferInput;
type PartInput = typeof ChatContentPartInput.$inferInput;

const RESERVED_FIELDS = ["stream", "stream_options"];

/** Builds the body of POST /v1/chat/completions, without fields that are null or absent. Throws BAD_REQUEST. */
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
    tools: input.tools?.map(({ function: called, cache }) =>
      present({ type: "function", function: withStrict(called), cache_control: toCacheControl(cache) }),
    ),
    tool_choice: input.toolChoice,
    parallel_tool_calls: input.hasParallelToolCalls,
    response_format: input.responseFormat && toResponseFormat(input.responseFormat),
    safe: toSafeText(input.safe),
  });
  return withExtra(body, input.extra, RESERVED_FIELDS);
}

function toMessage(message: MessageInput, index: number): Record<string, unknown> {
  const { role, content, parts, name, reasoning, reasoningDetails, toolCalls, toolCallId, cache, extraContent } = message;
  if (isPresent(content) && isPresent(parts)) throw invalidInput("A message has either content or parts.", `messages.${index}.parts`);
  return present({
    role,
    content: isPresent(cache)
      ? marked(parts?.map(toPart) ?? [{ type: "text", text: content ?? "" }], cache)
      : (content ?? parts?.map(toPart)),
    name,
    reasoning_content: reasoning,
    reasoning_details: reasoningDetails,
    tool_calls: toolCalls?.map(({ id, type, function: called, extraContent }) =>
      present({ id, type: type ?? "function", function: called, extra_content: extraContent }),
    ),
    tool_call_id: toolCallId,
    extra_content: extraContent,
  });
}

type Lifetime = "5m" | "1h" | null | undefined;

/** Five minutes is the default of the format. */
function toCacheControl(lifetime: Lifetime): Record<string, unknown> | undefined {
  if (!isPresent(lifetime)) return undefined;
  return lifetime === "5m" ? { type: "ephemeral" } : { type: "ephemeral", ttl: lifetime };
}

/** The last part ends the cached prompt. */
function marked(parts: readonly unknown[], lifetime: Lifetime): readonly unknown[] {
  const last = parts.at(-1);
  if (typeof last !== "object" || last === null) return parts;
  return [...parts.slice(0, -1), { ...last, cache_control: toCacheControl(lifetime) }];
}

function toPart({ text, image, audio, file, video, refusal, raw }: PartInput): unknown {
  if (isPresent(text)) return { type: "text", text };
  if (isPresent(image)) return { type: "image_url", image_url: present(image) };
  if (isPresent(audio)) return { type: "input_audio", input_audio: audio };
  if (isPresent(file)) return toFile(file);
  if (isPresent(video)) return { type: "video_url", video_url: video };
  return isPresent(refusal) ? { type: "refusal", refusal } : raw;
}

/** Fields of Anthropic's documents are in `extra_content`, which upstreams that refuse it are not sent. */
function toFile({ filename, data, context, hasCitations }: NonNullable<PartInput["file"]>): Record<string, unknown> {
  const anthropic = present({ context, citations: isPresent(hasCitations) ? { enabled: hasCitations } : null });
  return {
    type: "file",
    file: present({ filename, file_data: data }),
    ...(Object.keys(anthropic).length > 0 && { extra_content: { anthropic } }),
  };
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
