/** A gateway for others: operators alone make accounts, on the pages, over GraphQL and with GitHub alike, and there is no sandbox. */

import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runSluice } from "../../scripts/sluice/run.js";
import { parseConfig } from "../../src/config/config.js";
import { loadCatalog } from "../../src/services/catalog/catalog.js";
import { databaseOf } from "../e2e/money.js";
import { codes, execute, ok } from "../graphql/client.js";
import { CreateAccountDocument, CreateEmbeddingsDocument, SignInDocument, SignUpDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeGitHub, startFakeGitHub } from "../support/fake-github.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { PageBrowser } from "../support/page-browser.js";
import { createClient, expectEnvelope } from "./client.js";
import { createStranger } from "./seed.js";

let github: FakeGitHub;
let upstream: FakeUpstream;
let app: TestApp;
beforeAll(async () => {
  github = await startFakeGitHub();
  upstream = await startFakeUpstream();
  const { vendors } = parseConfig({});
  app = await createTestApp({
    upstream,
    config: {
      signUp: "closed",
      isForThisMachineOnly: false,
      metrics: { token: null, isOpen: false },
      hasSandboxModels: false,
      github: github.settings,
      vendors: { ...vendors, openai: { apiKey: "openai-key", baseUrl: upstream.baseUrl } },
    },
  });
});
afterAll(async () => {
  await app.close();
  await upstream.close();
  await github.close();
});

const accounts = () => databaseOf(app).prisma.account.count();
const nobody = () => ({ ...app, key: null });
const newEmail = () => `person-${randomUUID()}@example.com`;

async function comeBackFromGitHub(user: FakeGitHub["user"]) {
  const browser = new PageBrowser(app.baseUrl);
  await browser.get("/sign-in");
  const { location } = await browser.submit("/sign-in/github");
  github.user = user;
  const { pathname, search } = new URL(github.authorize(location ?? ""));
  return { browser, back: await browser.get(pathname + search, { "Sec-Fetch-Site": "cross-site" }) };
}

describe("a person without an account", () => {
  it("is shown no way to sign up", async () => {
    const browser = new PageBrowser(app.baseUrl);

    const [signIn, signUp] = [await browser.get("/sign-in"), await browser.get("/sign-up")];
    const start = await browser.get("/", { Accept: "text/html" });

    expect([signIn.status, signIn.text.includes("/sign-up")]).toEqual([200, false]);
    expect([signUp.status, signUp.text.includes("Sign-up is closed."), signUp.text.includes("<form")]).toEqual([403, true, false]);
    expect([
      start.text.includes("/sign-in"),
      start.text.includes("/sign-up"),
      start.text.includes("Ask the operator of this gateway for an account"),
    ]).toEqual([true, false, true]);
  });

  it("is refused on the page, over GraphQL and with GitHub, and nothing is made", async () => {
    const before = await accounts();
    const [email, password] = [newEmail(), "correct horse battery"];
    const browser = new PageBrowser(app.baseUrl);
    await browser.get("/sign-in");

    const page = await browser.submit("/sign-up", { email, password });
    const { back } = await comeBackFromGitHub({ id: 77, login: "octo-77", name: null, emails: [{ email, primary: true, verified: true }] });

    expect([page.status, page.text.includes("Sign-up is closed.")]).toEqual([403, true]);
    expect(codes(await execute(nobody(), SignUpDocument, { input: { email, password } }))).toEqual(["FORBIDDEN"]);
    expect([back.status, back.text.includes("Sign-up is closed.")]).toEqual([403, true]);
    expect(await accounts()).toBe(before);
  });
});

describe("a request for metrics", () => {
  it("is refused without a token of the operator's, and the start says so", async () => {
    const client = createClient(app.baseUrl, app.key);

    for (const key of [null, app.key]) expectEnvelope(await client.get("/metrics", { key }), 404, "NOT_FOUND");
    expect(app.logs.map(({ msg }) => msg)).toContain("metrics are shown to nobody: METRICS_TOKEN is not set");
  });
});

describe("a person with an account", () => {
  it("signs in with GitHub", async () => {
    const { prisma } = databaseOf(app);
    const [id, githubId] = [randomUUID(), 78];
    const method = { id: randomUUID(), providerId: "github", providerAccountId: String(githubId) };
    const account = { id, handle: `octo-${githubId}`, email: newEmail(), name: "Octo Cat", isEmailVerified: true };
    await prisma.account.create({ data: { ...account, signInMethods: { create: method } } });

    const { browser, back } = await comeBackFromGitHub({
      id: githubId,
      login: "octo-78",
      name: "Octo Cat",
      emails: [{ email: account.email, primary: true, verified: true }],
    });

    expect([back.status, back.location]).toEqual([303, "/dashboard"]);
    expect((await browser.get("/device")).text).toContain(account.email);
  });

  it("gets it from an operator, with a password that signs in", async () => {
    const email = newEmail();

    const { account, password } = ok(await execute(app, CreateAccountDocument, { input: { email, name: "Ada" } })).createAccount;

    expect(account).toMatchObject({ email, name: "Ada", tier: "free" });
    const signedIn = await execute(nobody(), SignInDocument, { input: { email, password } });
    expect(ok(signedIn).signIn.accountId).toBe(account.restId);
    expect(codes(await execute(app, CreateAccountDocument, { input: { email } }))).toEqual(["CONFLICT"]);
    expect(codes(await execute(app, CreateAccountDocument, { input: { email: "no address" } }))).toEqual(["BAD_REQUEST"]);
  });

  it("gets it from the command line", async () => {
    const email = newEmail();
    const out: string[] = [];
    const env = { SLUICE_URL: app.baseUrl, SLUICE_API_KEY: app.key };

    const code = await runSluice(["account", "create", email, "--name", "Bob"], env, {
      out: (text) => out.push(text),
      error: (text) => out.push(text),
    });

    const password = /^Password, shown this once: (\S+)$/m.exec(out.join("\n"))?.[1] ?? "";
    expect([code, out.join("\n").includes(email)]).toEqual([0, true]);
    expect(codes(await execute(nobody(), SignInDocument, { input: { email, password } }))).toEqual([]);
  });
});

it("announces at the start that it is public", () => {
  expect(app.logs.map(({ msg }) => msg)).toContain("sign-up is closed: operators make accounts");
});

describe("without sandbox models", () => {
  const ask = async (path: string, body: object, key = app.key) => {
    const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
    const response = await fetch(`${app.baseUrl}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, text: await response.text() };
  };
  const chat = (model?: string) => ask("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hi" }] });

  it("lists no sandbox models, and answers with none", async () => {
    const models = (await (await fetch(`${app.baseUrl}/models`)).json()) as { name: string }[];

    expect(models.length).toBeGreaterThan(0);
    expect(models.filter(({ name }) => name.startsWith("sandbox/"))).toEqual([]);
    expect(await chat("sandbox/text")).toMatchObject({ status: 400, text: expect.stringContaining("There is no model") });
    expect(await ask("/v1/embeddings", { model: "sandbox/embedding-paid", input: "Hi" })).toMatchObject({ status: 400 });
  });

  it("takes the operator's model for each kind's default, and reports kinds without one", async () => {
    expect((await chat()).status).toBe(200);

    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ model: "upstream-chat" });
    const bare = await loadCatalog(
      { modelsFile: null, hasSandboxModels: false, vendors: {}, readEnv: () => null },
      { now: () => new Date() },
    );
    const refuse = (name?: string) => () => bare.resolve({ kind: "anonymous" }, name, "text");
    expect(refuse()).toThrow("Name a model: there is no default. This gateway has no model of modality text.");
    expect(refuse("gpt")).toThrow('There is no model "gpt". This gateway has no model of modality text.');
  });

  it("serves the default names of libraries, and names the model that answered", async () => {
    const called = async (path: string, body: object) => {
      const { status } = await ask(path, body);
      return [status, (upstream.requests.at(-1)?.json as { model?: string } | undefined)?.model];
    };
    const messages = [{ role: "user", content: "Hi" }];

    expect(await called("/v1/chat/completions", { model: "gpt-3.5-turbo", temperature: 0.7, messages })).toEqual([200, "gpt-4o-mini"]);
    expect(await called("/v1/chat/completions", { model: "openai/gpt-4o-2024-08-06", messages })).toEqual([200, "gpt-4o"]);
    const [, ada] = await called("/v1/embeddings", { model: "text-embedding-ada-002", input: "Hi" });
    expect(ada).toBe("text-embedding-ada-002");
  });

  it("suggests models of the requested kind, over REST and GraphQL", async () => {
    const rest = await ask("/v1/embeddings", { model: "gpt-embedding", input: "Hi" });
    const graphql = await execute(app, CreateEmbeddingsDocument, { input: { model: "gpt-embedding", input: [{ text: "Hi" }] } });
    const otherKind = await execute(app, CreateEmbeddingsDocument, { input: { model: "gpt-4o", input: [{ text: "Hi" }] } });

    const { error } = JSON.parse(rest.text);
    expect([rest.status, error.param]).toEqual([400, "model"]);
    expect(error.message).toMatch(/The closest are: (?:(?:acme|openai)\/(?:text-)?embedding\S*[,.] ?){3}$/);
    expect(graphql.errors).toMatchObject([{ message: error.message, extensions: { code: "BAD_REQUEST", param: "model" } }]);
    expect(otherKind.errors?.[0]?.message).toBe(
      "The model openai/gpt-4o is of modality text: use POST /v1/chat/completions (GraphQL: createChatCompletion).",
    );
  });

  it("tells an operator which key a bundled model needs, and others that it is not offered", async () => {
    const stranger = await createStranger(app);
    const body = { model: "claude-sonnet-4-20250514", messages: [{ role: "user", content: "Hi" }] };

    const [operator, other] = [await ask("/v1/chat/completions", body), await ask("/v1/chat/completions", body, stranger.key)];

    expect([operator, other]).toMatchObject([{ status: 400 }, { status: 400 }]);
    expect(JSON.parse(operator.text).error).toMatchObject({
      param: "model",
      message: expect.stringMatching(
        /^The model anthropic\/claude-sonnet-4-6 is in the catalog of this gateway, but its vendor has no key here: set ANTHROPIC_API_KEY or OPENROUTER_API_KEY\. The closest are: /,
      ),
    });
    expect(JSON.parse(other.text).error.message).toMatch(
      /^The model anthropic\/claude-sonnet-4-6 is not offered by this gateway\. The closest are: /,
    );
  });
});
