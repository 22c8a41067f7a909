/** Holds what callers were told against what the books say. */
import type { Query } from "./books.js";
import type { Answer } from "./recorded-load.js";

export interface UsageCharge {
  readonly id: string;
  readonly costNanocredits: bigint;
}

export interface Reconciliation {
  /** Answers that a caller received whole. */
  readonly acknowledged: number;
  readonly rows: number;
  /** Rows whose answer no caller received whole: cut off by the fault, or billed up to where it was cut. */
  readonly unacknowledgedRows: number;
  /** One line for each disagreement; empty when the books are right. */
  readonly problems: readonly string[];
}

const PROBLEMS_SHOWN_MAX = 5;

/** `otherRows` are charges of requests that were not recorded, such as a probe. */
export function reconcile(answers: readonly Answer[], charges: readonly UsageCharge[], otherRows = 0): Reconciliation {
  const byId = new Map(charges.map((charge) => [charge.id, charge]));
  const whole = answers.filter((answer) => answer.isWhole);
  const broken = answers.filter((answer) => !answer.isWhole && (answer.status === 200 || answer.status === null));
  const nameless = whole.filter((answer) => answer.generationId === null);
  const ids = new Set(whole.flatMap(({ generationId }) => (generationId === null ? [] : [generationId])));
  const missing = [...ids].filter((id) => !byId.has(id));
  const unpriced = whole.filter((answer) => answer.costNanocredits === null);
  const mispriced = whole.filter(({ generationId, costNanocredits }) => {
    const charge = generationId === null ? undefined : byId.get(generationId);
    return charge !== undefined && costNanocredits !== null && charge.costNanocredits !== costNanocredits;
  });
  const refusedIds = new Set(answers.flatMap((answer) => (isRefused(answer) && answer.generationId !== null ? [answer.generationId] : [])));
  const chargedRefusals = charges.filter((charge) => refusedIds.has(charge.id) && charge.costNanocredits > 0n);
  const unacknowledgedRows = charges.filter((charge) => !ids.has(charge.id)).length;
  const problems = [
    ...complain(nameless, "whole answers carried no X-Generation-Id", ({ stream }) => (stream ? "stream" : "json")),
    ...complain(missing, "whole answers have no usage row", (id) => id),
    ...complain(unpriced, "whole answers did not say what they cost", ({ generationId }) => String(generationId)),
    ...complain(mispriced, "answers cost something else than their usage row says", ({ generationId }) => String(generationId)),
    ...complain(chargedRefusals, "refused requests were charged", (charge) => charge.id),
  ];
  if (ids.size !== whole.length - nameless.length) problems.push(`${whole.length - nameless.length} whole answers share ${ids.size} ids.`);
  if (unacknowledgedRows > broken.length + otherRows) {
    problems.push(`${unacknowledgedRows} rows belong to no whole answer, but only ${broken.length + otherRows} answers were cut off.`);
  }
  return { acknowledged: whole.length, rows: charges.length, unacknowledgedRows, problems };
}

export async function readCharges(query: Query): Promise<readonly UsageCharge[]> {
  const rows = await query<{ id: string; cost: string }>("SELECT id::text AS id, cost_nanocredits::text AS cost FROM usage_record");
  return rows.map(({ id, cost }) => ({ id, costNanocredits: BigInt(cost) }));
}

function isRefused(answer: Answer): boolean {
  return answer.status !== null && answer.status >= 400;
}

function complain<T>(found: readonly T[], what: string, name: (each: T) => string): readonly string[] {
  if (found.length === 0) return [];
  return [
    `${found.length} ${what}: ${found.slice(0, PROBLEMS_SHOWN_MAX).map(name).join(", ")}${found.length > PROBLEMS_SHOWN_MAX ? ", ..." : ""}`,
  ];
}
