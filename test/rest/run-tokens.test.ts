/** Run tokens (docs/spec/agents.md#run-tokens): what an agent at work may ask, on both faces, in whose name, and for how long. */

import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { KeyCaller, SessionCaller } from "../../src/context.js";
import { RUN_TOKEN_MS } from "../../src/limits.js";
import { findSecrets } from "../../src/services/safety/secrets.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { codes, execute, TRANSPORTS } from "../graphql/client.js";
import { type ChatCompletionInput, ListOwnMediaDocument, StreamChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { runTokensOf } from "../support/secrets.js";
import { MovedClock } from "../support/webhooks.js";
import { type Client, createClient, expectEnvelope, waitForUsage } from "./client.js";

const CREDIT = 1_000_000_000n;
const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "Hi" }] };

const clock = new MovedClock();
let app: TestApp;
let payer: Payer;
let parent: string;
let token: string;
let agent: Client;

beforeAll(async () => {
  app = await createTestApp({ clock });
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: CREDIT });
  parent = uuidv7();
  token = issue((await app.services.apiKeys.authenticate(payer.key)) as KeyCaller);
  agent = createClient(app.baseUrl, token);
});
afterAll(() => app.close());

function issue(caller: KeyCaller | SessionCaller): string {
  return runTokensOf(app, clock).issue(caller, { parentRequestId: parent, maxCost: CREDIT });
}

describe("an agent at work", () => {
  it("generates for its caller, and the row says for which generation", async () => {
    const answer = await agent.post("/v1/chat/completions", CHAT);

    expect(answer.status).toBe(200);
    const row = await waitForUsage(createClient(app.baseUrl, payer.key), () => true);
    expect(row).toMatchObject({ request_id: answer.headers.get("x-generation-id"), parent_request_id: parent, api_key_id: payer.apiKeyId });
    expect(row.cost_usd).toBeGreaterThan(0);
  });

  it("may send its token in the query, and lists models", async () => {
    const answer = await agent.get(`/v1/models?key=${token}`, { key: null });

    expect(answer.status).toBe(200);
    expect(answer.text).toContain("acme/chat");
  });

  it.each(TRANSPORTS)("generates over %s", async (_name, subscribe) => {
    const input: ChatCompletionInput = { model: "acme/chat", messages: [{ role: "USER", content: "Hi" }] };

    const results = await subscribe({ ...app, key: token }, StreamChatDocument, { input }).rest();

    expect(results.flatMap(({ errors = [] }) => errors)).toEqual([]);
    const row = await databaseOf(app).prisma.usageRecord.findFirstOrThrow({ where: { accountId: payer.accountId } });
    expect(row.parentRequestId).toBe(parent);
  });

  it("can neither use the account's files nor learn its owner", async () => {
    const upload = await agent.post("/media/upload", { data: "aGk=" });
    const announced = await agent.post("/media/upload", { contentType: "text/plain", size: 1 });

    expectEnvelope(upload, 403, "FORBIDDEN");
    expectEnvelope(announced, 403, "FORBIDDEN");
    expectEnvelope(await agent.get("/media/media"), 403, "FORBIDDEN");
    expectEnvelope(await agent.get("/api/device/userinfo"), 403, "FORBIDDEN");
    expectEnvelope(await agent.request("DELETE", `/media/media/${uuidv7()}`), 403, "FORBIDDEN");
    expect(codes(await execute({ ...app, key: token }, ListOwnMediaDocument, { first: 1 }))).toEqual(["FORBIDDEN"]);
  });

  it("sees the jobs of its own run, and not its caller's", async () => {
    const body = { model: "sandbox/video", prompt: "[fail 500]", seconds: "1" };
    const own = (await agent.post("/v1/videos", body)).json<{ id: string }>();
    const other = (await createClient(app.baseUrl, payer.key).post("/v1/videos", body)).json<{ id: string }>();

    expect((await agent.get(`/v1/videos/${own.id}`)).status).toBe(200);
    expectEnvelope(await agent.get(`/v1/videos/${other.id}`), 404, "NOT_FOUND");
  });

  it("has separate Idempotency-Keys", async () => {
    const headers = { "Idempotency-Key": "same" };

    const own = await agent.post("/v1/chat/completions", CHAT, { headers });
    const callers = await createClient(app.baseUrl, payer.key).post("/v1/chat/completions", CHAT, { headers });
    const again = await agent.post("/v1/chat/completions", CHAT, { headers });

    expect(callers.headers.get("x-idempotent-replay")).toBeNull();
    expect(again.headers.get("x-idempotent-replay")).toBe("true");
    expect(again.headers.get("x-generation-id")).toBe(own.headers.get("x-generation-id"));
  });

  it("works for a signed-in person as well, as long as the session lasts", async () => {
    const sessionId = uuidv7();
    const { session } = databaseOf(app).prisma;
    await session.create({
      data: { id: sessionId, accountId: payer.accountId, token: sessionId, expiresAt: new Date(clock.now().getTime() + 60_000) },
    });
    const person = createClient(app.baseUrl, issue({ kind: "session", accountId: payer.accountId, isOperator: false, sessionId }));

    expect((await person.post("/v1/chat/completions", CHAT)).status).toBe(200);
    expectEnvelope(await person.get("/account/keys"), 403, "FORBIDDEN");
    await app.services.sessions.end(payer.accountId);
    expectEnvelope(await person.post("/v1/chat/completions", CHAT), 401, "UNAUTHORIZED");
  });
});

describe("a run token", () => {
  it("is worth nothing from its end on", async () => {
    clock.stop();
    const key = issue((await app.services.apiKeys.authenticate(payer.key)) as KeyCaller);

    clock.move(RUN_TOKEN_MS - 1);
    expect((await agent.get("/v1/models", { key })).status).toBe(200);
    clock.move(1);
    expectEnvelope(await agent.get("/v1/models", { key }), 401, "UNAUTHORIZED");
  });

  it("ends with the key that it represents", async () => {
    expect((await agent.get("/v1/models")).status).toBe(200);

    await app.services.apiKeys.revokeGranted(payer.accountId, payer.apiKeyId);

    expectEnvelope(await agent.get("/v1/models"), 401, "UNAUTHORIZED");
  });

  it.each([
    ["changed", () => `${token.slice(0, 30)}${token[30] === "A" ? "B" : "A"}${token.slice(31)}`],
    ["cut", () => token.slice(0, -1)],
    ["lengthened", () => `${token}A`],
    ["of nothing", () => "ag_"],
    ["of no base64url", () => `ag_${"!".repeat(106)}`],
    ["without a valid signature", () => `ag_${Buffer.alloc(79).toString("base64url")}`],
  ])("that is %s is refused", async (_name, make) => {
    expectEnvelope(await agent.get("/v1/models", { key: make() }), 401, "UNAUTHORIZED");
  });

  it("is a secret to the safety features, and in no log line", async () => {
    await agent.get(`/v1/models?key=${token}`, { key: null });
    await agent.post("/v1/chat/completions", { model: "acme/none" });

    expect(findSecrets(`Use ${token} for it.`)).toMatchObject([{ start: 4, end: 4 + token.length }]);
    expect(JSON.stringify(app.logs)).not.toContain(token);
  });
});
