/** API keys of the account, and the calling key (docs/spec/keys.md#operations). */

import { toCreditsNumber } from "../../lib/money.js";
import { API_KEYS_PER_ACCOUNT_MAX } from "../../limits.js";
import { requireKeyManager } from "../../services/access/permissions.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import type { CurrentApiKey } from "../../services/api-keys/api-keys.js";
import { createApiKeyInput, updateApiKeyInput } from "../../services/api-keys/api-keys-input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import type { Route } from "../route.js";

export function addApiKeyRoutes(route: Route, endpoint: Endpoint, { apiKeys }: Pick<Services, "apiKeys">): void {
  route("/keys", {
    GET: endpoint({
      handler: async (ctx) => {
        const page = await apiKeys.list(ctx, { first: API_KEYS_PER_ACCOUNT_MAX });
        return { data: page.items.map(toApiKey) };
      },
    }),
    POST: endpoint({
      requires: requireKeyManager,
      body: createApiKeyInput,
      handler: async (ctx, { body, exchange }) => {
        const created = await apiKeys.create(ctx, body);
        exchange.setHeaders({ "Cache-Control": "no-store" });
        return toCreatedApiKey(created.apiKey, created.key);
      },
    }),
  });
  route("/keys/:id", {
    PATCH: endpoint({
      requires: requireKeyManager,
      body: updateApiKeyInput,
      handler: async (ctx, { body, exchange }) => toApiKey(await apiKeys.update(ctx, exchange.parameter("id"), body)),
    }),
    DELETE: endpoint({
      handler: async (ctx, { exchange }) => {
        const { id } = await apiKeys.revoke(ctx, exchange.parameter("id"));
        return { id, revoked: true };
      },
    }),
  });
  route("/key", {
    GET: endpoint({ handler: async (ctx) => toCurrentApiKey(await apiKeys.current(ctx)) }),
  });
}

/** The answer of POST /keys, the only one with the key's value (docs/spec/keys.md#operations). */
function toCreatedApiKey(row: ApiKeyRow, key: string) {
  const { id, name, type, prefix, start, expiresAt, permissions } = row;
  return { id, key, name, type, prefix, start, expiresAt, permissions, creditBudget: toCreditBudget(row) };
}

function toApiKey(row: ApiKeyRow) {
  const { id, name, type, prefix, start, expiresAt, permissions, allowedModels, createdAt, lastUsedAt } = row;
  const { parentId, origin, app, redirectUrls } = row;
  const creditBudget = toCreditBudget(row);
  return {
    ...{ id, name, type, prefix, start, expiresAt, permissions, creditBudget, allowedModels },
    ...{ createdAt, lastUsedAt, parentId, origin, app, redirectUrls },
  };
}

function toCurrentApiKey(row: CurrentApiKey) {
  const { valid, type, name, expiresAt, expiresIn, permissions, rateLimitEnabled } = row;
  return { valid, type, name, expiresAt, expiresIn, permissions, creditBudget: toCreditBudget(row), rateLimitEnabled };
}

/** Remaining credits; null: unlimited. */
function toCreditBudget({ creditBudget }: ApiKeyRow): number | null {
  return creditBudget === null ? null : toCreditsNumber(creditBudget);
}
