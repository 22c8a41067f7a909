/** Connected apps over HTTP, with the development broker: what accounts are answered, and the pages on which a person decides. */
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import {
  CONNECTED_APPS_PER_ACCOUNT_MAX,
  CONNECTION_ALIAS_CHARS_MAX,
  CONNECTION_RETURN_SECONDS,
  DEVELOPMENT_CONNECTION_SECONDS,
  ENDED_CONNECTION_KEPT_SECONDS,
  TOOLKIT_CHARS_MAX,
  TOOLKIT_SEARCH_CHARS_MAX,
} from "../../src/services/integrations/limits.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock, type MovableClock } from "../support/clock.js";
import type { ShownPage } from "../support/pages.js";
import { signedIn, signUp } from "../support/sign-in.js";
import { type Filled, visit } from "../support/visitor.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

const PREFIXES = ["/account", "/api/account"] as const;
const UNKNOWN = "0199f000-0000-7000-8000-000000000001";
const CONNECT = "/integrations/connect";

let app: TestApp;
let clock: MovableClock;
/** An account with a key that manages its keys. */
let payer: Payer;
let client: Client;
/** Not signed in; the cookie is what such a browser's forms are bound to. */
const nobody = () => visit(app.baseUrl, { cookie: "sluice_form=AAAAAAAAAAAAAAAAAAAAAA" });

beforeAll(async () => {
  clock = createMovableClock();
  const rateLimits = { anonymousRequestsPer10Seconds: 10_000, publishableRequestsPerMinute: 60, publishableCreditsPerHour: 1n };
  app = await createTestApp({ clock, config: { rateLimits } });
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: 1n });
  await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["keys"] } });
  client = createClient(app.baseUrl, payer.key);
});
afterAll(() => app.close());

interface Connection {
  readonly id: string;
  /** Of its page, with the query. */
  readonly path: string;
}

async function begin(toolkit = "notes", as = client): Promise<Connection> {
  const answer = await as.post("/account/integrations", { toolkit });
  expect(answer.status).toBe(200);
  const { id, url } = answer.json<{ id: string; url: string }>();
  return { id, path: pathOf(url) };
}

function pathOf(url: string | null): string {
  const { pathname, search } = new URL(url ?? "");
  return pathname + search;
}

async function listed(as = client): Promise<Record<string, unknown>[]> {
  return (await as.get("/account/integrations")).json<{ data: Record<string, unknown>[] }>().data;
}

async function statusOf({ id }: Connection): Promise<unknown> {
  return (await listed()).find((row) => row.id === id)?.status;
}

/** Opens the page of a connection and presses one of its buttons; what a browser without script is answered. */
async function decide({ path }: Connection, decision: string, more: Filled = {}, visitor = nobody()): Promise<ShownPage> {
  return visitor.send(await visitor.open(path), CONNECT, { decision, ...more });
}

describe("connected apps", () => {
  it("are begun, approved on a page, listed and ended", async () => {
    const answer = await client.post("/account/integrations", { toolkit: "notes" });
    const { id, url, ...more } = answer.json<{ id: string; url: string }>();
    const connection = { id, path: pathOf(url) };
    const [initiated] = await listed();
    const decided = await decide(connection, "approve", { alias: " Work & <b>home</b> " });
    const returned = await nobody().open(pathOf(decided.location));
    const shown = await listed();
    const removed = await client.request("DELETE", `/account/integrations/${id}`);

    expect([answer.status, more, answer.headers.get("cache-control")]).toEqual([200, {}, "no-store"]);
    expect(url).toMatch(/^http:\/\/localhost:\d+\/integrations\/connect\?token=[\w.-]+$/);
    expect(initiated).toEqual({
      ...{ id, toolkit: "notes", name: "Notes", description: expect.stringMatching(/\S/) },
      ...{ logo: null, alias: null, status: "initiated" },
    });
    expect([decided.status, pathOf(decided.location)]).toEqual([303, expect.stringMatching(/^\/integrations\/callback\?state=/)]);
    expect(returned.status).toBe(200);
    expect(returned.html).toContain("<h1>Notes is connected</h1>");
    expect(returned.html).toContain("Work &amp; &lt;b&gt;home&lt;/b&gt;");
    expect(shown).toEqual([{ ...initiated, alias: "Work & <b>home</b>", status: "active" }]);
    expect([removed.status, removed.text]).toEqual([204, ""]);
    expect(await listed()).toEqual([]);
    expectEnvelope(await client.request("DELETE", `/account/integrations/${id}`), 404, "NOT_FOUND");
    expect((await nobody().open(connection.path)).status).toBe(404);
    expect((await nobody().open(pathOf(decided.location))).text).toContain("notes is not connected The connection was not found");
  });

  it("can be refused, once", async () => {
    const connection = await begin("mail");

    const refused = await decide(connection, "refuse");
    const again = await nobody().open(connection.path);

    expect(await statusOf(connection)).toBe("failed");
    expect((await nobody().open(pathOf(refused.location))).text).toContain("Mail is not connected The connection was denied");
    expect(again.text).toContain("Mail is not connected");
    expect(again.html).not.toContain('value="approve"');
  });

  it("are decided on once, of two decisions at the same time too", async () => {
    const connection = await begin();
    const visitor = nobody();
    const page = await visitor.open(connection.path);

    const answers = await Promise.all(["approve", "refuse", "approve"].map((decision) => visitor.send(page, CONNECT, { decision })));
    const late = await visitor.send(page, CONNECT, { decision: "refuse" });

    expect(answers.map(({ status }) => status).sort()).toEqual([303, 409, 409]);
    expect(late.status).toBe(409);
    expect(late.html).toContain('role="alert"');
  });

  it("expire without an approval, and are removed a day later", async () => {
    const connection = await begin();
    const visitor = nobody();
    const page = await visitor.open(connection.path);
    clock.advance(DEVELOPMENT_CONNECTION_SECONDS - 1);
    expect(await statusOf(connection)).toBe("initiated");

    clock.advance(1);
    expect(await statusOf(connection)).toBe("expired");
    expect((await visitor.send(page, CONNECT, { decision: "approve" })).status).toBe(409);
    expect((await visitor.open(connection.path)).text).toContain("The request expired.");
    const active = await begin("mail");
    await decide(active, "approve");

    clock.advance(ENDED_CONNECTION_KEPT_SECONDS);
    await app.services.developmentBroker.sweep();
    expect(await statusOf(connection)).toBe("expired");
    clock.advance(1);
    await app.services.developmentBroker.sweep();
    expect((await listed()).map(({ id, status }) => [id, status])).toEqual([[active.id, "active"]]);
  });

  it("go with their account", async () => {
    const { prisma } = databaseOf(app);
    const [mine, gone] = [await begin(), uuidv7()];
    await prisma.developmentConnection.create({ data: { id: gone, accountId: uuidv7(), toolkit: "notes", status: "active" } });

    await app.services.developmentBroker.sweep();

    expect(await prisma.developmentConnection.findMany({ where: { id: { in: [mine.id, gone] } }, select: { id: true } })).toEqual([
      { id: mine.id },
    ]);
  });

  it("can be switched off and on again", async () => {
    const connection = await begin("calendar");
    const visitor = nobody();

    const early = await visitor.send(await visitor.open(connection.path), CONNECT, { decision: "switch-off" });
    await decide(connection, "approve");
    const off = await decide(connection, "switch-off");
    const statusOff = await statusOf(connection);
    const shownOff = await visitor.open(off.location ?? "");
    await visitor.send(shownOff, CONNECT, { decision: "switch-on" });

    expect(early.status).toBe(409);
    expect([off.status, off.location, statusOff]).toEqual([303, connection.path, "inactive"]);
    expect(shownOff.text).toContain("Calendar is disabled");
    expect(await statusOf(connection)).toBe("active");
  });

  it("are a hundred at most, however many are begun at once", async () => {
    const row = { accountId: payer.accountId, toolkit: "notes" };
    const data = Array.from({ length: CONNECTED_APPS_PER_ACCOUNT_MAX - 2 }, () => ({ ...row, id: uuidv7() }));
    await databaseOf(app).prisma.developmentConnection.createMany({ data });

    const answers = await Promise.all(Array.from({ length: 4 }, () => client.post("/account/integrations", { toolkit: "notes" })));

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 409, 409]);
    const refused = answers.find(({ status }) => status === 409);
    if (refused) expectEnvelope(refused, 409, "CONFLICT");
    expect(await listed()).toHaveLength(CONNECTED_APPS_PER_ACCOUNT_MAX);
  });

  it("are hidden from other accounts", async () => {
    const connection = await begin();
    const other = createClient(app.baseUrl, app.key);

    for (const prefix of PREFIXES) {
      expectEnvelope(await other.request("DELETE", `${prefix}/integrations/${connection.id}`), 404, "NOT_FOUND");
    }
    expect((await listed(other)).map(({ id }) => id)).not.toContain(connection.id);
    expect(await statusOf(connection)).toBe("initiated");
  });
});

describe("toolkits", () => {
  it.each([
    ["", ["notes", "mail", "calendar"]],
    ["?search=", ["notes", "mail", "calendar"]],
    ["?search=MAIL", ["mail"]],
    ["?search=reads%20%20sends", ["mail"]],
    ["?search=fax", []],
    [`?search=${"a".repeat(TOOLKIT_SEARCH_CHARS_MAX)}`, []],
  ])("%s", async (query, slugs) => {
    const { data } = (await client.get(`/account/integrations/toolkits${query}`)).json<{ data: Record<string, unknown>[] }>();

    expect(data.map(({ slug }) => slug)).toEqual(slugs);
    for (const row of data) expect(row).toEqual({ slug: row.slug, name: expect.any(String), description: expect.any(String), logo: null });
  });
});

describe.each(PREFIXES)("bad input below %s", (prefix) => {
  it.each<[string, unknown, string | null]>([
    ["no toolkit", {}, "toolkit"],
    ["an empty toolkit", { toolkit: "" }, "toolkit"],
    ["capitals and blanks", { toolkit: "A b" }, "toolkit"],
    ["a line after it", { toolkit: "notes\n" }, "toolkit"],
    ["a number", { toolkit: 1 }, "toolkit"],
    ["101 characters", { toolkit: "a".repeat(TOOLKIT_CHARS_MAX + 1) }, "toolkit"],
    ["100 characters that name none", { toolkit: "a".repeat(TOOLKIT_CHARS_MAX) }, "toolkit"],
    ["one that there is not", { toolkit: "fax" }, "toolkit"],
    ["another field", { toolkit: "notes", callbackUrl: "https://evil.example" }, "callbackUrl"],
    ["a list", [], null],
  ])("refuses %s", async (_name, body, param) => {
    const answer = await client.post(`${prefix}/integrations`, body, { headers: { "Idempotency-Key": "once" } });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string | null } }>().error.param).toBe(param);
    expect(await listed()).toEqual([]);
  });

  it("refuses a search of 101 characters, and invalid ids", async () => {
    const search = await client.get(`${prefix}/integrations/toolkits?search=${"a".repeat(TOOLKIT_SEARCH_CHARS_MAX + 1)}`);
    expectEnvelope(search, 400, "BAD_REQUEST");
    expect(search.json<{ error: { param: string } }>().error.param).toBe("search");

    for (const id of [UNKNOWN, "1", "..%2f1", "toolkits"]) {
      const answer = await client.request("DELETE", `${prefix}/integrations/${id}`);
      expect([id, answer.status]).toEqual([id, id === "toolkits" ? 405 : 404]);
    }
  });
});

describe("the page of a connection", () => {
  it("names the owner and the tool, and keeps the entered text when it is too long", async () => {
    const connection = await begin();
    const { handle } = await databaseOf(app).prisma.account.findUniqueOrThrow({ where: { id: payer.accountId } });

    const page = await nobody().open(connection.path);
    const refused = await decide(connection, "approve", { alias: `<${"a".repeat(CONNECTION_ALIAS_CHARS_MAX)}` });
    const longest = await decide(connection, "approve", { alias: "a".repeat(CONNECTION_ALIAS_CHARS_MAX) });

    expect(page.text).toContain(`For the account ${handle}`);
    expect(page.text).toContain("This is the development broker.");
    expect(Object.fromEntries(page.headers)).toMatchObject({
      "content-security-policy": expect.stringMatching(
        /^default-src 'none'; .*form-action 'self' http:\/\/localhost:\d+; .*frame-ancestors 'none'$/,
      ),
      "cache-control": "no-store",
      "referrer-policy": "same-origin",
    });
    expect(refused.status).toBe(400);
    expect(refused.html).toContain('role="alert" id="wrong">A name has at most 60 characters.');
    expect(refused.html).toContain(`value="&lt;${"a".repeat(CONNECTION_ALIAS_CHARS_MAX)}"`);
    expect(longest.status).toBe(303);
  });

  it("opens for the holder of the whole link", async () => {
    const connection = await begin();
    const [before = "", token = ""] = connection.path.split("token=");
    const [text = "", signature = ""] = token.split(".");
    const content = JSON.parse(Buffer.from(text, "base64url").toString()) as object;
    const forged = Buffer.from(JSON.stringify({ ...content, callbackUrl: "https://evil.example/" })).toString("base64url");
    const state = new URL((content as { callbackUrl: string }).callbackUrl).searchParams.get("state") ?? "";
    const page = await nobody().open(connection.path);

    for (const wrong of ["", "x", text, `${text}.`, `${text}.${"A".repeat(43)}`, `${forged}.${signature}`, state, `${token}&token=`]) {
      expect([wrong, (await nobody().open(`${before}token=${wrong}`)).status]).toEqual([wrong, wrong.includes("&") ? 400 : 404]);
      expect([403, 404]).toContain((await nobody().send(page, CONNECT, { decision: "approve", token: wrong })).status);
    }
    expect((await nobody().open(CONNECT)).status).toBe(404);
    expect(await statusOf(connection)).toBe("initiated");
  });

  it("takes decisions from its own form only", async () => {
    const connection = await begin();
    const visitor = nobody();
    const page = await visitor.open(connection.path);

    const answers = [
      await visitor.send(page, CONNECT, { decision: "approve" }, { "Sec-Fetch-Site": "cross-site" }),
      await visitor.send(page, CONNECT, { decision: "approve", form_token: "1.x" }),
      await visitor.send(page, CONNECT, { decision: "approve", form_token: null }),
      await visitor.send(page, CONNECT, { decision: "perhaps" }),
    ];

    expect(answers.map(({ status }) => status)).toEqual([403, 403, 403, 400]);
    expect(await statusOf(connection)).toBe("initiated");
  });

  it("lets only its owner decide when a person is signed in", async () => {
    const [owner, other] = [await signUp(app), await signUp(app)];
    const begun = await client.post("/account/integrations", { toolkit: "notes" }, { key: null, headers: signedIn(owner) });
    const connection = { id: begun.json<{ id: string }>().id, path: pathOf(begun.json<{ url: string }>().url) };
    const page = await visit(app.baseUrl, other).open(connection.path);
    const mine = visit(app.baseUrl, owner);
    const ownPage = await mine.open(connection.path);
    const token = new URLSearchParams(connection.path.split("?")[1]).get("token") ?? "";

    expect(page.text).toContain("This is not your connection.");
    expect(page.text).not.toContain("development broker");
    expect(page.forms.map(({ action }) => action)).toEqual(["/sign-out"]);
    const pressed = await visit(app.baseUrl, other).send(page, "/sign-out", { return_to: connection.path });
    expect(pressed.location).toBe(connection.path);
    const forced = await signUp(app);
    const form = await visit(app.baseUrl, forced).open(connection.path);
    const foreign = { ...form, forms: form.forms.map((each) => ({ ...each, action: CONNECT })) };
    const answer = await visit(app.baseUrl, forced).send(foreign, CONNECT, { decision: "approve", token });
    expect(answer.status).toBe(403);
    expect(answer.text).toContain("This is not your connection.");
    const decided = await mine.send(ownPage, CONNECT, { decision: "approve" });
    expect(ownPage.text).toContain(`Signed in as`);
    expect(decided.status).toBe(303);
    const told = await visit(app.baseUrl, forced).open(pathOf(decided.location));
    expect(told.text).toContain("This is not your account.");
    expect((await mine.open(pathOf(decided.location))).text).not.toContain("This is not your account.");
  });
});

describe("the page that connections return to", () => {
  it("shows connections of its own account only, for an hour", async () => {
    const mine = await begin();
    const returned = pathOf((await decide(mine, "approve")).location);
    const theirs = await begin("notes", createClient(app.baseUrl, app.key));
    const [before = ""] = returned.split("&connection=");

    expect((await nobody().open(`${before}&connection=${theirs.id}`)).text).toContain("The broker did not name the connection");
    expect((await nobody().open(before)).text).toContain("Notes is connected");
    for (const state of ["", "x.y", mine.path.split("token=")[1] ?? ""]) {
      expect((await nobody().open(`/integrations/callback?state=${state}`)).status).toBe(404);
    }
    const second = await begin();
    expect((await nobody().open(before)).text).toContain(`Connections of Notes The broker did not name`);
    expect((await nobody().open(`${before}&connection=${second.id}`)).text).toContain("Notes is not connected yet");
    clock.advance(CONNECTION_RETURN_SECONDS - 1);
    expect((await nobody().open(returned)).status).toBe(200);
    clock.advance(1);
    const late = await nobody().open(returned);
    expect([late.status, late.location]).toEqual([404, null]);
  });
});
