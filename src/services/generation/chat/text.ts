/** Plain text (docs/spec/chat.md#text), by GET /text/{prompt} or POST /text: a chat completion, reduced to what was said. */
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import type { ChatCompletion } from "../../../lib/chat-format.js";
import { TEMPERATURE_MAX, TEMPERATURE_MIN } from "../../../limits.js";
import type { MediaFile } from "../../../providers/media.js";
import { requireCaller } from "../../access/permissions.js";
import type { Catalog } from "../../catalog/catalog.js";
import { queryFlag, queryInteger, queryNumber } from "../../requests/query-values.js";
import { SAFE_PATTERN, toSafeText } from "../../safety/features.js";
import type { CacheQuery, ContentCache } from "../content-cache/content-cache.js";
import type { Receipt } from "../receipt.js";
import { rememberText, replayText } from "./cached-text.js";
import type { ChatCompletions } from "./chat.js";
import { type ChatCompletionInput, chatCompletionInput } from "./chat-input.js";
import type { ChatCompletionStream } from "./chat-stream.js";
import { plainText } from "./chat-text.js";

/** GET /text/{prompt}, as strings. */
export const textQuery = z.strictObject({
  model: z.string().min(1).max(253).optional(),
  seed: queryInteger(z.int().min(-1)).default(0),
  system: z.string().optional(),
  json: queryFlag.default(false),
  temperature: queryNumber(z.number().min(TEMPERATURE_MIN).max(TEMPERATURE_MAX)).optional(),
  stream: queryFlag.default(false),
  /** `true`, or safety features separated by commas (docs/spec/safety.md#features). */
  safe: z
    .string()
    .max(1_000)
    .meta({ pattern: SAFE_PATTERN })
    .transform((safe) => toSafeText(safe) ?? undefined)
    .optional(),
  /** Make it anew, and remember that (docs/spec/generation.md#content-cache). */
  "no-cache": queryFlag.default(false),
});
export type TextQuery = z.output<typeof textQuery>;

export interface CachedText {
  readonly text: string;
  readonly receipt: Receipt;
  /** It was there, or was being made for somebody else, and cost nothing. */
  readonly isHit: boolean;
}

export class TextGeneration {
  constructor(
    private readonly chat: ChatCompletions,
    private readonly catalog: Catalog,
    private readonly cache: ContentCache,
  ) {}

  /** GET /text/{prompt}, answered whole. */
  async get(ctx: RequestContext, prompt: string, query: TextQuery): Promise<CachedText> {
    const input = this.fromQuery(prompt, query);
    const { file, receipt, isHit } = await this.cache.get(ctx, this.toCacheQuery(ctx, prompt, query), async (own) => {
      const made = await this.create(own, input);
      return { file: toFile(made.text), receipt: made.receipt };
    });
    return { text: Buffer.from(file.bytes).toString("utf8"), receipt, isHit };
  }

  /**
   * GET /text/{prompt} as a stream. Unspecified: a text that is there comes as a single chunk. One that is not is made for this
   * caller alone, because a stream that others wait for could not be stopped when its reader leaves, and is remembered at its end.
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
    return { operation: "text", model: this.catalog.resolve(requireCaller(ctx), model, "text"), parameters, noCache };
  }

  /** The chat that a text query stands for. */
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

/** What the first choice says; the empty string when it calls tools only. */
export function textOf(completion: ChatCompletion): string {
  return plainText(completion.choices?.[0]?.message?.content);
}
