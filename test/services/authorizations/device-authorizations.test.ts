/** The device flow by a clock that the tests move: who gets a key, once, and everything that is refused. */
import { randomUUID } from "node:crypto";
import { rm } from "node:fs/promises";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";
import type { RequestContext } from "../../../src/context.js";
import type { AppError } from "../../../src/errors.js";
import { API_KEYS_PER_ACCOUNT_MAX } from "../../../src/limits.js";
import type { DeviceAuthorization, DeviceAuthorizations, NewDevice } from "../../../src/services/authorizations/device-authorizations.js";
import { createUserCode, parseUserCode } from "../../../src/services/authorizations/device-codes.js";
import {
  DEVICE_CODE_SECONDS,
  EXPIRED_DEVICE_CODE_KEPT_SECONDS,
  LIVE_DEVICE_CODES_PER_ADDRESS_MAX,
  USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE,
  USER_CODE_GUESSES_PER_MINUTE,
} from "../../../src/services/authorizations/limits.js";
import { OAuthError } from "../../../src/services/authorizations/oauth-error.js";
import { databaseOf } from "../../e2e/money.js";
import { createStranger } from "../../rest/seed.js";
import { createTestApp, type TestApp } from "../../support/app.js";
import { createMovableClock, type MovableClock } from "../../support/clock.js";
import { createEmptyDir } from "../../support/database.js";
import { startFakeUpstream } from "../../support/fake-upstream.js";
import { countListeners } from "../../support/listeners.js";
import { isPostgresInstalled, POSTGRES_ABSENT } from "../../support/postgres.js";
import { createPostgresDatabase } from "../../support/suite-server.js";

const CREDIT = 1_000_000_000n;

let app: TestApp;
let listening: ReturnType<typeof countListeners>;
let clock: MovableClock;
let devices: DeviceAuthorizations;

beforeAll(async () => {
  clock = createMovableClock();
  app = await createTestApp({ clock, isEmbedded: true });
  listening = countListeners(app.infrastructure.events);
  devices = app.services.deviceAuthorizations;
});
afterAll(() => app.close());

let addresses = 0;
/** An address that no other test of this file uses. */
function createAddress(): string {
  addresses += 1;
  return `198.51.${addresses >> 8}.${addresses & 255}`;
}

function contextOf(
  caller: RequestContext["caller"],
  clientAddress = createAddress(),
  signal = new AbortController().signal,
): RequestContext {
  return { caller, requestId: "test", clientAddress, signal, log: pino({ level: "silent" }) };
}

const device = (address?: string) => contextOf({ kind: "anonymous" }, address);

/** An account with a session, without the time of a password hash. */
async function createPerson(address?: string): Promise<{ ctx: RequestContext; accountId: string }> {
  const accountId = randomUUID();
  await databaseOf(app).prisma.account.create({ data: { id: accountId, handle: `person-${accountId}`, packNanocredits: 100n * CREDIT } });
  return { accountId, ctx: contextOf({ kind: "session", accountId, sessionId: randomUUID(), isOperator: false }, address) };
}

async function createAppKey(expiresIn?: number): Promise<{ id: string; key: string; owner: RequestContext }> {
  const { ctx } = await createPerson();
  const { apiKey, key } = await app.services.apiKeys.create(ctx, {
    name: "Notebook",
    type: "publishable",
    ...(expiresIn && { expiresIn }),
  });
  return { id: apiKey.id, key: String(key), owner: ctx };
}

async function ask(input: { clientId?: string; scope?: string } = {}, address?: string): Promise<NewDevice> {
  return devices.create(device(address), input);
}

/** The name of the error that a poll is answered with, or the key. */
async function poll(deviceCode: string, clientId?: string): Promise<string> {
  return devices.redeem(device(), { deviceCode, ...(clientId !== undefined && { clientId }) }).then(
    ({ accessToken }) => accessToken,
    (error: unknown) => {
      if (error instanceof OAuthError) return error.error;
      throw error;
    },
  );
}

async function codeOf(attempt: Promise<unknown>): Promise<string> {
  return attempt.then(
    () => "ok",
    (error: AppError) => (error instanceof OAuthError ? error.error : error.code),
  );
}

describe("user codes", () => {
  it("are eight consonants of twenty", () => {
    const drawn = Array.from({ length: 2_000 }, createUserCode);

    expect(drawn.every((code) => /^[BCDFGHJKLMNPQRSTVWXZ]{8}$/.test(code))).toBe(true);
    expect(new Set(drawn.join("")).size).toBe(20);
    expect(new Set(drawn).size).toBe(drawn.length);
  });

  it.each(["BCDF-GHJK", "bcdfghjk", " bcdf ghjk ", "BcDf–GhJk", "b-c-d-f-g-h-j-k", "BCDF\tGHJK\n"])("are accepted as %j", (typed) => {
    expect(parseUserCode(typed)).toBe("BCDFGHJK");
  });

  it.each(["", "BCDF-GHJ", "BCDF-GHJKL", "BCDF-GHJA", "BCDF-GHJ1", "BCDF_GHJK", "ВCDF-GHJK", "-", "BCDFGHJK\0"])(
    "are refused as %j",
    (typed) => {
      expect(() => parseUserCode(typed)).toThrow(expect.objectContaining({ code: "BAD_REQUEST", param: "userCode" }));
    },
  );
});

describe("a device authorization", () => {
  it("gets a code to keep and a code to show", async () => {
    const asked = await ask();

    expect(asked).toEqual({
      deviceCode: expect.stringMatching(/^[A-Za-z0-9_-]{43}$/),
      userCode: expect.stringMatching(/^[B-Z]{4}-[B-Z]{4}$/),
      verificationUri: `${app.baseUrl.replace("127.0.0.1", "localhost")}/device`,
      verificationUriComplete: `${asked.verificationUri}?user_code=${asked.userCode}`,
      expiresIn: 1_800,
      interval: 5,
    });
  });

  it("leaves no device code in the database", async () => {
    const { deviceCode } = await ask();

    const rows = await databaseOf(app).prisma.deviceAuthorization.findMany();

    expect(rows.length).toBeGreaterThan(0);
    expect(
      JSON.stringify(rows.map((row) => ({ ...row, deviceCodeHash: Buffer.from(row.deviceCodeHash).toString("latin1") }))),
    ).not.toContain(deviceCode);
  });

  it("may request the permissions of apps, and no others", async () => {
    expect(await codeOf(ask({ scope: "profile balance usage" }))).toBe("ok");
    expect(await codeOf(ask({ scope: "account:profile,account:usage" }))).toBe("ok");
    expect(await codeOf(ask({ scope: "" }))).toBe("ok");
    for (const scope of ["keys", "account:keys", "profile keys", "openid", "PROFILE", "xaccount:profile"]) {
      expect([scope, await codeOf(ask({ scope }))]).toEqual([scope, "invalid_scope"]);
    }
  });

  it("names an app by a valid publishable key, or none", async () => {
    const revoked = await createAppKey();
    await app.services.apiKeys.revoke(revoked.owner, revoked.id);
    const expired = await createAppKey(60);
    const good = await createAppKey();
    clock.advance(60);

    expect(await codeOf(ask({ clientId: good.key }))).toBe("ok");
    expect(await codeOf(ask({ clientId: "" }))).toBe("ok");
    for (const clientId of [app.key, revoked.key, expired.key, "pk_unknown", `${good.key.slice(0, -1)}~`, "my-app"]) {
      expect([clientId, await codeOf(ask({ clientId }))]).toEqual([clientId, "invalid_client"]);
    }
  });

  it("is one of at most twenty that wait at one address, however many ask at once", async () => {
    const address = createAddress();
    const outcomes = await Promise.all(Array.from({ length: LIVE_DEVICE_CODES_PER_ADDRESS_MAX + 5 }, () => codeOf(ask({}, address))));

    expect(outcomes.filter((outcome) => outcome === "ok")).toHaveLength(LIVE_DEVICE_CODES_PER_ADDRESS_MAX);
    expect(outcomes.filter((outcome) => outcome === "RATE_LIMITED")).toHaveLength(5);
    expect(await codeOf(ask({}, createAddress()))).toBe("ok");
    clock.advance(DEVICE_CODE_SECONDS);
    expect(await codeOf(ask({}, address))).toBe("ok");
  });

  it("shares its twenty with its neighbours of the same IPv6 network", async () => {
    for (let index = 0; index < LIVE_DEVICE_CODES_PER_ADDRESS_MAX; index += 1) await ask({}, `2001:db8:7:8::${index}`);

    expect(await codeOf(ask({}, "2001:db8:7:8:ffff::1"))).toBe("RATE_LIMITED");
    expect(await codeOf(ask({}, "2001:db8:7:88::1"))).toBe("ok");
  });

  it("makes room for another when it is decided on", async () => {
    const address = createAddress();
    const asked: NewDevice[] = [];
    for (let index = 0; index < LIVE_DEVICE_CODES_PER_ADDRESS_MAX; index += 1) asked.push(await ask({}, address));
    const { ctx } = await createPerson();

    await devices.deny(ctx, { userCode: asked[0]?.userCode ?? "" });

    expect(await codeOf(ask({}, address))).toBe("ok");
    expect(await codeOf(ask({}, address))).toBe("RATE_LIMITED");
  });
});

describe("polling for a device's key", () => {
  it("answers that the decision is pending, and then the key as granted", async () => {
    const { id: appKeyId, key: clientId } = await createAppKey();
    const { ctx, accountId } = await createPerson();
    const { deviceCode, userCode } = await ask({ clientId, scope: "balance usage" });

    expect(await poll(deviceCode, clientId)).toBe("authorization_pending");
    await devices.approve(ctx, { userCode, creditBudget: CREDIT / 2n, expiresInDays: 7, permissions: ["usage"], models: ["chat"] });
    const token = await devices.redeem(device(), { deviceCode });

    expect(token).toEqual({ kind: "token", accessToken: expect.stringMatching(/^sk_/), scope: ["usage"], expiresIn: 7 * 86_400 });
    const row = await databaseOf(app).prisma.apiKey.findFirstOrThrow({ where: { accountId, origin: "device_flow" } });
    expect(row).toMatchObject({
      appKeyId,
      name: "Notebook",
      type: "secret",
      permissions: ["usage"],
      restrictsModels: true,
      allowedModels: ["acme/chat"],
      budgetNanocredits: CREDIT / 2n,
    });
    expect(await app.services.apiKeys.authenticate(token.accessToken)).toMatchObject({ accountId, apiKeyId: row.id });
  });

  it("answers the requested key when nothing was narrowed, with a small budget and thirty days", async () => {
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask({ scope: "profile" });

    const approved = await devices.approve(ctx, { userCode });
    const token = await devices.redeem(device(), { deviceCode });

    expect(approved).toMatchObject({
      status: "approved",
      granted: { models: null, creditBudget: 5n * CREDIT, expiresInDays: 30, permissions: ["profile"], marginPercent: 0 },
    });
    expect(token).toMatchObject({ scope: ["profile"], expiresIn: 30 * 86_400 });
    expect((await app.services.apiKeys.list(ctx, { first: 10 })).items).toMatchObject([{ name: "Device", creditBudget: 5n * CREDIT }]);
  });

  it("answers the key once", async () => {
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask();
    await devices.approve(ctx, { userCode });

    expect(await poll(deviceCode)).toMatch(/^sk_/);
    expect(await poll(deviceCode)).toBe("invalid_grant");
    expect((await devices.find(ctx, userCode)).status).toBe("used");
  });

  it("answers one key, however many polls arrive at once", async () => {
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask();
    await devices.approve(ctx, { userCode });

    const answers = await Promise.all(Array.from({ length: 8 }, () => poll(deviceCode)));

    expect(answers.filter((answer) => answer.startsWith("sk_"))).toHaveLength(1);
    expect(answers.filter((answer) => answer === "invalid_grant")).toHaveLength(7);
    expect((await app.services.apiKeys.list(ctx, { first: 10 })).items).toHaveLength(1);
  });

  it("answers slow_down to each early poll, and adds five seconds each time", async () => {
    const { deviceCode } = await ask();
    const interval = async () => {
      const answer = await devices.poll(device(), { deviceCode });
      return answer.kind === "refusal" && [answer.error, answer.interval];
    };

    expect(await interval()).toEqual(["authorization_pending", 5]);
    clock.advance(1);
    expect(await interval()).toEqual(["slow_down", 10]);
    clock.advance(9);
    expect(await interval()).toEqual(["slow_down", 15]);
    clock.advance(14.499);
    expect(await interval()).toEqual(["slow_down", 20]);
    clock.advance(19.5);
    expect(await interval()).toEqual(["authorization_pending", 20]);
    clock.advance(20);
    expect(await interval()).toEqual(["authorization_pending", 20]);
  });

  it("answers slow_down to the second of two polls at once", async () => {
    const { deviceCode } = await ask();

    const answers = await Promise.all([poll(deviceCode), poll(deviceCode), poll(deviceCode)]);

    expect(answers.sort()).toEqual(["authorization_pending", "slow_down", "slow_down"]);
  });

  it("answers the key as soon as there is one, even to an early poll", async () => {
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask();
    expect(await poll(deviceCode)).toBe("authorization_pending");
    await devices.approve(ctx, { userCode });

    expect(await poll(deviceCode)).toMatch(/^sk_/);
  });

  it("answers a denial at every poll", async () => {
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask();
    await devices.deny(ctx, { userCode });

    expect(await poll(deviceCode)).toBe("access_denied");
    expect(await poll(deviceCode)).toBe("access_denied");
    expect((await app.services.apiKeys.list(ctx, { first: 10 })).items).toEqual([]);
  });

  it("answers that the code has expired from the half hour on and not before, approved or not", async () => {
    const { ctx } = await createPerson();
    const [waiting, approved] = [await ask(), await ask()];
    await devices.approve(ctx, { userCode: approved.userCode });

    clock.advance(DEVICE_CODE_SECONDS - 0.001);
    expect(await poll(waiting.deviceCode)).toBe("authorization_pending");
    clock.advance(0.001);
    expect(await poll(waiting.deviceCode)).toBe("expired_token");
    expect(await poll(approved.deviceCode)).toBe("expired_token");
    expect((await devices.find(ctx, approved.userCode)).status).toBe("expired");
    expect(await codeOf(devices.approve(ctx, { userCode: waiting.userCode }))).toBe("NOT_FOUND");
  });

  it("forgets the code a while after it expired", async () => {
    const { deviceCode } = await ask();
    clock.advance(DEVICE_CODE_SECONDS + EXPIRED_DEVICE_CODE_KEPT_SECONDS);
    await ask();
    expect(await poll(deviceCode)).toBe("expired_token");

    clock.advance(0.001);
    await ask();

    expect(await poll(deviceCode)).toBe("invalid_grant");
  });

  it("forgets the code of a device that stopped polling", async () => {
    const { deviceCode } = await ask();
    clock.advance(DEVICE_CODE_SECONDS + EXPIRED_DEVICE_CODE_KEPT_SECONDS + 1);

    expect(await devices.sweep()).toBeGreaterThan(0);

    expect(await poll(deviceCode)).toBe("invalid_grant");
    expect(await devices.sweep()).toBe(0);
  });

  it("requires the client that the request named", async () => {
    const [mine, other] = [await createAppKey(), await createAppKey()];
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask({ clientId: mine.key });
    const unnamed = await ask();
    await devices.approve(ctx, { userCode });

    expect(await poll(deviceCode, "pk_nobody")).toBe("invalid_client");
    expect(await poll(deviceCode, other.key)).toBe("invalid_grant");
    expect(await poll(unnamed.deviceCode, mine.key)).toBe("invalid_grant");
    expect(await poll("no-such-code")).toBe("invalid_grant");
    expect(await poll(deviceCode, mine.key)).toMatch(/^sk_/);
  });

  it("answers nothing once its app key is revoked, and hides the request from the account", async () => {
    const mine = await createAppKey();
    const { ctx } = await createPerson();
    const [approved, waiting] = [await ask({ clientId: mine.key }), await ask({ clientId: mine.key })];
    await devices.approve(ctx, { userCode: approved.userCode });

    await app.services.apiKeys.revoke(mine.owner, mine.id);

    expect(await poll(approved.deviceCode)).toBe("invalid_client");
    expect(await codeOf(devices.find(ctx, waiting.userCode))).toBe("NOT_FOUND");
  });

  it("answers nothing when the account has its maximum of keys, and keeps the code valid", async () => {
    const { ctx, accountId } = await createPerson();
    const { deviceCode, userCode } = await ask();
    await devices.approve(ctx, { userCode });
    const { prisma } = databaseOf(app);
    const keys = Array.from({ length: API_KEYS_PER_ACCOUNT_MAX }, (_, index) => ({
      id: randomUUID(),
      accountId,
      hash: new Uint8Array(Buffer.from(`${accountId} ${index}`)),
      type: "secret" as const,
      name: "filler",
      start: "sk_filler",
    }));
    await prisma.apiKey.createMany({ data: keys });

    expect(await poll(deviceCode)).toBe("access_denied");
    await prisma.apiKey.deleteMany({ where: { id: keys[0]?.id ?? "" } });
    expect(await poll(deviceCode)).toMatch(/^sk_/);
  });
});

describe("a person", () => {
  it("sees the device, its address, the time and the requested permissions", async () => {
    const { key: clientId, id } = await createAppKey();
    const { ctx } = await createPerson();
    const asked = await ask({ clientId, scope: "profile" }, "::ffff:203.0.113.9");

    clock.advance(90);
    const seen = await devices.find(ctx, asked.userCode.toLowerCase().replace("-", " "));

    expect(seen).toEqual({
      id: asked.userCode,
      userCode: asked.userCode,
      status: "pending",
      app: expect.objectContaining({ id, name: "Notebook" }),
      asked: { models: null, creditBudget: 5n * CREDIT, expiresInDays: 30, permissions: ["profile"], marginPercent: 0 },
      creditBudgetMax: 5n * CREDIT,
      granted: null,
      clientAddress: "203.0.113.9",
      createdAt: new Date(clock.now().getTime() - 90_000),
      age: 90,
      expiresAt: new Date(clock.now().getTime() + 1_710_000),
      decidedAt: null,
    } satisfies DeviceAuthorization);
  });

  it("narrows and never widens", async () => {
    const { ctx } = await createPerson();
    const { userCode } = await ask({ scope: "profile" });

    expect(await codeOf(devices.approve(ctx, { userCode, creditBudget: 5n * CREDIT + 1n }))).toBe("BAD_REQUEST");
    expect(await codeOf(devices.approve(ctx, { userCode, expiresInDays: 31 }))).toBe("BAD_REQUEST");
    expect(await codeOf(devices.approve(ctx, { userCode, permissions: ["profile", "usage"] }))).toBe("BAD_REQUEST");
    expect(await codeOf(devices.approve(ctx, { userCode, models: ["no/model"] }))).toBe("BAD_REQUEST");
    expect(await codeOf(devices.approve(ctx, { userCode, models: [] }))).toBe("BAD_REQUEST");
    expect((await devices.find(ctx, userCode)).status).toBe("pending");
    expect(await codeOf(devices.approve(ctx, { userCode, creditBudget: 5n * CREDIT, expiresInDays: 30, permissions: [] }))).toBe("ok");
  });

  it("decides once, whichever way", async () => {
    const { ctx } = await createPerson();
    const [yes, no] = [await ask(), await ask()];
    await devices.approve(ctx, { userCode: yes.userCode });
    await devices.deny(ctx, { userCode: no.userCode });

    expect(await codeOf(devices.deny(ctx, { userCode: yes.userCode }))).toBe("CONFLICT");
    expect(await codeOf(devices.approve(ctx, { userCode: yes.userCode }))).toBe("CONFLICT");
    expect(await codeOf(devices.approve(ctx, { userCode: no.userCode }))).toBe("CONFLICT");
    expect(await poll(no.deviceCode)).toBe("access_denied");
    expect(await poll(yes.deviceCode)).toMatch(/^sk_/);
  });

  it("is one of several who decide at the same moment, of whom one succeeds", async () => {
    const people = await Promise.all(Array.from({ length: 4 }, () => createPerson()));
    const { deviceCode, userCode } = await ask();

    const outcomes = await Promise.all(people.map(({ ctx }) => codeOf(devices.approve(ctx, { userCode }))));

    expect(outcomes.filter((outcome) => outcome === "ok")).toHaveLength(1);
    expect(await poll(deviceCode)).toMatch(/^sk_/);
  });

  it("sees nothing of another account's decision", async () => {
    const [decider, other] = [await createPerson(), await createPerson()];
    const { userCode } = await ask();
    await devices.approve(decider.ctx, { userCode });

    expect(await codeOf(devices.find(other.ctx, userCode))).toBe("NOT_FOUND");
    expect(await codeOf(devices.approve(other.ctx, { userCode }))).toBe("NOT_FOUND");
    expect((await devices.find(decider.ctx, userCode)).status).toBe("approved");
  });

  it("decides with a session: no key decides or looks, whichever permissions it has", async () => {
    const { userCode } = await ask();
    const owner = contextOf(await app.services.apiKeys.authenticate(app.key));

    for (const [ctx, refusal] of [
      [owner, "FORBIDDEN"],
      [device(), "UNAUTHORIZED"],
    ] as const) {
      expect(await codeOf(devices.find(ctx, userCode))).toBe(refusal);
      expect(await codeOf(devices.approve(ctx, { userCode }))).toBe(refusal);
      expect(await codeOf(devices.deny(ctx, { userCode }))).toBe(refusal);
    }
  });
});

describe("guessing", () => {
  const wrong = () => createUserCode();

  it("ends after ten wrong codes in a minute, right or wrong, and for that account alone", async () => {
    const address = createAddress();
    const [guesser, other] = [await createPerson(address), await createPerson(address)];
    const { userCode } = await ask();

    for (let index = 0; index < USER_CODE_GUESSES_PER_MINUTE; index += 1) {
      expect(await codeOf(devices.find(guesser.ctx, wrong()))).toBe("NOT_FOUND");
    }
    const refusal = await devices.find(guesser.ctx, wrong()).catch((error: AppError) => error);

    expect(refusal).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: 6 });
    expect(await codeOf(devices.find(guesser.ctx, userCode))).toBe("RATE_LIMITED");
    expect(await codeOf(devices.approve(guesser.ctx, { userCode }))).toBe("RATE_LIMITED");
    expect(await codeOf(devices.deny(guesser.ctx, { userCode: wrong() }))).toBe("RATE_LIMITED");
    expect(await codeOf(devices.find(other.ctx, userCode))).toBe("ok");
    clock.advance(60);
    expect(await codeOf(devices.find(guesser.ctx, userCode))).toBe("ok");
  });

  it("ends after ten wrong codes, though they come all at once", async () => {
    const { ctx } = await createPerson();

    const outcomes = await Promise.all(Array.from({ length: 30 }, () => codeOf(devices.find(ctx, wrong()))));

    expect(outcomes.filter((outcome) => outcome === "NOT_FOUND")).toHaveLength(USER_CODE_GUESSES_PER_MINUTE);
    expect(outcomes.filter((outcome) => outcome === "RATE_LIMITED")).toHaveLength(20);
  });

  it("is limited by address for those who have many accounts", async () => {
    const address = createAddress();
    let outcome = "";
    for (let index = 0; index <= USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE; index += 1) {
      const ctx = contextOf({ kind: "session", accountId: `account ${index}`, sessionId: "any", isOperator: false }, address);
      outcome = await codeOf(devices.find(ctx, wrong()));
      if (index < USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE) expect(outcome).toBe("NOT_FOUND");
    }

    expect(outcome).toBe("RATE_LIMITED");
  });

  it("is not limited for right codes, however many", async () => {
    const { ctx } = await createPerson();
    const { userCode } = await ask();

    for (let index = 0; index < 3 * USER_CODE_GUESSES_PER_MINUTE; index += 1) await devices.find(ctx, userCode);
    expect(await codeOf(devices.find(ctx, wrong()))).toBe("NOT_FOUND");
  });

  it("gets one answer for each kind of wrong code", async () => {
    const [person, other] = [await createPerson(), await createPerson()];
    const [decided, expired] = [await ask(), await ask()];
    await devices.deny(other.ctx, { userCode: decided.userCode });
    await databaseOf(app).prisma.deviceAuthorization.updateMany({
      where: { userCode: expired.userCode.replace("-", "") },
      data: { expiresAt: clock.now() },
    });

    const messages = await Promise.all(
      [wrong(), decided.userCode, expired.userCode].map((userCode) =>
        devices.find(person.ctx, userCode).then(
          () => "ok",
          ({ code, message }: AppError) => `${code} ${message}`,
        ),
      ),
    );

    expect(new Set(messages).size).toBe(1);
    expect(messages[0]).toMatch(/^NOT_FOUND/);
  });
});

describe("watching", () => {
  it("reports each change and ends when the device fetches its key", async () => {
    const { ctx } = await createPerson();
    const { deviceCode, userCode } = await ask();
    const watched = devices.watch(ctx, userCode);
    const first = watched.next();
    await expectListening(userCode, ctx);

    await devices.approve(ctx, { userCode, permissions: [] });
    expect((await first).value).toMatchObject({ userCode, status: "approved", granted: { permissions: [] } });
    await poll(deviceCode);

    expect((await watched.next()).value).toMatchObject({ status: "used" });
    expect((await watched.next()).done).toBe(true);
  });

  it("reports a decision that was made before it began", async () => {
    const { ctx } = await createPerson();
    const { userCode } = await ask();
    await devices.deny(ctx, { userCode });

    const statuses: string[] = [];
    for await (const { status } of devices.watch(ctx, userCode)) statuses.push(status);

    expect(statuses).toEqual(["denied"]);
  });

  it("reports the end of the half hour without an event", async () => {
    const { ctx } = await createPerson();
    const { userCode } = await ask();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const watched = devices.watch(ctx, userCode);
    const next = watched.next();
    await expectListening(userCode, ctx);
    // A question to the database under way has a time-out of its own, which would pass, too.
    const { pool } = databaseOf(app);
    await expect.poll(() => pool.totalCount - pool.idleCount).toBe(0);

    clock.advance(DEVICE_CODE_SECONDS);
    vi.advanceTimersByTime(DEVICE_CODE_SECONDS * 1000 + 1_000);

    expect((await next).value).toMatchObject({ status: "expired" });
    expect((await watched.next()).done).toBe(true);
  });

  it("shows another account that it was decided, but not the decision", async () => {
    const [decider, other] = [await createPerson(), await createPerson()];
    const { userCode } = await ask();
    const next = devices.watch(other.ctx, userCode).next();
    await expectListening(userCode, other.ctx);

    await devices.approve(decider.ctx, { userCode });

    expect((await next).value).toMatchObject({ status: "approved", granted: null });
  });

  it("takes a session or a key that manages keys, and counts wrong codes", async () => {
    const { ctx } = await createPerson();
    const { userCode } = await ask();
    const next = (caller: RequestContext, code = createUserCode()) => codeOf(devices.watch(caller, code).next());
    const stranger = await createStranger(app);
    const manager = contextOf(await app.services.apiKeys.authenticate(stranger.key));
    const weak = await app.services.apiKeys.create(ctx, { name: "weak", type: "secret", accountPermissions: ["profile"] });
    const publishable = await app.services.apiKeys.create(ctx, { name: "public", type: "publishable", accountPermissions: ["keys"] });

    expect(await next(device(), userCode)).toBe("UNAUTHORIZED");
    expect(await next(contextOf(await app.services.apiKeys.authenticate(weak.key)), userCode)).toBe("FORBIDDEN");
    expect(await next(contextOf(await app.services.apiKeys.authenticate(publishable.key)), userCode)).toBe("FORBIDDEN");
    for (let index = 0; index < USER_CODE_GUESSES_PER_MINUTE; index += 1) expect(await next(manager)).toBe("NOT_FOUND");
    expect(await next(manager)).toBe("RATE_LIMITED");
    expect(await next(manager, userCode)).toBe("RATE_LIMITED");
  });
});

describe.skipIf(!isPostgresInstalled)(`two processes on one database${isPostgresInstalled ? "" : ` (skipped: ${POSTGRES_ABSENT})`}`, () => {
  it("make at most twenty codes for an address, and one key of a code, between them", async () => {
    const shared = await createPostgresDatabase();
    const dirs = [await createEmptyDir(), await createEmptyDir()];
    const config = { databaseUrl: shared.url, encryptionKey: "the same for both processes of this test" };
    const upstream = await startFakeUpstream();
    const [one, other] = [
      await createTestApp({ upstream, dataDir: dirs[0] as string, config }),
      await createTestApp({ upstream, dataDir: dirs[1] as string, config }),
    ];
    onTestFinished(async () => {
      await Promise.all([one.close(), other.close()]);
      await upstream.close();
      await shared.drop();
      await Promise.all(dirs.map((dir) => rm(dir, { recursive: true })));
    });
    const both = [one.services.deviceAuthorizations, other.services.deviceAuthorizations];
    const accountId = randomUUID();
    await databaseOf(one).prisma.account.create({ data: { id: accountId, handle: `person-${accountId}`, packNanocredits: 100n * CREDIT } });
    const ctx = contextOf({ kind: "session", accountId, sessionId: randomUUID(), isOperator: false });

    const asked = await Promise.allSettled(
      both.flatMap((service) => Array.from({ length: 20 }, () => service.create(device("192.0.2.1"), {}))),
    );
    const made = asked.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    expect(made).toHaveLength(LIVE_DEVICE_CODES_PER_ADDRESS_MAX);

    const [{ deviceCode, userCode }] = made as [NewDevice];
    const watched = other.services.deviceAuthorizations.watch(ctx, userCode);
    const told = watched.next();
    await one.services.deviceAuthorizations.approve(ctx, { userCode });
    expect((await told).value).toMatchObject({ status: "approved" });
    const polls = await Promise.all(both.flatMap((service) => Array.from({ length: 4 }, () => service.poll(device(), { deviceCode }))));
    expect(polls.map((answer) => (answer.kind === "token" ? "token" : answer.error)).sort()).toEqual([
      ...Array(7).fill("invalid_grant"),
      "token",
    ]);
  });
});

/** `watch` listens first and then looks: a later look-up is answered after that look. */
async function expectListening(userCode: string, ctx: RequestContext): Promise<void> {
  await expect.poll(() => listening("device-authorization-changed")).toBe(1);
  await devices.find(ctx, userCode);
}
