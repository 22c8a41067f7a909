/** What a request may be charged at most, on every operation that generates, and wishes about money that are not known (docs/spec/credits.md#max-cost). */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { formatNanocredits } from "../../src/lib/money.js";
import { CREDITS_MAX } from "../../src/limits.js";
import { CREDIT, closeBooks, createPayer, expectNothingHeld, type Payer, summarize } from "../e2e/money.js";
import { executeText } from "../graphql/client.js";
import type { RecordedRequest } from "../support/fake-upstream.js";
import type { GenerationOutcome } from "../support/generation-outcome.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { answerWell, COST_OF, createOperationsApp, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import { type Fields, OPERATIONS, type Operation, type RequestHeaders } from "../support/operations.js";
import { json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

const PACK = 1_000n * CREDIT;
/** Nanocredits a token: what its reasoning costs. */
const DEAREST_OUTPUT = 4_000n;

let app: OperationsApp;
let payer: Payer;
let client: Client;

beforeAll(async () => {
  app = await createOperationsApp();
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: PACK });
  client = createClient(app.baseUrl, payer.key);
});
afterEach(() => {
  app.upstream.replyAlways(null);
});
afterAll(() => app.close());

const ask = (operation: Operation, fields: Fields, headers: RequestHeaders = {}): Promise<GenerationOutcome> =>
  operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: payer.key }, { model: modelOf(operation.kind), ...fields }, headers);

const calls = () => app.upstream.requests.length + app.realtime.requests.length;

const named = OPERATIONS.map((operation) => [operation.name, operation] as const);

/** As the face names it. */
const bound = ({ face }: Operation, nanocredits: bigint): Fields => ({
  [face === "REST" ? "max_cost" : "maxCost"]: formatNanocredits(nanocredits),
});

/** What a refusal says that has to be set aside. */
function requiredIn({ text }: Pick<GenerationOutcome, "text">): bigint {
  const [, whole = "", decimals = ""] = /"required":"(\d+)(?:\.(\d+))?"/.exec(text) ?? [];
  return BigInt(whole + decimals.padEnd(9, "0"));
}

describe("a request with a maximum cost", () => {
  it.each(named)("is refused when that is less than the hold, and charged as any other when it is enough: %s", async (_, operation) => {
    answerWell(app, operation);
    const before = calls();

    const cost = COST_OF[operation.kind];
    const nothing = await ask(operation, bound(operation, 0n));
    // An answer of text is shortened to the affordable length, and needs one token.
    const isShortened = operation.kind === "text";
    const required = requiredIn(nothing);
    const tooLittle = await ask(operation, bound(operation, required - 1n));
    const byHeader = await ask(operation, {}, { "X-Max-Cost": formatNanocredits(required - 1n) });
    const smaller = await ask(operation, bound(operation, required), { "X-Max-Cost": formatNanocredits(required - 1n) });

    for (const outcome of [nothing, tooLittle, byHeader, smaller]) {
      expect([outcome.code, outcome.status]).toEqual(["MAX_COST_EXCEEDED", operation.face === "REST" ? 402 : 200]);
      expect(outcome.text).toContain(operation.face === "REST" ? '"param":"max_cost"' : '"param":"maxCost"');
      expect(outcome.text).toContain('"bound":"max_cost"');
      expect(outcome.text).toMatch(/"topUpUrl":"http[^"]*\/dashboard\/credits"/);
      if (operation.kind !== "realtime") expect(outcome.text).toContain('"currency":"credits"');
    }
    expect(calls()).toBe(before);
    await expectNothingHeld(app, 2);

    const enough = await ask(operation, bound(operation, isShortened ? PACK / 1_000_000n : required));

    expect([enough.code, enough.message]).toEqual([null, null]);
    const { rows, account, key } = await closeBooks(app, payer);
    expect(rows.map(({ costNanocredits, status }) => [costNanocredits, status])).toEqual([[cost, "ok"]]);
    expect([account.buckets.pack, key]).toEqual([PACK - cost, { spent: cost, held: 0n }]);
    const sent = [
      ...app.upstream.requests.map(({ path, headers, body }) => [path, JSON.stringify(headers), body.toString("latin1")]),
      ...app.realtime.requests.map(({ url = "", headers }) => [url, JSON.stringify(headers)]),
    ];
    expect(sent.length).toBeGreaterThan(before);
    expect(sent.flat().filter((text) => /max[-_]?cost/i.test(text))).toEqual([]);
  });

  it.each(named)("is refused with an invalid amount: %s", async (_, operation) => {
    const name = operation.face === "REST" ? "max_cost" : "maxCost";
    const before = calls();
    for (const amount of ["-1", "much", "", "1e3", "1,2", "0.0000000001", String(CREDITS_MAX + 1)]) {
      const outcome = await ask(operation, { [name]: amount });

      expect([outcome.code, outcome.status], amount).toEqual(["BAD_REQUEST", operation.face === "REST" ? 400 : 200]);
      expect(outcome.text, amount).toContain(name);
    }
    const byHeader = await ask(operation, {}, { "X-Max-Cost": "much" });

    expect([byHeader.code, byHeader.status]).toEqual(["BAD_REQUEST", 400]);
    expect(byHeader.text).toContain("X-Max-Cost");
    expect(calls()).toBe(before);
  });
});

const body = { model: modelOf("text"), messages: [{ role: "user", content: "Hello" }] };

describe("the maximum cost of a request", () => {
  it.each([
    ["0 of nothing", 0, 402],
    ["a number", 0.25, 200],
    ["a text", "0.25", 200],
    ["the largest", CREDITS_MAX, 200],
    ["null, which is none", null, 200],
    ["a list", ["0.25"], 400],
    ["true", true, 400],
    ["one past the largest", CREDITS_MAX + 1, 400],
    ["a tenth decimal", "0.0000000001", 400],
  ])("may be %s", async (_, amount, status) => {
    app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(10, 4) })));

    const answer = await client.post("/v1/chat/completions", { ...body, max_cost: amount });

    expect(answer.status).toBe(status);
    if (status === 400) expect(answer.json<{ error: { param: string } }>().error.param).toBe("max_cost");
  });

  it("is refused with its amount and the required one", async () => {
    const answer = await client.post("/v1/chat/completions", { ...body, max_tokens: 1_000, max_cost: "0.000001" });

    expectEnvelope(answer, 402, "MAX_COST_EXCEEDED");
    expect(answer.headers.get("x-should-retry")).toBe("false");
    const { details, message, type } = answer.json<{ error: Record<string, unknown> }>().error;
    expect(type).toBe("insufficient_quota");
    expect(details).toMatchObject({ bound: "max_cost", maxCost: "0.000001", available: "0.000001", spent: "0", held: "0" });
    const { required, most, quote } = details as { required: string; most: string; quote: { most: string; model: string } };
    expect(Number(required)).toBeGreaterThan(0.000002);
    expect(Number(most)).toBeGreaterThan(0.002);
    expect(quote).toMatchObject({ most, model: modelOf("text") });
    expect(message).toContain("max_tokens");
  });

  it("shortens a whole answer without a limit to an affordable length", async () => {
    app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(10, 4) })));
    const refused = await client.post("/v1/chat/completions", { ...body, max_cost: "0" });
    expect(refused.status).toBe(402);
    const required = 4_000_000n;

    const { status } = await client.post("/v1/chat/completions", { ...body, max_cost: formatNanocredits(required) });

    expect(status).toBe(200);
    const { max_tokens: most } = (app.upstream.requests.at(-1) as RecordedRequest).json as { max_tokens: number };
    expect(BigInt(most) * DEAREST_OUTPUT).toBeLessThanOrEqual(required);
    expect(BigInt(most) * DEAREST_OUTPUT).toBeGreaterThan((required * 9n) / 10n);
  });

  it("cuts a stream where it is reached, and charges no more", async () => {
    const pieces = Array.from({ length: 4_000 }, (_, index) => `word${index % 10} `);
    app.upstream.replyAlways(sse(chatChunks(pieces, { usage: wireUsage(10, 8_000) })));

    const answer = await client.post("/v1/chat/completions", { ...body, stream: true, max_cost: "0.004" });

    const { content, error, isDone } = summarize(answer.text);
    expect([error?.code, isDone]).toEqual([undefined, true]);
    expect(answer.text).toMatch(/"finish_reason":"length"/);
    expect(answer.text).toMatch(/"cut":"max_cost"/);
    expect(content.length).toBeGreaterThan(0);
    expect(content.length).toBeLessThan(pieces.join("").length);
    const { rows } = await closeBooks(app, payer);
    expect(rows).toHaveLength(1);
    expect(rows[0]?.costNanocredits).toBeGreaterThan(2_000_000n);
    expect(rows[0]?.costNanocredits).toBeLessThanOrEqual(4_000_000n);
  });

  it("is the reason of a cut in GraphQL's receipt", async () => {
    app.upstream.replyAlways(json(chatCompletion({ content: "Hello. ".repeat(400), finishReason: "length", usage: wireUsage(10, 400) })));
    const query = `mutation ($input: ChatCompletionInput!) {
      createChatCompletion(input: $input) { completion { choices { finishReason } } receipt { cost cut } }
    }`;
    const ask = (maxCost: string) => {
      const input = { model: modelOf("text"), messages: [{ role: "USER", content: "Hello" }], maxCost };
      return executeText({ ...app, key: payer.key }, { query, variables: { input } });
    };

    const { data: cut, errors } = await ask("0.0002");
    const { data: whole } = await ask("1");

    expect(errors).toBeUndefined();
    expect(cut).toMatchObject({
      createChatCompletion: { completion: { choices: [{ finishReason: "LENGTH" }] }, receipt: { cut: "MAX_COST" } },
    });
    expect(whole).toMatchObject({ createChatCompletion: { receipt: { cut: null } } });
  });

  it("bounds the charge for any reported usage", async () => {
    app.upstream.replyAlways(json(chatCompletion({ content: "Hello. ".repeat(4_000), usage: wireUsage(10, 1_000_000) })));

    const answer = await client.post("/v1/chat/completions", { ...body, max_cost: "0.004" });

    expect(answer.status).toBe(200);
    const { rows } = await closeBooks(app, payer);
    expect(rows.map(({ costNanocredits }) => costNanocredits <= 4_000_000n)).toEqual([true]);
  });

  it("is shared by all generations of a request", async () => {
    answerWell(app, { kind: "image", delivery: "whole" });
    const query = `mutation ($input: GenerateImageInput!) {
      one: generateImage(input: $input) { receipt { cost } }
      two: generateImage(input: $input) { receipt { cost } }
    }`;
    const variables = { input: { model: modelOf("image"), prompt: "A fox" } };

    const { data, errors } = await executeText({ ...app, key: payer.key, headers: { "X-Max-Cost": "0.06" } }, { query, variables });

    expect(data).toMatchObject({ one: { receipt: { cost: "0.04" } }, two: null });
    expect(errors).toMatchObject([{ path: ["two"], extensions: { code: "MAX_COST_EXCEEDED", details: { spent: "0.04" } } }]);
  });
});

describe("an unknown field about money", () => {
  const WISHES: Fields = { dry_run: true, budget: "0.1", max_price: 0.1, max_budget: 1, max_Cost: "0.1" };
  /** Its input takes no further fields: GraphQL itself names one that it does not know. */
  const isClosed = ({ contract }: Operation) =>
    ["Mutation.createResponse", "Subscription.response", "Mutation.startVideo"].includes(contract);

  it.each(named)("is refused with the field to use: %s", async (_, operation) => {
    const before = calls();
    for (const [name, value] of Object.entries(WISHES)) {
      const outcome = await ask(
        operation,
        operation.face === "REST" || isClosed(operation) ? { [name]: value } : { extra: { [name]: value } },
      );

      expect([outcome.code, outcome.status], name).toEqual(["BAD_REQUEST", operation.face === "REST" ? 400 : 200]);
      expect(outcome.text, name).toContain(name);
      if (!isClosed(operation)) expect(outcome.message, name).toMatch(/max_?cost, the most credits.*quote/i);
    }
    expect(calls()).toBe(before);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it.each([{ dry_run: false }, { dry_run: null, budget: null }])("is ignored when it says no: %j", async (fields) => {
    app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(10, 4) })));

    expect((await client.post("/v1/chat/completions", { ...body, ...fields })).status).toBe(200);
  });
});
