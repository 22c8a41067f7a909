/** Messages (docs/spec/messages.md, POST /v1/messages): a chat completion in Anthropic's format, whole or streamed. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import { AppError } from "../../../errors.js";
import { type FinishedMessage, messageIdOf, NO_MESSAGE_USAGE, toMessageUsage } from "../../../formats/anthropic-messages/answer.js";
import { SHORTENED, withShortCaches } from "../../../formats/anthropic-messages/cache-times.js";
import { type MessageCountRequest, messageCountFields, messageFields } from "../../../formats/anthropic-messages/request.js";
import { type MessageEvent, MessageEvents, writeMessageEvents } from "../../../formats/anthropic-messages/stream.js";
import { toChat } from "../../../formats/anthropic-messages/to-chat.js";
import type { ChatChunkObject } from "../../../formats/openai-chat/schema.js";
import { toCreditsNumber } from "../../../lib/money.js";
import { requireCaller } from "../../access/permissions.js";
import type { RateLimits } from "../../access/rate-limits.js";
import type { BundledVendor } from "../../catalog/bundled-vendors.js";
import type { Catalog } from "../../catalog/catalog.js";
import { isMessagesFormat, type Model } from "../../catalog/model.js";
import { concernsMoney } from "../../catalog/request-rates.js";
import { parsedOften, parseInput } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import { asChunk } from "./answer.js";
import type { ChatCompletions } from "./chat.js";
import { type ConvertedStream, convertStream } from "./converted-stream.js";
import { chatCompletionInput } from "./plan.js";
import { countChat } from "./token-count.js";

export const messageInput = parsedOften(
  z.looseObject({
    ...messageFields,
    /** For the gateway: never sent upstream. */
    safe: safeInput,
  }),
);
export type MessageInput = z.output<typeof messageInput>;

export const messageCountInput = z.looseObject(messageCountFields);

/** A chat's stream in events of the Messages format; the last is `message_stop`. */
export type MessageStream = ConvertedStream<MessageEvent>;

export class Messages {
  constructor(
    private readonly chat: ChatCompletions,
    private readonly catalog: Catalog,
    private readonly limits: RateLimits,
  ) {}

  /** `betas` are the features of the caller's `anthropic-beta`. Resolves when the charge is committed. */
  async create(
    ctx: RequestContext,
    input: MessageInput,
    betas: readonly string[] = [],
  ): Promise<{ readonly message: FinishedMessage; readonly receipt: Receipt }> {
    const { chat, warnings } = this.toChat(ctx, input, betas);
    if (ctx.hasLargeInput) await nextTurn();
    const { completion, receipt } = await this.chat.create(ctx, parseInput(chatCompletionInput, chat), warnings);
    const events = new MessageEvents({ id: messageIdOf(receipt.generationId), model: receipt.model }, true);
    events.read(asChunk(completion));
    return { message: events.whole(usageOf(receipt)), receipt };
  }

  stream(ctx: RequestContext, input: MessageInput, betas: readonly string[] = []): MessageStream {
    const { chat: body, warnings } = this.toChat(ctx, input, betas);
    const chat = this.chat.stream(ctx, { ...parseInput(chatCompletionInput, body), stream: true }, warnings);
    const begin = async () => {
      const { model } = await chat.opened;
      const events = new MessageEvents({ id: messageIdOf(chat.generationId), model: model || input.model });
      return {
        begin: () => events.begin(),
        read: (chunk: ChatChunkObject) => events.read(chunk),
        end: (receipt: Receipt | null) => events.end(receipt === null ? NO_MESSAGE_USAGE : usageOf(receipt)),
      };
    };
    return convertStream(chat, begin, writeMessageEvents);
  }

  /** Estimates the input tokens of a request without a charge. It is limited, and rejects, as a generation of the same content does. */
  async countTokens(ctx: RequestContext, input: MessageCountRequest): Promise<number> {
    const caller = requireCaller(ctx);
    const model = this.resolve(ctx, input.model);
    await this.limits.admit(this.limits.nameOf(caller, ctx.clientAddress), caller, model);
    return countChat(this.convert(model, input, []).chat);
  }

  private toChat(ctx: RequestContext, input: MessageInput, betas: readonly string[]) {
    return this.convert(this.resolve(ctx, input.model), input, betas);
  }

  /** Clients of this format know an unknown model by its 404. */
  private resolve(ctx: RequestContext, name: string): Model {
    try {
      return resolveRequested(ctx, this.catalog, name, "text");
    } catch (error) {
      const isUnknown = this.catalog.findFor(requireCaller(ctx), name) === null;
      throw isUnknown && error instanceof AppError ? new AppError("NOT_FOUND", error.message, { param: "model", cause: error }) : error;
    }
  }

  private convert(model: Model, input: MessageCountRequest, betas: readonly string[]) {
    // An agent that the gateway runs has no upstream.
    const isNative = !model.isAgent && isMessagesFormat(this.catalog.upstream(model.routes[0].upstreamId));
    const shortened = model.prices.promptCacheWriteHourPrice === undefined ? withShortCaches(input) : null;
    const { chat, warnings } = toChat(shortened ?? input, {
      hasEffort: model.capabilities.includes("reasoning"),
      withoutThinking: thinkingOff(model),
      concernsMoney,
      isNative,
      betas,
      hasLongContext: model.longContext.length > 0,
    });
    return { chat, warnings: shortened === null ? warnings : [SHORTENED, ...warnings] };
  }
}

/** Vendors that turn thinking off for an effort of `none`, and those that have a field for it. */
const EFFORT_OFF: ReadonlySet<BundledVendor | null> = new Set<BundledVendor | null>(["gemini", "openrouter", "cohere"]);
const FIELD_OFF: ReadonlySet<BundledVendor | null> = new Set<BundledVendor | null>(["deepseek", "moonshot", "zai"]);
/** OpenAI's models since 5.1 can answer without thinking. */
const OPENAI_OFF = /^gpt-(?:5\.[1-9]|[6-9])/;

/** Null: not known to be possible. */
function thinkingOff({ routes: [{ vendor, upstreamModel }] }: Model): Readonly<Record<string, unknown>> | null {
  if (FIELD_OFF.has(vendor)) return { thinking: { type: "disabled" } };
  const takesNone = EFFORT_OFF.has(vendor) || (vendor === "openai" && OPENAI_OFF.test(upstreamModel));
  return takesNone ? { reasoning_effort: "none" } : null;
}

function usageOf({ usage, costNanocredits }: Receipt) {
  return toMessageUsage(usage, toCreditsNumber(costNanocredits));
}
