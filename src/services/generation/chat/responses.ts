/** Responses (docs/spec/chat.md#responses, POST /v1/responses): a chat completion in OpenAI's newer format, whole or streamed. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import type { ChatChunkObject, ChatCompletion } from "../../../formats/openai-chat/schema.js";
import { type Failure, type FinishedResponse, responseIdOf } from "../../../formats/openai-responses/answer.js";
import { responseFields } from "../../../formats/openai-responses/request.js";
import { type ResponseEvent, ResponseEvents } from "../../../formats/openai-responses/stream.js";
import { toChat } from "../../../formats/openai-responses/to-chat.js";
import type { ResponseTarget } from "../../../formats/openai-responses/tools.js";
import { append } from "../../../lib/collections.js";
import { formatSseEvent } from "../../../lib/sse.js";
import { TOOL_TYPE_FIELD } from "../../catalog/billed-fields.js";
import type { Catalog } from "../../catalog/catalog.js";
import { misspeltResponseFields } from "../../catalog/field-names.js";
import type { Model } from "../../catalog/model.js";
import { parseInput } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import { withCost } from "./answer.js";
import type { ChatCompletions } from "./chat.js";
import { chatCompletionInput } from "./plan.js";
import type { ChatCompletionStream } from "./stream.js";

/** A request of the Responses format, for REST and GraphQL. */
export const responseInput = z.looseObject({
  ...responseFields,
  /** For the gateway: never sent upstream. */
  safe: safeInput,
});
export type ResponseInput = z.output<typeof responseInput>;

export interface ResponseStreamBatch {
  readonly events: readonly ResponseEvent[];
  /** All of them as server-sent events. */
  readonly bytes: Uint8Array;
}

/** A chat's stream in events of the Responses format; the last is `response.completed` or `response.incomplete`. */
export interface ResponseStream extends Omit<ChatCompletionStream, "events"> {
  readonly events: AsyncIterableIterator<ResponseStreamBatch>;
  /** The events of a failure after the begin; `error` is the caller's. */
  failed(error: Failure): readonly ResponseEvent[];
}

export class Responses {
  constructor(
    private readonly chat: ChatCompletions,
    private readonly catalog: Catalog,
  ) {}

  /** Resolves when the charge is committed. */
  async create(ctx: RequestContext, input: ResponseInput): Promise<{ readonly response: FinishedResponse; readonly receipt: Receipt }> {
    const { chat, tools, warnings } = this.toChat(ctx, input);
    if (ctx.hasLargeInput) await nextTurn();
    const { completion, receipt } = await this.chat.create(ctx, chat, warnings);
    const events = new ResponseEvents({ id: responseIdOf(receipt.generationId), createdAt: now(), model: receipt.model, input, tools });
    events.read(asChunk(completion));
    events.setUsage(withCost(null, receipt));
    return { response: events.end().response, receipt };
  }

  stream(ctx: RequestContext, input: ResponseInput): ResponseStream {
    const request = this.toChat(ctx, input);
    const chat = this.chat.stream(ctx, { ...request.chat, stream: true }, request.warnings);
    const model = input.model ?? "";
    const frame = { id: responseIdOf(chat.generationId), createdAt: now(), input, tools: request.tools };
    let events: ResponseEvents | null = null;
    const begin = async () => {
      const opened = await chat.opened;
      events = new ResponseEvents({ ...frame, model: opened.model || model });
      return events;
    };
    return {
      generationId: chat.generationId,
      opened: chat.opened,
      ...(chat.admitted && { admitted: chat.admitted }),
      notes: chat.notes ?? [],
      receipt: () => chat.receipt(),
      timing: () => chat.timing(),
      failed: (error) => (events ?? new ResponseEvents({ ...frame, model })).fail(error),
      events: mapBatches(chat, begin),
    };
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
function speaksResponses(catalog: Catalog, { agentType, upstreamId }: Model): boolean {
  return agentType === "code_agent" || (agentType !== "prompt_agent" && catalog.upstream(upstreamId).endpoint?.api === "responses");
}

/** Keeps the chat's own `return()`, which takes effect at once, also during a pending pull. */
function mapBatches(
  { events: source, receipt }: Pick<ChatCompletionStream, "events" | "receipt">,
  begin: () => Promise<ResponseEvents>,
): AsyncIterableIterator<ResponseStreamBatch> {
  let events: ResponseEvents | null = null;
  let isEnded = false;
  const pull = async (): Promise<IteratorResult<ResponseStreamBatch>> => {
    for (;;) {
      if (isEnded) return { done: true, value: undefined };
      const next = await source.next();
      const opening: ResponseEvent[] = [];
      if (!events) {
        if (next.done) return next;
        events = await begin();
        append(opening, events.begin());
      }
      const reducer = events;
      isEnded = next.done === true;
      const charged = isEnded ? receipt() : null;
      if (charged !== null) reducer.setUsage(withCost(null, charged));
      const made = next.done ? reducer.end().events : next.value.chunks.flatMap((chunk) => reducer.read(chunk));
      if (opening.length + made.length > 0) return { done: false, value: toBatch([...opening, ...made]) };
    }
  };
  return {
    next: pull,
    return: async () => {
      isEnded = true;
      await source.return?.();
      return { done: true, value: undefined };
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

function toBatch(events: readonly ResponseEvent[]): ResponseStreamBatch {
  return { events, bytes: Buffer.concat(events.map((event) => formatSseEvent(JSON.stringify(event), event.type))) };
}

function asChunk(completion: ChatCompletion): ChatChunkObject {
  const [choice] = completion.choices ?? [];
  return {
    choices: choice
      ? [{ index: 0, delta: choice.message ?? null, logprobs: choice.logprobs, finish_reason: choice.finish_reason ?? null }]
      : [],
  };
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
