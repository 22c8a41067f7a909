/**
 * What a chat completion is asked with: the documented parameters as typed fields, anything else in `extra`. It becomes
 * the body of POST /v1/chat/completions, and the service's own schema checks that, so both faces refuse the same things
 * in the same words; `param` and `details` of an error name the fields as they are called there.
 */
import { invalidInput } from "../../errors.js";
import { builder, enumValues } from "../builder.js";
import { withExtra } from "../extra.js";

const ROLES = ["system", "developer", "user", "assistant", "tool", "function"] as const;
export type ChatRoleName = (typeof ROLES)[number];

export const ChatRole = builder.enumType("ChatRole", { values: enumValues(ROLES) });

export function isChatRole(role: unknown): role is ChatRoleName {
  return ROLES.some((known) => known === role);
}

const ChatFunctionCallInput = builder.inputType("ChatFunctionCallInput", {
  fields: (t) => ({
    name: t.string({ required: true }),
    arguments: t.string({ required: true, description: "JSON text." }),
  }),
});

const ChatToolCallInput = builder.inputType("ChatToolCallInput", {
  description: "A tool call of an earlier answer, sent back with the assistant's message.",
  fields: (t) => ({
    id: t.string({ required: true }),
    type: t.string({ description: "`function` unless stated." }),
    function: t.field({ type: ChatFunctionCallInput, required: true }),
  }),
});

const ChatMessageInput = builder.inputType("ChatMessageInput", {
  fields: (t) => ({
    role: t.field({ type: ChatRole, required: true }),
    content: t.string({ description: "The text of the message." }),
    parts: t.field({
      type: ["JSON"],
      description:
        'Instead of `content`: parts of type `text`, `image_url`, `input_audio`, `file`, `video_url`, such as `{ type: "text", text: "Hi" }`.',
    }),
    name: t.string(),
    toolCalls: t.field({ type: [ChatToolCallInput] }),
    toolCallId: t.string({ description: "With the role TOOL: the call that this message answers." }),
  }),
});

const ChatFunctionInput = builder.inputType("ChatFunctionInput", {
  fields: (t) => ({
    name: t.string({ required: true }),
    description: t.string(),
    parameters: t.field({ type: "JSON", description: "A JSON Schema." }),
    strict: t.boolean(),
  }),
});

const ChatToolInput = builder.inputType("ChatToolInput", {
  description: "A function that the model may call. Tools of other types go in `extra.tools`, then all of them do.",
  fields: (t) => ({ function: t.field({ type: ChatFunctionInput, required: true }) }),
});

const ChatResponseFormatType = builder.enumType("ChatResponseFormatType", {
  values: enumValues(["text", "json_object", "json_schema"] as const),
});

const ChatJsonSchemaInput = builder.inputType("ChatJsonSchemaInput", {
  fields: (t) => ({
    name: t.string({ required: true }),
    description: t.string(),
    schema: t.field({ type: "JSON" }),
    strict: t.boolean(),
  }),
});

const ChatResponseFormatInput = builder.inputType("ChatResponseFormatInput", {
  fields: (t) => ({
    type: t.field({ type: ChatResponseFormatType, required: true }),
    jsonSchema: t.field({ type: ChatJsonSchemaInput, description: "With the type JSON_SCHEMA." }),
  }),
});

export const MAX_COST_DESCRIPTION =
  "Of an agent that asks others: what all that it asks for may cost, as the header `X-Max-Cost` says in REST. Omitted: a tenth of what the caller can spend.";

/** The mutation and the subscription take the same thing; each argument is named after its own field. */
function completionInput(name: string) {
  return builder.inputType(name, {
    fields: (t) => ({
      model: t.string({ description: "An id or alias. Omitted: the default text model." }),
      messages: t.field({ type: [ChatMessageInput], required: true }),
      temperature: t.float({ description: "0 to 2." }),
      topP: t.float(),
      seed: t.int({ description: "-1: a random one." }),
      n: t.int(),
      maxTokens: t.int(),
      maxCompletionTokens: t.int(),
      stop: t.stringList(),
      presencePenalty: t.float(),
      frequencyPenalty: t.float(),
      logprobs: t.boolean(),
      topLogprobs: t.int(),
      reasoningEffort: t.string(),
      tools: t.field({ type: [ChatToolInput] }),
      toolChoice: t.field({ type: "JSON", description: '`"auto"`, `"none"`, `"required"`, or the function to call.' }),
      parallelToolCalls: t.boolean(),
      responseFormat: t.field({ type: ChatResponseFormatInput }),
      safe: t.string({ description: "`true`, or safety features separated by commas." }),
      maxCost: t.field({ type: "Credits", description: MAX_COST_DESCRIPTION }),
      extra: t.field({
        type: "JSON",
        description:
          "An object of further fields, by their wire names; they reach the upstream as they are, but for those that are billed (400).",
      }),
    }),
  });
}

export const CreateChatCompletionInput = completionInput("CreateChatCompletionInput");
export const ChatCompletionSubscriptionInput = completionInput("ChatCompletionInput");

type Input = typeof CreateChatCompletionInput.$inferInput;
type MessageInput = typeof ChatMessageInput.$inferInput;

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
    logprobs: input.logprobs,
    top_logprobs: input.topLogprobs,
    reasoning_effort: input.reasoningEffort,
    tools: input.tools?.map((tool) => ({ type: "function", function: present(tool.function) })),
    tool_choice: input.toolChoice,
    parallel_tool_calls: input.parallelToolCalls,
    response_format: input.responseFormat && toResponseFormat(input.responseFormat),
    safe: input.safe,
  });
  return withExtra(body, input.extra, RESERVED_FIELDS);
}

function toMessage(message: MessageInput, index: number): Record<string, unknown> {
  const { role, content, parts, name, toolCalls, toolCallId } = message;
  if (isPresent(content) && isPresent(parts)) throw invalidInput("A message has either content or parts.", `messages.${index}.parts`);
  return present({
    role,
    content: content ?? parts,
    name,
    tool_calls: toolCalls?.map((call) => ({ id: call.id, type: call.type ?? "function", function: call.function })),
    tool_call_id: toolCallId,
  });
}

function toResponseFormat({ type, jsonSchema }: NonNullable<Input["responseFormat"]>): Record<string, unknown> {
  return present({ type, json_schema: jsonSchema && present(jsonSchema) });
}

function present(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => isPresent(value)));
}

function isPresent<Value>(value: Value): value is NonNullable<Value> {
  return value !== undefined && value !== null;
}
