/** What operators see of the gateway itself. */
import { readFileSync } from "node:fs";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ChatReceiptDocument, GatewayStatusDocument, GatewayTrafficDocument } from "../operations/generated/graphql.js";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { errorReply } from "../support/upstream-replies.js";
import { codes, execute, executeText, ok } from "./client.js";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const gateway = async () => ok(await execute(app, GatewayStatusDocument)).gateway;
const total = (counts: readonly number[]) => counts.reduce((sum, count) => sum + count, 0);

it("counts settlements by the second, and calls of models by outcome", async () => {
  const { title } = app.services.catalog.find("acme/chat") ?? {};
  await execute(app, ChatReceiptDocument);
  app.upstream.replyNext(errorReply(500), errorReply(400));
  expect(codes(await execute(app, ChatReceiptDocument))).toEqual(["UPSTREAM_ERROR"]);
  expect(codes(await execute(app, ChatReceiptDocument))).toEqual(["BAD_REQUEST"]);

  await expect.poll(async () => total((await gateway()).settlements.counts)).toBe(1);
  const { settlements, models, asOf } = await gateway();

  expect(settlements.counts).toHaveLength(120);
  expect(Date.parse(settlements.until)).toBeLessThanOrEqual(Date.parse(asOf));
  // What the upstream refuses of a caller's is no failure of the model.
  expect(models).toEqual([
    {
      ...{ modelId: "acme/chat", model: { title }, upstreamId: "acme", answered: 1, failed: 1, errorRate: 0.5 },
      ...{ lastFailedAt: expect.any(String), lastFailure: "5xx" },
    },
  ]);
});

it("shows the last errors, without a word of the requests", async () => {
  app.upstream.replyNext(errorReply(500, "a secret of the upstream's"));
  const prompt = "words that nobody else may read";
  const query = `mutation Ask($text: String!) { createChatCompletion(input: { model: "acme/chat", messages: [{ role: USER, content: $text }] }) { receipt { cost } } }`;
  const headers = { "x-request-id": "asked-by-a-test" };
  expect(codes(await executeText({ ...app, headers }, { query, variables: { text: prompt } }))).toEqual(["UPSTREAM_ERROR"]);
  const { pool } = app.database;
  await pool.query("ALTER TABLE webhook_endpoint RENAME TO webhook_endpoint_elsewhere");
  expect(codes(await executeText(app, { query: "query Endpoints { me { webhookEndpoints(first: 1) { totalCount } } }" }))).toEqual([
    "INTERNAL_ERROR",
  ]);
  await pool.query("ALTER TABLE webhook_endpoint_elsewhere RENAME TO webhook_endpoint");

  await expect.poll(async () => (await gateway()).recentErrors[0]?.code).toBe("INTERNAL_ERROR");
  const { recentErrors } = await gateway();

  expect(recentErrors.slice(0, 2)).toMatchObject([
    { code: "INTERNAL_ERROR", operation: "Endpoints", method: "POST", route: "/graphql", modelId: null },
    { code: "UPSTREAM_ERROR", operation: "Ask", requestId: "asked-by-a-test", modelId: "acme/chat", status: 200 },
  ]);
  expect(JSON.stringify(recentErrors)).not.toMatch(/words that|a secret of|webhook_endpoint/);
});

it("shows held credits, in one statement each", async () => {
  await execute(app, ChatReceiptDocument);
  const before = await gateway();
  const { id: accountId } = await app.database.prisma.account.findFirstOrThrow();
  const amounts = { tierNanocredits: 1n, cryptoNanocredits: 20n, packNanocredits: 300n };
  // This process is their owner, so that no other recovers them meanwhile.
  const hold = { id: uuidv7(), accountId, processId: app.infrastructure.processId, paidOnly: false, record: {} };
  await app.database.prisma.hold.create({ data: { ...hold, ...amounts, expiresAt: new Date(Date.now() + 60_000) } });

  const after = await gateway();
  await app.database.prisma.hold.deleteMany({ where: { id: hold.id } });

  expect([before.holds, after.holds]).toEqual([
    { count: 0, credits: "0" },
    { count: 1, credits: "0.000000321" },
  ]);
  expect(after.leases).toMatchObject({ count: 1, credits: expect.stringMatching(/^\d+\.?\d*$/) });
  expect(Number(after.leases?.credits)).toBeGreaterThan(0);
  expect(after.spool).toEqual({ waiting: 0, waitingBytes: 0, refused: 0, refusedBytes: 0 });
});

it("lists the processes of every gateway on the database, with the reports of this one's", async () => {
  const elsewhere = { id: uuidv7(), instanceId: uuidv7() };
  const gone = { id: uuidv7(), instanceId: uuidv7(), heartbeatAt: new Date(Date.now() - 120_000) };
  await app.database.prisma.gatewayProcess.createMany({ data: [elsewhere, gone] });

  const { processes } = await gateway();

  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  const untold = {
    worker: null,
    version: null,
    residentBytes: null,
    generations: null,
    streams: null,
    jobs: null,
    isDatabaseAvailable: null,
  };
  expect(processes).toEqual([
    {
      ...{ processId: app.infrastructure.processId, worker: null, startedAt: expect.any(String), heardAt: expect.any(String), version },
      ...{ residentBytes: expect.any(Number), generations: 0, streams: 0, jobs: 0, isDatabaseAvailable: true },
    },
    { ...untold, processId: elsewhere.id, startedAt: expect.any(String), heardAt: expect.any(String) },
  ]);
});

it("shows requests, errors, credits and times of the last hour and day", async () => {
  const own = await createTestApp();
  try {
    const traffic = async () => ok(await execute(own, GatewayTrafficDocument)).gateway;
    await execute(own, ChatReceiptDocument);
    own.upstream.replyNext(errorReply(500), errorReply(400));
    await execute(own, ChatReceiptDocument);
    await execute(own, ChatReceiptDocument);
    const { accountId } = await own.database.prisma.apiKey.findFirstOrThrow({ select: { accountId: true } });
    const at = (hours: number) => new Date(Date.now() - hours * 3_600_000);
    const key = await own.database.prisma.apiKey.findFirstOrThrow();
    await createUsage(own, key.id, 2, at(20), { costNanocredits: 7n, responseTimeMs: 1_000 });
    await createUsage(own, key.id, 1, at(25), { costNanocredits: 1_000n });
    await own.database.prisma.failedRequest.create({
      data: {
        ...{ id: uuidv7(), accountId, requestId: "r", route: "/v1/chat/completions", status: 429, code: "RATE_LIMITED" },
        ...{ message: "", milliseconds: 1, timestamp: at(19), leftOut: 9 },
      },
    });

    await expect.poll(async () => (await traffic()).lastHour?.serverErrors).toBe(1);
    await expect.poll(async () => (await traffic()).lastDay?.requests).toBe(3);
    const { lastHour, lastDay } = await traffic();

    expect(lastHour).toMatchObject({ requests: 1, clientErrors: 1, serverErrors: 1, responseTimeMs: { p50: expect.any(Number) } });
    expect(lastHour?.steps).toHaveLength(60);
    expect(total(lastHour?.steps.map(({ requests }) => requests) ?? [])).toBe(1);
    expect(lastDay).toMatchObject({ requests: 3, clientErrors: 11, serverErrors: 1 });
    expect(lastDay?.responseTimeMs?.p95).toBeGreaterThan(950);
    expect(lastDay?.responseTimeMs?.p95).toBeLessThan(1_050);
    expect(lastDay?.steps).toHaveLength(24);
    expect(lastDay?.steps.find(({ requests }) => requests === 2)?.cost).toBe("0.000000014");
  } finally {
    await own.close();
  }
});
