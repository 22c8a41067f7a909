/** Idempotency-Key over GraphQL: the HTTP header, for a generation that is its operation's only field. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { IDEMPOTENT_ANSWER_BYTES_MAX } from "../../src/services/idempotency/limits.js";
import type { Database } from "../../src/store/database.js";
import { ChatDocument, type ChatMutation, CreateApiKeyDocument, WhoAmIDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { errorReply, json } from "../support/upstream-replies.js";
import { type Answer, codes, execute, executeText, ok, type Target } from "./client.js";

let app: TestApp;
let database: Database;
let key: string;

beforeAll(async () => {
  app = await createTestApp();
  database = app.database;
});
afterAll(async () => {
  const broken = await findBrokenInvariants(database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});
beforeEach(() => {
  key = randomUUID();
});

function ask(content = "Hello"): Promise<Answer<ChatMutation>> {
  return execute(keyed(), ChatDocument, { input: { messages: [{ role: "USER", content }] } });
}

function keyed(): Target {
  return { ...app, headers: { "Idempotency-Key": key } };
}

async function counted<Result>(work: () => Promise<Result>): Promise<{ result: Result; charges: number }> {
  const before = await database.prisma.usageRecord.count();
  const result = await work();
  return { result, charges: (await database.prisma.usageRecord.count()) - before };
}

describe("an Idempotency-Key on GraphQL", () => {
  it("has the same data replayed, unbilled", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Once." })));

    const { result, charges } = await counted(async () => [await ask(), await ask()]);

    const [first, replayed] = result;
    expect(first?.data).toMatchObject({ createChatCompletion: { completion: { choices: [{ message: { content: "Once." } }] } } });
    expect(first?.extensions?.idempotentReplay).toBeUndefined();
    expect(replayed).toMatchObject({ data: first?.data, extensions: { idempotentReplay: true } });
    expect(charges).toBe(1);
  });

  it("replays the receipt of data that is too large to keep", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "x".repeat(IDEMPOTENT_ANSWER_BYTES_MAX) })));

    const { result, charges } = await counted(async () => [await ask(), await ask()]);

    const [first, refused] = result;
    const { generationId, cost } = first?.data?.createChatCompletion?.receipt ?? {};
    expect(refused?.errors?.[0]).toMatchObject({
      message: expect.stringContaining("too large to keep"),
      extensions: { code: "CONFLICT", details: { generationId, cost } },
    });
    expect(charges).toBe(1);
  });

  it("is charged once for twenty operations at once", async () => {
    app.upstream.replyNext(json(chatCompletion(), { delayMs: 50 }));

    const { result, charges } = await counted(() => Promise.all(Array.from({ length: 20 }, () => ask())));

    expect(result.filter(({ data }) => data?.createChatCompletion).length).toBeGreaterThanOrEqual(1);
    for (const answer of result.filter(({ errors }) => errors)) expect(codes(answer)).toEqual(["CONFLICT"]);
    expect(charges).toBe(1);
  });

  it("is a conflict for other variables, and free after a failure that cost nothing", async () => {
    app.upstream.replyNext(errorReply(500));

    expect(codes(await ask())).toEqual(["UPSTREAM_ERROR"]);
    expect((await ask("Other")).errors).toBeUndefined();
    expect(codes(await ask())).toEqual(["CONFLICT"]);
  });

  it("is refused with a second root field, however it is nested, and with an invalid key", async () => {
    const askText = (query: string) => executeText(keyed(), { query });
    const chat = 'createChatCompletion(input: { messages: [{ role: USER, content: "Hi" }] }) { receipt { generationId } }';
    const { charges } = await counted(async () => {
      expect(codes(await askText(`mutation { one: ${chat} two: ${chat} }`))).toEqual(["BAD_REQUEST"]);
      expect(codes(await askText(`mutation { ...Two } fragment Two on Mutation { one: ${chat} ... { two: ${chat} } }`))).toEqual([
        "BAD_REQUEST",
      ]);
      key = "k".repeat(256);
      expect(codes(await ask())).toEqual(["BAD_REQUEST"]);
    });
    expect(charges).toBe(0);
  });

  it("counts a generation that several fragments share as one", async () => {
    const chat = 'createChatCompletion(input: { messages: [{ role: USER, content: "Hi" }] }) { receipt { generationId } }';
    app.upstream.replyNext(json(chatCompletion()));

    const { result, charges } = await counted(() =>
      executeText(keyed(), { query: `mutation { ...One ...One ${chat} } fragment One on Mutation { ${chat} }` }),
    );

    expect(result.errors).toBeUndefined();
    expect(charges).toBe(1);
  });

  it("is ignored for other operations", async () => {
    const create = async () => ok(await execute(keyed(), CreateApiKeyDocument, { input: { name: "a" } })).createApiKey;

    const [first, second] = [await create(), await create()];
    ok(await execute(keyed(), WhoAmIDocument));

    expect(second.key).not.toBe(first.key);
    expect(await database.prisma.idempotentRequest.count({ where: { key } })).toBe(0);
  });
});
