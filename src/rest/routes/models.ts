/** The catalog (docs/spec/models.md): OpenAI's list of text models, and plain arrays by modality. Public. */
import * as z from "zod";
import { toAnthropicModel, toAnthropicModelPage } from "../../formats/anthropic-messages/models.js";
import { toGeminiModel, toGeminiModelPage, toModelId } from "../../formats/gemini/models.js";
import type { Exchange } from "../../http/exchange.js";
import type { Modality } from "../../services/catalog/modality.js";
import { CAPABILITIES } from "../../services/catalog/model.js";
import { toCatalogEntry, toOpenAiModel } from "../../services/catalog/view.js";
import { queryFlag, queryInteger } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json, jsonOr } from "../openapi/answer.js";
import { amount, nullableText, pathId, seconds } from "../openapi/schemas.js";
import type { Route } from "../route.js";
import { GEMINI_PAGE_MODELS, GEMINI_PAGE_MODELS_MAX, isGeminiClient } from "./gemini.js";

/** Unspecified: a search as long as the longest model id. */
const SEARCH_CHARS_MAX = 253;

const modelsQuery = z.object({
  community: queryFlag.optional().describe("True: only models that accounts registered. False: only all others."),
  search: z.string().max(SEARCH_CHARS_MAX).optional().describe("Words that must all occur."),
  capability: z.enum(CAPABILITIES).optional().describe("A capability: tools, reasoning, search, code_exec or vision."),
  reliability: z.enum(["all"]).optional().describe("`all` also lists unreliable community models."),
});

/** Clients of Anthropic's API, as OpenAI's list has the same path. */
const isAnthropicClient = ({ req }: Exchange) => req.headers["anthropic-version"] !== undefined;

/** Anthropic's bound and default of a page. */
const PAGE_MODELS_MAX = 1_000;
const PAGE_MODELS = 20;

const openAiModelsQuery = modelsQuery.extend({
  limit: queryInteger(z.int().min(1).max(PAGE_MODELS_MAX))
    .optional()
    .describe("With `anthropic-version`: models of one page. Default: 20."),
  after_id: z.string().max(SEARCH_CHARS_MAX).optional().describe("With `anthropic-version`: the page after this model."),
  before_id: z.string().max(SEARCH_CHARS_MAX).optional().describe("With `anthropic-version`: the page before this model."),
  pageSize: queryInteger(z.int().min(1).max(GEMINI_PAGE_MODELS_MAX))
    .optional()
    .describe("With `x-goog-api-key`: models of one page. Default: 50."),
  pageToken: z.string().max(SEARCH_CHARS_MAX).optional().describe("With `x-goog-api-key`: the `nextPageToken` of the page before."),
});

const pricing = z.looseObject({ currency: z.literal("credits") });

const openAiModel = json(
  "Model",
  z.looseObject({
    id: z.string(),
    object: z.literal("model"),
    created: seconds,
    owned_by: z.string(),
    aliases: z.array(z.string()),
    context_length: amount.nullable(),
    capabilities: z.array(z.string()),
    pricing,
    input_modalities: z.array(z.string()),
    output_modalities: z.array(z.string()),
  }),
);

const catalogEntry = z.looseObject({
  name: z.string().describe("The canonical ID."),
  aliases: z.array(z.string()),
  publisher: z.string(),
  brand_url: nullableText,
  title: z.string(),
  description: nullableText,
  category: z.enum(["text", "image", "video", "audio", "embedding", "realtime"]),
  input_modalities: z.array(z.string()),
  output_modalities: z.array(z.string()),
  capabilities: z.array(z.string()),
  flags: z.looseObject({ paid: z.boolean(), alpha: z.boolean() }),
  pricing,
  context_length: amount.nullable(),
  voices: z.array(z.string()),
  community: z.boolean().describe("Whether an account registered the model. `owner` is its handle."),
  agent: z.boolean(),
  owner: nullableText,
  per_user_rpm: z.number().nullable().describe("The limit of requests per minute and account."),
  health: z
    .object({ status: z.enum(["unknown", "healthy", "unreliable"]), success_rate: z.number().nullable(), requests: amount })
    .describe("Health of a registered model: calls of other accounts in the last 24 hours."),
  added_at: z.string(),
  pending_change: z
    .looseObject({
      effective_at: z.string(),
      visibility: z.literal("public").optional(),
      paid_only: z.boolean().optional(),
      image_pricing: z.enum(["request", "tokens"]).optional(),
      pricing: pricing.optional(),
    })
    .nullable()
    .describe("The scheduled change of a registered model. Contains only the fields that change."),
});

const entries = json("Catalog", z.array(catalogEntry));

interface CatalogList {
  readonly path: string;
  readonly id: string;
  readonly summary: string;
  /** Absent: all. */
  readonly modalities?: readonly Modality[];
}

const LISTS: readonly CatalogList[] = [
  { path: "/models", id: "listModels", summary: "Lists all models." },
  { path: "/text/models", id: "listTextModels", summary: "Lists text models.", modalities: ["text"] },
  { path: "/image/models", id: "listImageModels", summary: "Lists image and video models.", modalities: ["image", "video"] },
  { path: "/video/models", id: "listVideoModels", summary: "Lists video models.", modalities: ["video"] },
  {
    path: "/audio/models",
    id: "listAudioModels",
    summary: "Lists speech, music and transcription models.",
    modalities: ["speech", "music", "transcription"],
  },
  { path: "/embeddings/models", id: "listEmbeddingModels", summary: "Lists embedding models.", modalities: ["embedding"] },
];

export function addModelRoutes(route: Route, endpoint: Endpoint, { catalog }: Pick<Services, "catalog">): void {
  route("/v1/models", {
    GET: endpoint({
      id: "listOpenAiModels",
      tag: "Models",
      summary: "Lists text models, in OpenAI's format.",
      description:
        "With the header `anthropic-version`, in Anthropic's format and pages. With `x-goog-api-key`, in Gemini's (see /v1beta/models).",
      answer: jsonOr(json("ModelList", z.object({ object: z.literal("list"), data: z.array(openAiModel.schema) }))),
      isForAgents: true,
      isPublic: true,
      query: openAiModelsQuery,
      handler: async (
        ctx,
        { query: { limit = PAGE_MODELS, after_id: afterId, before_id: beforeId, pageSize, pageToken, ...query }, exchange },
      ) => {
        if (isGeminiClient(exchange)) {
          const models = await catalog.list(ctx, { ...query, modalities: ["text", "embedding"] });
          return exchange.sendJson(toGeminiModelPage(models, pageSize ?? GEMINI_PAGE_MODELS, pageToken));
        }
        const models = await catalog.list(ctx, { ...query, modalities: ["text"] });
        if (isAnthropicClient(exchange)) return exchange.sendJson(toAnthropicModelPage(models, { limit, afterId, beforeId }));
        return { object: "list" as const, data: models.map(toOpenAiModel) };
      },
    }),
  });
  // Ids contain a slash, raw or encoded.
  route("/v1/models/*id", {
    GET: endpoint({
      id: "getOpenAiModel",
      tag: "Models",
      summary: "Returns a model, by ID or alias.",
      description: "With the header `anthropic-version`, in Anthropic's format. With `x-goog-api-key`, in Gemini's.",
      answer: jsonOr(openAiModel),
      example: { parameters: { id: "sandbox/text" } },
      isForAgents: true,
      isPublic: true,
      params: z.object({ id: pathId("The ID. Slashes may be raw or encoded.") }),
      handler: async (ctx, { params, exchange }) => {
        if (isGeminiClient(exchange)) return exchange.sendJson(toGeminiModel(await catalog.get(ctx, toModelId(params.id))));
        const model = await catalog.get(ctx, params.id);
        return isAnthropicClient(exchange) ? exchange.sendJson(toAnthropicModel(model)) : toOpenAiModel(model);
      },
    }),
  });
  for (const { path, id, summary, modalities } of LISTS) {
    route(path, {
      GET: endpoint({
        id,
        tag: "Models",
        summary,
        answer: entries,
        isForAgents: true,
        isPublic: true,
        query: modelsQuery,
        handler: async (ctx, { query }) =>
          (await catalog.list(ctx, { ...query, modalities })).map((model) => toCatalogEntry(model, catalog.healthOf(model))),
      }),
    });
  }
}
