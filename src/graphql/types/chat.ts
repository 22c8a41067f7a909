/** Chat completions: one answer as a mutation, or the generation itself as a subscription (docs/spec/chat.md#chat-completions). */

import type {
  ChatChoice as ChatChoiceObject,
  ChatChunkObject,
  ChatCompletion as ChatCompletionObject,
  ChatDelta,
} from "../../lib/chat-format.js";
import { formatNanocredits } from "../../lib/money.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import type { ChatCompletionResult } from "../../services/generation/chat/chat.js";
import { chatCompletionInput } from "../../services/generation/chat/plan.js";
import type { ChatCompletionStream } from "../../services/generation/chat/stream.js";
import type { ChatStreamBatch } from "../../services/generation/chat/stream-tail.js";
import type { CancelPolicy, Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable, generationEvents } from "../cancellable.js";
import { ChatCompletionInput, ChatRole, isChatRole, toChatBody } from "./chat-input.js";
import { Model, SafetyFeature } from "./models.js";
import { MeterSourceEnum, UsageAmounts, UsageSourceEnum, UsageStatusEnum } from "./usage.js";

const CancelPolicyEnum = builder.enumType("CancelPolicy", {
  description: "What becomes of a generation whose caller leaves once its upstream has begun.",
  values: {
    FINISH: { value: "finish", description: "It is finished and charged whole." },
    STOP: { value: "stop", description: "It is stopped, and charged for what was delivered." },
    READ_TO_USAGE: { value: "read-to-usage", description: "It is read on to the report of its usage, and charged for that." },
  } satisfies Record<string, { value: CancelPolicy; description: string }>,
});

export const Receipt = builder.objectRef<ReceiptObject>("Receipt").implement({
  description: "What a finished generation cost and how it went. It is written before it is shown.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST id of its usage record." }),
    modelId: t.exposeID("model", { description: "The canonical id of the model asked for; its prices applied." }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model asked for. Null: it is no longer offered to the caller.",
      resolve: ({ model }, _args, ctx) => ctx.services.catalog.shown(ctx, model),
    }),
    modelUsedId: t.exposeID("modelUsed", {
      description: "The canonical id of the model that answered; another one when a fallback served.",
    }),
    modelUsed: t.field({
      type: Model,
      nullable: true,
      description: "The model that answered. Null: it is no longer offered to the caller.",
      resolve: ({ modelUsed }, _args, ctx) => ctx.services.catalog.shown(ctx, modelUsed),
    }),
    cost: t.field({ type: "Credits", description: "What was charged.", resolve: (receipt) => formatNanocredits(receipt.costNanocredits) }),
    childCost: t.field({
      type: "Credits",
      nullable: true,
      description: "Of an agent: what was charged for all that it asked for. Null: it is none.",
      resolve: ({ childCostNanocredits }) => (childCostNanocredits === undefined ? null : formatNanocredits(childCostNanocredits)),
    }),
    held: t.field({
      type: "Credits",
      description: "What had been set aside before the upstream was called.",
      resolve: (receipt) => formatNanocredits(receipt.heldNanocredits),
    }),
    meterSource: t.expose("meterSource", { type: MeterSourceEnum, description: "The bucket that paid the most of it." }),
    usage: t.field({ type: UsageAmounts, description: "What was consumed and made.", resolve: (receipt) => receipt.usage }),
    usageSource: t.expose("usageSource", { type: UsageSourceEnum, description: "Who counted." }),
    status: t.expose("status", { type: UsageStatusEnum, description: "How it ended." }),
    cancelPolicy: t.expose("cancelPolicy", {
      type: CancelPolicyEnum,
      nullable: true,
      description: "What leaving it would have meant. Null: the answer was made before this was told.",
    }),
    gatewayMs: t.exposeFloat("gatewayMs", { description: "Milliseconds that the gateway itself took." }),
    upstreamMs: t.exposeFloat("upstreamMs", { description: "Milliseconds from the upstream call to its last byte." }),
    responseMs: t.exposeFloat("responseMs", { description: "Milliseconds from the request to the end of its answer." }),
    firstTokenMs: t.exposeFloat("firstTokenMs", {
      nullable: true,
      description: "Milliseconds from the request to the first piece of a streamed answer.",
    }),
    safetyApplied: t.field({
      type: [SafetyFeature],
      description: "The safety features that the input went through.",
      resolve: ({ safety }) => [...(safety?.applied ?? [])],
    }),
    safetyRedacted: t.field({
      type: [SafetyFeature],
      description: "Those of them that changed it.",
      resolve: ({ safety }) => [...(safety?.redacted ?? [])],
    }),
    warnings: t.exposeStringList("warnings", { description: "What was asked for and had no effect, one sentence each." }),
  }),
});

/** A tool call, or a piece of one while it is streamed. */
type ToolCallObject = NonNullable<ChatDelta["tool_calls"]>[number] & {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly type?: unknown;
};

const ChatFunctionCall = builder.objectRef<NonNullable<ToolCallObject["function"]>>("ChatFunctionCall").implement({
  description: "Which function a model calls, and with what.",
  fields: (t) => ({
    name: t.string({ nullable: true, description: "Of the function.", resolve: (call) => toText(call.name) }),
    arguments: t.string({ nullable: true, description: "JSON text, or the next piece of it.", resolve: (call) => toText(call.arguments) }),
  }),
});

const ChatToolCall = builder.objectRef<ToolCallObject>("ChatToolCall").implement({
  description: "A call that the model asks for; in a stream, the pieces with the same `index` belong together.",
  fields: (t) => ({
    index: t.int({ nullable: true, description: "In a stream: which of the calls it belongs to.", resolve: (call) => toInt(call.index) }),
    id: t.string({ nullable: true, description: "The message that answers the call names it.", resolve: (call) => toText(call.id) }),
    type: t.string({
      nullable: true,
      description: "What kind of tool is called; `function` as a rule.",
      resolve: (call) => toText(call.type),
    }),
    function: t.field({
      type: ChatFunctionCall,
      nullable: true,
      description: "The function that is called.",
      resolve: (call) => call.function ?? null,
    }),
  }),
});

const ChatMessage = builder.objectRef<ChatDelta>("ChatMessage").implement({
  description: "What a model says.",
  fields: (t) => ({
    role: t.field({ type: ChatRole, nullable: true, description: "Who says it.", resolve: ({ role }) => (isChatRole(role) ? role : null) }),
    content: t.string({ nullable: true, description: "The text.", resolve: (message) => toText(message.content) }),
    reasoning: t.string({ nullable: true, description: "What the model thought, when it tells.", resolve: toReasoning }),
    refusal: t.string({ nullable: true, description: "Why the model does not answer.", resolve: (message) => toText(message.refusal) }),
    toolCalls: t.field({ type: [ChatToolCall], nullable: true, description: "What the model calls.", resolve: toToolCalls }),
  }),
});

const FINISH_REASONS = ["stop", "length", "tool_calls", "content_filter", "function_call"] as const;

const ChatFinishReason = builder.enumType("ChatFinishReason", {
  description: "Why an answer ends where it does.",
  values: {
    STOP: { value: "stop", description: "The model has said what it had to say, or came to a text that was to end it." },
    LENGTH: { value: "length", description: "It is as long as it may be." },
    TOOL_CALLS: { value: "tool_calls", description: "The model calls tools and waits for them." },
    CONTENT_FILTER: { value: "content_filter", description: "The upstream kept the rest to itself." },
    FUNCTION_CALL: { value: "function_call", description: "The model calls a function, as older models call it." },
    OTHER: { value: "other", description: "Another word of the upstream's, which `raw` tells." },
  } satisfies Record<string, { value: (typeof FINISH_REASONS)[number] | "other"; description: string }>,
});

function toFinishReason(reason: unknown): (typeof FINISH_REASONS)[number] | "other" | null {
  if (reason === null || reason === undefined) return null;
  return FINISH_REASONS.find((known) => known === reason) ?? "other";
}

const ChatChoice = builder.objectRef<ChatChoiceObject>("ChatChoice").implement({
  description: "One of the answers that were asked for.",
  fields: (t) => ({
    index: t.int({ description: "Which of them, from 0.", resolve: (choice) => toInt(choice.index) ?? 0 }),
    finishReason: t.field({
      type: ChatFinishReason,
      nullable: true,
      description: "Why it ends here.",
      resolve: (choice) => toFinishReason(choice.finish_reason),
    }),
    logprobs: t.field({
      type: "JSON",
      nullable: true,
      description: "How likely each of its tokens was, when that was asked for.",
      resolve: (choice) => choice.logprobs,
    }),
    message: t.field({
      type: ChatMessage,
      nullable: true,
      description: "What the model says.",
      resolve: (choice) => choice.message ?? null,
    }),
  }),
});

const ChatCompletion = builder.objectRef<ChatCompletionObject>("ChatCompletion").implement({
  description: "The parts of the answer that every upstream gives. The whole of it is in `raw`.",
  fields: (t) => ({
    id: t.string({ nullable: true, description: "As its upstream calls it.", resolve: (completion) => toText(completion.id) }),
    created: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the upstream made it.",
      resolve: (completion) => toDate(completion.created),
    }),
    modelId: t.id({
      nullable: true,
      description: "The canonical id of the model that answered.",
      resolve: (completion) => toText(completion.model),
    }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model that answered. Null: it is not offered to the caller by itself.",
      resolve: (completion, _args, ctx) => {
        const name = toText(completion.model);
        return name === null ? null : ctx.services.catalog.shown(ctx, name);
      },
    }),
    choices: t.field({
      type: [ChatChoice],
      description: "The answers, as many as were asked for.",
      resolve: (completion) => [...(completion.choices ?? [])],
    }),
  }),
});

const CreateChatCompletionPayload = builder.objectRef<ChatCompletionResult>("CreateChatCompletionPayload").implement({
  description: "An answer, and what it cost.",
  fields: (t) => ({
    completion: t.field({ type: ChatCompletion, description: "The answer.", resolve: ({ completion }) => completion }),
    raw: t.field({
      type: "JSON",
      description: "The answer as POST /v1/chat/completions gives it.",
      resolve: ({ completion }) => completion,
    }),
    receipt: t.field({ type: Receipt, description: "What it cost.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createChatCompletion", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateChatCompletionPayload,
    nullable: true,
    description: "Answers a conversation. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: ChatCompletionInput, required: true, description: "The conversation, and how it shall be answered." }) },
    resolve: (_root, { input }, ctx) => {
      const body = parsePermitted(ctx, requireCaller, chatCompletionInput, () => toChatBody(input));
      return ctx.services.chat.create(boundedBy(ctx, input.maxCost), body);
    },
  }),
);

interface ChatCompletionDeltaObject {
  readonly kind: "delta";
  readonly generationId: string;
  readonly index: number;
  readonly delta: ChatDelta;
  readonly finishReason: unknown;
  readonly raw: unknown;
}

interface ChatCompletionEndObject {
  readonly kind: "end";
  readonly generationId: string;
  readonly receipt: ReceiptObject;
}

type ChatCompletionEventObject = ChatCompletionDeltaObject | ChatCompletionEndObject;

const ChatCompletionEvent = builder.interfaceRef<ChatCompletionEventObject>("ChatCompletionEvent").implement({
  description: "What happens in a generation: deltas, then one end.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST id of the usage record to come." }),
  }),
  resolveType: ({ kind }) => (kind === "delta" ? "ChatCompletionDelta" : "ChatCompletionEnd"),
});

builder.objectRef<ChatCompletionDeltaObject>("ChatCompletionDelta").implement({
  description: "The next piece of one choice.",
  interfaces: [ChatCompletionEvent],
  fields: (t) => ({
    index: t.exposeInt("index", { description: "Of the choice." }),
    content: t.string({ nullable: true, description: "The next piece of the text.", resolve: ({ delta }) => toText(delta.content) }),
    reasoning: t.string({
      nullable: true,
      description: "The next piece of what the model thinks, when it tells.",
      resolve: ({ delta }) => toReasoning(delta),
    }),
    refusal: t.string({
      nullable: true,
      description: "The next piece of why the model does not answer.",
      resolve: ({ delta }) => toText(delta.refusal),
    }),
    toolCalls: t.field({
      type: [ChatToolCall],
      nullable: true,
      description: "The next pieces of what the model calls.",
      resolve: ({ delta }) => toToolCalls(delta),
    }),
    finishReason: t.field({
      type: ChatFinishReason,
      nullable: true,
      description: "Why the choice ends here. Null: it goes on.",
      resolve: ({ finishReason }) => toFinishReason(finishReason),
    }),
    raw: t.expose("raw", { type: "JSON", description: "The whole `chat.completion.chunk`." }),
  }),
});

builder.objectRef<ChatCompletionEndObject>("ChatCompletionEnd").implement({
  description: "The generation is finished and charged.",
  interfaces: [ChatCompletionEvent],
  fields: (t) => ({ receipt: t.expose("receipt", { type: Receipt, description: "What it cost." }) }),
});

builder.subscriptionField("chatCompletion", (t) =>
  t.field({
    type: ChatCompletionEvent,
    description: "Streams a generation. Unsubscribing stops it at once; what was generated until then is charged.",
    extensions: { endsByItself: true, isForAgents: true },
    args: { input: t.arg({ type: ChatCompletionInput, required: true, description: "The conversation, and how it shall be answered." }) },
    subscribe: (_root, { input }, ctx) => {
      const body = parsePermitted(ctx, requireCaller, chatCompletionInput, () => toChatBody(input));
      return cancellable(boundedBy(ctx, input.maxCost), (generation) =>
        openEvents(ctx.services.chat.stream(generation, body), generation.signal),
      );
    },
    resolve: (event) => event,
  }),
);

function openEvents(stream: ChatCompletionStream, signal: AbortSignal): AsyncIterable<ChatCompletionEventObject> {
  const { generationId } = stream;
  return generationEvents<ChatStreamBatch, ReceiptObject, ChatCompletionEventObject>(
    { batches: stream.events, receipt: () => stream.receipt() },
    signal,
    ({ chunks }) => chunks.flatMap((chunk) => [...toDeltas(generationId, chunk)]),
    (receipt) => ({ kind: "end", generationId, receipt }),
  );
}

function* toDeltas(generationId: string, raw: ChatChunkObject): Generator<ChatCompletionDeltaObject> {
  for (const { index, delta, finish_reason } of raw.choices ?? []) {
    yield { kind: "delta", generationId, index: toInt(index) ?? 0, delta: delta ?? {}, finishReason: finish_reason, raw };
  }
}

/** Upstreams are lenient about types; what is not text is left to `raw`. */
function toText(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

function toInt(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) ? value : null;
}

function toDate(seconds: unknown): Date | null {
  const date = typeof seconds === "number" ? new Date(seconds * 1000) : null;
  return date === null || Number.isNaN(date.getTime()) ? null : date;
}

/** Two names are in use among upstreams. */
function toReasoning(message: ChatDelta): string | null {
  return toText(message.reasoning_content) ?? toText(message.reasoning);
}

function toToolCalls(message: ChatDelta): ToolCallObject[] | null {
  return Array.isArray(message.tool_calls) ? message.tool_calls : null;
}
