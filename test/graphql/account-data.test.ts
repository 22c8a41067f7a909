/** The account as a whole over GraphQL: its export and its deletion. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock } from "../../src/lib/clock.js";
import { AccountErasure } from "../../src/services/account-data/erasure.js";
import { EXPORT_PAGE_MAX, FRESH_SESSION_SECONDS } from "../../src/services/account-data/limits.js";
import { FailureRetention } from "../../src/services/request-log/failure-retention.js";
import { CREDIT, chat, databaseOf, poolOf, summarize } from "../e2e/money.js";
import {
  AccountDeletionPreviewDocument,
  type AccountExportSection,
  ConnectIntegrationDocument,
  CreateApiKeyDocument,
  CreateWebhookEndpointDocument,
  DeleteAccountDocument,
  type DeleteAccountInput,
  ExportedDataDocument,
  MyIdDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { registerModel } from "../support/community-models.js";
import { silentLog } from "../support/database.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { usageRecord } from "../support/ledger.js";
import { createMoneyProcess } from "../support/money-process.js";
import { chatChunk, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { type Person, type PersonOptions, signedIn, signIn, signUp } from "../support/sign-in.js";
import { sse, waitFor } from "../support/upstream-replies.js";
import { codes, execute, ok } from "./client.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
});
afterAll(() => app.close());

const as = (person: Pick<Person, "cookie">) => ({ ...app, key: null, headers: signedIn(person) });
const prisma = () => databaseOf(app).prisma;

interface Owner extends Person {
  readonly handle: string;
}

async function createOwner(options: PersonOptions = {}): Promise<Owner> {
  const person = await signUp(app, options);
  const { handle } = await prisma().account.findUniqueOrThrow({ where: { id: person.accountId } });
  return { ...person, handle };
}

const memberOf = ({ accountId, handle }: Owner) => ({ accountId, handle, key: "", keyId: "" });
const remove = (owner: Owner, input: Partial<DeleteAccountInput> = {}) =>
  execute(as(owner), DeleteAccountDocument, { input: { confirmHandle: owner.handle, password: owner.password, ...input } });

async function createKeyOf(owner: Owner, name: string): Promise<{ readonly id: string; readonly text: string }> {
  const { createApiKey } = ok(await execute(as(owner), CreateApiKeyDocument, { input: { name } }));
  return { id: createApiKey.apiKey.restId, text: String(createApiKey.key) };
}

/** When the deletion was finished, after another process has come by; null: not yet. */
async function finishedAt({ accountId }: Owner): Promise<Date | null> {
  const { leases } = app.infrastructure;
  const broker = app.services.developmentBroker;
  const failures = new FailureRetention(databaseOf(app), systemClock, 30);
  await new AccountErasure({ database: databaseOf(app), broker, leases, failures, clock: systemClock, log: silentLog }).sweep();
  return (await prisma().accountDeletion.findUniqueOrThrow({ where: { accountId } })).finishedAt;
}

interface Page {
  readonly items: readonly unknown[];
  readonly endCursor: string | null;
}

async function exported(owner: Owner, section: AccountExportSection, first?: number): Promise<Record<string, unknown>[]> {
  const items: unknown[] = [];
  for (let after: string | null = null; ; ) {
    const page: Page | null = ok(await execute(as(owner), ExportedDataDocument, { section, first: first ?? null, after })).me.export;
    items.push(...(page?.items ?? []));
    after = page?.endCursor ?? null;
    if (after === null) return items as Record<string, unknown>[];
  }
}

describe("deleteAccount", () => {
  it("ends everything at once, charges work under way, and keeps the ledger without names", async () => {
    const owner = await createOwner({ credits: 5, name: "Ada Lovelace" });
    const other = await signIn(app, owner);
    const key = await createKeyOf(owner, "Ada's own");
    const payer = { key: key.text, accountId: owner.accountId, apiKeyId: key.id };
    await execute(as(owner), CreateWebhookEndpointDocument, { input: { url: "http://127.0.0.1:9/hook", events: ["API_KEY_REVOKED"] } });
    ok(await execute(as(owner), ConnectIntegrationDocument, { toolkit: "notes" }));
    const model = await registerModel(app, memberOf(owner), { visibility: "public" });
    const fileId = randomUUID();
    await prisma().mediaObject.create({
      data: {
        ...{ id: fileId, accountId: owner.accountId, contentType: "text/plain", sizeBytes: 3, tags: ["ada"], status: "complete" },
        taggings: { create: { tag: "ada", createdAt: new Date() } },
      },
    });
    expect((await chat(app, payer, { model: "acme/chat" })).status).toBe(200);
    let goOn: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    app.upstream.replyNext(
      sse([chatChunk({ content: "Hel" }), waitFor(held), chatChunk({ content: "lo" }, "stop"), usageChunk(wireUsage(10, 4))]),
    );
    const stream = await chat(app, payer, { model: "acme/chat", stream: true });
    const reader = textOf(stream);
    await reader.until("Hel");
    const preview = ok(await execute(as(owner), AccountDeletionPreviewDocument)).me.deletionPreview;

    const { deleteAccount } = ok(await remove(owner));

    expect(preview).toEqual({
      ...{ obstacle: null, proof: "PASSWORD", apiKeys: 1, sessions: 2, webhookEndpoints: 1, communityModels: 1, files: 1 },
      keptUsageRecords: 1,
    });
    expect(deleteAccount).toEqual({
      deletedId: owner.accountId,
      deletedAt: expect.any(String),
      forfeited: expect.stringMatching(/^[45]\./),
    });
    expect((await chat(app, payer, { model: "acme/chat" })).status).toBe(401);
    for (const person of [owner, other]) expect(codes(await execute(as(person), MyIdDocument))).toEqual(["UNAUTHORIZED"]);
    expect((await fetch(`${app.baseUrl}/media/${fileId}/metadata`)).status).toBe(404);
    expect(JSON.stringify(await (await fetch(`${app.baseUrl}/models?reliability=all`)).json())).not.toContain(model.modelId);
    expect(await findBrokenInvariants(poolOf(app))).toEqual({});

    goOn();
    expect(summarize(await reader.end())).toMatchObject({ content: "Hello", isDone: true, error: null });
    await expect.poll(() => prisma().usageRecord.count({ where: { accountId: owner.accountId } })).toBe(2);
    await expect.poll(() => finishedAt(owner)).toEqual(expect.any(Date));

    const rows = await prisma().usageRecord.findMany({ where: { accountId: owner.accountId } });
    const entries = await prisma().ledgerEntry.findMany({ where: { accountId: owner.accountId } });
    const sumOf = (kind: string) =>
      entries
        .filter((entry) => entry.kind === kind && ["tier", "crypto", "pack"].includes(entry.book))
        .reduce((sum, entry) => sum + entry.amountNanocredits, 0n);
    expect(rows.map(({ apiKeyId, apiKeyName, costNanocredits }) => [apiKeyId, apiKeyName, costNanocredits > 0n])).toEqual([
      [key.id, null, true],
      [key.id, null, true],
    ]);
    expect(sumOf("charge")).toBe(-rows.reduce((sum, row) => sum + row.costNanocredits, 0n));
    expect(sumOf("grant") + sumOf("refill") + sumOf("charge") + sumOf("forfeit")).toBe(0n);
    expect(await prisma().developmentConnection.count({ where: { accountId: owner.accountId } })).toBe(0);
    expect(await findBrokenInvariants(poolOf(app), { isIdle: true })).toEqual({});
  });

  it("loses and doubles no charge of processes that have leased credits of the account, be they deaf or dying", async () => {
    const owner = await createOwner({ credits: 100 });
    const { id: apiKeyId } = await createKeyOf(owner, "leased");
    const payer = { accountId: owner.accountId, apiKeyId, hasBudget: false };
    const metered = usageRecord({ status: "cancelled", usageSource: "partial" });
    const processes = await Promise.all([createMoneyProcess(databaseOf(app)), createMoneyProcess(databaseOf(app))]);
    const [lasting, dying] = await Promise.all(
      processes.map(async ({ credits }) => {
        const charge = credits.open({
          generationId: randomUUID(),
          payer,
          estimate: CREDIT,
          paidOnly: false,
          isFree: false,
          record: metered,
        });
        await charge.held;
        return charge;
      }),
    );
    expect(await prisma().creditLease.count({ where: { accountId: owner.accountId } })).toBe(2);

    const { deleteAccount } = ok(await remove(owner));
    expect(await finishedAt(owner)).toBeNull();
    expect(await findBrokenInvariants(poolOf(app))).toEqual({});
    await lasting?.settle(CREDIT / 4n, usageRecord());
    await dying?.meter(CREDIT / 2n, true, () => metered);
    await processes[1]?.crash();
    await processes[0]?.recovery.sweep();
    await processes[0]?.close();
    await expect.poll(() => finishedAt(owner)).toEqual(expect.any(Date));

    const rows = await prisma().usageRecord.findMany({
      where: { accountId: owner.accountId },
      select: { costNanocredits: true, apiKeyName: true },
    });
    const sums = await prisma().ledgerEntry.groupBy({
      by: ["kind"],
      where: { accountId: owner.accountId, book: { in: ["tier", "crypto", "pack"] } },
      _sum: { amountNanocredits: true },
    });
    const sumOf = (kind: string) => sums.find((sum) => sum.kind === kind)?._sum.amountNanocredits ?? 0n;
    const charged = rows.reduce((sum, { costNanocredits }) => sum + costNanocredits, 0n);
    expect(rows.every(({ apiKeyName }) => apiKeyName === null)).toBe(true);
    expect(charged).toBeGreaterThanOrEqual(CREDIT / 4n);
    expect(sumOf("charge")).toBe(-charged);
    expect(sumOf("forfeit")).toBe(-(sumOf("grant") + sumOf("refill") - charged));
    expect(deleteAccount.forfeited).not.toBe("0");
    expect(await findBrokenInvariants(poolOf(app), { isIdle: true })).toEqual({});
  });

  it("lets the person return as a new account", async () => {
    const owner = await createOwner();
    ok(await remove(owner));
    const again = await createOwner({ email: owner.email });

    expect(again).toMatchObject({ handle: owner.handle });
    expect(again.accountId).not.toBe(owner.accountId);
  });

  it("is refused without the password, for another handle, to keys, and of an operator", async () => {
    const owner = await createOwner();
    const key = await createKeyOf(owner, "key");
    const operator = await createOwner();
    await prisma().account.update({ where: { id: operator.accountId }, data: { isOperator: true } });
    const input = { confirmHandle: owner.handle, password: owner.password };

    const wrong = [
      await remove(owner, { password: "not the password" }),
      await remove(owner, { password: null }),
      await remove(owner, { confirmHandle: "somebody-else" }),
    ];
    expect(wrong.map(({ errors }) => [errors?.[0]?.extensions.code, errors?.[0]?.extensions.param])).toEqual([
      ["BAD_REQUEST", "password"],
      ["BAD_REQUEST", "password"],
      ["BAD_REQUEST", "confirmHandle"],
    ]);
    expect(codes(await execute({ ...app, key: key.text }, DeleteAccountDocument, { input }))).toEqual(["FORBIDDEN"]);
    expect(codes(await remove(operator))).toEqual(["FORBIDDEN"]);
    expect(await prisma().accountDeletion.count({ where: { accountId: { in: [owner.accountId, operator.accountId] } } })).toBe(0);
  });

  it("takes a session that has just begun where there is no password", async () => {
    const owner = await createOwner();
    const createdAt = (secondsAgo: number) =>
      prisma().session.update({ where: { id: owner.sessionId }, data: { createdAt: new Date(Date.now() - secondsAgo * 1000) } });
    await prisma().signInMethod.updateMany({ where: { accountId: owner.accountId }, data: { providerId: "github", password: null } });
    await createdAt(FRESH_SESSION_SECONDS + 60);
    const preview = async () => ok(await execute(as(owner), AccountDeletionPreviewDocument)).me.deletionPreview;

    expect(await preview()).toMatchObject({ obstacle: "STALE_SESSION", proof: "FRESH_SESSION" });
    expect(codes(await remove(owner, { password: null }))).toEqual(["FORBIDDEN"]);
    await createdAt(FRESH_SESSION_SECONDS - 60);
    expect(await preview()).toMatchObject({ obstacle: null });
    ok(await remove(owner, { password: null }));
  });

  it("happens once, and nothing is made for the account beside it", async () => {
    const owner = await createOwner({ credits: 1 });
    const make = (name: string) => execute(as(owner), CreateApiKeyDocument, { input: { name } });

    const [first, second, ...made] = await Promise.all([remove(owner), remove(owner), make("a"), make("b"), make("c"), make("d")]);

    const answers = [first, second].map(({ data, errors }) => data?.deleteAccount?.deletedId ?? errors?.[0]?.extensions.code);
    expect(answers).toContain(owner.accountId);
    for (const answer of answers) expect([owner.accountId, "UNAUTHORIZED"]).toContain(answer);
    for (const { errors } of made) expect(["UNAUTHORIZED", undefined]).toContain(errors?.[0]?.extensions.code);
    await finishedAt(owner);
    expect(await prisma().ledgerEntry.count({ where: { accountId: owner.accountId, kind: "forfeit", book: "issued" } })).toBe(1);
    expect(await findBrokenInvariants(poolOf(app))).toEqual({});
  });
});

describe("me.export", () => {
  it("answers all stored data, and no secret", async () => {
    const owner = await createOwner({ credits: 3, name: "Grace" });
    const key = await createKeyOf(owner, "exported");
    const made = ok(
      await execute(as(owner), CreateWebhookEndpointDocument, { input: { url: "http://127.0.0.1:9/hook", events: ["API_KEY_REVOKED"] } }),
    ).createWebhookEndpoint;
    await registerModel(app, memberOf(owner));
    const payer = { key: key.text, accountId: owner.accountId, apiKeyId: key.id };
    await chat(app, payer, { model: "acme/chat" });
    await expect.poll(() => prisma().usageRecord.count({ where: { accountId: owner.accountId } })).toBe(1);

    const all = {
      profile: await exported(owner, "PROFILE"),
      methods: await exported(owner, "SIGN_IN_METHODS"),
      sessions: await exported(owner, "SESSIONS"),
      keys: await exported(owner, "API_KEYS"),
      usage: await exported(owner, "USAGE"),
      ledger: await exported(owner, "LEDGER"),
      files: await exported(owner, "FILES"),
      uploads: await exported(owner, "UPLOADS"),
      webhooks: await exported(owner, "WEBHOOK_ENDPOINTS"),
      models: await exported(owner, "MODELS"),
    };

    expect(all).toMatchObject({
      profile: [{ id: owner.accountId, handle: owner.handle, email: owner.email, name: "Grace" }],
      methods: [{ providerId: "credential" }],
      sessions: [{ id: owner.sessionId }],
      keys: [{ id: key.id, name: "exported", budget: null }],
      usage: [
        {
          apiKeyName: "exported",
          model: "acme/chat",
          cost: "0.000018",
          charge: [
            { book: "tier", amount: "-0.000018" },
            { book: "revenue", amount: "0.000018" },
          ],
        },
      ],
      ledger: expect.arrayContaining([
        expect.objectContaining({
          kind: "grant",
          entries: [
            { book: "pack", amount: "3" },
            { book: "issued", amount: "-3" },
          ],
        }),
      ]),
      files: [],
      uploads: [],
      webhooks: [{ id: made.webhookEndpoint.restId, url: "http://127.0.0.1:9/hook" }],
      models: [{ agent: null, type: "proxy" }],
    });
    const { password, hash, secret } = await readSecrets(owner, key.id);
    const text = JSON.stringify(all);
    for (const hidden of [key.text, made.secret, password, hash, secret]) expect(text).not.toContain(hidden);
  });

  it("is read in pages, of any size", async () => {
    const owner = await createOwner();
    const stranger = await createOwner();
    await poolOf(app).query(
      `INSERT INTO usage_record (id, account_id, timestamp, modality, model, model_used, meter_source, cost_nanocredits, response_time_ms, status, usage_source)
       SELECT gen_random_uuid(), $1, '2026-01-01'::timestamptz + n / 3 * interval '1 second', 'text', 'acme/chat', 'acme/chat', 'tier', 0, 1, 'ok', 'provider'
       FROM generate_series(1, 2500) n`,
      [owner.accountId],
    );

    const rows = await exported(owner, "USAGE");

    expect(new Set(rows.map(({ id }) => id)).size).toBe(2500);
    expect(rows.map(({ timestamp }) => timestamp)).toEqual(
      rows
        .map(({ timestamp }) => timestamp)
        .toSorted()
        .toReversed(),
    );
    expect(await exported(stranger, "USAGE")).toEqual([]);
    const refused = async (variables: { first?: number; after?: string; section?: AccountExportSection }) =>
      (await execute(as(owner), ExportedDataDocument, { section: "USAGE", ...variables })).errors?.[0]?.extensions;
    const endCursor = ok(await execute(as(owner), ExportedDataDocument, { section: "USAGE", first: 1 })).me.export?.endCursor;
    expect(await refused({ first: EXPORT_PAGE_MAX + 1 })).toMatchObject({ code: "BAD_REQUEST", param: "first" });
    expect(await refused({ after: "nonsense" })).toMatchObject({ code: "BAD_REQUEST", param: "after" });
    expect(await refused({ after: endCursor ?? "", section: "LEDGER" })).toMatchObject({ code: "BAD_REQUEST", param: "after" });
    await poolOf(app).query("DELETE FROM usage_record WHERE account_id = $1", [owner.accountId]);
  });
});

/** The parts of a stream up to the first text, and the rest of them. */
function textOf({ body }: Response) {
  const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  const readMore = async (): Promise<boolean> => {
    const part = await reader?.read();
    text += part?.value ?? "";
    return part?.done === false;
  };
  return {
    until: async (awaited: string) => {
      while (!text.includes(awaited) && (await readMore()));
    },
    end: async () => {
      while (await readMore());
      return text;
    },
  };
}

async function readSecrets(owner: Owner, apiKeyId: string) {
  const [method, key, model] = await Promise.all([
    prisma().signInMethod.findFirstOrThrow({ where: { accountId: owner.accountId } }),
    prisma().apiKey.findUniqueOrThrow({ where: { id: apiKeyId } }),
    prisma().communityModel.findFirstOrThrow({ where: { accountId: owner.accountId } }),
  ]);
  const hexOf = (bytes: Uint8Array | null) => Buffer.from(bytes ?? "none").toString("base64");
  return { password: method.password ?? "none", hash: hexOf(key.hash), secret: hexOf(model.bearerToken) };
}
