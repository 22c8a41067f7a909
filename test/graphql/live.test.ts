import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, field, type Loose, subscribeSse, subscribeWebSocket, TRANSPORTS } from "./client.js";

const USAGE = "subscription { usageRecorded { id model status cost apiKeyName usage { inputTextTokens outputTextTokens } } }";
const BALANCE = "subscription { balanceChanged { available tier crypto pack held isKeyBudget } }";
const CHAT = /* GraphQL */ `
  mutation {
    createChatCompletion(input: { model: "acme/chat", messages: [{ role: USER, content: "Hi" }] }) { receipt { generationId cost } }
  }
`;

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

async function chat(): Promise<{ generationId: string; cost: string }> {
  return field<{ receipt: { generationId: string; cost: string } }>(await execute(app, CHAT), "createChatCompletion").receipt;
}

async function keyWith(permissions: string): Promise<string> {
  const created = await execute(app, `mutation { createApiKey(input: { name: "k", accountPermissions: [${permissions}] }) { key } }`);
  return field<{ key: string }>(created, "createApiKey").key;
}

/** In nanocredits. */
function amount(credits: unknown): bigint {
  const [whole = "0", fraction = ""] = String(credits).split(".");
  return BigInt(whole + fraction.padEnd(9, "0"));
}

describe.each(TRANSPORTS)("live account data over %s", (_name, subscribe) => {
  it("shows a generation's usage row when it has been charged", async () => {
    const live = subscribe(app, { query: USAGE });
    const next = live.next();
    const receipts = await repeatUntil(next, chat);

    const row = (await next)?.data?.usageRecorded as Loose;

    expect(receipts).toContainEqual({ generationId: row.id, cost: row.cost });
    expect(row).toMatchObject({ model: "acme/chat", status: "OK", usage: { inputTextTokens: 10, outputTextTokens: 4 } });
    live.leave();
  });

  it("shows the balance that a charge leaves", async () => {
    const live = subscribe(app, { query: BALANCE });
    const next = live.next();
    const receipts = await repeatUntil(next, chat);
    const before = await balance();
    await next;

    await chat();
    let after = (await live.next())?.data?.balanceChanged as Loose;
    // Holds are told too, and of a burst only the newest balance.
    while (amount(after.available) >= before || amount(after.held) > 0n) after = (await live.next())?.data?.balanceChanged as Loose;

    expect(amount(after.available)).toBe(before - amount(receipts[0]?.cost));
    expect(after).toMatchObject({ isKeyBudget: false, tier: "0", crypto: "0" });
    live.leave();
  });

  it("answers FORBIDDEN to a key without the permission", async () => {
    const key = await keyWith("PROFILE");

    const answers = [
      await subscribe({ ...app, key }, { query: USAGE }).rest(),
      await subscribe({ ...app, key }, { query: BALANCE }).rest(),
    ];

    expect(answers.flat().flatMap(codes)).toEqual(["FORBIDDEN", "FORBIDDEN"]);
  });

  it("answers UNAUTHORIZED without a key", async () => {
    const answers = await subscribe({ ...app, key: null }, { query: USAGE }).rest();

    expect(answers.flatMap(codes)).toEqual(["UNAUTHORIZED"]);
  });

  it("answers one subscription with one field only", async () => {
    const answers = await subscribe(app, { query: "subscription { usageRecorded { id } balanceChanged { available } }" }).rest();

    expect(answers.flatMap(codes)).toEqual(["BAD_REQUEST"]);
  });
});

describe("a live key that is revoked", () => {
  async function revocable(): Promise<{ key: string; id: string }> {
    const answer = await execute(app, 'mutation { createApiKey(input: { name: "k", accountPermissions: [USAGE] }) { key apiKey { id } } }');
    const created = field<{ key: string; apiKey: { id: string } }>(answer, "createApiKey");
    return { key: created.key, id: created.apiKey.id };
  }

  it.each([
    ["ends its event streams with UNAUTHORIZED", subscribeSse, "UNAUTHORIZED"],
    ["closes its sockets with 4403", subscribeWebSocket, "4403"],
  ])("%s", async (_what, subscribe, code) => {
    const { key, id } = await revocable();
    const live = subscribe({ ...app, key }, { query: USAGE });
    await repeatUntil(live.next(), chat);

    await execute(app, "mutation ($id: ID!) { revokeApiKey(input: { id: $id }) { id } }", { id });

    expect((await live.rest()).flatMap(codes)).toEqual([code]);
  });
});

async function balance(): Promise<bigint> {
  const me = field<{ balance: { available: string } }>(await execute(app, "{ me { balance { available } } }"), "me");
  return amount(me.balance.available);
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
