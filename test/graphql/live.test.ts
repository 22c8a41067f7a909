import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type AccountPermission,
  BalanceChangedDocument,
  ChatReceiptDocument,
  CreateApiKeyDocument,
  MyBalanceDocument,
  RevokeApiKeyDocument,
  UsageRecordedDocument,
} from "../operations/generated/graphql.js";
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
    // Holds are told too, and of a burst only the newest balance.
    while (amount(after.available) >= before || amount(after.held) > 0n) after = await told();

    expect(amount(after.available)).toBe(before - amount(receipts[0]?.cost));
    expect(after).toMatchObject({ isKeyBudget: false, tier: "0", crypto: "0" });
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
