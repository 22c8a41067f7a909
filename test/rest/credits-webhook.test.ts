/** Signed requests that add credits: once for each id; forged, replayed and old ones are refused. */
import { createHmac } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseConfig } from "../../src/config/config.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { createStranger } from "./seed.js";

const SECRET = `whsec_${Buffer.from("a key of 32 bytes for this test!").toString("base64")}`;
const PLAIN_SECRET = "another secret, in plain text".replaceAll(/[ ,]/g, "-");
const NANO = 10n ** 9n;
const clock = createMovableClock();

let app: TestApp;
let accountId: string;

beforeAll(async () => {
  const { sales } = parseConfig({ CREDITS_WEBHOOK_SECRET: `${SECRET},${PLAIN_SECRET}` });
  app = await createTestApp({ config: { sales }, clock });
  const { keyId } = await createStranger(app);
  ({ accountId } = await app.database.prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } }));
});
afterAll(async () => {
  const broken = await findBrokenInvariants(app.database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});

interface Sent {
  readonly id?: string;
  readonly body?: unknown;
  readonly key?: Buffer | string;
  readonly ageSeconds?: number;
  readonly signature?: string;
}

async function send({
  id = crypto.randomUUID(),
  body,
  key = Buffer.from(SECRET.slice(6), "base64"),
  ageSeconds = 0,
  signature,
}: Sent = {}) {
  const text = typeof body === "string" ? body : JSON.stringify(body ?? { account: accountId, credits: 2.5 });
  const seconds = Math.floor(clock.now().getTime() / 1_000) - ageSeconds;
  const own = `v1,${createHmac("sha256", key).update(`${id}.${seconds}.${text}`).digest("base64")}`;
  const answer = await fetch(`${app.baseUrl}/webhooks/credits`, {
    method: "POST",
    headers: {
      ...{ "content-type": "application/json", "webhook-id": id, "webhook-timestamp": String(seconds) },
      "webhook-signature": signature ?? own,
    },
    body: text,
  });
  return { status: answer.status, body: (await answer.json()) as { result?: string; error?: { message: string; param: string | null } } };
}
const cryptoOf = async () => (await app.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } })).cryptoNanocredits;

describe("a signed request", () => {
  it("credits its account once, however often it is sent, also at once", async () => {
    const before = await cryptoOf();
    const sent = { id: "payment-1", body: { account: accountId, credits: "2.123456789" } };

    const answers = await Promise.all([send(sent), send(sent), send(sent)]);
    clock.advance(86_400);
    answers.push(await send(sent));

    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect(answers.map(({ body }) => body.result).filter((result) => result === "booked")).toHaveLength(1);
    expect(await cryptoOf()).toBe(before + 2_123_456_789n);
  });

  it("finds an account by its handle, and takes each secret while one is replaced", async () => {
    const before = await cryptoOf();
    const { handle } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: accountId } });

    expect(await send({ body: { account: handle, credits: 1 }, key: PLAIN_SECRET })).toMatchObject({
      status: 200,
      body: { result: "booked" },
    });
    expect(await cryptoOf()).toBe(before + NANO);
  });

  it.each<[string, Sent, number]>([
    ["forged", { key: "another key" }, 401],
    ["signed in another form", { signature: "v2,AAAA v1,AAAA" }, 401],
    ["without a signature", { signature: "" }, 401],
    ["replayed after 6 minutes", { ageSeconds: 360 }, 401],
    ["from the future", { ageSeconds: -360 }, 401],
    ["with the id of another payment", { id: "payment-1", body: { account: "owner", credits: 2 } }, 409],
  ])("%s is refused", async (_name, sent, status) => {
    const before = await cryptoOf();

    expect((await send(sent)).status).toBe(status);
    expect(await cryptoOf()).toBe(before);
  });

  it.each<[unknown, string]>([
    [{ account: "no-such-account", credits: 1 }, "account"],
    [{ credits: 1 }, "account"],
    [{ account: "owner", credits: 0 }, "credits"],
    [{ account: "owner", credits: -1 }, "credits"],
    [{ account: "owner", credits: 0.001 }, "credits"],
    [{ account: "owner", credits: 1, bucket: "pack" }, "bucket"],
  ])("with %j is refused, naming the field", async (body, field) => {
    const answer = await send({ body });

    expect(answer.status).toBe(400);
    expect(answer.body.error?.message).toContain(field);
  });

  it.each(["", "[", "null", "[]"])("with the body %j is refused", async (body) => {
    expect((await send({ body })).status).toBe(400);
  });
});

it("has no address without a secret", async () => {
  const plain = await createTestApp();
  const answer = await fetch(`${plain.baseUrl}/webhooks/credits`, { method: "POST", body: "{}" });
  await plain.close();

  expect(answer.status).toBe(404);
});
