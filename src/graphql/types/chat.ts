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
import { ChatCompletionSubscriptionInput, ChatRole, CreateChatCompletionInput, isChatRole, toChatBody } from "./chat-input.js";
import { MeterSourceEnum, UsageAmounts, UsageSourceEnum, UsageStatusEnum } from "./usage.js";

const CancelPolicyEnum = builder.enumType("CancelPolicy", {
  description:
    "What becomes of a generation whose caller leaves once its upstream has begun: it is finished and charged whole (FINISH), stopped and charged for what was delivered (STOP), or read on to the report of its usage and charged for that (READ_TO_USAGE).",
  values: {
    FINISH: { value: "finish" },
    STOP: { value: "stop" },
    READ_TO_USAGE: { value: "read-to-usage" },
  } satisfies Record<string, { value: CancelPolicy }>,
});

export const Receipt = builder.objectRef<ReceiptObject>("Receipt").implement({
  description: "What a finished generation cost and how it went. It is written before it is shown.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The id of its usage record." }),
    model: t.exposeString("model", { description: "The canonical id of the model asked for; its prices applied." }),
    modelUsed: t.exposeString("modelUsed", {
      description: "The canonical id of the model that answered; another one when a fallback served.",
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
    usage: t.field({ type: UsageAmounts, resolve: (receipt) => receipt.usage }),
    usageSource: t.expose("usageSource", { type: UsageSourceEnum }),
    status: t.expose("status", { type: UsageStatusEnum }),
    cancelPolicy: t.expose("cancelPolicy", {
      type: CancelPolicyEnum,
      nullable: true,
      description: "What leaving it would have meant. Null: the answer was made before this was told.",
    }),
    gatewayMs: t.exposeFloat("gatewayMs", { description: "Milliseconds that the gateway itself took." }),
    upstreamMs: t.exposeFloat("upstreamMs", { description: "Milliseconds from the upstream call to its last byte." }),
    responseMs: t.exposeFloat("responseMs"),
    firstTokenMs: t.exposeFloat("firstTokenMs", { nullable: true }),
    safetyApplied: t.stringList({
      description: "The safety features that the input went through.",
      resolve: ({ safety }) => [...(safety?.applied ?? [])],
    }),
    safetyRedacted: t.stringList({ description: "Those of them that changed it.", resolve: ({ safety }) => [...(safety?.redacted ?? [])] }),
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
  fields: (t) => ({
    name: t.string({ nullable: true, resolve: (call) => toText(call.name) }),
    arguments: t.string({ nullable: true, description: "JSON text, or the next piece of it.", resolve: (call) => toText(call.arguments) }),
  }),
});

const ChatToolCall = builder.objectRef<ToolCallObject>("ChatToolCall").implement({
  description: "A call that the model asks for; in a stream, the pieces with the same `index` belong together.",
  fields: (t) => ({
    index: t.int({ nullable: true, resolve: (call) => toInt(call.index) }),
    id: t.string({ nullable: true, resolve: (call) => toText(call.id) }),
    type: t.string({ nullable: true, resolve: (call) => toText(call.type) }),
    function: t.field({ type: ChatFunctionCall, nullable: true, resolve: (call) => call.function ?? null }),
  }),
});

const ChatMessage = builder.objectRef<ChatDelta>("ChatMessage").implement({
  fields: (t) => ({
    role: t.field({ type: ChatRole, nullable: true, resolve: ({ role }) => (isChatRole(role) ? role : null) }),
    content: t.string({ nullable: true, resolve: (message) => toText(message.content) }),
    reasoning: t.string({ nullable: true, description: "What the model thought, when it tells.", resolve: toReasoning }),
    refusal: t.string({ nullable: true, resolve: (message) => toText(message.refusal) }),
    toolCalls: t.field({ type: [ChatToolCall], nullable: true, resolve: toToolCalls }),
  }),
});

const ChatChoice = builder.objectRef<ChatChoiceObject>("ChatChoice").implement({
  fields: (t) => ({
    index: t.int({ resolve: (choice) => toInt(choice.index) ?? 0 }),
    finishReason: t.string({ nullable: true, resolve: (choice) => toText(choice.finish_reason) }),
    logprobs: t.field({ type: "JSON", nullable: true, resolve: (choice) => choice.logprobs }),
    message: t.field({ type: ChatMessage, nullable: true, resolve: (choice) => choice.message ?? null }),
  }),
});

const ChatCompletion = builder.objectRef<ChatCompletionObject>("ChatCompletion").implement({
  description: "The parts of the answer that every upstream gives. The whole of it is in `raw`.",
  fields: (t) => ({
    id: t.string({ nullable: true, resolve: (completion) => toText(completion.id) }),
    created: t.field({ type: "DateTime", nullable: true, resolve: (completion) => toDate(completion.created) }),
    model: t.string({ nullable: true, resolve: (completion) => toText(completion.model) }),
    choices: t.field({ type: [ChatChoice], resolve: (completion) => [...(completion.choices ?? [])] }),
  }),
});

const CreateChatCompletionPayload = builder.objectRef<ChatCompletionResult>("CreateChatCompletionPayload").implement({
  fields: (t) => ({
    completion: t.field({ type: ChatCompletion, resolve: ({ completion }) => completion }),
    raw: t.field({
      type: "JSON",
      description: "The answer as POST /v1/chat/completions gives it.",
      resolve: ({ completion }) => completion,
    }),
    receipt: t.field({ type: Receipt, resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createChatCompletion", (t) =>
  t.field({
    type: CreateChatCompletionPayload,
    nullable: true,
    description: "Answers a conversation. The charge is committed before the answer is given.",
    args: { input: t.arg({ type: CreateChatCompletionInput, required: true }) },
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
    generationId: t.exposeID("generationId", { description: "The id of the usage record to come." }),
  }),
  resolveType: ({ kind }) => (kind === "delta" ? "ChatCompletionDelta" : "ChatCompletionEnd"),
});

builder.objectRef<ChatCompletionDeltaObject>("ChatCompletionDelta").implement({
  description: "The next piece of one choice.",
  interfaces: [ChatCompletionEvent],
  fields: (t) => ({
    index: t.exposeInt("index", { description: "Of the choice." }),
    content: t.string({ nullable: true, resolve: ({ delta }) => toText(delta.content) }),
    reasoning: t.string({ nullable: true, resolve: ({ delta }) => toReasoning(delta) }),
    refusal: t.string({ nullable: true, resolve: ({ delta }) => toText(delta.refusal) }),
    toolCalls: t.field({ type: [ChatToolCall], nullable: true, resolve: ({ delta }) => toToolCalls(delta) }),
    finishReason: t.string({ nullable: true, resolve: ({ finishReason }) => toText(finishReason) }),
    raw: t.expose("raw", { type: "JSON", description: "The whole `chat.completion.chunk`." }),
  }),
});

builder.objectRef<ChatCompletionEndObject>("ChatCompletionEnd").implement({
  description: "The generation is finished and charged.",
  interfaces: [ChatCompletionEvent],
  fields: (t) => ({ receipt: t.expose("receipt", { type: Receipt }) }),
});

builder.subscriptionField("chatCompletion", (t) =>
  t.field({
    type: ChatCompletionEvent,
    description: "Streams a generation. Unsubscribing stops it at once; what was generated until then is charged.",
    args: { input: t.arg({ type: ChatCompletionSubscriptionInput, required: true }) },
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
