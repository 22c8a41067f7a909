/** Plain text (docs/spec/chat.md#text), by GET /text/{prompt} or POST /text: a chat completion reduced to its text. */

import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import type { ChatChunkObject, ChatCompletion } from "../../../formats/openai-chat/schema.js";
import { plainText } from "../../../formats/openai-chat/schema.js";
import { formatSseEvent } from "../../../lib/sse.js";
import { TEMPERATURE_MAX, TEMPERATURE_MIN } from "../../../limits.js";
import type { MediaFile } from "../../../providers/media.js";
import type { Catalog } from "../../catalog/catalog.js";
import { queryFlag, queryInteger, queryNumber } from "../../requests/query-values.js";
import { SAFE_PATTERN, toSafeText } from "../../safety/features.js";
import type { CachedAnswer, CacheQuery, ContentCache } from "../content-cache/content-cache.js";
import { MODEL_TEXT, NO_CACHE_TEXT, SAFE_TEXT, SEED_TEXT } from "../query-texts.js";
import { type Receipt, toStreamReceipt } from "../receipt.js";
import { resolveRequested } from "../requested-model.js";
import { withCost } from "./answer.js";
import type { ChatCompletions } from "./chat.js";
import { type ChatCompletionInput, chatCompletionInput } from "./plan.js";
import type { ChatCompletionStream } from "./stream.js";
import type { ChatStreamBatch } from "./stream-tail.js";

export const textQuery = z.strictObject({
  model: z.string().min(1).max(253).optional().describe(MODEL_TEXT),
  seed: queryInteger(z.int().min(-1)).default(0).describe(SEED_TEXT),
  system: z.string().optional().describe("System instructions, placed before the prompt."),
  json: queryFlag.default(false).describe("Requests a JSON object."),
  temperature: queryNumber(z.number().min(TEMPERATURE_MIN).max(TEMPERATURE_MAX)).optional().describe("The sampling temperature, 0 to 2."),
  stream: queryFlag.default(false).describe("Streams the answer as server-sent events."),
  /** See docs/spec/safety.md#features. */
  safe: z
    .string()
    .max(1_000)
    .meta({ pattern: SAFE_PATTERN })
    .transform((safe) => toSafeText(safe) ?? undefined)
    .optional()
    .describe(SAFE_TEXT),
  /** Generate again, and store that (docs/spec/generation.md#content-cache). */
  "no-cache": queryFlag.default(false).describe(NO_CACHE_TEXT),
});
export type TextQuery = z.output<typeof textQuery>;

export interface CachedText {
  readonly text: string;
  readonly receipt: Receipt;
  readonly isHit: boolean;
}

export class TextGeneration {
  constructor(
    private readonly chat: ChatCompletions,
    private readonly catalog: Catalog,
    private readonly cache: ContentCache,
  ) {}

  async get(ctx: RequestContext, prompt: string, query: TextQuery): Promise<CachedText> {
    const input = this.fromQuery(prompt, query);
    const { file, receipt, isHit } = await this.cache.get(ctx, this.toCacheQuery(ctx, prompt, query), async (own) => {
      const made = await this.create(own, input);
      return { file: toFile(made.text), receipt: made.receipt };
    });
    return { text: Buffer.from(file.bytes).toString("utf8"), receipt, isHit };
  }

  /**
   * GET /text/{prompt} as a stream. Unspecified: a stored text is a single chunk. A new one is generated for this caller only, because a
   * shared stream could not be stopped at a disconnect, and is stored at its end.
   */
  async getStream(ctx: RequestContext, prompt: string, query: TextQuery): Promise<ChatCompletionStream> {
    const cacheQuery = this.toCacheQuery(ctx, prompt, query);
    const known = await this.cache.find(ctx, cacheQuery);
    if (known) return replayText(Buffer.from(known.file.bytes).toString("utf8"), known);
    const stream = this.stream(ctx, this.fromQuery(prompt, query));
    return rememberText(stream, (text, receipt) => this.cache.keep(ctx, cacheQuery, { file: toFile(text), receipt }));
  }

  async create(ctx: RequestContext, input: ChatCompletionInput): Promise<{ text: string; receipt: Receipt }> {
    const { completion, receipt } = await this.chat.create(ctx, input);
    return { text: textOf(completion), receipt };
  }

  stream(ctx: RequestContext, input: ChatCompletionInput): ChatCompletionStream {
    return this.chat.stream(ctx, input);
  }

  private toCacheQuery(ctx: RequestContext, prompt: string, query: TextQuery): CacheQuery {
    const { model, "no-cache": noCache, stream: _, ...rest } = query;
    const stated = Object.fromEntries(Object.entries(rest).map(([name, value]) => [name, value ?? null]));
    const parameters = { system: null, temperature: null, ...stated, prompt };
    return { operation: "text", model: resolveRequested(ctx, this.catalog, model, "text"), parameters, noCache };
  }

  fromQuery(prompt: string, query: TextQuery): ChatCompletionInput {
    const system = query.system === undefined ? [] : [{ role: "system" as const, content: query.system }];
    return chatCompletionInput.parse({
      ...(query.model !== undefined && { model: query.model }),
      messages: [...system, { role: "user", content: prompt }],
      seed: query.seed,
      ...(query.temperature !== undefined && { temperature: query.temperature }),
      ...(query.json && { response_format: { type: "json_object" } }),
      ...(query.stream && { stream: true }),
      ...(query.safe !== undefined && { safe: query.safe }),
    });
  }
}

function toFile(text: string): MediaFile {
  return { bytes: Buffer.from(text), contentType: "text/plain" };
}

/** Empty when it only calls tools. */
export function textOf(completion: ChatCompletion): string {
  return plainText(completion.choices?.[0]?.message?.content);
}

// Streams with the content cache: a stored text is a single chunk, a new one is stored at its end.

/** Unspecified: longer streams are not stored. */
const TEXT_CHARS_MAX = 4 * 1024 * 1024;

export function textOfChunk(chunk: ChatChunkObject): string {
  const choice = chunk.choices?.find((candidate) => (candidate.index ?? 0) === 0);
  return plainText(choice?.delta?.content);
}

function replayText(text: string, { receipt }: Pick<CachedAnswer, "receipt">): ChatCompletionStream {
  const chunk: ChatChunkObject = {
    id: `chatcmpl-${receipt.generationId}`,
    object: "chat.completion.chunk",
    created: Math.floor(Date.now() / 1000),
    model: receipt.model,
    choices: [{ index: 0, delta: { role: "assistant", content: text }, finish_reason: "stop" }],
    usage: withCost(null, receipt),
    receipt: toStreamReceipt(receipt),
  };
  return {
    generationId: receipt.generationId,
    opened: Promise.resolve({ model: receipt.model, modelUsed: receipt.modelUsed, upstream: receipt.upstream, warnings: receipt.warnings }),
    events: once({ chunks: [chunk], bytes: formatSseEvent(JSON.stringify(chunk)) }),
    receipt: () => receipt,
    timing: () => receipt,
    isHit: true,
  };
}

/** The same stream; `keep` gets the whole text before the end is sent, when it was finished and charged. */
function rememberText(stream: ChatCompletionStream, keep: (text: string, receipt: Receipt) => Promise<void>): ChatCompletionStream {
  const { events } = stream;
  let text = "";
  return {
    generationId: stream.generationId,
    opened: stream.opened,
    ...(stream.admitted && { admitted: stream.admitted }),
    notes: stream.notes ?? [],
    receipt: () => stream.receipt(),
    timing: () => stream.timing(),
    events: {
      next: async () => {
        const next = await events.next();
        if (!next.done) {
          if (text.length <= TEXT_CHARS_MAX) for (const chunk of next.value.chunks) text += textOfChunk(chunk);
          return next;
        }
        const receipt = stream.receipt();
        if (receipt?.status === "ok" && text.length <= TEXT_CHARS_MAX) await keep(text, receipt);
        return next;
      },
      return: async () => (await events.return?.()) ?? { done: true, value: undefined },
      [Symbol.asyncIterator]() {
        return this;
      },
    },
  };
}

async function* once(batch: ChatStreamBatch): AsyncGenerator<ChatStreamBatch> {
  yield batch;
}
