/** The catalog (docs/spec/models.md): OpenAI's list of text models, and plain arrays by modality. Public. */
import * as z from "zod";
import type { Modality } from "../../services/catalog/modality.js";
import { CAPABILITIES } from "../../services/catalog/model.js";
import { toCatalogEntry, toOpenAiModel } from "../../services/catalog/view.js";
import { queryFlag } from "../../services/requests/query-values.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

/** Unspecified: a search as long as the longest model id. */
const SEARCH_CHARS_MAX = 253;

const modelsQuery = z.object({
  community: queryFlag.optional(),
  search: z.string().max(SEARCH_CHARS_MAX).optional(),
  capability: z.enum(CAPABILITIES).optional(),
  /** `all` includes community models with a low success rate. */
  reliability: z.enum(["all"]).optional(),
});

const LISTS: Readonly<Record<string, readonly Modality[] | undefined>> = {
  "/models": undefined,
  "/text/models": ["text"],
  "/image/models": ["image", "video"],
  "/video/models": ["video"],
  "/audio/models": ["speech", "music", "transcription"],
  "/embeddings/models": ["embedding"],
};

export function addModelRoutes(route: Route, endpoint: Endpoint, { catalog }: Pick<Services, "catalog">): void {
  route("/v1/models", {
    GET: endpoint({
      isForAgents: true,
      isPublic: true,
      query: modelsQuery,
      handler: async (ctx, { query }) => {
        const models = await catalog.list(ctx, { ...query, modalities: ["text"] });
        return { object: "list", data: models.map(toOpenAiModel) };
      },
    }),
  });
  // Ids contain a slash, raw or encoded.
  route("/v1/models/*id", {
    GET: endpoint({
      isForAgents: true,
      isPublic: true,
      handler: async (ctx, { exchange }) => toOpenAiModel(await catalog.get(ctx, exchange.parameter("id"))),
    }),
  });
  for (const [path, modalities] of Object.entries(LISTS)) {
    route(path, {
      GET: endpoint({
        isForAgents: true,
        isPublic: true,
        query: modelsQuery,
        handler: async (ctx, { query }) =>
          (await catalog.list(ctx, { ...query, modalities })).map((model) => toCatalogEntry(model, catalog.healthOf(model))),
      }),
    });
  }
}
