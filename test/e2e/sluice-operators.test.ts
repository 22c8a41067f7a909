/** A leaver, a leaked key and a forgotten password on the operator's command line, against a running gateway. */
import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, it } from "vitest";
import { runSluice } from "../../scripts/sluice/run.js";
import { createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { signUp } from "../support/sign-in.js";
import { CREDIT, closeBooks, createPayer, databaseOf, type Payer } from "./money.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

async function sluice(...args: string[]) {
  const [out, error]: [string[], string[]] = [[], []];
  const env = { SLUICE_URL: app.baseUrl, SLUICE_KEY: app.key };
  const code = await runSluice(args, env, { out: (text) => out.push(text), error: (text) => error.push(text) });
  return { code, out: out.join("\n"), error: error.join("\n") };
}

const statusOf = async ({ key }: Payer) =>
  (await fetch(`${app.baseUrl}/account/key`, { headers: { Authorization: `Bearer ${key}` } })).status;

it("finds whose key was leaked, revokes it, and suspends and restores the account", async () => {
  const payer = await createPayer(app);
  const handle = `payer-${payer.accountId}`;

  for (const text of [payer.apiKeyId, payer.key]) expect((await sluice("account", "find", text)).out).toContain(handle);
  expect((await sluice("account", "keys", handle)).out).toMatch(new RegExp(`${payer.apiKeyId} +${payer.key.slice(0, 10)}\\.\\.\\. +payer`));
  expect(await sluice("account", "suspend", handle, "--reason", "A leaver.")).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^Suspended/),
  });
  expect((await sluice("account", "show", handle)).out).toMatch(/suspended +since .*: A leaver\./);
  expect(await statusOf(payer)).toBe(403);
  expect((await sluice("account", "restore", handle)).out).toMatch(/^Restored/);
  expect(await statusOf(payer)).toBe(200);
  expect((await sluice("key", "revoke", payer.apiKeyId, "--reason", "Leaked.")).out).toMatch(/^Revoked the key/);
  expect(await statusOf(payer)).toBe(401);
  expect(await sluice("key", "revoke", payer.apiKeyId)).toMatchObject({ code: 1, error: expect.stringContaining("NOT_FOUND") });
});

it("ends sessions, and makes a link for a forgotten password", async () => {
  const person = await signUp(app);

  expect((await sluice("sessions", "end", person.email)).out).toMatch(/^Ended 1 sessions of/);
  const link = await sluice("account", "password-link", person.email);

  expect(link).toMatchObject({ code: 0, error: expect.stringMatching(/works once, until 20/) });
  const page = await fetch(link.out);
  expect([page.status, await page.text()]).toEqual([200, expect.stringContaining(person.email)]);
});

it("takes credits back, once for each withdrawal id", async () => {
  const payer = await createPayer(app, { pack: 5n * CREDIT });
  const withdrawalId = randomUUID();
  const take = () => sluice("credits", "take", payer.accountId, "2", "--withdrawal-id", withdrawalId, "--note", "a mistake");

  expect((await take()).out).toMatch(/^Took 2 credits from .* the balance is 3\./);
  expect((await take()).out).toMatch(/the balance is 3\./);
  expect((await closeBooks(app, payer)).account.buckets.pack).toBe(3n * CREDIT);
});

it("lists and exports the audit log", async () => {
  const payer = await createPayer(app);
  await sluice("account", "suspend", payer.accountId, "--reason", '=cmd("x"), really');
  await sluice("account", "restore", payer.accountId);

  const list = await sluice("audit", "list", "--account", payer.accountId);
  const suspended = await sluice("audit", "list", "--account", payer.accountId, "--act", "suspend-account");
  const csv = await sluice("audit", "export", "--account", payer.accountId);

  expect(list.out.split("\n").map((line) => line.split(/ +/)[1])).toEqual(["ACT", "RESTORE_ACCOUNT", "SUSPEND_ACCOUNT"]);
  expect(suspended.out.split("\n")).toHaveLength(2);
  expect(csv.out.split("\r\n")).toHaveLength(3);
  expect(csv.out).toContain(`"'=cmd(""x""), really"`);
  expect(await databaseOf(app).prisma.auditEntry.count({ where: { accountId: payer.accountId } })).toBe(2);
});

it("prints the spend of a month by person, key and model, with the total, and as CSV", async () => {
  const payer = await createPayer(app);
  const handle = `payer-${payer.accountId}`;
  await createUsage(app, payer.apiKeyId, 2, new Date("2026-03-15T12:00:00Z"), { costNanocredits: CREDIT, inputTextTokens: 7 });

  const byPerson = await sluice("spend", "--by", "person", "--month", "2026-03");
  expect(byPerson.out).toMatch(/^PERSON +E-MAIL +REQUESTS +INPUT TOKENS +OUTPUT TOKENS +CREDITS\n/);
  expect(byPerson.out).toMatch(new RegExp(`\n${handle} +- +2 +14 +0 +2\nTOTAL +- +2 +14 +0 +2$`));
  expect((await sluice("spend", "--by", "key", "--month", "2026-03", "--account", handle)).out).toMatch(
    new RegExp(`\n${handle} +payer +${payer.apiKeyId} +2 `),
  );
  expect((await sluice("spend", "--by", "model", "--month", "2026-03")).out).toMatch(/\nacme\/chat +2 +14 +0 +2\nTOTAL /);
  const csv = await sluice("spend", "--by", "key", "--month", "2026-03", "--csv");
  expect(csv.out.split("\r\n")).toEqual([
    "month,account_id,handle,email,api_key_id,api_key,requests,failed_requests,input_tokens,output_tokens,cost_usd",
    `2026-03,${payer.accountId},${handle},,${payer.apiKeyId},payer,2,0,14,0,2`,
  ]);
  expect((await sluice("spend", "--by", "person", "--month", "2025-01")).out).toBe("Nothing was spent in 2025-01.");
});

it("prints the trial balance of a period, and as CSV", async () => {
  await createPayer(app, { pack: 5n * CREDIT });
  const all = await sluice("books");
  expect(all.out).toMatch(/^BOOK +KIND +OPENING +DEBIT +CREDIT +CLOSING\n/);
  expect(all.out).toMatch(/\npack +0 +\d\S* +\d\S* +\d\S*\n(?: +\w+ .*\n)* +grant +/);
  expect(all.out).toMatch(/\nTOTAL +(\S+) +\1\s*\nThe books are balanced\. Accounts have \S+ bought and \S+ granted credits now\.$/);
  const before = await sluice("books", "--to", "2020-01-01T00:00:00Z");
  expect(before.out).toMatch(/\nTOTAL +0 +0\s*\nThe books are balanced/);
  const later = await sluice("books", "--from", "2030-01-01T00:00:00Z", "--to", "2031-01-01T00:00:00Z");
  expect(later.out).toMatch(/\npack +\d\S* +0 +0 +\d\S*\s*\n/);
  const csv = (await sluice("books", "--csv")).out.split("\r\n");
  expect(csv[0]).toBe("book,opening,kind,debit,credit,closing");
  expect(csv).toContainEqual(expect.stringMatching(/^pack,0,grant,0,/));
  expect(await sluice("books", "--from", "2031-01-01T00:00:00Z")).toMatchObject({ code: 1, error: expect.stringContaining("from") });
});

it.each([
  { args: ["books", "--csv", "--json"], error: /not both/ },
  { args: ["books", "--from", "yesterday"], error: /--from takes a time/ },
  { args: ["spend", "--month", "2026-03"], error: /needs --by person\|key\|model/ },
  { args: ["spend", "--by", "key", "--month", "March"], error: /--month takes a month such as 2026-11/ },
  { args: ["spend", "--by", "key", "--csv", "--json"], error: /not both/ },
  { args: ["spend", "--by", "key", "--limit", "201"], error: /from 1 to 200/ },
  { args: ["spend", "by", "key"], error: /does not take|needs --by/ },
  { args: ["account", "suspend", "ada"], error: /needs --reason/ },
  { args: ["key", "revoke", "sk_abc"], error: /<key id> is a UUID/ },
  { args: ["credits", "take", "ada", "0"], error: /decimal above 0/ },
  { args: ["credits", "take", "ada", "1", "--withdrawal-id", "x"], error: /--withdrawal-id takes a UUID/ },
  { args: ["audit", "list", "--from", "yesterday"], error: /--from takes a time/ },
])("refuses $args", async ({ args, error }) => {
  expect(await sluice(...args)).toMatchObject({ code: 2, error: expect.stringMatching(error) });
});
