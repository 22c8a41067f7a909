/** Rows that no request could make in a test's time: other accounts, and long histories. */
import { randomUUID } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { createApiKeyText, startOfApiKey } from "../../src/lib/api-key-format.js";
import type { Database } from "../../src/store/database.js";
import type { FailedRequestCreateManyInput, UsageRecordCreateManyInput } from "../../src/store/generated/prisma/models.js";
import type { TestApp } from "../support/app.js";

/** Another account with a secret key of every permission. */
export async function createStranger(app: TestApp): Promise<{ readonly key: string; readonly keyId: string }> {
  const key = createApiKeyText("sk");
  const keyId = uuidv7();
  const keyCache = app.infrastructure.keyCache;
  await databaseOf(app).prisma.account.create({
    data: {
      id: uuidv7(),
      handle: `stranger-${randomUUID()}`,
      apiKeys: {
        create: {
          id: keyId,
          hash: new Uint8Array(keyCache.hash(key)),
          type: "secret",
          name: "stranger",
          start: startOfApiKey(key),
          permissions: ["profile", "balance", "usage", "keys"],
        },
      },
    },
  });
  return { key, keyId };
}

/** `count` usage rows of one key, a second apart, the newest at `newest`; answers their ids, newest first. */
export async function createUsage(
  app: TestApp,
  apiKeyId: string,
  count: number,
  newest: Date,
  more: Partial<UsageRecordCreateManyInput> = {},
): Promise<string[]> {
  const { prisma } = databaseOf(app);
  const { accountId, name } = await prisma.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } });
  const rows = Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    accountId,
    apiKeyId,
    apiKeyName: name,
    apiKeyType: "secret" as const,
    timestamp: new Date(newest.getTime() - index * 1000),
    modality: "text" as const,
    model: "acme/chat",
    modelUsed: "acme/chat",
    meterSource: "pack" as const,
    costNanocredits: 1n,
    responseTimeMs: 5,
    status: "ok" as const,
    usageSource: "provider" as const,
    ...more,
  }));
  // Prisma would send more in a transaction of several statements, and take its time between them.
  for (let from = 0; from < rows.length; from += 1_000) await prisma.usageRecord.createMany({ data: rows.slice(from, from + 1_000) });
  return rows.map(({ id }) => id);
}

/** `count` failed requests of one key, a second apart, the newest at `newest`; answers their ids, newest first. */
export async function createFailures(
  app: TestApp,
  apiKeyId: string,
  count: number,
  newest: Date,
  more: Partial<FailedRequestCreateManyInput> = {},
): Promise<string[]> {
  const { prisma } = databaseOf(app);
  const { accountId, name } = await prisma.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } });
  const rows = Array.from({ length: count }, (_, index) => ({
    id: randomUUID(),
    accountId,
    apiKeyId,
    apiKeyName: name,
    requestId: randomUUID(),
    timestamp: new Date(newest.getTime() - index * 1000),
    route: "/v1/chat/completions",
    status: 400,
    code: "BAD_REQUEST",
    message: "messages: is required",
    milliseconds: 1,
    ...more,
  }));
  for (let from = 0; from < rows.length; from += 1_000) await prisma.failedRequest.createMany({ data: rows.slice(from, from + 1_000) });
  return rows.map(({ id }) => id);
}

export async function expireKey(app: TestApp, id: string): Promise<void> {
  await databaseOf(app).prisma.apiKey.update({ where: { id }, data: { expiresAt: new Date(Date.now() - 1000) } });
}

function databaseOf(app: TestApp): Database {
  return app.database;
}
