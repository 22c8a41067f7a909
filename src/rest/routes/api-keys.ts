/** API keys of the account, and the calling key (docs/spec/keys.md#operations). */
import * as z from "zod";
import { toCreditsNumber } from "../../lib/money.js";
import { API_KEY_NAME_CHARS_MAX, API_KEYS_PER_ACCOUNT_MAX } from "../../limits.js";
import { requireKeyMaker } from "../../services/access/permissions.js";
import type { ApiKeyRow } from "../../services/api-keys/api-key-rows.js";
import type { CurrentApiKey } from "../../services/api-keys/api-keys.js";
import { createApiKeyInput, updateApiKeyInput } from "../../services/api-keys/api-keys-input.js";
import type { Services } from "../../services/services.js";
import type { Endpoint } from "../endpoint.js";
import { json } from "../openapi/answer.js";
import { amount, credits, nullableText, pathId, time } from "../openapi/schemas.js";
import type { Route } from "../route.js";

const shared = {
  id: z.string(),
  externalId: nullableText.describe("A provisioning tool's own name of the key. Null: none."),
  isManagement: z.boolean().describe("Whether the key only creates, changes and revokes keys."),
  name: z.string(),
  type: z.enum(["secret", "publishable"]),
  prefix: z.enum(["sk", "pk"]),
  start: z.string().describe("The first ten characters of the key."),
  expiresAt: time.nullable(),
  permissions: z.array(z.string()),
  creditBudget: credits
    .nullable()
    .describe(
      "The credits that the key can still spend: the smallest remaining budget of the key and the keys that created it. Null: unlimited.",
    ),
};

const apiKey = json(
  "ApiKey",
  z.looseObject({
    ...shared,
    allowedModels: z.array(z.string()).nullable(),
    createdAt: time,
    lastUsedAt: time.nullable(),
    parentId: nullableText.describe(
      "The key that created this one. This key also draws on the parent's budget, cannot exceed the parent's permissions, and ends with it. Null when no key created it.",
    ),
    origin: z.enum(["created", "redirect_flow", "device_flow", "run"]),
    app: z
      .object({ id: z.string(), name: z.string() })
      .nullable()
      .describe("The app that the key was granted to, identified by its app key."),
    resource: nullableText.describe("The address that the key was granted for: `/mcp` or the base of the gateway. Null: not bound to one."),
    marginPercent: z.number().describe("Percent that an app earns on top of prices: of an app key, the margin that it asks for."),
    redirectUrls: z.array(z.string()).describe("For app keys: the URLs that the consent flow may redirect to. Empty: any safe URL."),
  }),
);

const createdApiKey = json(
  "CreatedApiKey",
  z.looseObject({
    ...shared,
    key: z.string().nullable().describe("The complete key. It is shown only once. Null when a key with the `externalId` existed."),
  }),
);

const currentApiKey = json(
  "CurrentApiKey",
  z.looseObject({
    valid: z.boolean(),
    type: shared.type,
    name: z.string(),
    expiresAt: time.nullable(),
    expiresIn: amount.nullable().describe("Whole seconds until the key expires."),
    permissions: z.array(z.string()),
    creditBudget: credits.nullable(),
    rateLimitEnabled: z.boolean(),
  }),
);

const byId = z.object({ id: pathId("The ID of the key.") });

export function addApiKeyRoutes(route: Route, endpoint: Endpoint, { apiKeys }: Pick<Services, "apiKeys">): void {
  route("/keys", {
    GET: endpoint({
      id: "listKeys",
      tag: "Keys",
      summary: "Lists the account's keys, without their secrets.",
      answer: json("ApiKeyList", z.object({ data: z.array(apiKey.schema) })),
      query: z.object({ externalId: z.string().max(API_KEY_NAME_CHARS_MAX).optional().describe("The key with this external ID.") }),
      handler: async (ctx, { query }) => {
        const page = await apiKeys.list(ctx, { first: API_KEYS_PER_ACCOUNT_MAX }, query);
        return { data: page.items.map(toApiKey) };
      },
    }),
    POST: endpoint({
      id: "createKey",
      tag: "Keys",
      summary: "Creates a key. It is shown only once.",
      answer: createdApiKey,
      example: { body: { name: "My app", type: "secret", allowedModels: ["sandbox/text"], creditBudget: 5, expiresIn: 2_592_000 } },
      requires: requireKeyMaker,
      body: createApiKeyInput,
      handler: async (ctx, { body, exchange }) => {
        const created = await apiKeys.create(ctx, body);
        exchange.setHeaders({ "Cache-Control": "no-store" });
        return toCreatedApiKey(created.apiKey, created.key);
      },
    }),
  });
  route("/keys/:id", {
    GET: endpoint({
      id: "getKey",
      tag: "Keys",
      summary: "Returns a key, without its secret.",
      answer: apiKey,
      params: byId,
      handler: async (ctx, { params }) => toApiKey(await apiKeys.find(ctx, params.id)),
    }),
    PATCH: endpoint({
      id: "updateKey",
      tag: "Keys",
      summary: "Updates a key.",
      answer: apiKey,
      example: { body: { name: "My app", creditBudget: 10 } },
      params: byId,
      requires: requireKeyMaker,
      body: updateApiKeyInput,
      handler: async (ctx, { params, body }) => toApiKey(await apiKeys.update(ctx, params.id, body)),
    }),
    DELETE: endpoint({
      id: "revokeKey",
      tag: "Keys",
      summary: "Revokes a key and all keys that descend from it, on all gateways within a second.",
      answer: json("RevokedApiKey", z.object({ id: z.string(), revoked: z.literal(true) })),
      params: byId,
      handler: async (ctx, { params }) => {
        const { id } = await apiKeys.revoke(ctx, params.id);
        return { id, revoked: true as const };
      },
    }),
  });
  route("/key", {
    GET: endpoint({
      id: "getCurrentKey",
      tag: "Keys",
      summary: "Returns the calling key. Works with any key.",
      answer: currentApiKey,
      handler: async (ctx) => toCurrentApiKey(await apiKeys.current(ctx)),
    }),
  });
}

/** The answer of POST /keys, the only one with the key's value (docs/spec/keys.md#operations). */
function toCreatedApiKey(row: ApiKeyRow, key: string | null) {
  const { id, name, type, prefix, start, expiresAt, permissions, externalId, isManagement } = row;
  return { id, key, name, type, prefix, start, expiresAt, permissions, creditBudget: toCreditBudget(row), externalId, isManagement };
}

function toApiKey(row: ApiKeyRow) {
  const { id, name, type, prefix, start, expiresAt, permissions, allowedModels, createdAt, lastUsedAt } = row;
  const { parentId, origin, app, resource, redirectUrls, marginPercent, externalId, isManagement } = row;
  const creditBudget = toCreditBudget(row);
  return {
    ...{ id, name, type, prefix, start, expiresAt, permissions, creditBudget, allowedModels },
    ...{ createdAt, lastUsedAt, parentId, origin, app, resource, redirectUrls, marginPercent, externalId, isManagement },
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
