/** `list_models`: models for the other tools. */
import * as z from "zod";
import { isAgentAtWork } from "../../../context.js";
import { CATALOG_SEARCH_CHARS_MAX } from "../../../limits.js";
import type { Catalog } from "../../catalog/catalog.js";
import { MODALITIES } from "../../catalog/modality.js";
import { CAPABILITIES, type Model } from "../../catalog/model.js";
import { toCatalogEntry } from "../../catalog/view.js";
import { MCP_MODELS_BYTES_MAX, MCP_MODELS_DEFAULT, MCP_MODELS_MAX } from "../limits.js";
import { type GatewayTool, textBlock } from "./tool.js";

const input = z.strictObject({
  modality: z.enum(MODALITIES).optional().describe("Only models of this modality."),
  search: z.string().max(CATALOG_SEARCH_CHARS_MAX).optional().describe("Words in the name, title or description."),
  capability: z.enum(CAPABILITIES).optional().describe("Only models with this capability."),
  limit: z.int().min(1).max(MCP_MODELS_MAX).default(MCP_MODELS_DEFAULT).describe("The maximum number of models."),
});

export function createModelsTool(catalog: Pick<Catalog, "list">): GatewayTool<z.output<typeof input>> {
  return {
    name: "list_models",
    title: "List models",
    description: "Lists the available models, the default of each modality first, with prices in credits (one credit is one US dollar).",
    input,
    isReadOnly: true,
    call: async (ctx, { modality, search, capability, limit }) => {
      const modalities = modality === undefined ? undefined : [modality];
      const models = (await catalog.list(ctx, { modalities, search, capability })).filter((model) => !isForbidden(model, ctx.caller));
      const structuredContent = { models: fitting(models.slice(0, limit).map(toListed)), count: models.length };
      return { isError: false, content: [textBlock(JSON.stringify(structuredContent))], structuredContent };
    },
  };
}

/** As many as fit into one event; `count` is the full number. */
function fitting<Entry>(entries: readonly Entry[]): readonly Entry[] {
  let bytes = 0;
  return entries.filter((entry) => {
    const json = JSON.stringify(entry);
    bytes += Buffer.byteLength(json) + Buffer.byteLength(JSON.stringify(json));
    return bytes <= MCP_MODELS_BYTES_MAX;
  });
}

/** Agents cannot call agents. */
function isForbidden(model: Model, caller: Parameters<Catalog["list"]>[0]["caller"]): boolean {
  return model.isAgent && isAgentAtWork(caller);
}

/** As GET /models, without fields that are only for display. */
function toListed(model: Model) {
  const {
    name,
    aliases,
    title,
    description,
    category,
    capabilities,
    pricing,
    context_length,
    voices,
    input_modalities,
    output_modalities,
  } = toCatalogEntry(model);
  return {
    name,
    ...(aliases.length > 0 && { aliases }),
    title,
    ...(description !== null && { description }),
    modality: model.modality,
    category,
    input_modalities,
    output_modalities,
    capabilities,
    pricing,
    ...(context_length !== null && { context_length }),
    ...(voices.length > 0 && { voices }),
  };
}
