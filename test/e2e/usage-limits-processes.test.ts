/** Limits that renew and keys with external IDs, on two processes of one PostgreSQL database, which hear each other through it. */
import { rm } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, OWNER_KEY, type TestApp } from "../support/app.js";
import { createEmptyDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../support/postgres.js";
import { createPostgresDatabase, type SuiteDatabase } from "../support/suite-server.js";
import { json } from "../support/upstream-replies.js";
import { poolOf } from "./money.js";

const MODEL = {
  ...{ id: "acme/cents", modality: "text", upstream: "acme", upstreamModel: "cents", title: "Up to three cents" },
  prices: { promptTextPrice: "0", completionTextPrice: "0.01" },
};

describe.skipIf(!isPostgresInstalled)(isPostgresInstalled ? "two processes" : POSTGRES_ABSENT, () => {
  let database: SuiteDatabase;
  let upstream: FakeUpstream;
  let apps: TestApp[] = [];

  beforeAll(async () => {
    [database, upstream] = await Promise.all([createPostgresDatabase(), startFakeUpstream()]);
    for (let count = 0; count < 2; count += 1) {
      const dataDir = await createEmptyDir();
      const config = { databaseUrl: database.url, encryptionKey: "the same for both" };
      const app = await createTestApp({ upstream, dataDir, models: [MODEL], config });
      apps = [...apps, { ...app, close: () => app.close().then(() => rm(dataDir, { recursive: true })) }];
    }
  });
  afterAll(async () => {
    await Promise.all(apps.map((app) => app.close()));
    await Promise.all([upstream.close(), database.drop()]);
  });

  function post(index: number, key: string, path: string, body: object): Promise<Response> {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    return fetch(`${apps[index]?.baseUrl}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  }

  it("create a key of an external ID once for parallel requests, and again after it was revoked", async () => {
    interface Created {
      readonly id: string;
      readonly key: string | null;
    }
    const create = async (index: number, more: object = {}) => {
      const answer = await post(index % 2, OWNER_KEY, "/account/keys", { name: "provisioned", externalId: "app-1", ...more });
      return { status: answer.status, ...((await answer.json()) as Created) };
    };
    const createMany = () => Promise.all(Array.from({ length: 20 }, (_, index) => create(index)));

    const first = await createMany();

    expect(first.filter(({ key }) => key !== null)).toHaveLength(1);
    const ids = new Set(first.map(({ id }) => id));
    expect([ids.size, new Set(first.map(({ status }) => status))]).toEqual([1, new Set([200])]);
    expect([(await create(0, { name: "other" })).status, (await create(1, { creditBudget: 1 })).status]).toEqual([409, 409]);
    const headers = { authorization: `Bearer ${OWNER_KEY}` };
    await fetch(`${apps[1]?.baseUrl}/account/keys/${[...ids][0]}`, { method: "DELETE", headers });
    const second = await createMany();
    expect(second.filter(({ key }) => key !== null)).toHaveLength(1);
    expect(new Set(second.map(({ id }) => id)).size).toBe(1);
    expect(ids.has(second[0]?.id ?? "")).toBe(false);
  });

  it("never pass a limit by forty parallel requests at its end, and use it up to the last cent", async () => {
    upstream.replyNext(...[1, 2, 3, 1, 2, 3, 1, 2, 3, 1].map((tokens) => json(chatCompletion({ usage: wireUsage(1, tokens) }))));
    upstream.replyAlways(json(chatCompletion({ usage: wireUsage(1, 1) })));
    const { id: apiKeyId, key } = (await (await post(0, OWNER_KEY, "/account/keys", { name: "limited" })).json()) as Record<string, string>;
    const created = await post(1, OWNER_KEY, "/account/usage-limits", { apiKeyId, metric: "credits", amount: "0.5", period: "month" });
    expect(created.status).toBe(200);
    const chat = (index: number, most: number) =>
      post(index % 2, key ?? "", "/v1/chat/completions", {
        model: "acme/cents",
        max_tokens: most,
        messages: [{ role: "user", content: "Hi" }],
      }).then(async (answer) => {
        await answer.text();
        return answer.status;
      });
    const spent = async () => {
      const { rows } = await poolOf(apps[0] as TestApp).query(
        "SELECT coalesce(sum(cost_nanocredits), 0)::text AS spent FROM usage_record WHERE api_key_id = $1",
        [apiKeyId],
      );
      return Number(rows[0].spent) / 1e7;
    };

    const statuses = await Promise.all(Array.from({ length: 40 }, (_, index) => chat(index, 3)));

    expect(new Set(statuses)).toEqual(new Set([200, 402]));
    expect(await spent()).toBeLessThanOrEqual(50);
    for (let index = 0; (await chat(index, 1)) === 200; index += 1) expect(await spent()).toBeLessThanOrEqual(50);
    expect(await spent()).toBe(50);
    expect([await chat(0, 1), await chat(1, 1)]).toEqual([402, 402]);
    await expect.poll(() => findBrokenInvariants(poolOf(apps[0] as TestApp), { isIdle: true })).toEqual({});
  });
});
