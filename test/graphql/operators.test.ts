/** Acts of operators against an account: a leaked key, a leaver, a forgotten password, credits that were granted by mistake. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { booksWith, CREDIT, chat, closeBooks, createPayer, databaseOf, type Payer } from "../e2e/money.js";
import {
  AccountsDocument,
  AnyAccountsKeysAndUsageDocument,
  CreatePasswordLinkDocument,
  EndSessionsDocument,
  GrantAnyCreditsDocument,
  type GrantCreditsInput,
  MyIdDocument,
  RevokeAnyApiKeyDocument,
  SuspendAccountDocument,
  WithdrawCreditsDocument,
  type WithdrawCreditsInput,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { PageBrowser } from "../support/page-browser.js";
import { type Person, signedIn, signIn, signUp } from "../support/sign-in.js";
import { gated } from "../support/upstream-replies.js";
import { codes, execute, executeText, ok } from "./client.js";

let app: TestApp;
let clock: MovableClock;
let payer: Payer;

beforeAll(async () => {
  clock = createMovableClock();
  app = await createTestApp({ clock });
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: 10n * CREDIT, permissions: ["balance", "usage", "keys"] });
});
afterAll(() => app.close());

const statusOf = async (key: string) => (await fetch(`${app.baseUrl}/account/key`, { headers: { Authorization: `Bearer ${key}` } })).status;
const statusOfSession = async (person: Person) => (await fetch(`${app.baseUrl}/account/profile`, { headers: signedIn(person) })).status;
const find = async (search: string) => ok(await execute(app, AccountsDocument, { search })).accounts.nodes.map(({ restId }) => restId);

describe("a leaked key", () => {
  it("is found by its id, its beginning, itself, and a generation that it made", async () => {
    const answer = await chat(app, payer, { model: "acme/chat" });
    const generationId = answer.headers.get("x-generation-id") ?? "";
    await booksWith(app, payer, 1);

    for (const search of [payer.apiKeyId, payer.key, payer.key.slice(0, 10), generationId, payer.accountId]) {
      expect(await find(search), search).toContain(payer.accountId);
    }
    expect(await find(payer.apiKeyId)).toEqual([payer.accountId]);
    expect(await find(randomUUID())).toEqual([]);
  });

  it("is found by the request ID of a request that was refused, and by the ID of its row in the log", async () => {
    const id = randomUUID();
    const requestId = `req-${id}`;
    const common = {
      route: "/v1/chat/completions",
      status: 502,
      code: "UPSTREAM_ERROR",
      message: "",
      milliseconds: 1,
      timestamp: new Date(),
    };
    const { prisma } = databaseOf(app);
    await prisma.failedRequest.create({ data: { ...common, id, accountId: payer.accountId, requestId } });

    expect(await find(requestId)).toEqual([payer.accountId]);
    expect(await find(id)).toEqual([payer.accountId]);
    // The beginning of another request's ID names no person.
    expect(await find(requestId.slice(0, 12))).toEqual([]);
  });

  it.each(["sk_%", "sk_A_______", "%", "_____"])("is not found by the pattern %s", async (search) => {
    expect(await find(search)).not.toContain(payer.accountId);
  });

  it("is revoked with the keys that were made with it, of a suspended account too", async () => {
    const made = await fetch(`${app.baseUrl}/account/keys`, {
      method: "POST",
      headers: { Authorization: `Bearer ${payer.key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ name: "child" }),
    });
    const { key: child } = (await made.json()) as { key: string };
    expect([await statusOf(payer.key), await statusOf(child)]).toEqual([200, 200]);
    ok(await execute(app, SuspendAccountDocument, { input: { accountId: payer.accountId, reason: "Leaked." } }));

    const input = { apiKeyId: payer.apiKeyId, reason: "Leaked." };
    expect(ok(await execute(app, RevokeAnyApiKeyDocument, { input })).revokeAnyApiKey.account).toEqual({ restId: payer.accountId });

    expect([await statusOf(payer.key), await statusOf(child)]).toEqual([401, 401]);
    expect(codes(await execute(app, RevokeAnyApiKeyDocument, { input }))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(app, RevokeAnyApiKeyDocument, { input: { apiKeyId: randomUUID() } }))).toEqual(["NOT_FOUND"]);
  });

  it("is not revoked when it is the calling one, or the owner's that starts this gateway", async () => {
    const operator = await createPayer(app, { permissions: ["keys"] });
    const { prisma } = databaseOf(app);
    await prisma.account.update({ where: { id: operator.accountId }, data: { isOperator: true } });
    const { id: ownerKeyId } = await prisma.apiKey.findFirstOrThrow({ where: { account: { handle: "owner" } } });

    const refused = [
      await execute({ ...app, key: operator.key }, RevokeAnyApiKeyDocument, { input: { apiKeyId: operator.apiKeyId } }),
      await execute({ ...app, key: operator.key }, RevokeAnyApiKeyDocument, { input: { apiKeyId: ownerKeyId } }),
      await execute(app, RevokeAnyApiKeyDocument, { input: { apiKeyId: ownerKeyId } }),
    ];

    expect(refused.map(codes)).toEqual([["CONFLICT"], ["CONFLICT"], ["CONFLICT"]]);
  });
});

describe("keys and usage of an account", () => {
  it("are shown to operators, keys without their text, and to no other account", async () => {
    await chat(app, payer, { model: "acme/chat" });
    await booksWith(app, payer, 1);
    const variables = { id: payer.accountId };

    const { account } = ok(await execute(app, AnyAccountsKeysAndUsageDocument, variables));

    expect(account.apiKeys?.nodes).toEqual([{ restId: payer.apiKeyId, name: "payer", start: payer.key.slice(0, 10) }]);
    expect(account.usage?.nodes).toHaveLength(1);
    expect(account.usageSummary).toMatchObject([{ requests: 1 }]);
    const stranger = await createPayer(app, { permissions: ["balance", "usage", "keys"] });
    expect(codes(await execute({ ...app, key: stranger.key }, AnyAccountsKeysAndUsageDocument, variables))).toEqual(["FORBIDDEN"]);
  });
});

describe("the sessions of a leaver", () => {
  it("all end, and the keys go on working", async () => {
    const person = await signUp(app);
    const other = await signIn(app, person);
    expect([await statusOfSession(person), await statusOfSession(other)]).toEqual([200, 200]);

    const { endSessions } = ok(await execute(app, EndSessionsDocument, { input: { accountId: person.accountId } }));

    expect(endSessions.ended).toBe(2);
    expect([await statusOfSession(person), await statusOfSession(other)]).toEqual([401, 401]);
    expect(codes(await execute(app, EndSessionsDocument, { input: { accountId: randomUUID() } }))).toEqual(["NOT_FOUND"]);
  });
});

describe("a password link", () => {
  async function createLink(accountId: string): Promise<string> {
    const { createPasswordLink } = ok(await execute(app, CreatePasswordLinkDocument, { input: { accountId } }));
    const url = new URL(createPasswordLink.url);
    expect(new Date(createPasswordLink.expiresAt).getTime() - clock.now().getTime()).toBe(24 * 3_600_000);
    return url.pathname + url.search;
  }
  const tokenOf = (path: string) => new URL(path, app.baseUrl).searchParams.get("token") ?? "";

  it("sets a new password once, and ends the sessions", async () => {
    const person = await signUp(app);
    const path = await createLink(person.accountId);
    const browser = new PageBrowser(app.baseUrl);

    const page = await browser.get(path);
    const short = await browser.submit("/set-password", { token: tokenOf(path), password: "short" });
    const done = await browser.submit("/set-password", { token: tokenOf(path), password: "a new password" });

    expect([page.status, page.text]).toEqual([200, expect.stringContaining(person.email)]);
    expect([short.status, short.text]).toEqual([400, expect.stringContaining("at least 8 characters")]);
    expect([done.status, done.text]).toEqual([200, expect.stringContaining("Password changed")]);
    expect(await statusOfSession(person)).toBe(401);
    await expect(signIn(app, person)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
    expect((await signIn(app, { ...person, password: "a new password" })).accountId).toBe(person.accountId);
    for (const again of [
      await browser.get(path),
      await browser.submit("/set-password", { token: tokenOf(path), password: "and another" }),
    ]) {
      expect([again.status, again.text]).toEqual([409, expect.stringContaining("This link has been used")]);
    }
  });

  it("ends when the person changes the password, and when the account is deleted", async () => {
    const [changed, deleted] = [await signUp(app), await signUp(app)];
    const paths = [await createLink(changed.accountId), await createLink(deleted.accountId)];
    const session = { ...app, key: null, headers: signedIn(changed) };
    const input = { currentPassword: changed.password, newPassword: "another password" };
    const { errors } = await executeText(session, {
      query: "mutation ($input: ChangePasswordInput!) { changePassword(input: $input) { accountId } }",
      variables: { input },
    });
    expect(errors).toBeUndefined();
    await databaseOf(app).prisma.accountDeletion.create({ data: { accountId: deleted.accountId, deletedAt: new Date() } });

    for (const path of paths) expect((await new PageBrowser(app.baseUrl).get(path)).status).toBe(404);
    await databaseOf(app).prisma.accountDeletion.delete({ where: { accountId: deleted.accountId } });
  });

  it("sets one password when it is used twice at the same time", async () => {
    const person = await signUp(app);
    const path = await createLink(person.accountId);
    const browsers = await Promise.all(
      ["first password", "second password"].map(async (password) => {
        const browser = new PageBrowser(app.baseUrl);
        await browser.get(path);
        return () => browser.submit("/set-password", { token: tokenOf(path), password });
      }),
    );

    const answers = await Promise.all(browsers.map((submit) => submit()));

    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 409]);
  });

  it("is refused when it is late, replaced, made up, or opened by another person", async () => {
    const person = await signUp(app);
    const replaced = await createLink(person.accountId);
    const path = await createLink(person.accountId);
    const other = await signUp(app);
    const browser = new PageBrowser(app.baseUrl);
    const foreign = new PageBrowser(app.baseUrl);
    foreign.cookies.set(...(other.cookie.split("=", 2) as [string, string]));

    const answers = [await browser.get(replaced), await browser.get("/set-password?token=made-up"), await foreign.get(path)];
    const unsaid = await browser.get("/set-password");
    clock.advance(24 * 3_600);
    const late = await browser.get(path);
    clock.advance(-24 * 3_600);

    expect(answers.map(({ status }) => status)).toEqual([404, 404, 403]);
    expect(answers[2]?.text).toContain("sign out first");
    expect(unsaid.status).toBe(400);
    expect([late.status, late.text]).toEqual([409, expect.stringContaining("This link has expired")]);
    expect((await signIn(app, person)).accountId).toBe(person.accountId);
  });

  it("leaves no session that began with the old password while the new one was set", async () => {
    const person = await signUp(app);
    const { pool, prisma } = databaseOf(app);
    await pool.query(`CREATE FUNCTION replace_password() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      UPDATE sign_in_method SET password = 'replaced meanwhile' WHERE account_id = NEW.account_id; RETURN NEW; END $$`);
    await pool.query("CREATE TRIGGER replace_password AFTER INSERT ON session FOR EACH ROW EXECUTE FUNCTION replace_password()");
    onTestFinished(async () => {
      await pool.query("DROP TRIGGER replace_password ON session");
      await pool.query("DROP FUNCTION replace_password");
    });
    const before = await prisma.session.count({ where: { accountId: person.accountId } });

    await expect(signIn(app, person)).rejects.toThrow("The e-mail address or the password is wrong.");

    expect(await prisma.session.count({ where: { accountId: person.accountId } })).toBe(before);
  });

  it("refuses a session that was ended as it began", async () => {
    const person = await signUp(app);
    const { pool } = databaseOf(app);
    await pool.query(`CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      DELETE FROM session WHERE id = NEW.id; RETURN NULL; END $$`);
    await pool.query("CREATE TRIGGER end_session AFTER INSERT ON session FOR EACH ROW EXECUTE FUNCTION end_session()");
    onTestFinished(async () => {
      await pool.query("DROP TRIGGER end_session ON session");
      await pool.query("DROP FUNCTION end_session");
    });

    await expect(signIn(app, person)).rejects.toMatchObject({ code: "UNAUTHORIZED" });
  });

  it("tells its address to no other page", async () => {
    const { accountId } = await signUp(app);
    const { url } = ok(await execute(app, CreatePasswordLinkDocument, { input: { accountId } })).createPasswordLink;

    for (const address of [url, `${url}-made-up`]) {
      expect((await fetch(address)).headers.get("referrer-policy"), address).toBe("no-referrer");
    }
  });

  it("is refused for an account without an e-mail address", async () => {
    expect(codes(await execute(app, CreatePasswordLinkDocument, { input: { accountId: payer.accountId } }))).toEqual(["CONFLICT"]);
  });

  it("is advised on the sign-in page", async () => {
    const { text } = await new PageBrowser(app.baseUrl).get("/sign-in");

    expect(text).toContain("Forgot your password? Ask the operator of this gateway for a link to set a new one.");
  });
});

describe("credits", () => {
  const withdraw = (input: Partial<WithdrawCreditsInput> = {}, key = app.key) =>
    execute({ ...app, key }, WithdrawCreditsDocument, {
      input: { accountId: payer.accountId, bucket: "PACK", credits: "4", ...input },
    });

  const grant = (input: Partial<GrantCreditsInput> = {}) =>
    execute(app, GrantAnyCreditsDocument, { input: { accountId: payer.accountId, bucket: "PACK", credits: "2", ...input } });

  it("are taken back, once for each id, and never below zero", async () => {
    const withdrawalId = randomUUID();

    const first = ok(await withdraw({ withdrawalId })).withdrawCredits;
    const repeated = ok(await withdraw({ withdrawalId })).withdrawCredits;
    const rest = ok(await withdraw({ credits: "100", note: "granted by mistake" })).withdrawCredits;

    expect(first).toEqual({ credits: "4", account: { balance: { available: "6", pack: "6" } } });
    expect(repeated).toEqual(first);
    expect(rest).toEqual({ credits: "6", account: { balance: { available: "0", pack: "0" } } });
    expect(codes(await withdraw())).toEqual(["CONFLICT"]);
    expect((await closeBooks(app, payer)).account.buckets.pack).toBe(0n);
    const { prisma } = databaseOf(app);
    const entries = await prisma.ledgerEntry.findMany({ where: { accountId: payer.accountId, kind: "withdrawal" } });
    expect(entries.reduce((sum, { amountNanocredits }) => sum + amountNanocredits, 0n)).toBe(0n);
    expect(await prisma.auditEntry.count({ where: { accountId: payer.accountId, act: "withdraw_credits" } })).toBe(2);
  });

  it("are those of a refill that is due", async () => {
    const account = await signUp(app);
    const { prisma } = databaseOf(app);
    const lapsed = { tierNanocredits: 0n, tierResetsAt: new Date(clock.now().getTime() - 1_000) };
    await prisma.account.update({ where: { id: account.accountId }, data: lapsed });

    const taken = ok(await withdraw({ accountId: account.accountId, bucket: "TIER", credits: "0.0001" })).withdrawCredits;

    expect(taken.credits).toBe("0.0001");
  });

  it("are left to generations that are running", async () => {
    const gate = gated(chatCompletion({ content: "Hi" }));
    app.upstream.replyNext(gate.reply);
    const calls = app.upstream.requests.length;
    const answering = chat(app, payer, { model: "acme/dear", max_tokens: 3 });
    await expect.poll(() => app.upstream.requests.length).toBe(calls + 1);

    const { credits } = ok(await withdraw({ credits: "10" })).withdrawCredits;
    gate.open();

    expect((await answering).status).toBe(200);
    expect(Number(credits)).toBeLessThan(10);
    const { rows, account } = await booksWith(app, payer, 1);
    const cost = rows[0]?.costNanocredits ?? 0n;
    expect(account.buckets.pack).toBe(10n * CREDIT - cost - BigInt(Math.round(Number(credits) * 1e9)));
  });

  it("are taken once by many requests with one id at the same time", async () => {
    const withdrawalId = randomUUID();

    const answers = await Promise.all(Array.from({ length: 8 }, () => withdraw({ withdrawalId, credits: "1" })));

    expect(answers.map((answer) => ok(answer).withdrawCredits.credits)).toEqual(Array.from({ length: 8 }, () => "1"));
    expect((await closeBooks(app, payer)).account.buckets.pack).toBe(9n * CREDIT);
  });

  it.each([
    { what: "no credits", input: { credits: "0" }, code: "BAD_REQUEST" },
    { what: "less than none", input: { credits: "-1" }, code: "BAD_REQUEST" },
    { what: "an unknown account", input: { accountId: randomUUID() }, code: "NOT_FOUND" },
    { what: "a bucket without credits", input: { bucket: "CRYPTO" as const }, code: "CONFLICT" },
  ])("are not taken for $what", async ({ input, code }) => {
    expect(codes(await withdraw(input))).toEqual([code]);
  });

  it("are not taken with the id of a generation, nor of another bucket or a smaller withdrawal", async () => {
    const answer = await chat(app, payer, { model: "acme/chat", max_tokens: 3 });
    const generationId = answer.headers.get("x-generation-id") ?? "";
    await booksWith(app, payer, 1);
    const withdrawalId = randomUUID();
    ok(await withdraw({ withdrawalId, credits: "1" }));

    expect(codes(await withdraw({ withdrawalId: generationId }))).toEqual(["CONFLICT"]);
    expect(codes(await grant({ grantId: generationId }))).toEqual(["CONFLICT"]);
    expect(codes(await withdraw({ withdrawalId, credits: "0.5" }))).toEqual(["CONFLICT"]);
    expect(codes(await withdraw({ withdrawalId, bucket: "CRYPTO" }))).toEqual(["CONFLICT"]);
    await closeBooks(app, payer);
  });

  it("are granted once for each id, and not with other values", async () => {
    const grantId = randomUUID();
    const other = await createPayer(app, { pack: CREDIT });

    const [first, repeated] = [ok(await grant({ grantId })), ok(await grant({ grantId }))];

    expect(repeated).toEqual(first);
    const others = [{ credits: "3" }, { bucket: "CRYPTO" as const }, { accountId: other.accountId }];
    for (const changed of others) expect(codes(await grant({ grantId, ...changed })), JSON.stringify(changed)).toEqual(["CONFLICT"]);
    expect((await closeBooks(app, payer)).account.buckets).toMatchObject({ pack: 12n * CREDIT, crypto: 0n });
    expect((await closeBooks(app, other)).account.buckets.pack).toBe(CREDIT);
  });

  it("are granted once by different requests with one id at the same time", async () => {
    const grantId = randomUUID();
    const others = await Promise.all(Array.from({ length: 4 }, () => createPayer(app, { pack: CREDIT })));

    const answers = await Promise.all(others.map(({ accountId }) => grant({ grantId, accountId })));

    expect(answers.map((answer) => codes(answer).join()).sort()).toEqual(["", "CONFLICT", "CONFLICT", "CONFLICT"]);
  });

  it("are not taken with the id of a grant, nor by another account", async () => {
    const { transactionId } = await databaseOf(app).prisma.ledgerEntry.findFirstOrThrow({ where: { accountId: payer.accountId } });

    expect(codes(await withdraw({ withdrawalId: transactionId }))).toEqual(["CONFLICT"]);
    expect(codes(await withdraw({}, payer.key))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute({ ...app, key: payer.key }, MyIdDocument))).toEqual([]);
  });
});
