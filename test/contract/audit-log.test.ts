/**
 * Every mutation for operators writes one row of the audit log, in the transaction of the act: when the row is refused, nothing has changed.
 * The list of mutations is the schema's, so that a new one fails here until it is tried.
 */
import { randomUUID } from "node:crypto";
import type { GraphQLObjectType } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { schema } from "../../src/graphql/schema.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { codes, execute, ok, post } from "../graphql/client.js";
import { AuditLogDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";

const CREDIT = 1_000_000_000n;

interface Try {
  readonly act: string;
  /** The input, for an account with a key and a session. */
  readonly input: (payer: Payer) => Readonly<Record<string, unknown>>;
  /** False: the act is not a change of the database. */
  readonly isInTransaction?: false;
}

const ROUTE = { modelId: "acme/chat" };
const ADDED = { upstream: "acme", upstreamModel: "added" };

const LINKED = randomUUID();

const TRIES: Readonly<Record<string, Try>> = {
  createAccount: { act: "CREATE_ACCOUNT", input: () => ({ email: `${randomUUID()}@example.com` }) },
  grantCredits: { act: "GRANT_CREDITS", input: ({ accountId }) => ({ accountId, bucket: "PACK", credits: "1", note: "invoice 17" }) },
  setTier: { act: "SET_TIER", input: ({ accountId }) => ({ accountId, tier: "free" }) },
  setPublisher: { act: "SET_PUBLISHER", input: ({ accountId }) => ({ accountId, isPublisher: true }) },
  setOperator: { act: "SET_OPERATOR", input: ({ accountId }) => ({ accountId, isOperator: true }) },
  suspendAccount: { act: "SUSPEND_ACCOUNT", input: ({ accountId }) => ({ accountId, reason: "A leaver." }) },
  restoreAccount: { act: "RESTORE_ACCOUNT", input: ({ accountId }) => ({ accountId }) },
  revokeAnyApiKey: { act: "REVOKE_API_KEY", input: ({ apiKeyId }) => ({ apiKeyId, reason: "Leaked." }) },
  endSessions: { act: "END_SESSIONS", input: ({ accountId }) => ({ accountId }) },
  createPasswordLink: { act: "CREATE_PASSWORD_LINK", input: ({ accountId }) => ({ accountId }) },
  withdrawCredits: { act: "WITHDRAW_CREDITS", input: ({ accountId }) => ({ accountId, bucket: "PACK", credits: "1" }) },
  updateRoute: { act: "UPDATE_ROUTE", input: () => ({ ...ROUTE, upstream: "acme", weight: 2 }) },
  addRoute: { act: "ADD_ROUTE", input: () => ({ ...ROUTE, ...ADDED }) },
  removeRoute: { act: "REMOVE_ROUTE", input: () => ({ ...ROUTE, ...ADDED }) },
  resetRoutes: { act: "RESET_ROUTES", input: () => ROUTE },
  setRouting: { act: "SET_ROUTING", input: () => ({ ...ROUTE, routing: "PRICE" }) },
  // Its top-up has the id of the account.
  refundTopUp: { act: "REFUND_TOP_UP", input: ({ accountId }) => ({ topUpId: accountId }) },
  sellCredits: { act: "SELL_CREDITS", input: ({ accountId }) => ({ accountId, bucket: "PACK", credits: "1" }) },
  recordPayment: { act: "RECORD_PAYMENT", input: ({ accountId }) => ({ accountId, credits: "1" }) },
  recordPayout: { act: "RECORD_PAYOUT", input: ({ accountId }) => ({ accountId, credits: "0.0000001" }) },
  reverseEarnings: { act: "REVERSE_EARNINGS", input: ({ accountId }) => ({ payerId: accountId }) },
  linkAccounts: { act: "LINK_ACCOUNTS", input: ({ accountId }) => ({ accountIds: [accountId, LINKED] }) },
  unlinkAccount: { act: "UNLINK_ACCOUNT", input: ({ accountId }) => ({ accountId }) },
  retryRefusedSettlements: { act: "RETRY_SETTLEMENTS", input: () => ({}), isInTransaction: false },
};

const mutations = Object.values((schema.getMutationType() as GraphQLObjectType).getFields())
  .filter(({ description }) => description?.endsWith("Operators only."))
  .map(({ name }) => name);

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

/** Restoring an account that is not suspended is no act. A route is added once, and only an added one is removed. */
async function prepare(name: string, payer: Payer): Promise<void> {
  const { accountId } = payer;
  if (name === "refundTopUp") await payTopUp(accountId);
  if (name === "recordPayment") await run("sellCredits", payer);
  if (name === "linkAccounts")
    await databaseOf(app).prisma.account.upsert({ where: { id: LINKED }, create: { id: LINKED, handle: LINKED }, update: {} });
  if (name === "recordPayout") await databaseOf(app).pool.query("UPDATE account SET earned_nanocredits = 1000 WHERE id = $1", [accountId]);
  const { routeOverrides } = databaseOf(app).prisma;
  if (name === "addRoute") await routeOverrides.deleteMany();
  if (name === "removeRoute") {
    const changes = { routing: null, routes: [{ ...ADDED, key: null, isAdded: true }] };
    await routeOverrides.upsert({ where: ROUTE, create: { ...ROUTE, changes }, update: { changes } });
  }
  if (name !== "restoreAccount") return;
  await databaseOf(app).prisma.account.update({
    where: { id: accountId },
    data: { suspendedAt: new Date(), suspensionReason: "A leaver." },
  });
}

async function payTopUp(accountId: string): Promise<void> {
  const price = { currency: "usd", amountCents: 100n, nanocredits: 10n ** 9n };
  const checkout = { processor: "development", reference: accountId, expiresAt: new Date() };
  await databaseOf(app).prisma.topUp.create({ data: { id: accountId, accountId, ...price, ...checkout } });
  await app.services.topUps.bookPayment("development", { topUpId: accountId, cents: 100n, currency: "usd" });
}

async function run(name: string, payer: Payer) {
  const requestId = randomUUID();
  const type = `${name[0]?.toUpperCase()}${name.slice(1)}Input`;
  const query = `mutation ($input: ${type}!) { ${name}(input: $input) { __typename } }`;
  const variables = { input: TRIES[name]?.input(payer) ?? {} };
  const response = await post(app, { query, variables }, { "x-request-id": requestId });
  return { requestId, answer: (await response.json()) as { errors?: never } };
}

/** Everything of the account that an operator may change. */
async function stateOf({ accountId }: Payer) {
  const { prisma } = databaseOf(app);
  const where = { accountId };
  return {
    accounts: await prisma.account.count(),
    account: await prisma.account.findUnique({ where: { id: accountId }, omit: { updatedAt: true } }),
    keys: await prisma.apiKey.findMany({ where, orderBy: { id: "asc" } }),
    sessions: await prisma.session.count({ where }),
    links: await prisma.passwordLink.findMany({ where }),
    ledger: await prisma.ledgerEntry.count({ where }),
    topUps: await prisma.topUp.findMany({ where }),
    routes: await prisma.routeOverrides.findMany({ omit: { updatedAt: true } }),
  };
}

async function createTarget(): Promise<Payer> {
  const payer = await createPayer(app, { pack: 5n * CREDIT });
  const session = { id: randomUUID(), accountId: payer.accountId, token: randomUUID(), expiresAt: new Date(Date.now() + 60_000) };
  const { prisma } = databaseOf(app);
  await prisma.session.create({ data: session });
  await prisma.account.update({ where: { id: payer.accountId }, data: { email: `${payer.accountId}@example.com` } });
  return payer;
}

describe("the audit log", () => {
  it("knows every mutation for operators", () => {
    expect(mutations.toSorted()).toEqual(Object.keys(TRIES).toSorted());
  });

  it.each(mutations)("has one row for %s: who, what, on which account, from where", async (name) => {
    const payer = await createTarget();
    const { act, input } = TRIES[name] as Try;
    await prepare(name, payer);

    const { requestId, answer } = await run(name, payer);

    expect(codes(answer)).toEqual([]);
    const owner = await databaseOf(app).prisma.apiKey.findFirstOrThrow({ where: { name: "Owner" } });
    const { auditLog } = ok(await execute(app, AuditLogDocument, { filter: { requestId } }));
    expect(auditLog.nodes).toEqual([
      expect.objectContaining({
        act,
        actor: { restId: owner.accountId },
        actorApiKeyId: owner.id,
        ...("accountId" in input(payer) && { accountId: payer.accountId, account: { restId: payer.accountId } }),
        address: expect.stringMatching(/127\.0\.0\.1$/),
        requestId,
      }),
    ]);
  });

  it.each(mutations.filter((name) => TRIES[name]?.isInTransaction !== false))("is written in the transaction of %s", async (name) => {
    const payer = await createTarget();
    const { pool } = databaseOf(app);
    await prepare(name, payer);
    const before = await stateOf(payer);
    await pool.query(`
      CREATE FUNCTION refuse_row() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'refused'; END $$;
      CREATE TRIGGER refuse_row BEFORE INSERT ON audit_entry FOR EACH ROW EXECUTE FUNCTION refuse_row()`);
    try {
      const { answer } = await run(name, payer);

      expect(codes(answer)).toEqual(["INTERNAL_ERROR"]);
      expect(await stateOf(payer)).toEqual(before);
    } finally {
      await pool.query("DROP FUNCTION refuse_row CASCADE");
    }
  });

  it.each(["UPDATE audit_entry SET act = 'other'", "DELETE FROM audit_entry", "TRUNCATE audit_entry"])("refuses %s", async (sql) => {
    await expect(databaseOf(app).pool.query(sql)).rejects.toThrow(/append-only/);
  });

  it("pages newest first, and filters by account, actor, act and time", async () => {
    const [one, other] = [await createTarget(), await createTarget()];
    for (const payer of [one, other]) for (const name of ["setPublisher", "suspendAccount", "restoreAccount"]) await run(name, payer);
    const list = async (filter: object, more: object = {}) => ok(await execute(app, AuditLogDocument, { filter, ...more })).auditLog;
    const accountIds = [one.accountId];

    const all = await list({ accountIds });
    expect(all.nodes.map(({ act }) => act)).toEqual(["RESTORE_ACCOUNT", "SUSPEND_ACCOUNT", "SET_PUBLISHER"]);
    expect(all.nodes[1]).toMatchObject({ before: { suspendedAt: null }, after: { suspensionReason: "A leaver." }, reason: "A leaver." });
    const first = await list({ accountIds }, { first: 2 });
    const rest = await list({ accountIds }, { first: 2, after: first.pageInfo.endCursor });
    expect([...first.nodes, ...rest.nodes]).toEqual(all.nodes);
    expect((await list({ accountIds, acts: ["SET_PUBLISHER"] })).totalCount).toBe(1);
    expect((await list({ accountIds, actorAccountIds: [other.accountId] })).totalCount).toBe(0);
    const { createdAt } = all.nodes[2] ?? {};
    expect((await list({ accountIds, to: createdAt })).totalCount).toBe(0);
    expect((await list({ accountIds, from: createdAt })).totalCount).toBe(3);
  });

  it.each([
    { acts: [] as string[], accountIds: Array.from({ length: 101 }, () => randomUUID()) },
    { accountIds: ["none"] },
    { requestId: "" },
    { requestId: "x".repeat(129) },
    { objectId: "nothing" },
  ])("refuses the filter %j", async (filter) => {
    expect(codes(await execute(app, AuditLogDocument, { filter: filter as never }))).toEqual(["BAD_REQUEST"]);
  });
});
