/** Alerts on both faces: what raises them, that each is raised once, and how they are delivered, silenced and acknowledged. */
import { randomUUID } from "node:crypto";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createAlerts } from "../../src/services/alerts/create-alerts.js";
import {
  AcknowledgeAlertDocument,
  AlertRaisedDocument,
  CreateApiKeyDocument,
  MyAlertRulesDocument,
  MyAlertsDocument,
  SilenceAlertsDocument,
  UnsilenceAlertsDocument,
  UpdateAlertRuleDocument,
} from "../operations/generated/graphql.js";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";
import { codes, execute, ok, subscribeSse, type Target } from "./client.js";

const DAY = 86_400;
const HOUR_MS = 3_600_000;
const CREDIT = 1_000_000_000n;
const NO_ID = "00000000-0000-0000-0000-000000000000";
const RETIRED = { id: "acme/retired", modality: "text", upstream: "acme", upstreamModel: "retired", title: "Retired", prices: {} };

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ models: [{ ...RETIRED, retiresAt: "2027-01-31" }] });
});
afterAll(() => app.close());

/** An evaluation that is due, at a later time than every other one. */
const clock: MovableClock = createMovableClock();
const watch = () => createAlerts(app.infrastructure, undefined, clock, pino({ level: "silent" })).alertWatch;
const evaluate = async () => {
  clock.advance(60);
  expect(await watch().run()).toBe(true);
};

type Owner = Person & Target;

async function createOwner(): Promise<Owner> {
  const person = await signUp(app);
  return { ...person, baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: null, headers: signedIn(person) };
}

async function createKey(owner: Owner, input: object = {}): Promise<string> {
  return ok(await execute(owner, CreateApiKeyDocument, { input: { name: "watched", ...input } })).createApiKey.apiKey.restId;
}

const alertsOf = async (owner: Owner, filter: object = {}) => ok(await execute(owner, MyAlertsDocument, { filter })).me.alerts?.nodes ?? [];
const spend = (id: string, credits: number) =>
  app.database.prisma.apiKey.update({ where: { id }, data: { spentNanocredits: BigInt(credits) * CREDIT } });

describe("an alert about a budget", () => {
  it("is raised once at each percentage, by the highest that is reached", async () => {
    const owner = await createOwner();
    const id = await createKey(owner, { creditBudget: "10" });
    const percents: unknown[] = [];
    for (const spent of [4, 5, 7, 9, 10]) {
      await spend(id, spent);
      await evaluate();
      await evaluate();
      percents.push((await alertsOf(owner)).map(({ details }) => (details as { percent: number }).percent));
    }

    expect(percents).toEqual([[], [50], [50], [80, 50], [100, 80, 50]]);
    expect((await alertsOf(owner))[0]).toMatchObject({
      kind: "BUDGET_REACHED",
      subjectId: id,
      message: "The key watched has spent 100 % of its budget of 10 credits.",
    });
  });

  it("follows the rule, which may be off", async () => {
    const owner = await createOwner();
    const id = await createKey(owner, { creditBudget: "10" });
    const input = { kind: "BUDGET_REACHED", percents: [90, 30] } as const;
    expect(ok(await execute(owner, UpdateAlertRuleDocument, { input })).updateAlertRule.alertRule.percents).toEqual([30, 90]);
    ok(await execute(owner, UpdateAlertRuleDocument, { input: { kind: "BUDGET_REACHED", isEnabled: false } }));
    await spend(id, 4);
    await evaluate();
    expect(await alertsOf(owner)).toEqual([]);

    ok(await execute(owner, UpdateAlertRuleDocument, { input: { kind: "BUDGET_REACHED", isEnabled: true } }));
    await evaluate();

    expect(await alertsOf(owner)).toMatchObject([{ details: { percent: 30, creditBudget: 10, spent: 4 } }]);
    expect(ok(await execute(owner, MyAlertRulesDocument)).me.alertRules).toContainEqual({
      ...{ kind: "BUDGET_REACHED", isEnabled: true, percents: [30, 90], days: null, minimumSpend: null },
    });
  });
});

describe("an alert about an unused key", () => {
  it("is raised after ninety days, and again only after another use", async () => {
    const owner = await createOwner();
    const id = await createKey(owner);
    const use = (daysAgo: number) =>
      app.database.prisma.apiKey.update({ where: { id }, data: { lastUsedAt: new Date(clock.now().getTime() - daysAgo * DAY * 1_000) } });
    await use(89);
    await evaluate();
    expect(await alertsOf(owner)).toEqual([]);

    await use(90);
    await evaluate();
    await evaluate();
    expect(await alertsOf(owner)).toMatchObject([{ kind: "KEY_UNUSED", subjectId: id, details: { days: 90 } }]);
    await use(100);
    await evaluate();

    expect(await alertsOf(owner)).toHaveLength(2);
  });

  it("is not raised for management keys, and for app keys that people have granted keys to", async () => {
    const owner = await createOwner();
    const createdAt = new Date(clock.now().getTime() - 91 * DAY * 1_000);
    const [management, granted, idle] = [
      await createKey(owner, { isManagement: true }),
      await createKey(owner, { type: "PUBLISHABLE" }),
      await createKey(owner, { type: "PUBLISHABLE" }),
    ];
    await app.database.prisma.apiKey.updateMany({ where: { id: { in: [management, granted, idle] } }, data: { createdAt } });
    await app.database.prisma.apiKey.update({ where: { id: await createKey(await createOwner()) }, data: { appKeyId: granted } });
    await evaluate();

    expect(await alertsOf(owner)).toMatchObject([{ kind: "KEY_UNUSED", subjectId: idle }]);
  });
});

describe("an alert about spend", () => {
  async function rolled(accountId: string, start: Date, credits: number): Promise<void> {
    await app.database.prisma.usageHourRollup.create({
      data: {
        ...{ accountId, level: 0, start, apiKeyId: NO_ID, model: "", modality: "text", outcome: "ok", requests: 1n },
        ...{ costNanocredits: BigInt(credits) * CREDIT, inputTokens: 0n, outputTokens: 0n, responseTimes: 0, firstTokenTimes: 0 },
      },
    });
  }

  async function createSpender(weeks: number): Promise<{ owner: Owner; hour: number }> {
    const owner = await createOwner();
    const hour = Math.floor(clock.now().getTime() / HOUR_MS) * HOUR_MS;
    const createdAt = new Date(hour - weeks * 7 * DAY * 1_000 - 2 * HOUR_MS);
    await app.database.prisma.account.update({ where: { id: owner.accountId }, data: { createdAt } });
    for (let week = 1; week <= weeks; week += 1) await rolled(owner.accountId, new Date(hour - week * 7 * DAY * 1_000), 3);
    return { owner, hour };
  }

  it("is raised once a day when it is far above that of the weeks before", async () => {
    const { owner, hour } = await createSpender(8);
    await rolled(owner.accountId, new Date(hour), 50);
    await evaluate();
    await evaluate();

    expect(await alertsOf(owner)).toMatchObject([
      { kind: "SPEND_UNUSUAL", subjectId: null, details: { hour: new Date(hour).toISOString(), spent: 50 } },
    ]);
  });

  it("is not raised for an account without four weeks, below the minimum, or where it is off", async () => {
    const { owner: young, hour } = await createSpender(3);
    const { owner: small } = await createSpender(8);
    const { owner: off } = await createSpender(8);
    ok(await execute(small, UpdateAlertRuleDocument, { input: { kind: "SPEND_UNUSUAL", minimumSpend: "51" } }));
    ok(await execute(off, UpdateAlertRuleDocument, { input: { kind: "SPEND_UNUSUAL", isEnabled: false } }));
    for (const { accountId } of [young, small, off]) await rolled(accountId, new Date(hour), 50);
    await evaluate();

    for (const owner of [young, small, off]) expect(await alertsOf(owner)).toEqual([]);
  });

  it("is raised for accounts beyond the pages of one evaluation", async () => {
    const many = 5_100;
    const { owner, hour } = await createSpender(8);
    await rolled(owner.accountId, new Date(hour), 50);
    const last = "ffffffff-ffff-4fff-bfff-ffffffffffff";
    // Ids of others come before, so that the account is read last.
    await app.database.pool.query("UPDATE usage_hour_rollup SET account_id = $1 WHERE account_id = $2", [last, owner.accountId]);
    await app.database.pool.query("INSERT INTO account (id, handle, created_at) SELECT $1, 'last', created_at FROM account WHERE id = $2", [
      last,
      owner.accountId,
    ]);
    await app.database.pool.query(
      `WITH more AS (INSERT INTO account (id, handle) SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, 'many-' || n FROM generate_series(1, $1::integer) n RETURNING id)
       INSERT INTO usage_hour_rollup (account_id, level, start, api_key_id, model, modality, outcome, requests, cost_nanocredits, input_tokens, output_tokens, response_times, first_token_times)
       SELECT id, 0, $2, $3, '', 'text', 'ok', 1, 1, 0, 0, 0, 0 FROM more`,
      [many, new Date(hour), NO_ID],
    );
    const raised = () => app.database.prisma.alert.count({ where: { accountId: last } });
    await evaluate();
    expect(await raised()).toBe(0);
    await evaluate();
    expect(await raised()).toBe(1);
    await app.database.pool.query("DELETE FROM usage_hour_rollup WHERE account_id IN (SELECT id FROM account WHERE handle LIKE 'many-%')");
  });
});

describe("an alert about a model", () => {
  it("is raised once for each account that has used the model", async () => {
    const [user, other] = [await createOwner(), await createOwner()];
    const used = { accountId: user.accountId, day: new Date(clock.now().toISOString().slice(0, 10)), model: RETIRED.id };
    await app.database.prisma.usageDaily.create({ data: { ...used, meterSource: "tier", requests: 1, costNanocredits: 0n } });
    await evaluate();
    await evaluate();

    expect(await alertsOf(user)).toMatchObject([
      { kind: "MODEL_DEPRECATED", message: "The model Retired, which this account uses, is retired on 2027-01-31. Move to another model." },
    ]);
    expect(await alertsOf(other)).toEqual([]);
  });

  it("is raised the days of the rule before the model is retired, and after it", async () => {
    const daysLeft = Math.ceil((Date.parse("2027-01-31") - clock.now().getTime()) / (DAY * 1_000));
    const owners = [];
    for (const days of [daysLeft - 1, daysLeft]) {
      const owner = await createOwner();
      const used = { accountId: owner.accountId, day: new Date(clock.now().toISOString().slice(0, 10)), model: RETIRED.id };
      await app.database.prisma.usageDaily.create({ data: { ...used, meterSource: "tier", requests: 1, costNanocredits: 0n } });
      ok(await execute(owner, UpdateAlertRuleDocument, { input: { kind: "MODEL_DEPRECATED", days } }));
      owners.push(owner);
    }
    await evaluate();

    expect((await Promise.all(owners.map((owner) => alertsOf(owner)))).map(({ length }) => length)).toEqual([0, 1]);
  });
});

describe("a failed top-up", () => {
  it("is an alert once, however many processes report it", async () => {
    const owner = await createOwner();
    const failure = { accountId: owner.accountId, topUpId: NO_ID, reason: "The card was declined." };
    await Promise.all([1, 2, 3].map(() => watch().notify(failure)));

    expect(await alertsOf(owner)).toMatchObject([{ kind: "TOP_UP_FAILED", message: "A top-up failed: The card was declined." }]);
  });

  it("is heard as an event", async () => {
    const owner = await createOwner();
    const live = subscribeSse(owner, AlertRaisedDocument, {});
    const next = live.next();
    await repeatUntil(next, async () => {
      app.infrastructure.events.publish("top-up-failed", { accountId: owner.accountId, topUpId: randomUUID(), reason: "" });
      await alertsOf(owner);
    });

    expect(ok(await next).alertRaised).toMatchObject({ kind: "TOP_UP_FAILED", message: "A top-up failed." });
    live.leave();
  });
});

describe("an evaluation", () => {
  it("is made by one process at a time", async () => {
    clock.advance(60);
    const made = await Promise.all([1, 2, 3, 4].map(() => watch().run()));

    expect(made.filter(Boolean)).toHaveLength(1);
    clock.advance(10);
    expect(await watch().run()).toBe(false);
  });
});

describe("delivery", () => {
  const queued = async (accountId: string) =>
    (await app.database.prisma.webhookDelivery.findMany({ where: { endpoint: { accountId } } })).map(({ event, payload }) => [
      event,
      payload,
    ]);
  const listen = (accountId: string) =>
    app.database.prisma.webhookEndpoint.create({
      data: { id: randomUUID(), accountId, url: "https://127.0.0.1", secret: new Uint8Array(1), events: ["alert.raised"] },
    });
  const fail = (owner: Owner, topUpId: string) => watch().notify({ accountId: owner.accountId, topUpId, reason: "Declined." });

  it("goes to the webhooks of the account, and during a silence to none", async () => {
    const owner = await createOwner();
    await listen(owner.accountId);
    await listen((await createOwner()).accountId);
    const [one, two, three] = ["1", "2", "3"].map((digit) => NO_ID.replaceAll("0", digit)) as [string, string, string];
    await fail(owner, one);
    const input = { kind: "TOP_UP_FAILED", subjectId: two } as const;
    expect(ok(await execute(owner, SilenceAlertsDocument, { input })).silenceAlerts.alertSilence).toEqual({ ...input, until: null });
    await fail(owner, two);
    await fail(owner, three);
    ok(await execute(owner, UnsilenceAlertsDocument, { input }));
    expect(codes(await execute(owner, UnsilenceAlertsDocument, { input }))).toEqual(["NOT_FOUND"]);

    const data = { kind: "top_up_failed", message: "A top-up failed: Declined." };
    expect(await queued(owner.accountId)).toEqual([
      ["alert.raised", expect.objectContaining({ type: "alert.raised", data: expect.objectContaining({ ...data, subject_id: one }) })],
      ["alert.raised", expect.objectContaining({ data: expect.objectContaining({ ...data, subject_id: three }) })],
    ]);
    expect((await alertsOf(owner)).map(({ isSilenced }) => isSilenced)).toEqual([false, true, false]);
  });

  it("is silent until the stated time", async () => {
    const owner = await createOwner();
    const until = new Date(clock.now().getTime() + HOUR_MS).toISOString();
    ok(await execute(owner, SilenceAlertsDocument, { input: { kind: "TOP_UP_FAILED", until } }));
    await fail(owner, NO_ID);
    clock.advance(3_600);
    await fail(owner, NO_ID.replaceAll("0", "4"));

    expect((await alertsOf(owner)).map(({ isSilenced }) => isSilenced)).toEqual([false, true]);
  });
});

describe("the owner", () => {
  it("acknowledges an alert once, and no other account does", async () => {
    const [owner, stranger] = [await createOwner(), await createOwner()];
    await watch().notify({ accountId: owner.accountId, topUpId: NO_ID, reason: "" });
    const [alert] = await alertsOf(owner, { isAcknowledged: false });
    const id = String(alert?.id);
    expect(codes(await execute(stranger, AcknowledgeAlertDocument, { id }))).toEqual(["NOT_FOUND"]);

    const first = ok(await execute(owner, AcknowledgeAlertDocument, { id })).acknowledgeAlert.alert;
    expect(ok(await execute(owner, AcknowledgeAlertDocument, { id })).acknowledgeAlert.alert).toEqual(first);
    expect(first.acknowledgedAt).not.toBeNull();
    expect(await alertsOf(owner, { isAcknowledged: false })).toEqual([]);
    expect(await alertsOf(owner, { isAcknowledged: true, kinds: ["TOP_UP_FAILED"] })).toHaveLength(1);
  });

  it("cannot set a parameter of another kind, or a time in the past", async () => {
    const owner = await createOwner();
    for (const input of [
      { kind: "KEY_UNUSED", percents: [5] },
      { kind: "BUDGET_REACHED", percents: [0] },
      { kind: "KEY_UNUSED", days: 0 },
      { kind: "TOP_UP_FAILED", minimumSpend: "1" },
    ] as const) {
      expect(codes(await execute(owner, UpdateAlertRuleDocument, { input })), JSON.stringify(input)).toEqual(["BAD_REQUEST"]);
    }
    const input = { kind: "KEY_UNUSED", until: "2020-01-01T00:00:00Z" } as const;
    expect(codes(await execute(owner, SilenceAlertsDocument, { input }))).toEqual(["BAD_REQUEST"]);
  });

  it("does the same over REST", async () => {
    const owner = await createOwner();
    const { request } = createClient(app.baseUrl, null);
    const headers = signedIn(owner);
    await watch().notify({ accountId: owner.accountId, topUpId: NO_ID, reason: "" });
    const send = async (method: string, path: string, body?: unknown) =>
      (await request(method, `/account${path}`, { headers, ...(body !== undefined && { body }) })).json<Record<string, unknown>>();
    const { data } = (await send("GET", "/alerts?kind=top_up_failed&acknowledged=false")) as { data: { id: string }[] };

    expect(data).toMatchObject([{ kind: "top_up_failed", subject_id: NO_ID, silenced: false, acknowledged_at: null }]);
    expect(await send("POST", `/alerts/${data[0]?.id}/acknowledge`)).toMatchObject({ acknowledged_at: expect.any(String) });
    expect(await send("PATCH", "/alert-rules/key_unused", { days: 30, enabled: false })).toMatchObject({ enabled: false, days: 30 });
    expect(await send("GET", "/alert-rules")).toMatchObject({ data: expect.arrayContaining([expect.objectContaining({ days: 30 })]) });
    expect(await send("POST", "/alert-silences", { kind: "key_unused" })).toEqual({ kind: "key_unused", subject_id: null, until: null });
    expect(await send("GET", "/alert-silences")).toEqual({ data: [{ kind: "key_unused", subject_id: null, until: null }] });
    expect(await send("POST", "/alert-silences/end", { kind: "key_unused" })).toEqual({ ended: true });
    expect(await send("PATCH", "/alert-rules/none", {})).toMatchObject({ status: 400, error: { param: "kind" } });
  });
});

async function repeatUntil(until: Promise<unknown>, act: () => Promise<unknown>): Promise<void> {
  let isSettled = false;
  const settle = () => {
    isSettled = true;
  };
  until.then(settle, settle);
  while (!isSettled) await act();
}
