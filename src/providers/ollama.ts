/**
 * Reads the models of a local server: Ollama's lists (`/api/tags`, and `/api/show` for abilities), or OpenAI's (`/v1/models`) from other
 * servers. They are called over OpenAI's format.
 */

import { ProviderError } from "../formats/upstream-error.js";
import { parseObject } from "../formats/upstream-json.js";
import { isRecord, recordsOf } from "../lib/json.js";
import { withoutTrailing } from "../lib/urls.js";
import { LOCAL_LIST_BYTES_MAX, LOCAL_MODELS_MAX, LOCAL_TIMEOUT_MS } from "../limits.js";
import { createUpstreamPool, type UpstreamPool } from "./http.js";

export interface LocalModel {
  /** The server's name, such as `llama3.2:latest`. */
  readonly name: string;
  /** Ollama's words: completion, tools, vision, thinking, embedding. Null when not reported. */
  readonly abilities: readonly string[] | null;
  /** In tokens. */
  readonly contextLength: number | null;
}

/** Concurrent requests for details. */
const ASKED_AT_ONCE = 4;

export class LocalModelServer {
  private readonly pool: UpstreamPool;
  private readonly path: string;
  /** Details by name and digest, read once. */
  private details = new Map<string, LocalModel>();

  /** `baseUrl` without a trailing slash, and without `/v1`. */
  constructor(baseUrl: string) {
    this.path = withoutTrailing(new URL(baseUrl).pathname, "/");
    this.pool = createUpstreamPool(baseUrl, { connectMs: LOCAL_TIMEOUT_MS, idleMs: LOCAL_TIMEOUT_MS, totalMs: LOCAL_TIMEOUT_MS });
  }

  /** Rejects with a ProviderError when the server does not answer, or with the signal's reason. */
  async list(signal: AbortSignal): Promise<readonly LocalModel[]> {
    const tags = await this.get("/api/tags", signal);
    if (tags === null) return this.listOpenAi(signal);
    const known = this.details;
    const found = new Map<string, LocalModel>();
    const entries = recordsOf(tags.models)
      .flatMap((entry) => toEntry(entry))
      .slice(0, LOCAL_MODELS_MAX);
    for (let at = 0; at < entries.length; at += ASKED_AT_ONCE) {
      const batch = entries.slice(at, at + ASKED_AT_ONCE);
      const models = await Promise.all(batch.map(async ({ name, key }) => known.get(key) ?? this.describe(name, signal)));
      for (const [index, { key }] of batch.entries()) {
        const model = models[index];
        if (model) found.set(key, model);
      }
    }
    this.details = found;
    return [...found.values()];
  }

  close(): Promise<void> {
    return this.pool.close();
  }

  private async listOpenAi(signal: AbortSignal): Promise<readonly LocalModel[]> {
    const list = await this.get("/v1/models", signal);
    if (list === null) throw new ProviderError("invalid-response", "The local model server has no list of its models.");
    const names = recordsOf(list.data).flatMap(({ id }) => (isName(id) ? [id] : []));
    return names.slice(0, LOCAL_MODELS_MAX).map((name) => ({ name, abilities: null, contextLength: null }));
  }

  private async describe(name: string, signal: AbortSignal): Promise<LocalModel> {
    const shown = await this.request("POST", "/api/show", JSON.stringify({ model: name }), signal);
    const abilities = Array.isArray(shown?.capabilities) ? shown.capabilities.filter((ability) => typeof ability === "string") : null;
    const info = isRecord(shown?.model_info) ? Object.entries(shown.model_info) : [];
    const length = info.find(([field]) => field.endsWith(".context_length"))?.[1];
    return { name, abilities, contextLength: typeof length === "number" && Number.isSafeInteger(length) && length > 0 ? length : null };
  }

  private get(path: string, signal: AbortSignal) {
    return this.request("GET", path, null, signal);
  }

  /** The JSON object of the answer; null for an error status. */
  private async request(method: "GET" | "POST", path: string, body: string | null, signal: AbortSignal) {
    const headers = ["accept", "application/json", "accept-encoding", "identity", "user-agent", "sluice"];
    if (body !== null) headers.push("content-type", "application/json");
    const response = await this.pool.request({ method, path: this.path + path, headers, body, signal, isStreamed: false });
    const bytes = await response.readAll(LOCAL_LIST_BYTES_MAX);
    if (response.status >= 400) return null;
    const object = parseObject(bytes);
    if (object === null) throw new ProviderError("invalid-response", "The local model server's answer is not a JSON object.");
    return object;
  }
}

/** A name and its content's key: a model that was pulled again has another digest. */
function toEntry(entry: Readonly<Record<string, unknown>>): { readonly name: string; readonly key: string }[] {
  const name = entry.name ?? entry.model;
  return isName(name) ? [{ name, key: `${name} ${String(entry.digest ?? "")}` }] : [];
}

function isName(value: unknown): value is string {
  return typeof value === "string" && /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,199}$/.test(value);
}
