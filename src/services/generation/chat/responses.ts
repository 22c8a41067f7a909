/** Responses (docs/spec/chat.md#responses, POST /v1/responses): a chat completion in OpenAI's newer format, whole or streamed. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import { AppError } from "../../../errors.js";
import { type ChatChunkObject, plainText } from "../../../formats/openai-chat/schema.js";
import {
  type Failure,
  type FinishedResponse,
  type ResponseKeeping,
  type ResponseObject,
  type ResponseUsage,
  responseIdOf,
  toResponseUsage,
} from "../../../formats/openai-responses/answer.js";
import {
  type CompactionItem,
  toCompactionItem,
  toSummaryRequest,
  type UserItem,
  userItems,
} from "../../../formats/openai-responses/compaction.js";
import { responseFields } from "../../../formats/openai-responses/request.js";
import { type ResponseEvent, ResponseEvents } from "../../../formats/openai-responses/stream.js";
import { toChat } from "../../../formats/openai-responses/to-chat.js";
import type { ResponseTarget } from "../../../formats/openai-responses/tools.js";
import { createId } from "../../../lib/ids.js";
import { withoutFields } from "../../../lib/own-values.js";
import { requireCaller } from "../../access/permissions.js";
import type { RateLimits } from "../../access/rate-limits.js";
import { TOOL_TYPE_FIELD } from "../../catalog/billed-fields.js";
import type { Catalog } from "../../catalog/catalog.js";
import { misspeltResponseFields } from "../../catalog/field-names.js";
import type { Model } from "../../catalog/model.js";
import { parseInput } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import { asChunk, withCost } from "./answer.js";
import type { ChatCompletions } from "./chat.js";
import { type ConvertedBatch, type ConvertedStream, convertStream, writeEvents } from "./converted-stream.js";
import { chatCompletionInput } from "./plan.js";
import { countChat } from "./token-count.js";

/** A request of the Responses format, for REST and GraphQL. */
export const responseInput = z.looseObject({
  ...responseFields,
  /** For the gateway: never sent upstream. */
  safe: safeInput,
});
export type ResponseInput = z.output<typeof responseInput>;

export interface CompactedResponse {
  readonly id: string;
  readonly object: "response.compaction";
  /** Seconds. */
  readonly created_at: number;
  readonly model: string;
  /** The messages of the user and the summary, for the `input` of the next request. */
  readonly output: readonly (UserItem | CompactionItem)[];
  readonly usage: ResponseUsage;
}

export interface CreatedResponse {
  readonly response: FinishedResponse;
  readonly receipt: Receipt;
}

export type ResponseStreamBatch = ConvertedBatch<ResponseEvent>;

/** A chat's stream in events of the Responses format; the last is `response.completed` or `response.incomplete`. */
export interface ResponseStream extends ConvertedStream<ResponseEvent> {
  /** The events of a failure after the begin; `error` is the caller's. */
  failed(error: Failure): readonly ResponseEvent[];
  /** The response before it begins. */
  waiting(): ResponseObject;
  /** The response as far as it was delivered, after its end. Null: it has not begun. */
  brokenOff(status: "cancelled" | "failed", error?: Failure): ResponseObject | null;
}

/** Fields of the answer to come, which a summary does not have. */
const ANSWER_FIELDS: ReadonlySet<string> = new Set([
  ...["stream", "tools", "tool_choice", "parallel_tool_calls", "response_format", "logprobs", "top_logprobs", "reasoning", "include"],
]);

/** The upstream was paid for its tokens, such as the thoughts of a model that reasons. */
const NO_SUMMARY =
  "The model used its tokens without writing a summary, and they are charged. Use another model, or a larger max_output_tokens.";

export class Responses {
  constructor(
    private readonly chat: ChatCompletions,
    private readonly catalog: Catalog,
    private readonly limits: RateLimits,
  ) {}

  /** Resolves when the charge is committed. */
  async create(ctx: RequestContext, input: ResponseInput, keeping?: ResponseKeeping): Promise<CreatedResponse> {
    const { chat, tools, warnings } = this.toChat(ctx, input);
    if (ctx.hasLargeInput) await nextTurn();
    const { completion, receipt } = await this.chat.create(ctx, chat, warnings);
    const events = new ResponseEvents({
      id: responseIdOf(receipt.generationId),
      createdAt: now(),
      model: receipt.model,
      input,
      tools,
      keeping,
    });
    events.read(asChunk(completion));
    events.setUsage(withCost(null, receipt));
    return { response: events.end().response, receipt };
  }

  /** `keeping` names its history, whose items are in the input. */
  stream(ctx: RequestContext, input: ResponseInput, keeping?: ResponseKeeping): ResponseStream {
    const request = this.toChat(ctx, input);
    const chat = this.chat.stream(ctx, { ...request.chat, stream: true }, request.warnings);
    const model = input.model ?? "";
    const frame = { id: responseIdOf(chat.generationId), createdAt: now(), input, tools: request.tools, keeping };
    let events: ResponseEvents | null = null;
    const begin = async () => {
      const opened = await chat.opened;
      const reducer = new ResponseEvents({ ...frame, model: opened.model || model });
      events = reducer;
      return {
        begin: () => reducer.begin(),
        read: (chunk: ChatChunkObject) => reducer.read(chunk),
        end: (receipt: Receipt | null) => {
          if (receipt !== null) reducer.setUsage(withCost(null, receipt));
          return reducer.end().events;
        },
      };
    };
    return {
      ...convertStream(chat, begin, writeEvents),
      failed: (error) => (events ?? new ResponseEvents({ ...frame, model })).fail(error),
      waiting: () => new ResponseEvents({ ...frame, model: this.modelOf(ctx, input).id }).waiting(),
      brokenOff: (status, error) => {
        const receipt = chat.receipt();
        return events?.breakOff(status, receipt && withCost(null, receipt), error) ?? null;
      },
    };
  }

  /** An empty response to a checked input, without a charge. It is limited, and rejects, as a generation of the same input does. */
  async prepare(
    ctx: RequestContext,
    input: ResponseInput,
    keeping?: ResponseKeeping,
  ): Promise<{ readonly events: readonly ResponseEvent[]; readonly response: FinishedResponse }> {
    const model = await this.admit(ctx, input.model);
    const { tools } = this.toChat(ctx, input);
    const events = new ResponseEvents({ id: responseIdOf(createId()), createdAt: now(), model: model.id, input, tools, keeping });
    const begun = events.begin();
    const { events: ended, response } = events.end();
    return { events: [...begun, ...ended], response };
  }

  /** Throws as a generation of the same input does. */
  modelOf(ctx: RequestContext, input: ResponseInput): Model {
    return resolveRequested(ctx, this.catalog, input.model, "text");
  }

  /** Estimates the input tokens of a request without a charge. It is limited, and rejects, as a generation of the same input does. */
  async countTokens(ctx: RequestContext, input: ResponseInput): Promise<number> {
    await this.admit(ctx, input.model);
    return countChat(this.toChat(ctx, input).chat);
  }

  /** Has the model summarize a conversation, which the returned items replace. Resolves when the charge is committed. */
  async compact(ctx: RequestContext, input: ResponseInput): Promise<{ readonly compacted: CompactedResponse; readonly receipt: Receipt }> {
    const { chat, warnings } = this.toChat(ctx, input);
    if (ctx.hasLargeInput) await nextTurn();
    const asked = { ...withoutFields(chat, ANSWER_FIELDS), messages: toSummaryRequest(chat.messages) };
    const { completion, receipt } = await this.chat.create(ctx, parseInput(chatCompletionInput, asked), warnings);
    const summary = plainText(completion.choices?.[0]?.message?.content);
    if (summary === "") throw new AppError("UPSTREAM_ERROR", NO_SUMMARY, { isFinal: true });
    const compacted = {
      id: responseIdOf(receipt.generationId),
      object: "response.compaction" as const,
      created_at: now(),
      model: receipt.model,
      output: [...userItems(input.input), toCompactionItem(summary)],
      usage: toResponseUsage(withCost(null, receipt)),
    };
    return { compacted, receipt };
  }

  private async admit(ctx: RequestContext, name: string | null | undefined): Promise<Model> {
    const caller = requireCaller(ctx);
    const model = resolveRequested(ctx, this.catalog, name, "text");
    await this.limits.admit(this.limits.nameOf(caller, ctx.clientAddress), caller, model);
    return model;
  }

  private toChat(ctx: RequestContext, input: ResponseInput) {
    const { chat, tools, warnings } = toChat(input, this.targetOf(ctx, input));
    return { chat: parseInput(chatCompletionInput, chat), tools, warnings: [...warnings, ...misspeltResponseFields(input)] };
  }

  private targetOf(ctx: RequestContext, input: ResponseInput): ResponseTarget {
    const { catalog } = this;
    const model = resolveRequested(ctx, catalog, input.model, "text");
    return {
      isNative: [model, ...catalog.fallbacksOf(model)].every((candidate) => speaksResponses(catalog, candidate)),
      isBilled: (type) => {
        const prices = model.pricedFields.get(TOOL_TYPE_FIELD);
        return prices !== undefined && (prices.has(type) || prices.has("*"));
      },
    };
  }
}

/** Code agents are called in this format, independent of their upstream. */
function speaksResponses(catalog: Catalog, { agentType, routes: [{ upstreamId }] }: Model): boolean {
  return agentType === "code_agent" || (agentType !== "prompt_agent" && catalog.upstream(upstreamId).endpoint?.api === "responses");
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
