/** What operators do with accounts, and that nobody else does. */
import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { CREDIT, closeBooks, databaseOf, type Payer } from "../e2e/money.js";
import { createClient, createKey } from "../rest/client.js";
import { createTierAccount, createTierApp, type TierApp } from "../support/tiers.js";
import { codes, execute, field, subscribeSse } from "./client.js";

let app: TierApp;

beforeAll(async () => {
  app = await createTierApp();
});
afterEach(() => {
  app.setClock(app.noon);
});
afterAll(() => app.close());

const ACCOUNT = "{ id handle name email tier nextResetAt isOperator isPublisher balance { available tier crypto pack held isKeyBudget } }";
const show = (id: string, key: string | null = app.key) =>
  execute({ ...app, key }, `query ($id: ID!) { account(id: $id) ${ACCOUNT} }`, { id });
const setTier = (input: object, key: string | null = app.key) =>
  execute({ ...app, key }, `mutation ($input: SetTierInput!) { setTier(input: $input) ${ACCOUNT} }`, { input });
const setPublisher = (input: object, key: string | null = app.key) =>
  execute({ ...app, key }, `mutation ($input: SetPublisherInput!) { setPublisher(input: $input) ${ACCOUNT} }`, { input });
const grant = (input: object, key: string | null = app.key) =>
  execute({ ...app, key }, `mutation ($input: GrantCreditsInput!) { grantCredits(input: $input) { account ${ACCOUNT} balance } }`, {
    input,
  });

const LIST = `query ($first: Int, $after: String, $search: String) {
  accounts(first: $first, after: $after, search: $search) { edges { node { id handle balance { available } } } pageInfo { hasNextPage endCursor } }
}`;
interface Listed {
  readonly edges: readonly { readonly node: { readonly id: string; readonly handle: string; readonly balance: { available: string } } }[];
  readonly pageInfo: { readonly hasNextPage: boolean; readonly endCursor: string | null };
}
const list = async (variables: Record<string, unknown>): Promise<Listed> => field(await execute(app, LIST, variables), "accounts");
const find = async (search: string) => (await list({ search })).edges.map(({ node }) => node.id);

async function nameAccount({ accountId }: Payer, data: { handle?: string; name?: string; email?: string; githubUsername?: string }) {
  await databaseOf(app).prisma.account.update({ where: { id: accountId }, data });
}

describe("an operator", () => {
  it("sees any account, refilled", async () => {
    const payer = await createTierAccount(app, { crypto: CREDIT, pack: 2n * CREDIT });

    expect(field(await show(payer.accountId), "account")).toEqual({
      id: payer.accountId,
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
      const page: Listed = await list({ first: 2, after });
      seen.push(...page.edges.map(({ node }) => node.id));
      after = page.pageInfo.endCursor;
      more = page.pageInfo.hasNextPage;
    }

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

  it("is taken at the word: a search holds no patterns", async () => {
    const payer = await createTierAccount(app);
    const mark = randomUUID().slice(0, 8);
    await nameAccount(payer, { name: `100%_a\\b-${mark}` });

    expect(await find(`100%_a\\b-${mark}`)).toEqual([payer.accountId]);
    expect(await find(`100%b-${mark}`)).toEqual([]);
    expect(await find(`100__a\\b-${mark}`)).toEqual([]);
    expect(await find("%")).toEqual([payer.accountId]);
  });

  it("sees in a list what is due as it will be, and the list writes nothing", async () => {
    const payer = await createTierAccount(app, { tierName: "plus", pack: CREDIT });

    const { edges } = await list({ search: payer.accountId });

    expect(edges.map(({ node }) => node.balance.available)).toEqual(["6"]);
    expect((await closeBooks(app, payer)).account.buckets.tier).toBe(0n);
  });

  it.each([
    [{ first: 0 }, "first"],
    [{ first: 101 }, "first"],
    [{ after: "made up" }, "after"],
    [{ search: "x".repeat(254) }, "search"],
    [{ search: "a\0b" }, "search"],
  ])("is refused a list of %j", async (variables, param) => {
    const answer = await execute(app, LIST, variables);

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param })]);
  });

  it("may look for 253 characters", async () => {
    expect((await list({ search: "x".repeat(253) })).edges).toEqual([]);
  });

  it.each([["00000000-0000-4000-8000-000000000000"], ["nonsense"]])("is told that there is no account %s", async (id) => {
    expect(codes(await show(id))).toEqual(["NOT_FOUND"]);
  });
});

describe("grantCredits", () => {
  it("adds to what the tier has just been filled with", async () => {
    const payer = await createTierAccount(app);

    const granted = field(await grant({ accountId: payer.accountId, bucket: "TIER", credits: "2.5" }), "grantCredits");

    expect(granted).toMatchObject({ balance: "3.5", account: { balance: { tier: "3.5" } } });
    app.setClock(app.midnight);
    expect(field(await show(payer.accountId), "account").balance).toMatchObject({ tier: "1" });
    await closeBooks(app, payer);
  });
});

describe("setTier", () => {
  it("gives the new tier's credits at once, and the old one's never again", async () => {
    const payer = await createTierAccount(app, { pack: CREDIT });

    expect(field(await setTier({ accountId: payer.accountId, tier: "plus" }), "setTier")).toMatchObject({
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

  it("to a smaller one leaves what is there until the next boundary", async () => {
    const payer = await createTierAccount(app, { tierName: "plus" });

    expect(field(await setTier({ accountId: payer.accountId, tier: "free" }), "setTier")).toMatchObject({
      tier: "free",
      balance: { tier: "5" },
    });

    app.setClock(app.midnight);
    expect(field(await show(payer.accountId), "account").balance).toMatchObject({ tier: "1" });
    await closeBooks(app, payer);
  });

  it("to none ends refills; the rest lapses at the boundary that it would have had", async () => {
    const payer = await createTierAccount(app);

    expect(field(await setTier({ accountId: payer.accountId, tier: null }), "setTier")).toMatchObject({
      tier: null,
      nextResetAt: null,
      balance: { tier: "1" },
    });
    app.setClock(app.midnight);
    expect(field(await show(payer.accountId), "account")).toMatchObject({ nextResetAt: null, balance: { tier: "0" } });
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

  it("names an unknown tier and those that there are", async () => {
    const payer = await createTierAccount(app);

    const { errors } = await setTier({ accountId: payer.accountId, tier: "gold" });

    expect(errors).toEqual([
      expect.objectContaining({
        message: 'There is no tier "gold". The tiers are: free, plus, idle.',
        extensions: expect.objectContaining({ code: "BAD_REQUEST", param: "tier" }),
      }),
    ]);
    expect(field(await show(payer.accountId), "account").tier).toBe("free");
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

describe("setPublisher", () => {
  it("lets an account publish, and stops it", async () => {
    const payer = await createTierAccount(app);

    expect(field(await setPublisher({ accountId: payer.accountId, allowed: true }), "setPublisher").isPublisher).toBe(true);
    expect(field(await setPublisher({ accountId: payer.accountId, allowed: true }), "setPublisher").isPublisher).toBe(true);
    expect(field(await show(payer.accountId), "account").isPublisher).toBe(true);
    expect(field(await setPublisher({ accountId: payer.accountId, allowed: false }), "setPublisher").isPublisher).toBe(false);
  });

  it("changes nothing for an operator, who publishes anyway", async () => {
    const { id } = field<{ id: string }>(await execute(app, "{ me { id } }"), "me");

    expect(field(await setPublisher({ accountId: id, allowed: false }), "setPublisher")).toMatchObject({
      isOperator: true,
      isPublisher: true,
    });
  });

  it.each([
    ["an id that is none", { accountId: "nonsense", allowed: true }, "BAD_REQUEST"],
    ["an account that is none", { accountId: randomUUID(), allowed: true }, "NOT_FOUND"],
  ])("refuses %s", async (_what, input, code) => {
    expect(codes(await setPublisher(input))).toEqual([code]);
  });
});

describe("who is no operator", () => {
  const everything = async (key: string | null, accountId: string) =>
    (
      await Promise.all([
        execute({ ...app, key }, LIST, {}),
        show(accountId, key),
        grant({ accountId, bucket: "PACK", credits: "1" }, key),
        setTier({ accountId, tier: "plus" }, key),
        setPublisher({ accountId, allowed: true }, key),
        execute({ ...app, key }, 'mutation { createAccount(input: { email: "new@example.com" }) { password } }', {}),
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
  ])("%s is refused all of it, of the own account too", async (_who, keyOf, code) => {
    const victim = await createTierAccount(app);
    const key = await keyOf();

    expect(await everything(key, victim.accountId)).toEqual(Array(6).fill([code]));
    expect(field(await show(victim.accountId), "account")).toMatchObject({ tier: "free", isPublisher: false, balance: { available: "1" } });
  });

  it("is refused the own account's too", async () => {
    const payer = await createTierAccount(app);

    expect(await everything(payer.key, payer.accountId)).toEqual(Array(6).fill(["FORBIDDEN"]));
  });
});

describe("balanceChanged", () => {
  it("tells of a refill, and of a tier that an operator set", async () => {
    const payer = await createTierAccount(app, { pack: CREDIT });
    const { key } = payer;
    await show(payer.accountId);
    const live = subscribeSse({ ...app, key }, { query: "subscription { balanceChanged { tier available } }" });
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

    const next = until(live, ({ tier }) => tier === "5");
    await setTier({ accountId: payer.accountId, tier: "plus" });
    expect(await next).toMatchObject({ tier: "5" });

    const refilled = until(live, ({ tier }) => tier === "1");
    await setTier({ accountId: payer.accountId, tier: "free" });
    app.setClock(app.midnight);
    await createClient(app.baseUrl, key).get("/account/profile");
    expect(await refilled).toMatchObject({ tier: "1" });
    live.leave();
  });
});

interface LiveBalance {
  readonly tier: string;
}

/** The first event that is so. */
async function until(live: ReturnType<typeof subscribeSse>, isIt: (balance: LiveBalance) => boolean): Promise<LiveBalance> {
  for (;;) {
    const balance = field<LiveBalance>(await live.next(), "balanceChanged");
    if (isIt(balance)) return balance;
  }
}
