/** Chat completions: a complete answer as a mutation, a streamed one as a subscription (docs/spec/chat.md#chat-completions). */

import {
  type ChatChoice as ChatChoiceObject,
  type ChatChunkObject,
  type ChatCompletion as ChatCompletionObject,
  type ChatDelta,
  reasoningIn,
  stopSequenceIn,
} from "../../formats/openai-chat/schema.js";
import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import type { ChatCompletionResult } from "../../services/generation/chat/chat.js";
import { chatCompletionInput } from "../../services/generation/chat/plan.js";
import type { ChatCompletionStream } from "../../services/generation/chat/stream.js";
import type { ChatStreamBatch } from "../../services/generation/chat/stream-tail.js";
import type { Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable, generationEvents } from "../cancellable.js";
import { wished } from "../wishes.js";
import { ChatCitation, toCitations } from "./chat-citations.js";
import { ChatFinishReason, toFinishReason } from "./chat-finish-reason.js";
import { ChatCompletionInput, ChatRole, isChatRole, toChatBody } from "./chat-input.js";
import { toDate, toInt, toList, toText } from "./chat-values.js";
import { Model } from "./models.js";
import { Receipt } from "./receipts.js";

/** A tool call, or a fragment of one in a stream. */
type ToolCallObject = NonNullable<ChatDelta["tool_calls"]>[number] & {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly type?: unknown;
  readonly extra_content?: unknown;
};

const ChatFunctionCall = builder.objectRef<NonNullable<ToolCallObject["function"]>>("ChatFunctionCall").implement({
  description: "A function call of the model.",
  fields: (t) => ({
    name: t.string({ nullable: true, description: "The name of the function.", resolve: (call) => toText(call.name) }),
    arguments: t.string({
      nullable: true,
      description: "The arguments as JSON text. In a stream, the next fragment of it.",
      resolve: (call) => toText(call.arguments),
    }),
  }),
});

const ChatToolCall = builder.objectRef<ToolCallObject>("ChatToolCall").implement({
  description: "A tool call that the model requests. In a stream, fragments with the same `index` belong together.",
  fields: (t) => ({
    index: t.int({
      nullable: true,
      description: "In a stream: the index of the call that this fragment belongs to.",
      resolve: (call) => toInt(call.index),
    }),
    id: t.string({ nullable: true, description: "The ID that the message with the result refers to.", resolve: (call) => toText(call.id) }),
    type: t.string({
      nullable: true,
      description: "The type of the tool, usually `function`.",
      resolve: (call) => toText(call.type),
    }),
    function: t.field({
      type: ChatFunctionCall,
      nullable: true,
      description: "The called function.",
      resolve: (call) => call.function ?? null,
    }),
    extraContent: t.field({
      type: "JSON",
      nullable: true,
      description: "What the vendor signed with the call. Send it back unchanged with the call.",
      resolve: (call) => call.extra_content ?? null,
    }),
  }),
});

const ChatMessage = builder.objectRef<ChatDelta>("ChatMessage").implement({
  description: "A message of the model.",
  fields: (t) => ({
    role: t.field({
      type: ChatRole,
      nullable: true,
      description: "The author of the message.",
      resolve: ({ role }) => (isChatRole(role) ? role : null),
    }),
    content: t.string({ nullable: true, description: "The text of the message.", resolve: (message) => toText(message.content) }),
    reasoning: t.string({ nullable: true, description: "The reasoning of the model, when the upstream reports it.", resolve: toReasoning }),
    reasoningDetails: t.field({
      type: ["JSON"],
      nullable: true,
      description: "The reasoning with what its vendor signed. Send it back unchanged with the message.",
      resolve: ({ reasoning_details: details }) => toList(details),
    }),
    refusal: t.string({ nullable: true, description: "The model's refusal.", resolve: (message) => toText(message.refusal) }),
    citations: t.field({
      type: [ChatCitation],
      nullable: true,
      description: "The sources that the answer cites.",
      resolve: ({ annotations }) => toCitations(annotations),
    }),
    extraContent: t.field({
      type: "JSON",
      nullable: true,
      description: "Parts of the message that only its vendor reads. Send them back unchanged with the message.",
      resolve: ({ extra_content: extra }) => extra ?? null,
    }),
    toolCalls: t.field({
      type: [ChatToolCall],
      nullable: true,
      description: "The tool calls that the model requests.",
      resolve: toToolCalls,
    }),
  }),
});

const ChatChoice = builder.objectRef<ChatChoiceObject>("ChatChoice").implement({
  description: "One of the requested answers.",
  fields: (t) => ({
    index: t.int({ description: "The index of the answer, from 0.", resolve: (choice) => toInt(choice.index) ?? 0 }),
    finishReason: t.field({
      type: ChatFinishReason,
      nullable: true,
      description: "The reason why the answer ended.",
      resolve: (choice) => toFinishReason(choice.finish_reason),
    }),
    stopSequence: t.string({
      nullable: true,
      description: "The stop sequence that ended the answer, where the upstream reports it.",
      resolve: (choice) => stopSequenceIn(choice),
    }),
    logprobs: t.field({
      type: "JSON",
      nullable: true,
      description: "The log probabilities of the tokens, when requested.",
      resolve: (choice) => choice.logprobs,
    }),
    message: t.field({
      type: ChatMessage,
      nullable: true,
      description: "The message of the model.",
      resolve: (choice) => choice.message ?? null,
    }),
  }),
});

const ChatCompletion = builder.objectRef<ChatCompletionObject>("ChatCompletion").implement({
  description: "The fields of a completion that all upstreams report. `raw` contains the complete answer.",
  fields: (t) => ({
    id: t.string({
      nullable: true,
      description: "The ID that the upstream gave to the completion.",
      resolve: (completion) => toText(completion.id),
    }),
    created: t.field({
      type: "DateTime",
      nullable: true,
      description: "When the upstream created the completion.",
      resolve: (completion) => toDate(completion.created),
    }),
    modelId: t.id({
      nullable: true,
      description: "The canonical ID of the model that answered.",
      resolve: (completion) => toText(completion.model),
    }),
    model: t.field({
      type: Model,
      nullable: true,
      description: "The model that answered. Null when it is not offered to the caller directly.",
      resolve: (completion, _args, ctx) => {
        const name = toText(completion.model);
        return name === null ? null : ctx.services.catalog.shown(ctx, name);
      },
    }),
    choices: t.field({
      type: [ChatChoice],
      description: "The answers, as many as requested.",
      resolve: (completion) => [...(completion.choices ?? [])],
    }),
  }),
});

const CreateChatCompletionPayload = builder.objectRef<ChatCompletionResult>("CreateChatCompletionPayload").implement({
  description: "The result of `createChatCompletion`.",
  fields: (t) => ({
    completion: t.field({ type: ChatCompletion, description: "The completion.", resolve: ({ completion }) => completion }),
    raw: t.field({
      type: "JSON",
      description: "The answer in the format of POST /v1/chat/completions.",
      resolve: ({ completion }) => completion,
    }),
    receipt: t.field({ type: Receipt, description: "The receipt of the generation.", resolve: ({ receipt }) => receipt }),
  }),
});

builder.mutationField("createChatCompletion", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateChatCompletionPayload,
    nullable: true,
    description: "Creates a chat completion. The charge is committed before the answer is returned.",
    args: { input: t.arg({ type: ChatCompletionInput, required: true, description: "The conversation and the parameters." }) },
    resolve: async (_root, { input }, ctx) => {
      const { ctx: wishing, body } = await wished(ctx, input, () => toChatBody(input), "chat");
      return ctx.services.chat.create(wishing, parsePermitted(ctx, requireCaller, chatCompletionInput, body));
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
  description: "An event of a streamed completion: deltas, then one final event.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST ID of the usage record that will be stored." }),
  }),
  resolveType: ({ kind }) => (kind === "delta" ? "ChatCompletionDelta" : "ChatCompletionEnd"),
});

builder.objectRef<ChatCompletionDeltaObject>("ChatCompletionDelta").implement({
  description: "The next fragment of one choice.",
  interfaces: [ChatCompletionEvent],
  fields: (t) => ({
    index: t.exposeInt("index", { description: "The index of the choice." }),
    content: t.string({ nullable: true, description: "The next fragment of the text.", resolve: ({ delta }) => toText(delta.content) }),
    reasoning: t.string({
      nullable: true,
      description: "The next fragment of the reasoning, when the upstream reports it.",
      resolve: ({ delta }) => toReasoning(delta),
    }),
    refusal: t.string({
      nullable: true,
      description: "The next fragment of the model's refusal.",
      resolve: ({ delta }) => toText(delta.refusal),
    }),
    citations: t.field({
      type: [ChatCitation],
      nullable: true,
      description: "Sources that the answer cites, when the text that they support is complete.",
      resolve: ({ delta }) => toCitations(delta.annotations),
    }),
    reasoningDetails: t.field({
      type: ["JSON"],
      nullable: true,
      description: "Reasoning with what its vendor signed, when it is complete. Send it back unchanged with the message.",
      resolve: ({ delta }) => toList(delta.reasoning_details),
    }),
    toolCalls: t.field({
      type: [ChatToolCall],
      nullable: true,
      description: "The next fragments of tool calls.",
      resolve: ({ delta }) => toToolCalls(delta),
    }),
    finishReason: t.field({
      type: ChatFinishReason,
      nullable: true,
      description: "The reason why the choice ended. Null while it continues.",
      resolve: ({ finishReason }) => toFinishReason(finishReason),
    }),
    raw: t.expose("raw", { type: "JSON", description: "The complete `chat.completion.chunk`." }),
  }),
});

builder.objectRef<ChatCompletionEndObject>("ChatCompletionEnd").implement({
  description: "The generation is complete and charged.",
  interfaces: [ChatCompletionEvent],
  fields: (t) => ({ receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }) }),
});

builder.subscriptionField("chatCompletion", (t) =>
  t.field({
    type: ChatCompletionEvent,
    description: "Streams a chat completion. Unsubscribing stops it at once, and the part generated until then is charged.",
    extensions: { endsByItself: true, isForAgents: true },
    args: { input: t.arg({ type: ChatCompletionInput, required: true, description: "The conversation and the parameters." }) },
    subscribe: async (_root, { input }, ctx) => {
      const { ctx: wishing, body: stated } = await wished(ctx, input, () => toChatBody(input), "chat");
      const body = parsePermitted(ctx, requireCaller, chatCompletionInput, stated);
      return cancellable(wishing, (generation) => openEvents(ctx.services.chat.stream(generation, body), generation.signal));
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

function toReasoning(message: ChatDelta): string | null {
  return toText(reasoningIn(message));
}

function toToolCalls(message: ChatDelta): ToolCallObject[] | null {
  return Array.isArray(message.tool_calls) ? message.tool_calls : null;
}
