/** Deployed scripts of code agents, read from the database and cached until they change. */
import { LRUCache } from "lru-cache";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { CODE_SCRIPTS_BYTES_MAX } from "./limits.js";

export class CodeScripts {
  /** By the agent's row. Holds reads under way, so that a change drops them too. */
  private readonly kept = new LRUCache<string, Promise<Uint8Array | null>>({ maxSize: CODE_SCRIPTS_BYTES_MAX });

  constructor(
    private readonly database: Database,
    events: Events,
  ) {
    events.listen("community-model-changed", ({ modelId }) => void this.kept.delete(modelId));
    events.onDoubt(() => this.kept.clear());
  }

  /** Null for an agent that was deleted or never deployed. */
  find(agentId: string): Promise<Uint8Array | null> {
    const known = this.kept.get(agentId);
    if (known) return known;
    const script = this.read(agentId);
    this.kept.set(agentId, script, { size: 1 });
    script.then(
      (found) => this.weigh(agentId, script, found),
      () => this.weigh(agentId, script, null),
    );
    return script;
  }

  private async read(agentId: string): Promise<Uint8Array | null> {
    const agent = await this.database.prisma.agent.findUnique({ where: { id: agentId }, select: { bundle: true } });
    return agent?.bundle ? Buffer.from(agent.bundle) : null;
  }

  /** Unless it was dropped meanwhile. */
  private weigh(agentId: string, script: Promise<Uint8Array | null>, found: Uint8Array | null): void {
    if (this.kept.get(agentId) !== script) return;
    if (found === null) this.kept.delete(agentId);
    else this.kept.set(agentId, script, { size: found.length });
  }
}
