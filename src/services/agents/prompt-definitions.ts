/** Definitions of prompt agents in memory: read on the first call, and again after a change. */
import { LRUCache } from "lru-cache";
import { upstreamFailed } from "../../errors.js";
import type { Database } from "../../store/database.js";
import type { Model } from "../catalog/model.js";
import type { McpServerId } from "../mcp/mcp-tools.js";
import { AGENT_CACHE_ENTRIES_MAX } from "./limits.js";

export interface PromptDefinition {
  readonly systemPrompt: string;
  /** As its owner wrote it: an id or an alias. */
  readonly baseModel: string;
  readonly mcpServers: readonly McpServerId[];
}

/** The catalog makes a new model object whenever an agent's row changes, so the entry is good for one object. */
interface Known {
  readonly model: Model;
  readonly definition: Promise<PromptDefinition>;
}

export class PromptDefinitions {
  private readonly cache = new LRUCache<string, Known>({ max: AGENT_CACHE_ENTRIES_MAX });

  constructor(private readonly database: Database) {}

  /** Rejects with UPSTREAM_ERROR when the agent was deleted. */
  find(model: Model): Promise<PromptDefinition> {
    const id = model.communityModelId ?? "";
    const cached = this.cache.get(id);
    if (cached?.model === model) return cached.definition;
    const known = { model, definition: this.load(id) };
    this.cache.set(id, known);
    known.definition.catch(() => {
      if (this.cache.peek(id) === known) this.cache.delete(id);
    });
    return known.definition;
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
