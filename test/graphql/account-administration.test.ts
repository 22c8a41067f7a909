/** Account administration, which is for operators alone. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { parseGlobalId } from "../../src/graphql/global-ids.js";
import { CREDIT, closeBooks, databaseOf, type Payer } from "../e2e/money.js";
import {
  type AccountFilter,
  AccountsDocument,
  type AccountsQueryVariables,
  AnyAccountDocument,
  BalanceChangedDocument,
  type BalanceChangedSubscription,
  CreateAccountDocument,
  CreditGrantsDocument,
  GrantAnyCreditsDocument,
  type GrantCreditsInput,
  MyCreditGrantsDocument,
  MyIdDocument,
  NodesByIdsDocument,
  SetOperatorDocument,
  SetPublisherDocument,
  type SetPublisherInput,
  SetTierDocument,
  type SetTierInput,
} from "../operations/generated/graphql.js";
import { createClient, createKey } from "../rest/client.js";
import { createTierAccount, createTierApp, type TierApp } from "../support/tiers.js";
import { codes, execute, type Live, ok, subscribeSse } from "./client.js";

let app: TierApp;

beforeAll(async () => {
  app = await createTierApp();
});
afterEach(() => {
  app.setClock(app.noon);
});
afterAll(() => app.close());

const show = (id: string, key: string | null = app.key) => execute({ ...app, key }, AnyAccountDocument, { id });
const setTier = (input: SetTierInput, key: string | null = app.key) => execute({ ...app, key }, SetTierDocument, { input });
const setPublisher = (input: SetPublisherInput, key: string | null = app.key) => execute({ ...app, key }, SetPublisherDocument, { input });
const grant = (input: GrantCreditsInput, key: string | null = app.key) => execute({ ...app, key }, GrantAnyCreditsDocument, { input });
const list = async (variables: AccountsQueryVariables) => ok(await execute(app, AccountsDocument, variables)).accounts;
const listAs = (key: string) => execute({ ...app, key }, AccountsDocument, {});
const find = async (search: string) => (await list({ search })).nodes.map(({ restId }) => restId);
const shown = async (id: string) => ok(await show(id)).account;

async function nameAccount({ accountId }: Payer, data: { handle?: string; name?: string; email?: string; githubUsername?: string }) {
  await databaseOf(app).prisma.account.update({ where: { id: accountId }, data });
}

describe("an operator", () => {
  it("sees any account, refilled", async () => {
    const payer = await createTierAccount(app, { crypto: CREDIT, pack: 2n * CREDIT });

    expect(await shown(payer.accountId)).toEqual({
      restId: payer.accountId,
      handle: `payer-${payer.accountId}`,
      name: null,
      email: null,
      tier: "free",
      nextResetAt: app.midnight.toISOString(),
      isOperator: false,
      isPublisher: false,
      balance: { available: "4", tier: "1", crypto: "1", pack: "2", held: "0", isKeyBudget: false },
    });
  });

  it("pages through all accounts, newest first, each once", async () => {
    const made = [await createTierAccount(app), await createTierAccount(app), await createTierAccount(app)].map(
      ({ accountId }) => accountId,
    );
    // Two of the same moment: the id breaks the tie.
    const createdAt = new Date(Date.now() + 60_000);
    await databaseOf(app).prisma.account.updateMany({ where: { id: { in: made } }, data: { createdAt } });
    const total = await databaseOf(app).prisma.account.count();

    const seen: string[] = [];
    let after: string | null = null;
    for (let more = true; more; ) {
      const page: Awaited<ReturnType<typeof list>> = await list({ first: 2, after });
      seen.push(...page.nodes.map(({ restId }) => restId));
      after = page.pageInfo.endCursor;
      more = page.pageInfo.hasNextPage;
    }

    expect((await list({ first: 1 })).totalCount).toBe(total);
    expect(seen).toHaveLength(total);
    expect(new Set(seen).size).toBe(total);
    expect(seen.slice(0, 3)).toEqual(made.toSorted().reverse());
  });

  it("finds accounts by a part of a handle, name, address or GitHub user name, in any case, and by the whole id", async () => {
    const payer = await createTierAccount(app);
    const mark = randomUUID().slice(0, 8);
    await nameAccount(payer, {
      handle: `h1-${mark}`,
      name: `Ada N2-${mark}`,
      email: `e3-${mark}@example.com`,
      githubUsername: `g4-${mark}`,
    });

    for (const search of [`h1-${mark}`, `n2-${mark}`, `E3-${mark}@EXAMPLE`, `G4-${mark}`, mark, ` ${mark} `, payer.accountId]) {
      expect(await find(search), search).toEqual([payer.accountId]);
    }
    expect(await find(payer.accountId.slice(0, -1))).not.toContain(randomUUID());
    expect(await find(`${mark}x`)).toEqual([]);
  });

  it("searches literally: a search holds no patterns", async () => {
    const payer = await createTierAccount(app);
    const mark = randomUUID().slice(0, 8);
    await nameAccount(payer, { name: `100%_a\\b-${mark}` });

    expect(await find(`100%_a\\b-${mark}`)).toEqual([payer.accountId]);
    expect(await find(`100%b-${mark}`)).toEqual([]);
    expect(await find(`100__a\\b-${mark}`)).toEqual([]);
    expect(await find("%")).toEqual([payer.accountId]);
  });

  it("finds accounts by tier, by whether they operate the gateway, and by whether they may publish", async () => {
    const [plain, publisher, idle] = [await createTierAccount(app), await createTierAccount(app), await createTierAccount(app)];
    const mark = randomUUID().slice(0, 8);
    for (const [index, payer] of [plain, publisher, idle].entries()) await nameAccount(payer, { handle: `h${index}-${mark}` });
    ok(await setPublisher({ accountId: publisher.accountId, isPublisher: true }));
    ok(await setTier({ accountId: idle.accountId, tier: "idle" }));
    const found = async (filter: AccountFilter) => (await list({ search: mark, filter })).nodes.map(({ handle }) => handle.slice(0, 2));

    expect(await found({ isPublisher: true })).toEqual(["h1"]);
    expect(await found({ isPublisher: false })).toEqual(["h2", "h0"]);
    expect(await found({ tiers: ["idle"] })).toEqual(["h2"]);
    expect(await found({ tiers: ["idle"], isPublisher: true })).toEqual([]);
    expect(await found({ isOperator: true })).toEqual([]);
    // Operators publish, too.
    const operators = (await list({ filter: { isOperator: true } })).nodes.map(({ restId }) => restId);
    expect((await list({ filter: { isPublisher: true } })).nodes.map(({ restId }) => restId)).toEqual(expect.arrayContaining(operators));
  });

  it("sees due refills in a list, which writes nothing", async () => {
    const payer = await createTierAccount(app, { tierName: "plus", pack: CREDIT });

    const { nodes } = await list({ search: payer.accountId });

    expect(nodes.map(({ balance }) => balance?.available)).toEqual(["6"]);
    expect((await closeBooks(app, payer)).account.buckets.tier).toBe(0n);
  });

  it.each([
    [{ first: 0 }, "first"],
    [{ first: 101 }, "first"],
    [{ after: "made up" }, "after"],
    [{ search: "x".repeat(254) }, "search"],
    [{ search: "a\0b" }, "search"],
    [{ filter: { tiers: [""] } }, "filter.tiers.0"],
  ])("is refused a list of %j", async (variables, param) => {
    const answer = await execute(app, AccountsDocument, variables);

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param })]);
  });

  it("may look for 253 characters", async () => {
    expect((await list({ search: "x".repeat(253) })).nodes).toEqual([]);
  });

  it.each([["00000000-0000-4000-8000-000000000000"], ["nonsense"]])("gets null for the account id %s", async (id) => {
    expect(codes(await show(id))).toEqual(["NOT_FOUND"]);
  });
});

describe("grantCredits", () => {
  it("adds to a tier that has just been refilled", async () => {
    const payer = await createTierAccount(app);

    const granted = ok(await grant({ accountId: payer.accountId, bucket: "TIER", credits: "2.5" })).grantCredits.account;

    expect(granted).toMatchObject({ balance: { available: "3.5", tier: "3.5" } });
    app.setClock(app.midnight);
    expect((await shown(payer.accountId)).balance).toMatchObject({ tier: "1" });
    await closeBooks(app, payer);
  });
});

describe("creditGrants", () => {
  const grantsOf = async (id: string, variables: { first?: number; after?: string | null; last?: number; before?: string | null } = {}) =>
    ok(await execute(app, CreditGrantsDocument, { id, ...variables })).account.creditGrants ?? expect.unreachable();

  it("are shown newest first with their notes, page by page in both directions, and no refill with them", async () => {
    const { accountId, key } = await createTierAccount(app);
    const grantId = randomUUID();
    await grant({ accountId, bucket: "CRYPTO", credits: "1" });
    await grant({ accountId, bucket: "TIER", credits: "2", note: "sorry" });
    for (let times = 0; times < 2; times += 1) await grant({ accountId, bucket: "PACK", credits: "3", grantId });

    const { nodes, totalCount } = await grantsOf(accountId);
    const [newest, ...rest] = nodes.map(({ credits }) => credits);
    const page = await grantsOf(accountId, { first: 1 });
    const next = await grantsOf(accountId, { first: 5, after: page.pageInfo.endCursor });
    const back = await grantsOf(accountId, { last: 5, before: next.pageInfo.startCursor });

    expect(totalCount).toBe(3);
    expect(nodes).toEqual(expect.arrayContaining([expect.objectContaining({ restId: grantId, bucket: "PACK", credits: "3", note: null })]));
    expect(nodes.find(({ bucket }) => bucket === "TIER")).toMatchObject({ credits: "2", note: "sorry" });
    expect([page, next, back].map((each) => each.nodes.map(({ credits }) => credits))).toEqual([[newest], rest, [newest]]);
    expect(page.pageInfo).toMatchObject({ hasNextPage: true, hasPreviousPage: false });
    // The account itself sees them by the permission for its balance.
    const own = await execute({ ...app, key }, MyCreditGrantsDocument);
    expect(ok(own).me.creditGrants?.nodes).toHaveLength(3);
    const ids = nodes.map(({ id }) => id);
    const stranger = await createTierAccount(app);
    expect(ok(await execute({ ...app, key }, NodesByIdsDocument, { ids })).nodes.map((node) => node?.id)).toEqual(ids);
    expect(ok(await execute({ ...app, key: stranger.key }, NodesByIdsDocument, { ids })).nodes).toEqual([null, null, null]);
    const { key: blind } = await createKey(app, { accountPermissions: ["usage"] });
    expect(codes(await execute({ ...app, key: blind }, MyCreditGrantsDocument))).toEqual(["FORBIDDEN"]);
  });
});

describe("setTier", () => {
  it("gives the new tier's credits at once, and the old one's never again", async () => {
    const payer = await createTierAccount(app, { pack: CREDIT });

    expect(ok(await setTier({ accountId: payer.accountId, tier: "plus" })).setTier.account).toMatchObject({
      tier: "plus",
      nextResetAt: app.midnight.toISOString(),
      balance: { tier: "5", available: "6" },
    });
    const own = createClient(app.baseUrl, payer.key);
    expect((await own.get("/account/profile")).json()).toMatchObject({ tier: "plus" });
    expect((await own.get("/account/balance")).json()).toEqual({ balance: 6 });
    app.setClock(app.midnight);
    expect((await own.get("/account/balance")).json()).toEqual({ balance: 6 });
    await closeBooks(app, payer);
  });

  it("to a smaller one keeps the present credits until the next boundary", async () => {
    const payer = await createTierAccount(app, { tierName: "plus" });

    expect(ok(await setTier({ accountId: payer.accountId, tier: "free" })).setTier.account).toMatchObject({
      tier: "free",
      balance: { tier: "5" },
    });

    app.setClock(app.midnight);
    expect((await shown(payer.accountId)).balance).toMatchObject({ tier: "1" });
    await closeBooks(app, payer);
  });

  it("to none ends refills; the rest lapses at the next boundary", async () => {
    const payer = await createTierAccount(app);

    expect(ok(await setTier({ accountId: payer.accountId, tier: null })).setTier.account).toMatchObject({
      tier: null,
      nextResetAt: null,
      balance: { tier: "1" },
    });
    app.setClock(app.midnight);
    expect(await shown(payer.accountId)).toMatchObject({ nextResetAt: null, balance: { tier: "0" } });
    await closeBooks(app, payer);
  });

  it("twice gives once", async () => {
    const payer = await createTierAccount(app);

    await Promise.all(Array.from({ length: 5 }, () => setTier({ accountId: payer.accountId, tier: "plus" })));

    const refills = await databaseOf(app).prisma.ledgerEntry.findMany({
      where: { accountId: payer.accountId, kind: "refill", book: "tier" },
      orderBy: { createdAt: "asc" },
    });
    expect(refills.map(({ amountNanocredits }) => amountNanocredits)).toEqual([CREDIT, 4n * CREDIT]);
    await closeBooks(app, payer);
  });

  it("names an unknown tier and the existing ones", async () => {
    const payer = await createTierAccount(app);

    const { errors } = await setTier({ accountId: payer.accountId, tier: "gold" });

    expect(errors).toEqual([
      expect.objectContaining({
        message: 'There is no tier "gold". The tiers are: free, plus, idle.',
        extensions: expect.objectContaining({ code: "BAD_REQUEST", param: "tier" }),
      }),
    ]);
    expect((await shown(payer.accountId)).tier).toBe("free");
  });

  it.each([
    ["a tier that is left out", { accountId: randomUUID() }, "BAD_REQUEST"],
    ["an empty tier", { accountId: randomUUID(), tier: "" }, "BAD_REQUEST"],
    ["a tier of 101 characters", { accountId: randomUUID(), tier: "x".repeat(101) }, "BAD_REQUEST"],
    ["an id that is none", { accountId: "nonsense", tier: "plus" }, "BAD_REQUEST"],
    ["an account that is none", { accountId: randomUUID(), tier: "plus" }, "NOT_FOUND"],
  ])("refuses %s", async (_what, input, code) => {
    expect(codes(await setTier(input))).toEqual([code]);
  });
});

describe("setOperator", () => {
  const setOperator = (accountId: string, isOperator: boolean, key: string | null = app.key) =>
    execute({ ...app, key }, SetOperatorDocument, { input: { accountId, isOperator } });

  it("counts at once for keys that are in use, and ends at once", async () => {
    const { accountId, key } = await createTierAccount(app);
    expect(codes(await listAs(key))).toEqual(["FORBIDDEN"]);

    expect(ok(await setOperator(accountId, true)).setOperator.account.isOperator).toBe(true);
    expect(ok(await listAs(key)).accounts.nodes.length).toBeGreaterThan(0);

    expect(ok(await setOperator(accountId, false)).setOperator.account.isOperator).toBe(false);
    expect(codes(await listAs(key))).toEqual(["FORBIDDEN"]);
  });

  it("keeps the last operator, also when two end each other at the same time", async () => {
    const { id: ownerId } = await databaseOf(app).prisma.account.findUniqueOrThrow({ where: { handle: "owner" } });
    expect(codes(await setOperator(ownerId, false))).toEqual(["CONFLICT"]);
    const other = await createTierAccount(app);
    await setOperator(other.accountId, true);

    const answers = await Promise.all([setOperator(ownerId, false, other.key), setOperator(other.accountId, false)]);

    expect(answers.flatMap((answer) => codes(answer))).toHaveLength(1);
    expect(await databaseOf(app).prisma.account.count({ where: { isOperator: true } })).toBe(1);
    // The remaining operator makes the owner one again.
    const { isOperator } = await databaseOf(app).prisma.account.findUniqueOrThrow({ where: { id: ownerId } });
    ok(await setOperator(ownerId, true, isOperator ? app.key : other.key));
    ok(await setOperator(other.accountId, false));
  });

  it("is for operators", async () => {
    const { accountId, key } = await createTierAccount(app);

    expect(codes(await setOperator(accountId, true, key))).toEqual(["FORBIDDEN"]);
  });
});

describe("setPublisher", () => {
  it("lets an account publish, and stops it", async () => {
    const payer = await createTierAccount(app);

    expect(ok(await setPublisher({ accountId: payer.accountId, isPublisher: true })).setPublisher.account.isPublisher).toBe(true);
    expect(ok(await setPublisher({ accountId: payer.accountId, isPublisher: true })).setPublisher.account.isPublisher).toBe(true);
    expect((await shown(payer.accountId)).isPublisher).toBe(true);
    expect(ok(await setPublisher({ accountId: payer.accountId, isPublisher: false })).setPublisher.account.isPublisher).toBe(false);
  });

  it("changes nothing for an operator, who publishes anyway", async () => {
    const { id } = ok(await execute(app, MyIdDocument)).me;

    expect(ok(await setPublisher({ accountId: id, isPublisher: false })).setPublisher.account).toMatchObject({
      isOperator: true,
      isPublisher: true,
    });
  });

  it.each([
    ["an id that is none", { accountId: "nonsense", isPublisher: true }, "BAD_REQUEST"],
    ["an account that is none", { accountId: randomUUID(), isPublisher: true }, "NOT_FOUND"],
  ])("refuses %s", async (_what, input, code) => {
    expect(codes(await setPublisher(input))).toEqual([code]);
  });
});

describe("a caller who is no operator", () => {
  const everything = async (key: string | null, accountId: string) =>
    (
      await Promise.all([
        execute({ ...app, key }, AccountsDocument),
        show(accountId, key),
        grant({ accountId, bucket: "PACK", credits: "1" }, key),
        setTier({ accountId, tier: "plus" }, key),
        setPublisher({ accountId, isPublisher: true }, key),
        execute({ ...app, key }, CreateAccountDocument, { input: { email: "new@example.com" } }),
      ])
    ).map(codes);

  it.each<[string, () => Promise<string | null>, string]>([
    ["nobody", async () => null, "UNAUTHORIZED"],
    ["an account that manages its own keys", async () => (await createTierAccount(app)).key, "FORBIDDEN"],
    [
      "an operator's key without the permission",
      async () => (await createKey(app, { accountPermissions: ["profile", "balance", "usage"] })).key,
      "FORBIDDEN",
    ],
    ["an operator's publishable key", async () => (await createKey(app, { type: "publishable" })).key, "FORBIDDEN"],
  ])("%s is refused every operation, on its own account too", async (_who, keyOf, code) => {
    const victim = await createTierAccount(app);
    const key = await keyOf();

    expect(await everything(key, victim.accountId)).toEqual(Array(6).fill([code]));
    expect(await shown(victim.accountId)).toMatchObject({ tier: "free", isPublisher: false, balance: { available: "1" } });
  });

  it("is refused the operations on its own account too", async () => {
    const payer = await createTierAccount(app);

    expect(await everything(payer.key, payer.accountId)).toEqual(Array(6).fill(["FORBIDDEN"]));
  });
});

describe("balanceChanged", () => {
  it("reports a refill, and a tier that an operator set", async () => {
    const payer = await createTierAccount(app, { pack: CREDIT });
    const { key } = payer;
    await show(payer.accountId);
    const live = subscribeSse({ ...app, key }, BalanceChangedDocument);
    // The first event shows that the subscription is there.
    const first = live.next();
    await expect
      .poll(
        async () => {
          await grant({ accountId: payer.accountId, bucket: "PACK", credits: "1" });
          return Promise.race([first.then(() => true), new Promise((resolve) => setTimeout(resolve, 50))]);
        },
        { timeout: 10_000 },
      )
      .toBe(true);

    const next = until(live, "5");
    await setTier({ accountId: payer.accountId, tier: "plus" });
    expect(await next).toBe(payer.accountId);

    const refilled = until(live, "1");
    await setTier({ accountId: payer.accountId, tier: "free" });
    app.setClock(app.midnight);
    await createClient(app.baseUrl, key).get("/account/profile");
    expect(await refilled).toBe(payer.accountId);
    live.leave();
  });
});

/** Whose balance it is, once the tier's bucket holds so much. */
async function until(live: Live<BalanceChangedSubscription>, tier: string): Promise<string> {
  for (;;) {
    const { account } = ok(await live.next()).balanceChanged;
    if (account.balance?.tier === tier) return parseGlobalId(account.id)?.id ?? "";
  }
}
