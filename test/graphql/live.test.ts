import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type AccountPermission,
  ApiKeyChangedDocument,
  BalanceChangedDocument,
  ChatReceiptDocument,
  CreateApiKeyDocument,
  MyBalanceDocument,
  RevokeApiKeyDocument,
  UpdateApiKeyDocument,
  UsageRecordedDocument,
} from "../operations/generated/graphql.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, ok, subscribeSse, subscribeWebSocket, TRANSPORTS } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

async function chat(): Promise<{ generationId: string; cost: string }> {
  return ok(await execute(app, ChatReceiptDocument)).createChatCompletion.receipt;
}

async function createKey(...accountPermissions: AccountPermission[]) {
  return ok(await execute(app, CreateApiKeyDocument, { input: { name: "k", accountPermissions } })).createApiKey;
}

/** In nanocredits. */
function amount(credits: unknown): bigint {
  const [whole = "0", fraction = ""] = String(credits).split(".");
  return BigInt(whole + fraction.padEnd(9, "0"));
}

describe.each(TRANSPORTS)("live account data over %s", (_name, subscribe) => {
  it("shows a generation's usage row when it has been charged", async () => {
    const live = subscribe(app, UsageRecordedDocument);
    const next = live.next();
    const receipts = await repeatUntil(next, chat);

    const row = ok(await next).usageRecorded;

    expect(receipts).toContainEqual({ generationId: row.restId, cost: row.cost });
    expect(row).toMatchObject({ modelId: "acme/chat", status: "OK", usage: { inputTextTokens: 10, outputTextTokens: 4 } });
    live.leave();
  });

  it("shows the balance that a charge leaves", async () => {
    const live = subscribe(app, BalanceChangedDocument);
    const next = live.next();
    const receipts = await repeatUntil(next, chat);
    const before = await balance();
    await next;

    await chat();
    const told = async () => {
      const { balance } = ok(await live.next()).balanceChanged.account;
      if (!balance) throw new Error("The balance was not told.");
      return balance;
    };
    let after = await told();
    // Holds are events too, and a burst is reduced to its newest balance.
    while (amount(after.available) >= before || amount(after.held) > 0n) after = await told();

    expect(amount(after.available)).toBe(before - amount(receipts[0]?.cost));
    expect(after).toMatchObject({ isKeyBudget: false, tier: "0", crypto: "0" });
    live.leave();
  });

  it("reports changes of the account's keys", async () => {
    const live = subscribe(app, ApiKeyChangedDocument);
    const next = live.next();
    await repeatUntil(next, () => createKey());
    expect(ok(await next).apiKeyChanged).toMatchObject({ kind: "CREATED", apiKey: { name: "k", revokedAt: null } });
    const { id, restId } = (await createKey()).apiKey;
    const told = async () => {
      let change = ok(await live.next()).apiKeyChanged;
      // Those that were made until the subscription had begun.
      while (change.apiKeyId !== restId) change = ok(await live.next()).apiKeyChanged;
      return change;
    };
    expect(await told()).toMatchObject({ kind: "CREATED", apiKey: { restId } });

    await execute(app, UpdateApiKeyDocument, { input: { id, name: "renamed" } });
    expect(await told()).toMatchObject({ kind: "UPDATED", apiKey: { restId, name: "renamed" } });
    await execute(app, RevokeApiKeyDocument, { id });
    expect(await told()).toMatchObject({ kind: "REVOKED", apiKey: { restId, revokedAt: expect.any(String) } });
    live.leave();
  });

  it("reports the end of a key, and with it the end of its child keys", async () => {
    const root = await createKey("KEYS");
    const child = ok(await execute({ ...app, key: app.key }, CreateApiKeyDocument, { input: { name: "child" } })).createApiKey.apiKey;
    const { apiKey } = app.database.prisma;
    const parentId = root.apiKey.restId;
    await apiKey.update({ where: { id: child.restId }, data: { parentId, ancestorIds: [parentId] } });
    const live = subscribe(app, ApiKeyChangedDocument);
    const next = live.next();
    await repeatUntil(next, () => createKey());

    await apiKey.update({ where: { id: parentId }, data: { expiresAt: new Date(Date.now() + 50) } });
    await execute(app, UpdateApiKeyDocument, { input: { id: root.apiKey.id, name: "root" } });

    const ended: string[] = [];
    while (ended.length < 2) {
      const { kind, apiKeyId } = ok(await live.next()).apiKeyChanged;
      if (kind === "EXPIRED") ended.push(apiKeyId);
    }
    expect(ended).toEqual([parentId, child.restId]);
    live.leave();
  });

  it("reports keys to callers who may manage them, and no other account's keys", async () => {
    const { key } = await createKey("USAGE", "BALANCE", "PROFILE");
    expect((await subscribe({ ...app, key }, ApiKeyChangedDocument).rest()).flatMap(codes)).toEqual(["FORBIDDEN"]);
    const stranger = await createStranger(app);
    const live = subscribe({ ...app, key: stranger.key }, ApiKeyChangedDocument);
    const next = live.next();
    const made = await repeatUntil(next, async () => {
      await createKey();
      return ok(await execute({ ...app, key: stranger.key }, CreateApiKeyDocument, { input: { name: "mine" } })).createApiKey.apiKey;
    });

    expect(made.map(({ restId }) => restId)).toContain(ok(await next).apiKeyChanged.apiKeyId);
    live.leave();
  });

  it("answers FORBIDDEN to a key without the permission", async () => {
    const { key } = await createKey("PROFILE");

    const answers = [
      await subscribe({ ...app, key }, UsageRecordedDocument).rest(),
      await subscribe({ ...app, key }, BalanceChangedDocument).rest(),
    ];

    expect(answers.flat().flatMap(codes)).toEqual(["FORBIDDEN", "FORBIDDEN"]);
  });

  it("answers UNAUTHORIZED without a key", async () => {
    const answers = await subscribe({ ...app, key: null }, UsageRecordedDocument).rest();

    expect(answers.flatMap(codes)).toEqual(["UNAUTHORIZED"]);
  });

  it("answers one subscription with one field only", async () => {
    const answers = await subscribe(app, { query: "subscription { usageRecorded { id } balanceChanged { __typename } }" }).rest();

    expect(answers.flatMap(codes)).toEqual(["BAD_REQUEST"]);
  });
});

describe("a live key that is revoked", () => {
  it.each([
    ["ends its event streams with UNAUTHORIZED", subscribeSse, "UNAUTHORIZED"],
    ["closes its sockets with 4403", subscribeWebSocket, "4403"],
  ])("%s", async (_what, subscribe, code) => {
    const { key, apiKey } = await createKey("USAGE");
    const live = subscribe({ ...app, key }, UsageRecordedDocument);
    await repeatUntil(live.next(), chat);

    await execute(app, RevokeApiKeyDocument, { id: apiKey.id });

    expect((await live.rest()).flatMap(codes)).toEqual([code]);
  });
});

async function balance(): Promise<bigint> {
  return amount(ok(await execute(app, MyBalanceDocument)).me.balance?.available);
}

/** Does something again and again until the promise has settled: a subscription does not say when it has begun. */
async function repeatUntil<Result>(until: Promise<unknown>, act: () => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let isSettled = false;
  until.then(
    () => {
      isSettled = true;
    },
    () => {
      isSettled = true;
    },
  );
  while (!isSettled) results.push(await act());
  return results;
}
