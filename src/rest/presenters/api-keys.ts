/** API keys as REST shows them (docs/spec/keys.md). */
import { toCreditsNumber } from "../../lib/money.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import type { CurrentApiKey } from "../../services/api-keys/api-keys.js";

/** The answer of POST /keys, the one time that the key's value is shown (docs/spec/keys.md#operations). */
export function toCreatedApiKey(row: ApiKeyRow, key: string) {
  const { id, name, type, prefix, start, expiresAt, permissions } = row;
  return { id, key, name, type, prefix, start, expiresAt, permissions, creditBudget: toCreditBudget(row) };
}

export function toApiKey(row: ApiKeyRow) {
  const { id, name, type, prefix, start, expiresAt, permissions, allowedModels, createdAt, lastUsedAt } = row;
  const { parentId, origin, app, redirectUrls } = row;
  const creditBudget = toCreditBudget(row);
  return {
    ...{ id, name, type, prefix, start, expiresAt, permissions, creditBudget, allowedModels },
    ...{ createdAt, lastUsedAt, parentId, origin, app, redirectUrls },
  };
}

export function toCurrentApiKey(row: CurrentApiKey) {
  const { valid, type, name, expiresAt, expiresIn, permissions, rateLimitEnabled } = row;
  return { valid, type, name, expiresAt, expiresIn, permissions, creditBudget: toCreditBudget(row), rateLimitEnabled };
}

/** Credits that remain; null means unlimited. */
function toCreditBudget({ creditBudget }: ApiKeyRow): number | null {
  return creditBudget === null ? null : toCreditsNumber(creditBudget);
}
