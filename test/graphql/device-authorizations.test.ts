/** The device flow over GraphQL: what a dashboard needs for a device page of its own, and what a device needs. */

import { createClient } from "graphql-ws";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { createUserCode, formatUserCode } from "../../src/services/authorizations/device-codes.js";
import { USER_CODE_GUESSES_PER_MINUTE } from "../../src/services/authorizations/limits.js";
import { databaseOf } from "../e2e/money.js";
import {
  ApproveDeviceAuthorizationDocument,
  type ApproveDeviceAuthorizationInput,
  CreateDeviceAuthorizationDocument,
  type CreateDeviceAuthorizationInput,
  type CreateDeviceAuthorizationMutation,
  CurrentApiKeyDocument,
  DenyDeviceAuthorizationDocument,
  DeviceAuthorizationByCodeDocument,
  DeviceAuthorizationChangedDocument,
  NodesOfAuthorizationDocument,
  RedeemDeviceCodeDocument,
} from "../operations/generated/graphql.js";
import { createKey } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { countListeners } from "../support/listeners.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";
import { codes, execute, executeText, ok, subscribeWith, type Target, TRANSPORTS } from "./client.js";

let app: TestApp;
let listening: ReturnType<typeof countListeners>;
let nobody: Target;
let person: Person;

beforeAll(async () => {
  app = await createTestApp({ isEmbedded: true });
  listening = countListeners(app.infrastructure.events);
  nobody = { ...app, key: null };
  person = await signUp(app, { name: "Ada", credits: 100 });
});
afterAll(() => app.close());
// They all come from one address.
beforeEach(() => databaseOf(app).prisma.deviceAuthorization.deleteMany());

type Device = NonNullable<CreateDeviceAuthorizationMutation["createDeviceAuthorization"]>;

/** A signed-in person's browser. */
function browser(who: Person): Target {
  return { ...nobody, headers: signedIn(who) };
}

async function ask(input: CreateDeviceAuthorizationInput = {}): Promise<Device> {
  return ok(await execute(nobody, CreateDeviceAuthorizationDocument, { input })).createDeviceAuthorization;
}

async function redeem(deviceCode: string) {
  return ok(await execute(nobody, RedeemDeviceCodeDocument, { input: { deviceCode } })).redeemDeviceCode;
}

function find(who: Person, userCode: string) {
  return execute(browser(who), DeviceAuthorizationByCodeDocument, { userCode });
}

function approve(who: Person, input: ApproveDeviceAuthorizationInput) {
  return execute(browser(who), ApproveDeviceAuthorizationDocument, { input });
}

function deny(who: Person, userCode: string) {
  return execute(browser(who), DenyDeviceAuthorizationDocument, { input: { userCode } });
}

it("begins, shows, narrows, approves and hands the key over", async () => {
  const { key: clientId, id } = await createKey(app, { name: "Notebook", type: "publishable" });
  const device = await ask({ clientId, scope: ["USAGE", "BALANCE"] });
  expect(device).toMatchObject({
    expiresIn: 1_800,
    interval: 5,
    verificationUriComplete: `${device.verificationUri}?user_code=${device.userCode}`,
  });
  expect(await redeem(device.deviceCode)).toEqual({
    token: null,
    refusal: { error: "AUTHORIZATION_PENDING", description: expect.stringMatching(/\S/), interval: 5 },
  });
  expect(await redeem(device.deviceCode)).toMatchObject({ refusal: { error: "SLOW_DOWN", interval: 10 } });

  const seen = ok(await find(person, device.userCode)).deviceAuthorization;
  const narrowed: Partial<ApproveDeviceAuthorizationInput> = { models: ["chat"], creditBudget: "0.5", expiresInDays: 2 };
  const approved = await approve(person, { userCode: device.userCode, permissions: ["USAGE"], ...narrowed });

  expect(seen).toMatchObject({
    id: toGlobalId("DeviceAuthorization", device.userCode),
    restId: device.userCode,
    status: "PENDING",
    clientAddress: "127.0.0.1",
    app: { restId: id, name: "Notebook", owner: { handle: "owner", githubUsername: null } },
    asked: { models: null, creditBudget: "5", expiresInDays: 30, permissions: ["USAGE", "BALANCE"] },
    granted: null,
    decidedAt: null,
  });
  expect(ok(approved).approveDeviceAuthorization.deviceAuthorization).toMatchObject({
    status: "APPROVED",
    granted: { models: ["acme/chat"], creditBudget: "0.5", expiresInDays: 2, permissions: ["USAGE"] },
  });
  const token = await redeem(device.deviceCode);
  expect(token).toEqual({
    token: { accessToken: expect.stringMatching(/^sk_/), scope: ["USAGE"], expiresIn: 172_800 },
    refusal: null,
  });
  expect(await redeem(device.deviceCode)).toMatchObject({ token: null, refusal: { error: "INVALID_GRANT", interval: null } });
  const key = token.token?.accessToken ?? null;
  const { me } = ok(await execute({ ...app, key }, CurrentApiKeyDocument));
  expect(me.currentApiKey).toMatchObject({ name: "Notebook", creditBudget: "0.5" });
});

it("refuses an account without credits, and says where to buy some", async () => {
  const poor = await signUp(app);
  await databaseOf(app).prisma.account.update({ where: { id: poor.accountId }, data: { tier: null, tierNanocredits: 0n } });
  const { userCode } = await ask({});

  const refused = await approve(poor, { userCode, creditBudget: "0.5" });

  expect(codes(refused)).toEqual(["INSUFFICIENT_BALANCE"]);
  const details = { bound: "balance", required: "0.5", available: "0", topUpUrl: expect.stringContaining("/dashboard/credits") };
  expect(refused.errors?.[0]?.extensions).toMatchObject({ details });
});

it("denies, and takes null for omitted fields", async () => {
  const [denied, approved] = [await ask(), await ask({ scope: null, clientId: null })];

  expect(ok(await deny(person, denied.userCode)).denyDeviceAuthorization).toEqual({ deviceAuthorization: { status: "DENIED" } });
  const input = { userCode: approved.userCode, models: null, creditBudget: null, expiresInDays: null, permissions: null };
  expect(ok(await approve(person, input)).approveDeviceAuthorization.deviceAuthorization).toMatchObject({
    app: null,
    granted: { models: null, creditBudget: "5", expiresInDays: 30, permissions: [] },
  });
  expect(await redeem(denied.deviceCode)).toMatchObject({ refusal: { error: "ACCESS_DENIED", interval: null } });
});

it("refuses with the codes of the REST errors", async () => {
  const { userCode } = await ask({ scope: ["USAGE"] });
  const refusal = async (input: CreateDeviceAuthorizationInput) =>
    (await execute(nobody, CreateDeviceAuthorizationDocument, { input })).errors?.[0];

  expect(await refusal({ clientId: "pk_unknown" })).toMatchObject({
    message: expect.stringMatching(/^clientId /),
    extensions: { code: "BAD_REQUEST", param: "clientId" },
  });
  expect((await refusal({ scope: ["KEYS"] }))?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "scope" });
  expect(await redeem("unknown")).toMatchObject({ refusal: { error: "INVALID_GRANT" } });
  expect(codes(await find(person, "BCDF-GHJKL"))).toEqual(["BAD_REQUEST"]);
  expect(codes(await find(person, createUserCode()))).toEqual(["NOT_FOUND"]);
  expect(codes(await approve(person, { userCode, creditBudget: "5.000000001" }))).toEqual(["BAD_REQUEST"]);
  expect(codes(await approve(person, { userCode, permissions: ["KEYS"] }))).toEqual(["BAD_REQUEST"]);
  expect(codes(await approve(person, { userCode, models: [] }))).toEqual(["BAD_REQUEST"]);
  expect(codes(await deny(person, userCode))).toEqual([]);
  expect(codes(await approve(person, { userCode }))).toEqual(["CONFLICT"]);
});

it("lets only people decide, and asks one thing at a time", async () => {
  const { userCode } = await ask();
  const stranger = await createStranger(app);
  const publishable = await createKey(app, { type: "publishable" });

  for (const [key, code] of [
    [null, "UNAUTHORIZED"],
    [app.key, "FORBIDDEN"],
    [stranger.key, "FORBIDDEN"],
    [publishable.key, "FORBIDDEN"],
  ] as const) {
    const target = { ...app, key };
    expect(codes(await execute(target, DeviceAuthorizationByCodeDocument, { userCode }))).toEqual([code]);
    expect(codes(await execute(target, ApproveDeviceAuthorizationDocument, { input: { userCode } }))).toEqual([code]);
    expect(codes(await execute(target, DenyDeviceAuthorizationDocument, { input: { userCode } }))).toEqual([code]);
  }
  const twice = await executeText(browser(person), {
    query: `{ a: deviceAuthorization(userCode: "${userCode}") { status } b: deviceAuthorization(userCode: "BCDFGHJK") { status } }`,
  });
  expect(twice.errors?.[0]?.message).toContain("only one of");
  expect(ok(await find(person, userCode)).deviceAuthorization.status).toBe("PENDING");
});

it("is found again by its id, by accounts that may see it", async () => {
  const [{ userCode }, decided] = [await ask(), await ask()];
  await deny(await signUp(app), decided.userCode);
  const ids = [userCode, decided.userCode, userCode.toLowerCase(), "no code"].map((code) => toGlobalId("DeviceAuthorization", code));
  const shown = { __typename: "DeviceAuthorization", id: ids[0], restId: userCode, status: "PENDING" };

  const found = await execute(browser(person), NodesOfAuthorizationDocument, { ids });

  expect(ok(found).nodes).toEqual([shown, null, null, null]);
  expect(codes(await execute(app, NodesOfAuthorizationDocument, { ids }))).toEqual(["FORBIDDEN"]);
  expect(codes(await execute(nobody, NodesOfAuthorizationDocument, { ids }))).toEqual(["UNAUTHORIZED"]);
});

it("counts wrong codes of every operation, for that account alone", async () => {
  const [guesser, { userCode }] = [await signUp(app), await ask()];
  for (let index = 0; index < USER_CODE_GUESSES_PER_MINUTE - 2; index += 1) {
    expect(codes(await find(guesser, createUserCode()))).toEqual(["NOT_FOUND"]);
  }
  expect(codes(await deny(guesser, createUserCode()))).toEqual(["NOT_FOUND"]);
  expect(codes(await approve(guesser, { userCode: createUserCode() }))).toEqual(["NOT_FOUND"]);

  const ids = Array.from({ length: 100 }, () => toGlobalId("DeviceAuthorization", formatUserCode(createUserCode())));
  const many = await execute(browser(guesser), NodesOfAuthorizationDocument, { ids });
  const refused = await find(guesser, userCode);

  expect(codes(many)).toEqual(["RATE_LIMITED"]);
  expect(codes(refused)).toEqual(["RATE_LIMITED"]);
  expect(refused.errors?.[0]?.extensions.retryAfterSeconds).toBeGreaterThan(0);
  expect(codes(await find(person, userCode))).toEqual([]);
});

describe("deviceAuthorizationChanged", () => {
  /** A signed-in browser's socket: the cookie, and the origin that browsers state. */
  function connectAs(who: Person) {
    class BrowserSocket extends WebSocket {
      constructor(address: string | URL, protocols?: string | string[]) {
        super(address, protocols, { headers: { Cookie: who.cookie }, origin: app.baseUrl });
      }
    }
    return createClient({ url: app.wsUrl, webSocketImpl: BrowserSocket, retryAttempts: 0 });
  }

  it("shows each change on a signed-in person's page, until the device has its key", async () => {
    const device = await ask();
    const client = connectAs(person);
    const live = subscribeWith(client, DeviceAuthorizationChangedDocument, { userCode: device.userCode });
    const first = live.next();
    await untilWatched(device.userCode);

    await approve(person, { userCode: device.userCode, creditBudget: "1" });
    expect(ok(await first).deviceAuthorizationChanged).toEqual({ status: "APPROVED", granted: { creditBudget: "1" } });
    await redeem(device.deviceCode);

    expect(ok(await live.next()).deviceAuthorizationChanged.status).toBe("USED");
    expect(await live.next()).toBeNull();
    await client.dispose();
  });

  it("refuses a person who guesses", async () => {
    const guesser = await signUp(app);
    const { userCode } = await ask();
    const client = connectAs(guesser);
    const answer = async (code: string) =>
      codes((await subscribeWith(client, DeviceAuthorizationChangedDocument, { userCode: code }).next()) ?? {});

    for (let index = 0; index < USER_CODE_GUESSES_PER_MINUTE; index += 1) expect(await answer(createUserCode())).toEqual(["NOT_FOUND"]);
    expect(await answer(createUserCode())).toEqual(["RATE_LIMITED"]);
    expect(await answer(userCode)).toEqual(["RATE_LIMITED"]);
    await client.dispose();
  });

  describe.each(TRANSPORTS)("over %s", (_name, subscribe) => {
    it("reports a denial to a key that manages keys, and no grant of another account", async () => {
      const [denied, approved] = [await ask(), await ask()];
      const watch = (device: Device) => subscribe(app, DeviceAuthorizationChangedDocument, { userCode: device.userCode });
      const [first, second] = [watch(denied), watch(approved)];
      const [next, other] = [first.next(), second.next()];
      await untilWatched(denied.userCode, 2);

      await deny(person, denied.userCode);
      await approve(person, { userCode: approved.userCode });

      expect(ok(await next).deviceAuthorizationChanged).toEqual({ status: "DENIED", granted: null });
      expect(await first.next()).toBeNull();
      expect(ok(await other).deviceAuthorizationChanged).toEqual({ status: "APPROVED", granted: null });
      second.leave();
    });

    it("refuses anonymous callers, and keys without the permission", async () => {
      const { userCode } = await ask();
      const weak = await createKey(app, { accountPermissions: ["profile", "balance", "usage"] });
      const publishable = await createKey(app, { type: "publishable" });

      for (const [key, code] of [
        [null, "UNAUTHORIZED"],
        [weak.key, "FORBIDDEN"],
        [publishable.key, "FORBIDDEN"],
      ] as const) {
        const answers = await subscribe({ ...app, key }, DeviceAuthorizationChangedDocument, { userCode }).rest();
        expect(answers.flatMap(codes)).toEqual([code]);
      }
    });
  });
});

/** Until `count` subscriptions listen and have looked at how it stands. */
async function untilWatched(userCode: string, count = 1): Promise<void> {
  await expect.poll(() => listening("device-authorization-changed")).toBe(count);
  await find(person, userCode);
}
