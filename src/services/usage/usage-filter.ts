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
/** Unspecified: keys of one run that a filter by it covers. */
const RUN_KEYS_MAX = 10_000;
/** Unspecified: models, and keys, that a search text may match. */
const SEARCH_MATCHES_MAX = 1_000;

const ids = z.array(storableText.max(512)).min(1).max(USAGE_FILTER_IDS_MAX);

/** Input of a filter. Unknown ids, and those of other accounts, match nothing. */
export const usageFilterInput = z.strictObject({
  apiKeyIds: ids.nullish(),
  /** Canonical ids. */
  modelIds: ids.nullish(),
  /** Rows of the run and of the runs below it. */
  runId: storableText.max(512).nullish(),
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
  const { apiKeyIds, modelIds, runId, modalities, statuses, from, to, minCost, search } = parseInput(usageFilterInput, filter);
  if (from && to && from > to) throw wrongField("from", "must not be later than `to`");
  const ofRun = runId ? await keysOfRun(database, accountId, runId) : null;
  const named = apiKeyIds?.filter(isUuid).map((id) => id.toLowerCase());
  const known = ofRun === null ? named : ofRun.filter((id) => named?.includes(id) ?? true);
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

/** The keys of a run and of the runs below it, at most as many as an account may have open; none for an unknown run. */
async function keysOfRun(database: Database, accountId: string, runId: string): Promise<readonly string[]> {
  if (!isUuid(runId)) return [];
  const keys = await database.prisma.apiKey.findMany({
    where: { accountId, OR: [{ id: runId }, { ancestorIds: { has: runId } }] },
    orderBy: { id: "asc" },
    take: RUN_KEYS_MAX,
    select: { id: true },
  });
  return keys.map(({ id }) => id);
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
