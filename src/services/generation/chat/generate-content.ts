/** generateContent (docs/spec/gemini.md): a chat completion in Gemini's format, whole or streamed, and embeddings in that format. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import { AppError, wrongField } from "../../../errors.js";
import { type GenerateContentAnswer, toUsageMetadata } from "../../../formats/gemini/answer.js";
import { toEmbeddings } from "../../../formats/gemini/embeddings.js";
import { withCamelNames } from "../../../formats/gemini/field-names.js";
import { toModelId } from "../../../formats/gemini/models.js";
import {
  type BatchEmbedRequest,
  type CountTokensRequest,
  countTokensFields,
  type EmbedContentRequest,
  type GenerateContentRequest,
  generateContentFields,
} from "../../../formats/gemini/request.js";
import { GeminiAnswers } from "../../../formats/gemini/stream.js";
import { toChat } from "../../../formats/gemini/to-chat.js";
import { ChatCount } from "../../../formats/openai-chat/count.js";
import { readChat } from "../../../formats/openai-chat/prompt.js";
import type { ChatChunkObject, ChatCompletion } from "../../../formats/openai-chat/schema.js";
import { toCreditsNumber } from "../../../lib/money.js";
import { countInTurns } from "../../../lib/tokenizer.js";
import { requireCaller } from "../../access/permissions.js";
import type { RateLimits } from "../../access/rate-limits.js";
import { TOOL_TYPE_FIELD } from "../../catalog/billed-fields.js";
import type { Catalog } from "../../catalog/catalog.js";
import type { Modality } from "../../catalog/modality.js";
import { isGeminiFormat, type Model } from "../../catalog/model.js";
import { concernsMoney } from "../../catalog/request-rates.js";
import { calledUpstreamOf } from "../../catalog/route.js";
import { parseInput } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import { type Embeddings, embeddingsInput, toNumbers } from "../embeddings.js";
import { inputTokensOf } from "../plausible.js";
import type { Receipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import type { RouteWishes } from "../routing/order.js";
import type { ChatCompletions } from "./chat.js";
import { type ConvertedStream, convertStream, type WriteEvents } from "./converted-stream.js";
import { chatCompletionInput } from "./plan.js";

export const generateContentInput = z.preprocess(
  withCamelNames,
  z.looseObject({
    ...generateContentFields,
    /** For the gateway: never sent upstream. */
    safe: safeInput,
  }),
);
export const countTokensInput = z.preprocess(withCamelNames, z.looseObject(countTokensFields));

/** A chat's stream in answers of Gemini's format; the last has the finish reason and the usage. */
export type GenerateContentStream = ConvertedStream<GenerateContentAnswer>;

export interface EmbeddedContents {
  readonly values: readonly (readonly number[])[];
  /** Of the prompt. */
  readonly tokens: number;
  /** Credits. */
  readonly cost: number;
  readonly receipt: Receipt;
}

export class GenerateContent {
  constructor(
    private readonly chat: ChatCompletions,
    private readonly embeddings: Embeddings,
    private readonly catalog: Catalog,
    private readonly limits: RateLimits,
  ) {}

  /** Resolves when the charge is committed. */
  async create(
    ctx: RequestContext,
    name: string,
    input: GenerateContentRequest,
  ): Promise<{ readonly answer: GenerateContentAnswer; readonly receipt: Receipt }> {
    const { chat, warnings, wishes } = this.toChat(ctx, name, input);
    if (ctx.hasLargeInput) await nextTurn();
    const { completion, receipt } = await this.chat.create(ctx, parseInput(chatCompletionInput, chat), warnings, wishes);
    const frame = { id: receipt.generationId, model: receipt.model, includesThoughts: includesThoughts(input) };
    return { answer: GeminiAnswers.whole(frame, allAsChunk(completion), usageOf(receipt)), receipt };
  }

  /** `write` makes the bytes of answers. */
  stream(
    ctx: RequestContext,
    name: string,
    input: GenerateContentRequest,
    write: WriteEvents<GenerateContentAnswer>,
  ): GenerateContentStream {
    const { chat: body, warnings, wishes } = this.toChat(ctx, name, input);
    const chat = this.chat.stream(ctx, { ...parseInput(chatCompletionInput, body), stream: true }, warnings, wishes);
    const begin = async () => {
      const { model } = await chat.opened;
      const answers = new GeminiAnswers({ id: chat.generationId, model: model || name, includesThoughts: includesThoughts(input) });
      return {
        begin: () => [],
        read: (chunk: ChatChunkObject) => answers.read(chunk),
        end: (receipt: Receipt | null) => [answers.end(receipt === null ? null : usageOf(receipt))],
      };
    };
    return convertStream(chat, begin, write);
  }

  /** Estimates the input tokens of a request without a charge. It is limited, and rejects, as a generation of the same content does. */
  async countTokens(ctx: RequestContext, name: string, { contents, generateContentRequest: whole }: CountTokensRequest): Promise<number> {
    const caller = requireCaller(ctx);
    const model = this.resolve(ctx, name, "text");
    await this.limits.admit(this.limits.nameOf(caller, ctx.clientAddress), caller, model);
    if (whole == null && contents == null) throw wrongField("contents", "is required");
    const { chat } = this.convert(model, whole ?? { contents: contents ?? [] });
    const count = new ChatCount();
    readChat(parseInput(chatCompletionInput, chat), count);
    return count.tokens + (await countInTurns(count.texts));
  }

  /** One vector for each request; all of a batch are one generation. `batch` holds the requests, null for one alone. */
  async embed(
    ctx: RequestContext,
    name: string,
    requests: readonly EmbedContentRequest[],
    batch: BatchEmbedRequest | null = null,
  ): Promise<EmbeddedContents> {
    this.resolve(ctx, name, "embedding");
    const model = toModelId(name);
    const { body, warnings } = toEmbeddings(model, requests, batch, (field) => concernsMoney(field, "embedding"));
    const { vectors, receipt } = await this.embeddings.create(ctx, parseInput(embeddingsInput, { model, ...body }), warnings);
    const cost = toCreditsNumber(receipt.costNanocredits);
    return { values: vectors.map(toNumbers), tokens: inputTokensOf(receipt.usage), cost, receipt };
  }

  private toChat(ctx: RequestContext, name: string, input: GenerateContentRequest) {
    return this.convert(this.resolve(ctx, name, "text"), input);
  }

  private convert(model: Model, input: GenerateContentRequest) {
    const prices = model.pricedFields.get(TOOL_TYPE_FIELD);
    const hasNative = isNative(this.catalog, model);
    const converted = toChat(model.id, input, {
      hasEffort: model.capabilities.includes("reasoning"),
      isNative: hasNative,
      isPricedTool: (type) => prices !== undefined && (prices.has(type) || prices.has("*")),
      concernsMoney: (name) => concernsMoney(name),
    });
    return { ...converted, wishes: hasNative ? this.ofOwnFormat : undefined };
  }

  /** Routes whose upstreams take the fields of this format. */
  private readonly ofOwnFormat: RouteWishes = {
    accepts: (_model, route) => isGeminiFormat(this.catalog.upstream(calledUpstreamOf(route))),
  };

  /** Throws NOT_FOUND for an unknown name, as the name is part of the path. */
  private resolve(ctx: RequestContext, name: string, modality: Modality): Model {
    const { catalog } = this;
    const id = toModelId(name);
    try {
      return resolveRequested(ctx, catalog, id, modality);
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "BAD_REQUEST" || catalog.findFor(ctx.caller, id) !== null) throw error;
      throw new AppError("NOT_FOUND", error.message, { param: "model" });
    }
  }
}

/** The first route of the model and of each fallback decides. */
function isNative(catalog: Catalog, model: Model): boolean {
  return [model, ...catalog.fallbacksOf(model)].every(
    ({ agentType, routes }) => agentType === null && isGeminiFormat(catalog.upstream(routes[0].upstreamId)),
  );
}

function includesThoughts({ generationConfig }: GenerateContentRequest): boolean {
  return generationConfig?.thinkingConfig?.includeThoughts === true;
}

function usageOf({ usage, costNanocredits }: Receipt) {
  return toUsageMetadata(usage, toCreditsNumber(costNanocredits));
}

/** A whole answer as one chunk of a stream, with all of its choices. */
function allAsChunk({ choices }: ChatCompletion): ChatChunkObject {
  return {
    choices: (choices ?? []).map(({ message, ...choice }, position) => ({
      ...choice,
      index: choice.index ?? position,
      delta: message ?? null,
    })),
  };
}
