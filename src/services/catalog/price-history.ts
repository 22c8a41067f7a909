/**
 * History of public models' prices. The table has a row for each price of a model, dated when a process first knew it, or when a scheduled
 * change took effect.
 *
 * 1. Each process compares its catalog with its last comparison: at the start, at intervals, and when a registered model changes.
 * 2. One statement writes those that differ from the newest row. A process whose own prices have not changed writes nothing, so that old
 *    and new processes beside each other do not take turns.
 */
import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import { type Database, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Catalog } from "./catalog.js";
import type { CommunityCatalog } from "./community.js";
import { PRICE_HISTORY_LOOK_MS, PRICES_SHOWN_MAX } from "./limits.js";
import type { ImagePricing } from "./modality.js";
import type { Model } from "./model.js";
import { BILLED_KINDS, type BilledKind } from "./pricing.js";

export type PricedModel = Pick<Model, "modality" | "imagePricing"> & { readonly rates: Readonly<Record<BilledKind, bigint>> };

export interface PriceChange {
  /** When this gateway first knew these prices. */
  readonly since: Date;
  readonly priced: PricedModel;
}

/** Column `pricing`: picocredits per unit as decimal strings. Kinds that are free are left out. */
interface StoredPricing {
  readonly imagePricing: ImagePricing;
  readonly rates: Readonly<Record<string, string>>;
  readonly longContext?: readonly { readonly abovePromptTokens: number; readonly rates: Readonly<Record<string, string>> }[];
}

export interface PriceHistoryParts {
  readonly database: Database;
  readonly catalog: Pick<Catalog, "models">;
  readonly community: Pick<CommunityCatalog, "list"> & { upToDate(): Promise<void> };
  readonly events: Pick<Events, "listen" | "onDoubt">;
  readonly clock: Clock;
  readonly log: Logger;
}

export class PriceHistory {
  private compared: ReadonlyMap<string, Model> = new Map();
  private readonly looks: Repeated;

  constructor(private readonly parts: PriceHistoryParts) {
    this.looks = new Repeated(() => this.compare(), parts.log, "changed prices could not be noted; it is tried again");
  }

  start(): void {
    void this.looks.every(PRICE_HISTORY_LOOK_MS).now();
    const { events } = this.parts;
    events.listen("community-model-changed", () => void this.look());
    events.onDoubt(() => void this.look());
  }

  close(): Promise<void> {
    return this.looks.close();
  }

  /** Notes all changes up to now. Never rejects. */
  async look(): Promise<void> {
    // A run under way may have read the catalog before the change.
    await this.looks.now();
    await this.looks.now();
  }

  /** The newest prices of each model, newest first. The caller has already decided that these models may be shown. */
  async pricesOf(models: readonly Model[]): Promise<ReadonlyMap<string, readonly PriceChange[]>> {
    const byKey = new Map(models.map((model) => [keyOf(model), model]));
    const rows = await this.parts.database.prisma.$queryRaw<{ model: string; since: Date; pricing: StoredPricing }[]>`
      SELECT p.model, p.since, p.pricing FROM unnest(${[...byKey.keys()]}::text[]) AS asked(model)
      CROSS JOIN LATERAL (
        SELECT * FROM model_price WHERE model_price.model = asked.model ORDER BY since DESC LIMIT ${PRICES_SHOWN_MAX}
      ) p ORDER BY p.model, p.since DESC`;
    const changes = new Map<string, PriceChange[]>(models.map(({ id }) => [id, []]));
    for (const { model: key, since, pricing } of rows) {
      const model = byKey.get(key);
      if (model) changes.get(model.id)?.push({ since, priced: toPriced(model, pricing) });
    }
    return changes;
  }

  private async compare(): Promise<void> {
    const { catalog, community, clock } = this.parts;
    await community.upToDate();
    const now = clock.now();
    const registered = community.list({ kind: "anonymous" }, { reliableOnly: false });
    const models = new Map([...catalog.models, ...registered].map((model) => [keyOf(model), model]));
    const changed = [...models].flatMap(([key, model]) => {
      const before = this.compared.get(key);
      if (before && hasSamePrices(before, model)) return [];
      const due = before?.pendingChange?.effectiveAt;
      return [
        { model: key, community_model_id: model.communityModelId, since: due && due < now ? due : now, pricing: toStoredPricing(model) },
      ];
    });
    if (changed.length > 0) await this.write(JSON.stringify(changed));
    this.compared = models;
  }

  private async write(changed: string): Promise<void> {
    await this.parts.database.prisma.$transaction(async (transaction) => {
      await lockName(transaction, "prices of models");
      await transaction.$executeRaw`
        INSERT INTO model_price (model, since, community_model_id, pricing)
        SELECT c.model, greatest(c.since, last.since + interval '1 millisecond'), c.community_model_id, c.pricing
        FROM jsonb_to_recordset(${changed}::jsonb) AS c(model text, community_model_id uuid, since timestamptz(3), pricing jsonb)
        LEFT JOIN LATERAL (SELECT since, pricing FROM model_price p WHERE p.model = c.model ORDER BY since DESC LIMIT 1) last ON true
        WHERE last.pricing IS DISTINCT FROM c.pricing
          AND (c.community_model_id IS NULL OR EXISTS (SELECT FROM community_model m WHERE m.id = c.community_model_id))`;
    });
  }
}

/** Of a registered model its row's id, because its name changes with its owner's handle. */
function keyOf({ id, communityModelId }: Pick<Model, "id" | "communityModelId">): string {
  return communityModelId ?? id;
}

function hasSamePrices(one: Model, other: Model): boolean {
  return one === other || JSON.stringify(toStoredPricing(one)) === JSON.stringify(toStoredPricing(other));
}

function toStoredPricing({ imagePricing, rates }: Pick<Model, "imagePricing" | "rates">): StoredPricing {
  return {
    imagePricing,
    rates: pricedIn(rates),
    ...(rates.longContext && {
      longContext: rates.longContext.map(({ abovePromptTokens, rates: longer }) => ({ abovePromptTokens, rates: pricedIn(longer) })),
    }),
  };
}

function pricedIn(rates: Readonly<Record<BilledKind, bigint>>): Readonly<Record<string, string>> {
  return Object.fromEntries(BILLED_KINDS.filter((kind) => rates[kind] > 0n).map((kind) => [kind, rates[kind].toString()]));
}

function toPriced({ modality }: Model, { imagePricing, rates }: StoredPricing): PricedModel {
  const stored = new Map(Object.entries(rates));
  const restored = Object.fromEntries(BILLED_KINDS.map((kind) => [kind, BigInt(stored.get(kind) ?? "0")]));
  return { modality, imagePricing, rates: restored as Record<BilledKind, bigint> };
}
