/** Health of an owner's models, as a subscription. */
import type { RequestContext } from "../../context.js";
import { notFound } from "../../errors.js";
import type { Events } from "../../store/events.js";
import { requireKeyManager } from "../access/permissions.js";
import { mapEvents, queueOf } from "../accounts/live.js";
import type { ModelHealth } from "../catalog/community.js";
import type { CommunityDirectory } from "./directory.js";
import type { ModelHealthRecords } from "./health.js";
import { communityModelId } from "./record.js";

export interface ModelHealthChange {
  /** The registered model's own id. */
  readonly id: string;
  /** Callable. */
  readonly modelId: string;
  readonly health: ModelHealth;
}

export class LiveModelHealth {
  constructor(
    private readonly events: Events,
    private readonly directory: Pick<CommunityDirectory, "registered">,
    private readonly records: Pick<ModelHealthRecords, "healthOf" | "upToDate">,
  ) {}

  /**
   * Yields the health of the account's models, or of one, whenever calls of others changed it. Rejects with NOT_FOUND for a model of
   * another account.
   */
  changes(ctx: RequestContext, id: string | null): AsyncIterableIterator<ModelHealthChange> {
    const { accountId } = requireKeyManager(ctx);
    if (id !== null && this.directory.registered(id)?.row.accountId !== accountId) throw notFound("model");
    const source = queueOf(this.events, ctx, "model-health-changed", accountId);
    return mapEvents(source, async ({ modelId }) => (id === null || id === modelId ? this.changeOf(modelId) : null));
  }

  /** Null: it was deleted meanwhile. */
  private async changeOf(id: string): Promise<ModelHealthChange | null> {
    await this.records.upToDate();
    const registered = this.directory.registered(id);
    return registered && { id, modelId: communityModelId(registered.handle, registered.row.name), health: this.records.healthOf(id) };
  }
}
