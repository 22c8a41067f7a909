/** Models of a local server (`OLLAMA_BASE_URL`), as a source of the catalog: free, and listed as long as the server has them. */
import { ownValue } from "../../lib/own-values.js";
import type { LocalModel } from "../../providers/ollama.js";
import type { Capability, CatalogSource, ModelDefinition } from "./model.js";

const UPSTREAM_ID = "ollama";
const LATEST = ":latest";
/** Ollama's abilities by our capabilities. */
const CAPABILITIES: Readonly<Record<string, Capability>> = { tools: "tools", thinking: "reasoning", vision: "vision" };
/** Embedding models by name, for servers that report no abilities. */
const EMBEDDING_NAME = /embed|minilm|(^|[/-])bge-|(^|[/-])gte-/i;

/** The server's root: its address is often given with the `/v1` of OpenAI clients. */
export function serverUrlOf(baseUrl: string): string {
  return baseUrl.replace(/\/v1$/, "");
}

export function toLocalSource(baseUrl: string, models: readonly LocalModel[]): CatalogSource {
  return {
    origin: "local",
    upstreams: [{ id: UPSTREAM_ID, wireFormat: "openai", baseUrl: `${serverUrlOf(baseUrl)}/v1`, apiKey: null, isTrusted: true }],
    models: [...models].sort((one, other) => (one.name < other.name ? -1 : 1)).map(toDefinition),
  };
}

function toDefinition({ name, abilities, contextLength }: LocalModel): ModelDefinition {
  const isEmbedding = abilities === null ? EMBEDDING_NAME.test(name) : abilities.includes("embedding") && !abilities.includes("completion");
  const id = `${UPSTREAM_ID}/${name}`;
  return {
    id,
    aliases: name.endsWith(LATEST) ? [id.slice(0, -LATEST.length)] : [],
    title: name,
    description: "Run by the local model server.",
    modality: isEmbedding ? "embedding" : "text",
    capabilities: isEmbedding ? [] : (abilities ?? []).flatMap((ability) => ownValue(CAPABILITIES, ability) ?? []),
    contextLength,
    routes: [{ upstreamId: UPSTREAM_ID, upstreamModel: name }],
    prices: {},
  };
}
