/** The margin that an app asks for on top of prices (docs/spec/earnings.md#apps). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { invalidInput, notFound, wrongField } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import { requireKeyManager } from "../access/permissions.js";

/** The bound of every operator's bound. */
const MARGIN_PERCENT_MAX = 50;

export const setAppMarginInput = z.strictObject({ marginPercent: z.int().min(0).max(MARGIN_PERCENT_MAX) });
export type SetAppMarginInput = z.output<typeof setAppMarginInput>;

export interface AppMargin {
  readonly appId: string;
  readonly marginPercent: number;
}

export class AppMargins {
  constructor(
    private readonly database: Pick<Database, "prisma">,
    /** The operator's bound. */
    readonly marginPercentMax: number,
  ) {}

  /**
   * Sets the margin of the caller's own app, by the id of its app key. It counts for keys that are granted from now on. Rejects with
   * BAD_REQUEST above the operator's bound or for a secret key, and with NOT_FOUND.
   */
  async set(ctx: RequestContext, appId: string, { marginPercent }: SetAppMarginInput): Promise<AppMargin> {
    const { accountId } = requireKeyManager(ctx);
    const { marginPercentMax } = this;
    if (marginPercent > marginPercentMax) {
      const allowed = marginPercentMax === 0 ? "must be 0: apps take no margin on this gateway" : `must be from 0 to ${marginPercentMax}`;
      throw wrongField("marginPercent", allowed);
    }
    const { apiKey } = this.database.prisma;
    const key = isUuid(appId)
      ? await apiKey.findUnique({ where: { id: appId, accountId, revokedAt: null }, select: { type: true } })
      : null;
    if (!key) throw notFound("app");
    if (key.type !== "publishable") throw invalidInput("This is a secret key: an app is identified by a publishable key.", "id");
    await apiKey.update({ where: { id: appId }, data: { marginPercent } });
    return { appId, marginPercent };
  }
}
