/** API keys of the account, and what the calling key is (docs/spec/keys.md#operations). */
import { API_KEYS_PER_ACCOUNT_MAX } from "../../limits.js";
import { requireKeyManager } from "../../services/access/permissions.js";
import { createApiKeyInput, updateApiKeyInput } from "../../services/api-keys/api-keys-input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { toApiKey, toCreatedApiKey, toCurrentApiKey } from "../presenters/api-keys.js";
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
