/** Messages (docs/spec/messages.md, POST /v1/messages): a chat completion in Anthropic's format, whole or streamed. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import { type FinishedMessage, messageIdOf, NO_MESSAGE_USAGE, toMessageUsage } from "../../../formats/anthropic-messages/answer.js";
import { type MessageCountRequest, messageCountFields, messageFields } from "../../../formats/anthropic-messages/request.js";
import { type MessageEvent, MessageEvents } from "../../../formats/anthropic-messages/stream.js";
import { toChat } from "../../../formats/anthropic-messages/to-chat.js";
import type { ChatChunkObject } from "../../../formats/openai-chat/schema.js";
import { toCreditsNumber } from "../../../lib/money.js";
import { requireCaller } from "../../access/permissions.js";
import type { RateLimits } from "../../access/rate-limits.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Model } from "../../catalog/model.js";
import { concernsMoney } from "../../catalog/request-rates.js";
import { parseInput } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import { asChunk } from "./answer.js";
import type { ChatCompletions } from "./chat.js";
import { type ConvertedStream, convertStream, writeEvents } from "./converted-stream.js";
import { chatCompletionInput } from "./plan.js";
import { countChat } from "./token-count.js";

export const messageInput = z.looseObject({
  ...messageFields,
  /** For the gateway: never sent upstream. */
  safe: safeInput,
});
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

  /** Resolves when the charge is committed. */
  async create(ctx: RequestContext, input: MessageInput): Promise<{ readonly message: FinishedMessage; readonly receipt: Receipt }> {
    const { chat, warnings } = this.toChat(ctx, input);
    if (ctx.hasLargeInput) await nextTurn();
    const { completion, receipt } = await this.chat.create(ctx, parseInput(chatCompletionInput, chat), warnings);
    const events = new MessageEvents({ id: messageIdOf(receipt.generationId), model: receipt.model }, true);
    events.read(asChunk(completion));
    return { message: events.whole(usageOf(receipt)), receipt };
  }

  stream(ctx: RequestContext, input: MessageInput): MessageStream {
    const { chat: body, warnings } = this.toChat(ctx, input);
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
    return convertStream(chat, begin, writeEvents);
  }

  /** Estimates the input tokens of a request without a charge. It is limited, and rejects, as a generation of the same content does. */
  async countTokens(ctx: RequestContext, input: MessageCountRequest): Promise<number> {
    const caller = requireCaller(ctx);
    const model = resolveRequested(ctx, this.catalog, input.model, "text");
    await this.limits.admit(this.limits.nameOf(caller, ctx.clientAddress), caller, model);
    return countChat(convert(model, input).chat);
  }

  private toChat(ctx: RequestContext, input: MessageInput) {
    return convert(resolveRequested(ctx, this.catalog, input.model, "text"), input);
  }
}

function convert({ capabilities }: Model, input: MessageCountRequest) {
  return toChat(input, { hasEffort: capabilities.includes("reasoning"), concernsMoney });
}

function usageOf({ usage, costNanocredits }: Receipt) {
  return toMessageUsage(usage, toCreditsNumber(costNanocredits));
}
