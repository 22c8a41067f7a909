/** What prompt agents are to do, in memory: read when an agent is called first, and again when it was changed. */
import { LRUCache } from "lru-cache";
import { upstreamFailed } from "../../errors.js";
import { AGENT_CACHE_ENTRIES_MAX, AGENT_CACHE_MS } from "../../limits-agents.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Model } from "../catalog/model.js";
import type { McpServerId } from "../mcp/mcp-tools.js";

export interface PromptDefinition {
  readonly systemPrompt: string;
  /** As its owner wrote it: an id or an alias. */
  readonly baseModel: string;
  readonly mcpServers: readonly McpServerId[];
}

export class PromptDefinitions {
  private readonly cache = new LRUCache<string, Promise<PromptDefinition>>({ max: AGENT_CACHE_ENTRIES_MAX, ttl: AGENT_CACHE_MS });

  constructor(
    private readonly database: Database,
    events: Events,
  ) {
    events.listen("community-model-changed", ({ modelId }) => void this.cache.delete(modelId));
    events.onGap(() => this.cache.clear());
  }

  /** Rejects with UPSTREAM_ERROR when the agent was deleted meanwhile. */
  find({ communityModelId }: Pick<Model, "communityModelId">): Promise<PromptDefinition> {
    const id = communityModelId ?? "";
    const cached = this.cache.get(id);
    if (cached) return cached;
    const loading = this.load(id);
    this.cache.set(id, loading);
    loading.catch(() => {
      if (this.cache.peek(id) === loading) this.cache.delete(id);
    });
    return loading;
  }

  private async load(id: string): Promise<PromptDefinition> {
    const row = await this.database.prisma.agent.findUnique({
      where: { id },
      select: { systemPrompt: true, baseModel: true, mcpServers: true },
    });
    if (!row || row.systemPrompt === null || row.baseModel === null) throw upstreamFailed("The agent is no longer there.");
    return { systemPrompt: row.systemPrompt, baseModel: row.baseModel, mcpServers: row.mcpServers as McpServerId[] };
  }
}
