/** Filters of an account's usage rows: one rule for lists and summaries, on both faces (docs/spec/usage.md#filters). */
import * as z from "zod";
import { wrongField } from "../../errors.js";
import { isUuid } from "../../lib/ids.js";
import { escapeLike } from "../../lib/storable-text.js";
import type { Database } from "../../store/database.js";
import { Modality, UsageStatus } from "../../store/generated/prisma/enums.js";
import type { UsageRecordWhereInput } from "../../store/generated/prisma/models.js";
import { nonBlankText, parseInput, storableText } from "../requests/input.js";

/** Unspecified: keys, and models, in one filter. */
export const USAGE_FILTER_IDS_MAX = 100;
/** Unspecified: the length of the longest model id. */
export const USAGE_SEARCH_CHARS_MAX = 200;
/** Unspecified: models, and keys, that a search text may match. */
const SEARCH_MATCHES_MAX = 1_000;

const ids = z.array(storableText.max(512)).min(1).max(USAGE_FILTER_IDS_MAX);

/** Input of a filter. Unknown ids, and those of other accounts, match nothing. */
export const usageFilterInput = z.strictObject({
  apiKeyIds: ids.nullish(),
  /** Canonical ids. */
  modelIds: ids.nullish(),
  modalities: z.array(z.enum(Modality)).min(1).max(Object.keys(Modality).length).nullish(),
  statuses: z.array(z.enum(UsageStatus)).min(1).max(Object.keys(UsageStatus).length).nullish(),
  /** Inclusive. */
  from: z.date().nullish(),
  /** Exclusive. */
  to: z.date().nullish(),
  /** In nanocredits. */
  minCost: z.bigint().min(0n, "must be 0 or more").nullish(),
  /** Part of a model's id or of a key's name, in any case; or a generation's id. */
  search: nonBlankText.max(USAGE_SEARCH_CHARS_MAX).nullish(),
});
export type UsageFilter = z.input<typeof usageFilterInput>;

/** A checked filter, for one account. An absent field matches everything, an empty list nothing. */
export interface UsageScope {
  readonly accountId: string;
  readonly apiKeyIds?: readonly string[];
  readonly models?: readonly string[];
  readonly modalities?: readonly Modality[];
  readonly statuses?: readonly UsageStatus[];
  readonly from?: Date;
  readonly to?: Date;
  readonly minCost?: bigint;
  readonly id?: string;
  /** Matches one of both. */
  readonly either?: { readonly models: readonly string[]; readonly apiKeyIds: readonly string[] };
}

/** Rejects with BAD_REQUEST, `param` naming the wrong field. `apiKeyId`: only that key. */
export async function scopeOf(database: Database, accountId: string, filter: UsageFilter = {}, apiKeyId?: string): Promise<UsageScope> {
  const { apiKeyIds, modelIds, modalities, statuses, from, to, minCost, search } = parseInput(usageFilterInput, filter);
  if (from && to && from > to) throw wrongField("from", "must not be later than `to`");
  const known = apiKeyIds?.filter(isUuid).map((id) => id.toLowerCase());
  const scope = {
    accountId,
    ...(known && { apiKeyIds: known }),
    ...(modelIds && { models: modelIds }),
    ...(modalities && { modalities }),
    ...(statuses && { statuses }),
    ...(from && { from }),
    ...(to && { to }),
    ...(minCost && { minCost }),
    ...(search && (isUuid(search.trim()) ? { id: search.trim() } : { either: await findNamed(database, accountId, search.trim()) })),
  };
  return apiKeyId === undefined ? scope : ofKeys(scope, [apiKeyId]);
}

/** The scope restricted to these keys. */
export function ofKeys(scope: UsageScope, apiKeyIds: readonly string[]): UsageScope {
  return { ...scope, apiKeyIds: apiKeyIds.filter((id) => scope.apiKeyIds?.includes(id) ?? true) };
}

/** The Prisma condition of the rows. */
export function toWhere(scope: UsageScope): UsageRecordWhereInput {
  const { accountId, apiKeyIds, models, modalities, statuses, from, to, minCost, id, either } = scope;
  const among = <Value>(values: readonly Value[]) => ({ in: [...values] });
  return {
    accountId,
    ...(apiKeyIds && { apiKeyId: apiKeyIds.length === 1 ? (apiKeyIds[0] as string) : among(apiKeyIds) }),
    ...(models && { model: among(models) }),
    ...(modalities && { modality: among(modalities) }),
    ...(statuses && { status: among(statuses) }),
    ...((from || to) && { timestamp: { ...(from && { gte: from }), ...(to && { lt: to }) } }),
    ...(minCost !== undefined && { costNanocredits: { gte: minCost } }),
    ...(id !== undefined && { id }),
    ...(either && { OR: [{ model: among(either.models) }, { apiKeyId: among(either.apiKeyIds) }] }),
  };
}

/** Finds the account's models and keys whose names contain the text; rows are then found by id. */
async function findNamed(database: Database, accountId: string, search: string): Promise<NonNullable<UsageScope["either"]>> {
  const named = { contains: escapeLike(search), mode: "insensitive" } as const;
  const [models, keys] = await Promise.all([
    database.prisma.usageDaily.groupBy({
      by: ["model"],
      where: { accountId, model: named },
      orderBy: { model: "asc" },
      take: SEARCH_MATCHES_MAX,
    }),
    database.prisma.apiKey.findMany({
      where: { accountId, name: named },
      orderBy: { id: "asc" },
      take: SEARCH_MATCHES_MAX,
      select: { id: true },
    }),
  ]);
  return { models: models.map(({ model }) => model), apiKeyIds: keys.map(({ id }) => id) };
}
