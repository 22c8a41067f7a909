/** Spend of a month by person, key or model: a table of the most expensive, or all as CSV. */
import type { Gateway } from "./gateway.js";
import { type Column, type Outcome, toColumns } from "./present.js";

export const SPEND_GROUPINGS = ["person", "key", "model"] as const;
export type SpendGrouping = (typeof SPEND_GROUPINGS)[number];

export interface SpendQuery {
  readonly by: SpendGrouping;
  /** YYYY-MM; null: the present one. */
  readonly month: string | null;
  readonly accountId: string | null;
  readonly limit: number;
  readonly isCsv: boolean;
}

interface Sums {
  readonly requests: number;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cost: string;
}

interface Group extends Sums {
  readonly accountId: string | null;
  readonly handle: string | null;
  readonly email: string | null;
  readonly apiKeyId: string | null;
  readonly apiKeyName: string | null;
  readonly modelId: string | null;
}

interface Answer {
  readonly spend: { readonly month: string; readonly groups: readonly Group[]; readonly groupCount: number; readonly total: Sums };
}

/** A person's spend is that of the account. */
const ENUM: Readonly<Record<SpendGrouping, string>> = { person: "account", key: "key", model: "model" };

export async function showSpend(gateway: Gateway, query: SpendQuery): Promise<Outcome> {
  const { by, month, accountId, limit, isCsv } = query;
  if (isCsv) {
    const parameters = {
      by: ENUM[by],
      format: "csv",
      ...(month !== null && { month }),
      ...(accountId !== null && { account_id: accountId }),
    };
    const table = await gateway.read(`/account/operator/spend?${new URLSearchParams(parameters)}`);
    return { answer: table, words: table.trimEnd() };
  }
  const document = `query ($by: SpendGrouping!, $month: String, $accountId: ID, $first: Int!) {
    spend(by: $by, month: $month, accountId: $accountId, first: $first) {
      month groupCount total { requests inputTokens outputTokens cost }
      groups { accountId handle email apiKeyId apiKeyName modelId requests inputTokens outputTokens cost } } }`;
  const { spend } = await gateway.ask<Answer>(document, { by: ENUM[by].toUpperCase(), month, accountId, first: limit });
  if (spend.groups.length === 0) return { answer: spend, words: `Nothing was spent in ${spend.month}.` };
  const table = toColumns<Group>([...NAMES[by], ...SUMS], [...spend.groups, toTotal(spend.total, by)]);
  const left = spend.groupCount - spend.groups.length;
  return { answer: spend, words: left === 0 ? table : `${table}\nand ${left} more, which the total includes` };
}

const personOf = ({ handle, accountId }: Group) => handle ?? accountId ?? "-";

const NAMES: Readonly<Record<SpendGrouping, readonly Column<Group>[]>> = {
  person: [
    ["PERSON", personOf],
    ["E-MAIL", ({ email }) => email ?? "-"],
  ],
  key: [
    ["PERSON", personOf],
    ["KEY", ({ apiKeyId, apiKeyName }) => apiKeyName ?? apiKeyId ?? "(session)"],
    ["KEY ID", ({ apiKeyId }) => apiKeyId ?? "-"],
  ],
  model: [["MODEL", ({ modelId }) => modelId ?? "-"]],
};

const SUMS: readonly Column<Group>[] = [
  ["REQUESTS", ({ requests }) => String(requests)],
  ["INPUT TOKENS", ({ inputTokens }) => String(inputTokens)],
  ["OUTPUT TOKENS", ({ outputTokens }) => String(outputTokens)],
  ["CREDITS", ({ cost }) => cost],
];

function toTotal(total: Sums, by: SpendGrouping): Group {
  const names = {
    accountId: "TOTAL",
    handle: null,
    email: null,
    apiKeyId: by === "key" ? "-" : null,
    apiKeyName: by === "key" ? "-" : null,
  };
  return { ...names, modelId: "TOTAL", ...total };
}
