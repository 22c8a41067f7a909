/** Names that others see hold no characters that change the direction of the text around them. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { toShown } from "../../src/lib/storable-text.js";
import { post } from "../graphql/client.js";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { signedIn, signUp } from "../support/sign-in.js";

/** Unicode's Bidi_Control. */
const CONTROLS = ["\u061c", "\u200e", "\u200f", "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069"];
const PROBLEM = "must not hold characters that change the direction of text (such as U+202E)";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const AGENT = { systemPrompt: "Be brief.", baseModel: "acme/chat", name: "brief", title: "Brief" };
const MODEL = {
  name: "mine",
  title: "Mine",
  api: "chat_completions",
  url: "https://example.com/v1/chat/completions",
  bearerToken: "secret",
};

describe.each([
  ["a key", "POST", "/account/keys", {}, "name"],
  ["an app key", "POST", "/account/keys", { type: "publishable" }, "name"],
  ["an agent", "POST", "/account/agents", AGENT, "title"],
  ["a model", "POST", "/account/my-models", MODEL, "title"],
] as const)("the name of %s", (_what, method, path, fields, field) => {
  it.each(CONTROLS)("is refused with %j", async (control) => {
    const body = { ...fields, [field]: `Pay${control}Pal` };
    const answer = await createClient(app.baseUrl, app.key).request(method, path, { body });

    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ error: { param: field, message: `${field}: ${PROBLEM}` } });
  });
});

it("may be in any script", async () => {
  for (const name of ["שלום", "مرحبا", "日本語", "😀 Ünïcode"]) {
    expect((await createClient(app.baseUrl, app.key).post("/account/keys", { name })).status).toBe(200);
  }
});

it("is refused for a person, at sign-up and afterwards, on both faces", async () => {
  const person = await signUp(app);
  const patched = await createClient(app.baseUrl, null).request("PATCH", "/account/profile", {
    body: { name: "a\u202eb" },
    headers: signedIn(person),
  });
  const query = "mutation ($input: SignUpInput!) { signUp(input: $input) { __typename } }";
  const input = { email: "turned@example.com", password: "correct horse battery", name: "a\u202eb" };
  const answer = await post({ baseUrl: app.baseUrl, key: null }, { query, variables: { input } });

  expect(patched.status).toBe(400);
  expect(await answer.json()).toMatchObject({
    errors: [{ message: `name: ${PROBLEM}`, extensions: { code: "BAD_REQUEST", param: "name" } }],
  });
});

it("is stripped of control characters where another party than the caller wrote it", () => {
  expect(toShown(`a${CONTROLS.join("b")}c\0\ud83d`)).toBe(`a${"b".repeat(CONTROLS.length - 1)}c\ufffd\ufffd`);
});
