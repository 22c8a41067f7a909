/** The operator's command line against a running gateway. */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { projectRoot } from "../../scripts/build.mjs";
import { runSluice } from "../../scripts/sluice/run.js";
import { parseConfig } from "../../src/config/config.js";
import { createKey } from "../rest/client.js";
import { createTierAccount, createTierApp, type TierApp } from "../support/tiers.js";
import { CREDIT, closeBooks, databaseOf, type Payer } from "./money.js";

let app: TierApp;

beforeAll(async () => {
  app = await createTierApp();
});
afterAll(() => app.close());

interface Run {
  readonly code: number;
  readonly out: string;
  readonly error: string;
}

async function sluice(
  args: readonly string[],
  env: Record<string, string> = { SLUICE_URL: app.baseUrl, SLUICE_API_KEY: app.key },
): Promise<Run> {
  const [out, error]: [string[], string[]] = [[], []];
  const code = await runSluice(args, env, { out: (text) => out.push(text), error: (text) => error.push(text) });
  return { code, out: out.join("\n"), error: error.join("\n") };
}

const done = (out: unknown): Run => ({ code: 0, out: expect.stringMatching(out as RegExp), error: "" });
const failed = (code: number, error: RegExp): Run => ({ code, out: "", error: expect.stringMatching(error) });

async function named(data: { handle?: string; name?: string; email?: string }): Promise<Payer> {
  const payer = await createTierAccount(app);
  await databaseOf(app).prisma.account.update({ where: { id: payer.accountId }, data });
  return payer;
}

describe("sluice account", () => {
  it("lists the requested number of accounts, beyond a page", async () => {
    const mark = randomUUID().slice(0, 8);
    const rows = Array.from({ length: 103 }, (_, index) => ({ id: randomUUID(), handle: `${mark}-${String(index).padStart(3, "0")}` }));
    await databaseOf(app).prisma.account.createMany({ data: rows });

    const [some, all] = [
      await sluice(["account", "list", "--search", mark]),
      await sluice(["account", "list", "--search", mark, "--limit", "200"]),
    ];

    expect(some.out.split("\n")).toHaveLength(21);
    expect(some.out).toMatch(/^ID +HANDLE +E-MAIL +TIER +BALANCE +CREATED\n/);
    expect(
      new Set(
        all.out
          .split("\n")
          .slice(1)
          .map((line) => line.split(/ +/)[1]),
      ),
    ).toEqual(new Set(rows.map(({ handle }) => handle)));
  });

  it("prints JSON for programs", async () => {
    const payer = await createTierAccount(app, { pack: CREDIT });

    const { code, out } = await sluice(["account", "list", "--search", payer.accountId, "--json"]);

    expect(code).toBe(0);
    expect(JSON.parse(out)).toEqual([
      expect.objectContaining({ id: payer.accountId, tier: "free", balance: expect.objectContaining({ available: "2" }) }),
    ]);
  });

  it("shows an account by its id, handle or e-mail address", async () => {
    const mark = randomUUID().slice(0, 8);
    const payer = await named({ handle: `ada-${mark}`, email: `ada-${mark}@example.com` });
    // Found by the same text, and not meant.
    await named({ handle: `ada-${mark}-2`, email: `x-ada-${mark}@example.com` });

    for (const account of [payer.accountId, `ada-${mark}`, `Ada-${mark}@Example.com`]) {
      expect(await sluice(["account", "show", account]), account).toEqual(
        done(new RegExp(`^id +${payer.accountId}\nhandle +ada-${mark}\n`)),
      );
    }
    expect((await sluice(["account", "show", payer.accountId])).out).toMatch(/\nbalance +1 credits: tier 1, crypto 0, pack 0; held 0\n/);
  });

  it("does not take a part of a handle, or another case of it, for the account", async () => {
    const mark = randomUUID().slice(0, 8);
    await named({ handle: `bob-${mark}` });

    for (const account of [`bob-${mark.slice(0, -1)}`, `BOB-${mark}`]) {
      expect(await sluice(["account", "show", account])).toEqual(failed(1, /^sluice: No account has the id, handle or e-mail address "/));
    }
  });

  it("sets a tier, and takes it away", async () => {
    const { accountId } = await createTierAccount(app);

    expect(await sluice(["account", "tier", accountId, "plus"])).toEqual(done(/\ntier +plus\n[\s\S]*balance +5 credits/));
    expect(await sluice(["account", "tier", accountId, "--none"])).toEqual(done(/\ntier +-\nnext reset +-\n/));
    expect(await sluice(["account", "tier", accountId, "gold"])).toEqual(
      failed(1, /^sluice: There is no tier "gold"\. The tiers are: free, plus, idle\. \(BAD_REQUEST\)$/),
    );
  });

  it("does not let a name steer the terminal", async () => {
    const { accountId } = await named({ name: "Eve\u001b[2J\u202egnp\nid 42" });

    const { out } = await sluice(["account", "show", accountId]);

    expect(out).toContain("name        Eve\\u{1b}[2J\\u{202e}gnp\\u{a}id 42\n");
  });
});

describe("sluice credits grant", () => {
  it("adds to the pack, or to the bucket that is named, with a note", async () => {
    const payer = await createTierAccount(app);

    expect(await sluice(["credits", "grant", payer.accountId, "2.5", "--note", "thanks"])).toEqual(
      done(/^Granted 2\.5 credits to payer-\S+ \(pack\); the balance is 3\.5\. Grant id: [0-9a-f-]{36}$/),
    );
    expect(await sluice(["credits", "grant", payer.accountId, "0.000000001", "--bucket", "crypto"])).toEqual(
      done(/\(crypto\); the balance is 3\.500000001/),
    );

    const { account } = await closeBooks(app, payer);
    expect(account.buckets).toEqual({ tier: CREDIT, crypto: 1n, pack: (5n * CREDIT) / 2n });
    const notes = await databaseOf(app).prisma.ledgerEntry.findMany({
      where: { accountId: payer.accountId, book: "pack" },
      select: { note: true },
    });
    expect(notes).toEqual([{ note: "thanks" }]);
  });

  it("happens once for a grant id, however often it is said", async () => {
    const payer = await createTierAccount(app);
    const args = ["credits", "grant", payer.accountId, "2", "--grant-id", randomUUID(), "--json"];

    const balances = [await sluice(args), await sluice(args)].map(({ out }) => JSON.parse(out).balance);

    expect(balances).toEqual(["3", "3"]);
  });

  it("says how to be sure when the outcome is unknown", async () => {
    const grantId = randomUUID();
    const { url, server } = await serve((_request, response) => response.destroy());

    const run = await sluice(["credits", "grant", randomUUID(), "2", "--grant-id", grantId], { SLUICE_URL: url, SLUICE_API_KEY: app.key });
    server.close();

    expect(run).toEqual(
      failed(
        1,
        new RegExp(
          `^sluice: No gateway answers at ${url}/graphql: [^\n]+\nsluice: Whether the credits were granted is not known\\. With --grant-id ${grantId} `,
        ),
      ),
    );
  });
});

describe("sluice publisher", () => {
  it("allows and denies", async () => {
    const { accountId } = await createTierAccount(app);

    expect(await sluice(["publisher", "allow", accountId])).toEqual(done(/\npublisher +yes\n/));
    expect(await sluice(["publisher", "deny", accountId])).toEqual(done(/\npublisher +no\n/));
  });
});

describe("sluice operator", () => {
  it("allows and denies, but keeps the last one", async () => {
    const { accountId } = await createTierAccount(app);

    expect(await sluice(["operator", "allow", accountId])).toEqual(done(/\noperator +yes\n/));
    expect(await sluice(["operator", "deny", accountId])).toEqual(done(/\noperator +no\n/));
    expect(await sluice(["operator", "deny", "owner"])).toEqual(failed(1, /This is the last operator/));
  });
});

describe("sluice", () => {
  it.each([[[]], [["help"]], [["--help"]], [["credits", "grant", "-h"]]])("explains itself: %j", async (args) => {
    expect(await sluice(args, {})).toEqual(done(/^Usage: npm run sluice -- <command>\n[\s\S]*Exit codes:/));
  });

  it.each<[string[], RegExp]>([
    [["account"], /There is no command "account"/],
    [["toString", "x"], /There is no command "toString x"/],
    [["account", "show"], /account show needs <account>\./],
    [["account", "show", ""], /does not take an empty argument/],
    [["account", "show", "a", "b"], /account show does not take "b"\./],
    [["account", "show", "a", "--limit", "3"], /Unknown option '--limit'/],
    [["account", "tier", "a"], /account tier needs <tier>\./],
    [["account", "tier", "a", "plus", "--none"], /account tier does not take "plus"\./],
    [["account", "list", "--limit", "0"], /--limit takes a whole number from 1 to 10000\./],
    [["account", "list", "--limit", "10001"], /--limit takes/],
    [["account", "list", "--limit", "1e2"], /--limit takes/],
    [["account", "list", "--search"], /'--search <value>' argument missing/],
    [["credits", "grant", "a"], /credits grant needs <credits>\./],
    [["credits", "grant", "a", "0"], /<credits> is a decimal above 0/],
    [["credits", "grant", "a", "0.0"], /<credits> is a decimal above 0/],
    [["credits", "grant", "a", "1.0000000001"], /<credits> is a decimal above 0/],
    [["credits", "grant", "a", "1e3"], /<credits> is a decimal above 0/],
    [["credits", "grant", "a", "-5"], /Unknown option '-5'/],
    [["credits", "grant", "a", "5", "--bucket", "gold"], /--bucket is one of pack, crypto, tier\./],
    [["credits", "grant", "a", "5", "--grant-id", "7"], /--grant-id takes a UUID\./],
  ])("refuses %j as no command, and sends no request", async (args, words) => {
    // The address has no server: a request would be another failure.
    const run = await sluice(args, { SLUICE_URL: "http://127.0.0.1:1", SLUICE_API_KEY: app.key });

    expect(run).toEqual(failed(2, words));
    expect(run.error).toMatch(/\nsluice: `npm run sluice -- help` lists the commands\.$/);
  });

  it.each<[string, Record<string, string>, RegExp]>([
    ["no key", {}, /SLUICE_KEY \(or OWNER_API_KEY\) must hold an operator's key; .+ owner key. makes one\./],
    ["an empty key", { SLUICE_API_KEY: "" }, /must hold an operator's key/],
    ["a key with a line's end", { SLUICE_API_KEY: "sk_a\nb" }, /characters that no key has/],
    ["an address that is none", { SLUICE_URL: "localhost:4000", SLUICE_API_KEY: "sk_a" }, /SLUICE_URL must be an http or https URL\./],
  ])("refuses %s", async (_what, env, words) => {
    expect(await sluice(["account", "list"], env)).toEqual(failed(2, words));
  });

  it("takes the address of the gateway and its key from .env", async () => {
    const { port } = app.app.addresses;

    expect(await sluice(["account", "show", "owner"], { PORT: String(port), SLUICE_KEY: app.key })).toEqual(done(/\noperator +yes\n/));
  });

  it("prints a secret key for OWNER_API_KEY, alone, and sends no request", async () => {
    const [one, other] = [await sluice(["key", "generate"], {}), await sluice(["key", "generate"], { SLUICE_URL: "nowhere" })];

    for (const { out, ...rest } of [one, other]) {
      expect(rest).toEqual({ code: 0, error: "" });
      expect(parseConfig({ OWNER_API_KEY: out }).ownerApiKey).toBe(out);
    }
    expect(one.out).not.toBe(other.out);
  });

  it("takes the owner's key, and an address with a slash at its end", async () => {
    expect(await sluice(["account", "show", "owner"], { SLUICE_URL: `${app.baseUrl}/`, OWNER_API_KEY: app.key })).toEqual(
      done(/\noperator +yes\n/),
    );
  });

  it("prints the gateway's refusal", async () => {
    const { key } = await createKey(app, { accountPermissions: ["balance"] });
    const refusals = await Promise.all(
      [key, "sk_nonsense"].map((SLUICE_API_KEY) => sluice(["account", "list"], { SLUICE_URL: app.baseUrl, SLUICE_API_KEY })),
    );

    expect(refusals).toEqual([failed(1, /^sluice: .+ \(FORBIDDEN\)$/), failed(1, /^sluice: .+ \(UNAUTHORIZED\)$/)]);
    expect(await sluice(["account", "show", randomUUID()])).toEqual(failed(1, /^sluice: No such account\. \(NOT_FOUND\)$/));
  });

  it.each<[string, RequestListener, RegExp]>([
    ["answers something else", (_request, response) => response.end("<html>"), /is no gateway \(status 200\)\.$/],
    ["answers JSON of another kind", (_request, response) => response.writeHead(404).end("[]"), /is no gateway \(status 404\)\.$/],
    [
      "sends it elsewhere",
      (_request, response) => response.writeHead(302, { Location: "http://example.com" }).end(),
      /No gateway answers at /,
    ],
  ])("says so when the server at the address %s", async (_what, answer, words) => {
    const { url, server } = await serve(answer);

    const run = await sluice(["account", "list"], { SLUICE_URL: url, SLUICE_API_KEY: app.key });
    server.close();

    expect(run).toEqual(failed(1, words));
  });

  it("says so when the address has no server", async () => {
    const { url, server } = await serve(() => undefined);
    await new Promise((resolve) => server.close(resolve));

    expect(await sluice(["account", "list"], { SLUICE_URL: url, SLUICE_API_KEY: app.key })).toEqual(
      failed(1, /^sluice: No gateway answers at .*ECONNREFUSED/),
    );
  });

  it("runs as the script that npm runs, with its exit codes", async () => {
    const [shown, refused] = await Promise.all([runScript(["account", "show", "owner", "--json"]), runScript(["account", "tier"])]);

    expect(shown.code).toBe(0);
    expect(JSON.parse(shown.out)).toMatchObject({ handle: "owner", isOperator: true });
    expect(refused).toEqual({
      code: 2,
      out: expect.any(String),
      error: expect.stringMatching(/account tier needs <account> and <tier>\./),
    });
  });
});

async function serve(listener: RequestListener): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

function runScript(args: readonly string[]): Promise<Run> {
  const scripts = ["scripts/run-ts.mjs", "scripts/sluice.ts"].map((name) => join(projectRoot, name));
  const child = spawn(process.execPath, [...scripts, ...args], {
    // A developer's .env is none of the tests' business.
    cwd: app.dataDir,
    env: { ...process.env, SLUICE_URL: app.baseUrl, SLUICE_API_KEY: app.key },
  });
  const [out, error]: [Buffer[], Buffer[]] = [[], []];
  child.stdout.on("data", (data: Buffer) => out.push(data));
  child.stderr.on("data", (data: Buffer) => error.push(data));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => resolve({ code: code ?? -1, out: Buffer.concat(out).toString(), error: Buffer.concat(error).toString() }));
  });
}
