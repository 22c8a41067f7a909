/**
 * Rules for fallbacks when a model's upstream fails (docs/spec/community-models.md#fallbacks): registered models of the same modality,
 * public or the owner's own, with no price above this model's, and no circles.
 */
import { invalidInput } from "../../errors.js";
import { lockName } from "../../store/database.js";
import { chargedPrices, PRICE_FIELDS } from "../catalog/pricing.js";
import { FALLBACK_CANDIDATES_MAX, FALLBACK_CANDIDATES_READ_MAX } from "./limits.js";
import { applied, type CommunityModelRow, type CommunityModelTerms, communityModelId, pendingAt, termsAt } from "./record.js";
import type { ModelTransaction } from "./repository.js";
import { basisOf } from "./view.js";

export interface FallbackHolder {
  /** Null: it is being registered. */
  readonly id: string | null;
  readonly accountId: string;
  /** Callable. */
  readonly modelId: string;
  readonly modality: CommunityModelRow["modality"];
  /** The current terms, and those after the scheduled change. */
  readonly terms: readonly CommunityModelTerms[];
}

export type FallbackRow = CommunityModelRow & { readonly account: { readonly handle: string } };

const WITH_HANDLE = { include: { account: { select: { handle: true } } } } as const;

/** The current terms of a row, and those after its scheduled change. */
export function knownTerms(row: CommunityModelRow, now: Date): readonly CommunityModelTerms[] {
  const terms = termsAt(row, now);
  const scheduled = pendingAt(row, now);
  return scheduled ? [terms, applied(terms, scheduled.change)] : [terms];
}

/** The owner's message why the row cannot be a fallback of the model; null when it can. Does not check for circles. */
export function fallbackRefusal(holder: FallbackHolder, row: FallbackRow | undefined, now: Date): string | null {
  const isReachable = row && (row.accountId === holder.accountId || termsAt(row, now).visibility === "public");
  if (!isReachable) return "The model does not exist, or is private to another account.";
  if (row.id === holder.id) return "A model cannot be its own fallback.";
  if (row.type !== "proxy") return "An agent cannot be a fallback.";
  if (row.modality !== holder.modality) return `It is a model of modality ${row.modality}, and this one is of ${holder.modality}.`;
  const theirs = knownTerms(row, now);
  return holder.terms.flatMap((own) => theirs.map((other) => termsRefusal(holder, own, other))).find((refusal) => refusal !== null) ?? null;
}

function termsRefusal({ modality }: FallbackHolder, own: CommunityModelTerms, other: CommunityModelTerms): string | null {
  if (modality === "image" && own.imagePricing !== other.imagePricing) {
    return `Its imagePricing is ${other.imagePricing}, and this model's is ${own.imagePricing}: their prices cannot be compared.`;
  }
  const ceiling = chargedPrices(own.prices, basisOf({ modality }, own));
  const prices = chargedPrices(other.prices, basisOf({ modality }, other));
  const dearer = PRICE_FIELDS.find((field) => prices[field] > ceiling[field]);
  return dearer ? `Its ${dearer} is above this model's.` : null;
}

export interface FallbackCheck {
  readonly holder: FallbackHolder;
  readonly ids: readonly string[];
  /** True: the list is unchanged, so that later changes of its models are not errors of this request. */
  readonly isKept: boolean;
  readonly now: Date;
}

/** Rejects with BAD_REQUEST naming `fallbacks.<place>`. Serializes changes that together would close a circle. */
export async function checkFallbacks(transaction: ModelTransaction, { holder, ids, isKept, now }: FallbackCheck): Promise<void> {
  if (ids.length === 0) return;
  await lockName(transaction, "community fallbacks");
  const rows = await findByModelIds(transaction, ids);
  const circular = await findCircular(transaction, holder.modelId, ids);
  ids.forEach((id, place) => {
    const row = rows.get(id);
    const isGone = !row || (row.accountId !== holder.accountId && termsAt(row, now).visibility === "private");
    if (isKept && isGone) return;
    const refusal = id === holder.modelId ? "A model cannot be its own fallback." : fallbackRefusal(holder, row, now);
    if (refusal) throw invalidInput(refusal, `fallbacks.${place}`);
    if (circular.has(id)) throw invalidInput("Its own fallbacks lead back to this model.", `fallbacks.${place}`);
  });
}

async function findByModelIds(transaction: ModelTransaction, ids: readonly string[]): Promise<ReadonlyMap<string, FallbackRow>> {
  const named = ids.map((id) => {
    const [, handle = "", name = ""] = id.split("/");
    return { name, account: { handle } };
  });
  const rows = await transaction.communityModel.findMany({ where: { OR: named }, ...WITH_HANDLE });
  return new Map(rows.map((row) => [modelIdOf(row), row]));
}

/** Those of `ids` from which fallbacks lead to `modelId`. */
async function findCircular(
  transaction: Pick<ModelTransaction, "$queryRaw">,
  modelId: string,
  ids: readonly string[],
): Promise<ReadonlySet<string>> {
  const found = await transaction.$queryRaw<{ readonly start: string }[]>`
    WITH RECURSIVE reached (start, id) AS (
      SELECT given, given FROM unnest(${[...ids]}::text[]) AS given
      UNION
      SELECT r.start, next FROM reached r
      JOIN account a ON a.handle = split_part(r.id, '/', 2)
      JOIN community_model m ON m.account_id = a.id AND m.name = split_part(r.id, '/', 3)
      CROSS JOIN unnest(m.fallbacks) AS next
    )
    SELECT DISTINCT start FROM reached WHERE id = ${modelId}`;
  return new Set(found.map(({ start }) => start));
}

/** Models that could be fallbacks: the owner's own first, then by callable id; at most FALLBACK_CANDIDATES_MAX. */
export async function findCandidates(
  database: Pick<ModelTransaction, "communityModel" | "$queryRaw">,
  holder: FallbackHolder,
  now: Date,
): Promise<readonly FallbackRow[]> {
  const { accountId, modality, modelId } = holder;
  const isOpen = { OR: [{ visibility: "public" as const }, { pendingEffectiveAt: { lte: now } }] };
  const found: FallbackRow[] = [];
  for (const whose of [{ accountId }, { ...isOpen, accountId: { not: accountId } }]) {
    const rows = await database.communityModel.findMany({
      where: { ...whose, modality, type: "proxy" },
      orderBy: [{ account: { handle: "asc" } }, { name: "asc" }],
      take: FALLBACK_CANDIDATES_READ_MAX,
      ...WITH_HANDLE,
    });
    for (const row of rows) if (fallbackRefusal(holder, row, now) === null) found.push(row);
  }
  // Few of them form circles, so twice as many are enough to fill the answer.
  const likely = found.slice(0, 2 * FALLBACK_CANDIDATES_MAX);
  const circular = await findCircular(database, modelId, likely.map(modelIdOf));
  return likely.filter((row) => !circular.has(modelIdOf(row))).slice(0, FALLBACK_CANDIDATES_MAX);
}

function modelIdOf({ account, name }: FallbackRow): string {
  return communityModelId(account.handle, name);
}
