/** A suspended account: every credential of it is refused on both faces, and running generations end, charged for the delivered part. */
import { randomUUID } from "node:crypto";
import { createClient as createSocketClient } from "graphql-ws";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { WebSocket } from "ws";
import type { KeyCaller } from "../../src/context.js";
import { countChatTokens } from "../../src/formats/openai-chat/count.js";
import { countTextTokens } from "../../src/lib/tokenizer.js";
import { RunningGenerations } from "../../src/services/generation/cancellation.js";
import { SuspensionWatch } from "../../src/services/generation/suspension-watch.js";
import { WebhookQueue } from "../../src/services/webhooks/queue.js";
import type { Database } from "../../src/store/database.js";
import { createMemoryEvents } from "../../src/store/events.js";
import type { Prisma } from "../../src/store/generated/prisma/client.js";
import { booksWith, CREDIT, chat, closeBooks, createPayer, databaseOf, type Payer, summarize } from "../e2e/money.js";
import {
  GenerationJobByIdDocument,
  MyIdDocument,
  RestoreAccountDocument,
  StartVideoDocument,
  StreamChatDocument,
  SuspendAccountDocument,
  SuspendedAccountsDocument,
  UsageRecordedDocument,
} from "../operations/generated/graphql.js";
import { createClient } from "../rest/client.js";
import { createTestApp, OWNER_KEY, type TestApp } from "../support/app.js";
import { registerModel } from "../support/community-models.js";
import { silentLog } from "../support/database.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { chatChunk } from "../support/openai-bodies.js";
import { PageBrowser } from "../support/page-browser.js";
import { runTokensOf } from "../support/secrets.js";
import { giveCredits, signedIn, signIn, signUp } from "../support/sign-in.js";
import { hang, type Reply, sse } from "../support/upstream-replies.js";
import { visit } from "../support/visitor.js";
import { codes, execute, ok, post, subscribeWebSocket, subscribeWith, TRANSPORTS, textOf } from "./client.js";

const PROMPT_PRICE = 1_000n;
const COMPLETION_PRICE = 2_000n;
const REASON = "A leaked key.";

let app: TestApp;
let payer: Payer;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: 10n * CREDIT, permissions: ["balance", "usage", "keys"] });
});
afterAll(() => app.close());

const suspend = (accountId: string, key: string | null = app.key, reason = REASON) =>
  execute({ ...app, key }, SuspendAccountDocument, { input: { accountId, reason } });
const restore = (accountId: string) => execute(app, RestoreAccountDocument, { input: { accountId } });

function unfinished(pieces: readonly string[]): Reply {
  const deltas = pieces.map((content) => chatChunk({ content }));
  return sse([chatChunk({ role: "assistant", content: "" }), ...deltas], { end: "hang" });
}

async function refusalOf(response: Response | Promise<Response>) {
  const answered = await response;
  const { error } = (await answered.json()) as { error: { code: string; message: string; type: string } };
  return { status: answered.status, code: error.code, type: error.type, message: error.message };
}

const SUSPENDED = {
  status: 403,
  code: "ACCOUNT_SUSPENDED",
  type: "permission_error",
  message: "This account is suspended: its keys and sessions are refused. Ask the operator of this gateway to restore it.",
};

describe("the credentials of a suspended account", () => {
  it("are refused as keys on every route, though they were accepted before", async () => {
    const headers = { Authorization: `Bearer ${payer.key}` };
    expect((await fetch(`${app.baseUrl}/account/key`, { headers })).status).toBe(200);

    ok(await suspend(payer.accountId));

    for (const path of ["/account/key", "/account/balance", "/v1/models", `/text/hi?model=acme/chat`, "/media/media"]) {
      expect(await refusalOf(fetch(app.baseUrl + path, { headers })), path).toEqual(SUSPENDED);
    }
    expect(await refusalOf(fetch(`${app.baseUrl}/account/key?key=${payer.key}`))).toEqual(SUSPENDED);
    expect(await refusalOf(chat(app, payer, { model: "acme/chat" }))).toEqual(SUSPENDED);
    expect(codes(await execute({ ...app, key: payer.key }, MyIdDocument))).toEqual(["ACCOUNT_SUSPENDED"]);
    const live = subscribeWebSocket({ ...app, key: payer.key }, UsageRecordedDocument);
    expect(codes((await live.next()) ?? {})).toEqual(["4403"]);
    const closed = await post({ ...app, key: payer.key }, { query: textOf(UsageRecordedDocument) }, { accept: "text/event-stream" });
    expect(await closed.text()).toContain("ACCOUNT_SUSPENDED");
  });

  it("are refused as sessions, and its owner cannot sign in", async () => {
    const person = await signUp(app);
    const read = () => fetch(`${app.baseUrl}/account/profile`, { headers: signedIn(person) });
    expect((await read()).status).toBe(200);

    ok(await suspend(person.accountId));

    expect(await refusalOf(read())).toEqual(SUSPENDED);
    await expect(signIn(app, person)).rejects.toMatchObject({ code: "ACCOUNT_SUSPENDED" });
    expect(await databaseOf(app).prisma.session.count({ where: { accountId: person.accountId } })).toBe(1);
    const browser = new PageBrowser(app.baseUrl);
    browser.cookies.set(...(person.cookie.split("=", 2) as [string, string]));
    expect((await browser.get("/sign-in")).status).toBe(200);
    const page = await browser.submit("/sign-in", { email: person.email, password: person.password });
    expect([page.status, page.text]).toEqual([403, expect.stringContaining(SUSPENDED.message)]);
  });

  it("are refused as run tokens", async () => {
    const caller = (await app.services.apiKeys.authenticate(payer.key)) as KeyCaller;
    const token = runTokensOf(app).issue(caller, { parentRequestId: randomUUID(), maxCost: CREDIT });
    const models = () => fetch(`${app.baseUrl}/v1/models`, { headers: { Authorization: `Bearer ${token}` } });
    expect((await models()).status).toBe(200);

    ok(await suspend(payer.accountId));

    expect(await refusalOf(models())).toEqual(SUSPENDED);
  });

  it("get no key for a device that was approved before", async () => {
    const person = await signUp(app, { credits: 1 });
    const client = createClient(app.baseUrl, null);
    const device = (await client.post("/api/device/code", {})).json<{ device_code: string; user_code: string }>();
    const visitor = visit(app.baseUrl, person);
    const confirming = await visitor.send(await visitor.open("/device"), "/device", { user_code: device.user_code });
    await visitor.send(confirming, "/device/decision", { decision: "approve" });
    ok(await suspend(person.accountId));

    const answer = await client.post("/api/device/token", { device_code: device.device_code });

    expect([answer.status, answer.json()]).toEqual([400, { error: "access_denied", error_description: SUSPENDED.message }]);
    ok(await restore(person.accountId));
    expect((await client.post("/api/device/token", { device_code: device.device_code })).status).toBe(200);
  });

  it("are accepted again when the account is restored", async () => {
    ok(await suspend(payer.accountId));
    expect((await chat(app, payer, { model: "acme/chat" })).status).toBe(403);

    expect(ok(await restore(payer.accountId)).restoreAccount.account).toMatchObject({ suspendedAt: null, suspensionReason: null });

    expect((await chat(app, payer, { model: "acme/chat" })).status).toBe(200);
    await closeBooks(app, payer);
  });
});

describe("a generation of a suspended account", () => {
  it("ends as a stream with an error, charged for the delivered part", async () => {
    app.upstream.replyNext(unfinished([" alpha", " beta"]));
    const response = await chat(app, payer, { model: "acme/chat", stream: true });
    const request = app.upstream.requests.at(-1);
    let text = "";
    let isSuspended = false;
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      if (isSuspended || summarize(text.slice(0, text.lastIndexOf("\n\n") + 2)).content !== " alpha beta") continue;
      isSuspended = true;
      ok(await suspend(payer.accountId));
    }

    const ended = summarize(text);
    expect(ended).toMatchObject({ content: " alpha beta", isDone: false, error: { code: "ACCOUNT_SUSPENDED" } });
    await request?.closedByClient;
    const { rows } = await booksWith(app, payer, 1);
    const [promptTokens, outputTokens] = [countChatTokens([{ role: "user", content: "Hello" }]), countTextTokens(" alpha beta")];
    expect(rows).toMatchObject([
      {
        status: "cancelled",
        usageSource: "partial",
        costNanocredits: BigInt(promptTokens) * PROMPT_PRICE + BigInt(outputTokens) * COMPLETION_PRICE,
      },
    ]);
  });

  it("ends as a whole answer, at no cost", async () => {
    app.upstream.replyNext(hang());
    const calls = app.upstream.requests.length;
    const answering = chat(app, payer, { model: "acme/chat" });
    await expect.poll(() => app.upstream.requests.length).toBe(calls + 1);

    ok(await suspend(payer.accountId));

    expect(await refusalOf(answering)).toEqual(SUSPENDED);
    const { rows, account } = await closeBooks(app, payer);
    expect([rows, account.buckets.pack]).toEqual([[], 10n * CREDIT]);
  });

  it.each(TRANSPORTS)("ends as a chat over %s", async (_name, subscribe) => {
    app.upstream.replyNext(unfinished([" alpha"]));
    const input = { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hello" }] };
    const live = subscribe({ ...app, key: payer.key }, StreamChatDocument, { input });
    for (let text = ""; !text.includes("alpha"); text += JSON.stringify(await live.next()));

    ok(await suspend(payer.accountId));

    const rest = await live.rest();
    expect(codes(rest.at(-1) ?? {})).toEqual(["ACCOUNT_SUSPENDED"]);
    await booksWith(app, payer, 1);
  });

  it("ends as a chat of a signed-in browser over a WebSocket, with its error", async () => {
    const person = await signUp(app);
    await giveCredits(app, person.accountId, 1);
    app.upstream.replyNext(unfinished([" alpha"]));
    const { cookie } = person;
    class BrowserSocket extends WebSocket {
      constructor(address: string, protocol: string) {
        super(address, protocol, { headers: { cookie, origin: app.baseUrl } });
      }
    }
    const client = createSocketClient({ url: app.wsUrl, webSocketImpl: BrowserSocket, retryAttempts: 0, lazy: true });
    onTestFinished(() => void client.dispose());
    const live = subscribeWith(client, StreamChatDocument, {
      input: { model: "acme/chat", messages: [{ role: "USER" as const, content: "Hello" }] },
    });
    for (let text = ""; !text.includes("alpha"); text += JSON.stringify(await live.next()));

    ok(await suspend(person.accountId));

    const rest = await live.rest();
    expect(rest.flatMap((answer) => codes(answer))).toContain("ACCOUNT_SUSPENDED");
  });

  it.each(TRANSPORTS)("ends as a subscription over %s", async (name, subscribe) => {
    const live = subscribe({ ...app, key: payer.key }, UsageRecordedDocument);
    const next = live.next();
    for (let isLive = false; !isLive; ) {
      await chat(app, payer, { model: "acme/chat" });
      isLive = await Promise.race([next.then(() => true), new Promise<false>((resolve) => setImmediate(() => resolve(false)))]);
    }

    ok(await suspend(payer.accountId));

    const last = (await live.rest()).at(-1);
    expect(codes(last ?? {})).toEqual([name.includes("WebSocket") ? "4403" : "ACCOUNT_SUSPENDED"]);
  });

  it("fails as a job, at no cost", async () => {
    const clip = await readClip(3);
    const videos = createFakeVideos({ clip, gate: new Promise<void>(() => undefined) });
    app.upstream.replyAlways(videos.reply);
    const me = { ...app, key: payer.key };
    const { startVideo } = ok(await execute(me, StartVideoDocument, { input: { prompt: "a mill" } }));
    const { restId: id } = startVideo.job;

    ok(await suspend(payer.accountId));

    const { prisma } = databaseOf(app);
    await expect
      .poll(async () => (await prisma.generationJob.findFirst({ where: { accountId: payer.accountId } }))?.errorCode)
      .toBe("ACCOUNT_SUSPENDED");
    ok(await restore(payer.accountId));
    expect(ok(await execute(me, GenerationJobByIdDocument, { id })).generationJob).toMatchObject({ status: "FAILED" });
    const { rows } = await closeBooks(app, payer);
    expect(rows).toEqual([]);
  });

  it("does not begin for a caller who was authenticated just before", async () => {
    const caller = (await app.services.apiKeys.authenticate(payer.key)) as KeyCaller;
    ok(await suspend(payer.accountId));
    const calls = app.upstream.requests.length;

    const { events } = app.services.chat.stream(
      { caller, requestId: "test", clientAddress: "127.0.0.1", signal: new AbortController().signal, log: console as never },
      { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] } as never,
    );

    await expect(events.next()).rejects.toMatchObject({ code: "ACCOUNT_SUSPENDED" });
    expect(app.upstream.requests.length).toBe(calls);
    await closeBooks(app, payer);
  });
});

describe("an account that is suspended", () => {
  it("has no model in the catalog, and none to call, until it is restored", async () => {
    const { modelId } = await registerModel(
      app,
      { ...payer, handle: `payer-${payer.accountId}`, keyId: payer.apiKeyId },
      { visibility: "public" },
    );
    const caller = await createPayer(app, { pack: CREDIT });
    /** An unknown model is a bad request. */
    const isKnown = async () => (await chat(app, caller, { model: modelId })).status !== 400;
    const isListed = async () => (await (await fetch(`${app.baseUrl}/v1/models`)).text()).includes(modelId);
    const before = [await isKnown(), await isListed()];

    ok(await suspend(payer.accountId));
    await app.infrastructure.communityModels.upToDate();
    const suspended = [await isKnown(), await isListed()];
    ok(await restore(payer.accountId));
    await app.infrastructure.communityModels.upToDate();

    expect([before, suspended]).toEqual([
      [true, true],
      [false, false],
    ]);
    expect([await isKnown(), await isListed()]).toEqual([true, true]);
  });

  it("has webhooks that wait until it is restored", async () => {
    const { prisma } = databaseOf(app);
    // The gateway of this test does not send it, because it is due in the future.
    const queue = new WebhookQueue(databaseOf(app), { now: () => new Date("2101-01-01") });
    const endpointId = randomUUID();
    await prisma.webhookEndpoint.create({
      data: { id: endpointId, accountId: payer.accountId, url: "https://waiting.example/hook", secret: Buffer.alloc(40), events: [] },
    });
    ok(await suspend(payer.accountId));
    await prisma.webhookDelivery.create({
      data: { id: randomUUID(), endpointId, event: "ping", eventKey: "1", payload: {}, nextAttemptAt: new Date("2100-01-01") },
    });
    const dueHere = async () => (await queue.findDue([], 1_000)).filter(({ host }) => host === "waiting.example");
    const { id } = await prisma.webhookDelivery.findFirstOrThrow({ where: { endpointId } });

    expect([await dueHere(), await queue.lease([id])]).toEqual([[], []]);
    await prisma.account.update({ where: { id: payer.accountId }, data: { suspendedAt: null } });
    expect(await dueHere()).toHaveLength(1);
    expect(await queue.lease([id])).toMatchObject([{ endpointId }]);
  });
});

it("is not suspended again by a look-up that began before it was restored", async () => {
  const events = createMemoryEvents(silentLog);
  const running = new RunningGenerations();
  running.suspend(payer.accountId);
  const { prisma } = databaseOf(app);
  await prisma.account.update({ where: { id: payer.accountId }, data: { suspendedAt: new Date() } });
  /** The event comes when the row has been read, and before the answer is looked at. */
  const findMany = async (query: Prisma.AccountFindManyArgs) => {
    const rows = await prisma.account.findMany(query);
    events.publish("account-suspension-changed", { accountId: payer.accountId, isSuspended: false });
    return rows;
  };
  const database = { prisma: { account: { findMany } } } as unknown as Database;

  await new SuspensionWatch(database, running, silentLog, events).lookUp();

  expect([...running.accountIds()]).toEqual([]);
});

describe("an operator", () => {
  it("leaves no trace of restoring an account that is not suspended", async () => {
    ok(await restore(payer.accountId));

    expect(await databaseOf(app).prisma.auditEntry.count({ where: { accountId: payer.accountId } })).toBe(0);
  });

  it("sees since when and why, and lists suspended accounts", async () => {
    const { suspendAccount } = ok(await suspend(payer.accountId));

    expect(suspendAccount.account).toEqual({ restId: payer.accountId, suspendedAt: expect.any(String), suspensionReason: REASON });
    const { accounts } = ok(await execute(app, SuspendedAccountsDocument));
    expect(accounts.nodes).toContainEqual({ restId: payer.accountId });
    const again = ok(await suspend(payer.accountId, app.key, "Another reason.")).suspendAccount.account;
    expect(again).toEqual({ ...suspendAccount.account, suspensionReason: "Another reason." });
  });

  it("cannot suspend their own account, the owner's, or the last operator", async () => {
    const { prisma } = databaseOf(app);
    const { accountId: ownerId } = await prisma.apiKey.findFirstOrThrow({ where: { name: "Owner" } });
    await prisma.account.update({ where: { id: payer.accountId }, data: { isOperator: true } });

    expect([await suspend(ownerId), await suspend(ownerId, payer.key)].map(codes)).toEqual([["CONFLICT"], ["CONFLICT"]]);
    expect(codes(await suspend(payer.accountId, payer.key))).toEqual(["CONFLICT"]);
  });

  it("leaves one of two operators who suspend each other at the same time", async () => {
    const { prisma } = databaseOf(app);
    const two = [payer, await createPayer(app, { permissions: ["keys"] })] as const;
    const ids = two.map(({ accountId }) => accountId);
    await prisma.account.updateMany({ where: { isOperator: true }, data: { isOperator: false } });
    await prisma.account.updateMany({ where: { id: { in: ids } }, data: { isOperator: true } });
    try {
      const answers = await Promise.all([suspend(two[1].accountId, two[0].key), suspend(two[0].accountId, two[1].key)]);

      expect(await prisma.account.count({ where: { id: { in: ids }, suspendedAt: null } })).toBe(1);
      expect(answers.filter((answer) => codes(answer).length === 0)).toHaveLength(1);
    } finally {
      await prisma.account.updateMany({ where: { id: { in: ids } }, data: { isOperator: false } });
      await prisma.account.updateMany({ where: { handle: "owner" }, data: { isOperator: true } });
    }
  });

  it.each([
    { what: "an unknown account", input: { accountId: randomUUID(), reason: REASON }, code: "NOT_FOUND" },
    { what: "no account id", input: { accountId: "none", reason: REASON }, code: "BAD_REQUEST" },
    { what: "no reason", input: { accountId: randomUUID(), reason: " " }, code: "BAD_REQUEST" },
    { what: "a reason that is too long", input: { accountId: randomUUID(), reason: "x".repeat(501) }, code: "BAD_REQUEST" },
  ])("is refused for $what", async ({ input, code }) => {
    expect(codes(await execute({ ...app, key: OWNER_KEY }, SuspendAccountDocument, { input }))).toEqual([code]);
  });

  it("alone may do so", async () => {
    expect(codes(await suspend(payer.accountId, payer.key))).toEqual(["FORBIDDEN"]);
    expect(codes(await suspend(payer.accountId, null))).toEqual(["UNAUTHORIZED"]);
    expect(codes(await execute({ ...app, key: payer.key }, RestoreAccountDocument, { input: { accountId: payer.accountId } }))).toEqual([
      "FORBIDDEN",
    ]);
  });
});
