/** Limits that renew, in GraphQL. */
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  CreateUsageLimitDocument,
  DeleteUsageLimitDocument,
  ModelLimitsDocument,
  MyUsageLimitsDocument,
  UpdateUsageLimitDocument,
  UsageLimitReachedDocument,
} from "../operations/generated/graphql.js";
import { createKey } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { execute, ok, subscribeSse } from "./client.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

it("creates, lists, changes, announces and deletes a limit of a key", async () => {
  const { id: apiKeyId, key } = await createKey(app);
  const live = subscribeSse(app, UsageLimitReachedDocument, {});
  const input = { apiKeyId, metric: "REQUESTS", amount: "2", minutes: 5, rolling: true, alertAt: [50] } as const;

  const { usageLimit } = ok(await execute(app, CreateUsageLimitDocument, { input })).createUsageLimit ?? {};

  expect(usageLimit).toMatchObject({ apiKeyId, metric: "REQUESTS", amount: "2", minutes: 5, isRolling: true, alertAt: [50], raise: null });
  const id = usageLimit?.id ?? "";
  expect(ok(await execute(app, MyUsageLimitsDocument, { apiKeyId })).me.usageLimits).toEqual({ totalCount: 1, nodes: [usageLimit] });
  const body = JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Hi" }] });
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  expect((await fetch(`${app.baseUrl}/v1/chat/completions`, { method: "POST", headers, body })).status).toBe(200);
  expect(ok(await live.next()).usageLimitReached).toMatchObject({ usageLimitId: usageLimit?.restId, apiKeyId, percent: 50, spent: "1" });
  const changed = ok(await execute(app, UpdateUsageLimitDocument, { input: { id, amount: "100" } })).updateUsageLimit?.usageLimit;
  expect(changed).toMatchObject({ amount: "100", usage: { spent: "1", remaining: "99", percent: 1 } });
  expect(ok(await execute(app, DeleteUsageLimitDocument, { input: { id } })).deleteUsageLimit?.deletedId).toBe(usageLimit?.restId);
});

it("creates, lists and deletes a limit of a model, for operators", async () => {
  const input = { allAccounts: true, model: "acme/chat", metric: "REQUESTS", amount: "600", minutes: 1, rolling: true } as const;

  const { usageLimit } = ok(await execute(app, CreateUsageLimitDocument, { input })).createUsageLimit ?? {};

  expect(usageLimit).toMatchObject({ apiKeyId: null, modelId: "acme/chat", metric: "REQUESTS", amount: "600" });
  const { modelLimits } = ok(await execute(app, ModelLimitsDocument, {}));
  expect(modelLimits).toEqual({ totalCount: 1, nodes: [{ ...usageLimit, isOfAllAccounts: true }] });
  expect(ok(await execute(app, MyUsageLimitsDocument, {})).me.usageLimits?.totalCount).toBe(0);
  expect(ok(await execute(app, DeleteUsageLimitDocument, { input: { id: usageLimit?.id ?? "" } })).deleteUsageLimit).not.toBeNull();
});
