/**
 * Attribution: what an app has its users spend, for the app's owner (docs/spec/usage.md#app-usage). An app is a publishable key; the
 * keys that its users have granted to it bring the traffic. Days and models are told, nothing of who the users are or how many.
 */

import type { RequestContext } from "../../context.js";
import { notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid } from "../../lib/ids.js";
import { USAGE_DAILY_DAYS_DEFAULT } from "../../limits.js";
import type { Database } from "../../store/database.js";
import { requirePermission } from "../access/permissions.js";
import { firstDayOf } from "./usage.js";

export interface AppUsageDay {
  /** YYYY-MM-DD, UTC. */
  readonly date: string;
  readonly model: string;
  readonly requests: number;
  readonly costNanocredits: bigint;
}

export interface AppUsage {
  /** Newest first. */
  readonly days: readonly AppUsageDay[];
  readonly totalRequests: number;
  readonly totalCostNanocredits: bigint;
  readonly asOf: Date;
}

export class AppUsages {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
  ) {}

  /** NOT_FOUND for what is no publishable key of the caller's account. A revoked one has its history still. */
  async daily(ctx: RequestContext, appKeyId: string, query: { readonly days?: number | undefined }): Promise<AppUsage> {
    const { accountId } = requirePermission(ctx, "usage");
    await this.assertOwned(accountId, appKeyId);
    const asOf = this.clock.now();
    const rows = await this.database.prisma.appUsageDaily.findMany({
      where: { appKeyId, day: { gte: firstDayOf(asOf, query.days ?? USAGE_DAILY_DAYS_DEFAULT) } },
      orderBy: [{ day: "desc" }, { model: "asc" }],
    });
    return {
      asOf,
      days: rows.map(({ day, model, requests, costNanocredits }) => ({
        date: day.toISOString().slice(0, 10),
        model,
        requests,
        costNanocredits,
      })),
      totalRequests: rows.reduce((total, { requests }) => total + requests, 0),
      totalCostNanocredits: rows.reduce((total, { costNanocredits }) => total + costNanocredits, 0n),
    };
  }

  private async assertOwned(accountId: string, appKeyId: string): Promise<void> {
    const isId = isUuid(appKeyId);
    const where = { id: appKeyId, accountId, type: "publishable" } as const;
    if (!isId || (await this.database.prisma.apiKey.count({ where })) === 0) throw notFound("app");
  }
}
