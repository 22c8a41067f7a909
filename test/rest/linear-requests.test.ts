/** Requests built to be expensive: each takes about as long as another of its size, and delays no other request. */

import { afterAll, beforeAll, expect, it } from "vitest";
import { GRAPHQL_ANONYMOUS_BODY_BYTES_MAX } from "../../src/limits.js";
import { textOf } from "../graphql/client.js";
import { CreateApiKeyDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { MEASURABLE_MS, processorMsSoFar } from "../support/growth.js";
import { type Client, createClient } from "./client.js";

let app: TestApp;
let stranger: Client;

beforeAll(async () => {
  app = await createTestApp();
  stranger = createClient(app.baseUrl, null);
});
afterAll(() => app.close());

/** Far above the noise between two requests of one size, and far below quadratic work. */
const SHARE_MAX = 20;
const TRIES = 3;

/** The best of several: what the process does besides, such as collecting garbage, comes and goes. */
async function processorTime(send: () => Promise<unknown>): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let tries = TRIES; tries > 0; tries -= 1) {
    const before = processorMsSoFar();
    await send();
    least = Math.min(least, processorMsSoFar() - before);
  }
  return least;
}

async function expectOrdinary(hostile: () => Promise<unknown>, ordinary: () => Promise<unknown>): Promise<void> {
  await ordinary();
  const share = (await processorTime(hostile)) / Math.max(await processorTime(ordinary), MEASURABLE_MS / 4);
  expect(share).toBeLessThan(SHARE_MAX);
}

const BODY_CHARS = GRAPHQL_ANONYMOUS_BODY_BYTES_MAX - 1_000;
const MUTATION = textOf(CreateApiKeyDocument);
/** Of `first` as many as fit, with something at the end that does not belong there. */
const run = (first: string, chars = BODY_CHARS) => `0.${first.repeat(chars)}1`;

it.each([
  ["a literal", (amount: string) => ({ query: `mutation { createApiKey(input: { name: "a", creditBudget: "${amount}" }) { key } }` })],
  ["a variable", (amount: string) => ({ query: MUTATION, variables: { input: { name: "a", creditBudget: amount } } })],
])("refuses 97 kB of zeros as credits in GraphQL at once, as %s, from an anonymous caller", async (_where, document) => {
  const send = async (amount: string) => {
    const answer = await stranger.post("/graphql", document(amount), { headers: { accept: "application/graphql-response+json" } });
    expect(answer.status).toBe(400);
    return answer;
  };

  await expectOrdinary(
    () => send(run("0")),
    () => send(run("a")),
  );

  const { errors } = (await send(run("0"))).json<{ errors: { message: string; extensions: { code: string } }[] }>();
  expect(errors[0]?.extensions.code).toBe("BAD_REQUEST");
  expect(errors[0]?.message).toMatch(/of at most 64 characters with at most 9 decimal places/);
  expect(errors[0]?.message.length).toBeLessThan(1_100);
});

it("refuses a budget of zeros at /authorize at once", async () => {
  const chars = 14_000;
  const send = (budget: string) => stranger.get(`/authorize?redirect_url=${encodeURIComponent("https://app.example/")}&budget=${budget}`);

  await expectOrdinary(
    () => send(run("0", chars)),
    () => send(run("a", chars)),
  );

  const answer = await send(run("0", chars));
  expect(answer.status).toBe(400);
  expect(answer.text).toContain("budget");
});

it("refuses a document with expensive suggestions of GraphQL at once", async () => {
  const send = (text: string) =>
    stranger.post("/graphql", { query: MUTATION, variables: { input: text.repeat(BODY_CHARS / text.length) } });

  await expectOrdinary(
    () => send("Did you mean "),
    () => send("Did you know "),
  );
});

it("looks for secrets in 1 MB as fast as in another", async () => {
  const client = createClient(app.baseUrl, app.key);
  const send = async (first: string) => {
    const content = `bearer a${first.repeat(4_000)}b `.repeat(250);
    const answer = await client.post("/v1/chat/completions", {
      model: "sandbox/text",
      messages: [{ role: "user", content }],
      safe: "secrets",
    });
    expect(answer.status).toBe(200);
  };

  await expectOrdinary(
    () => send("."),
    () => send("a"),
  );
});
