/** Many calls at once on credits for a few: those that are paid for succeed, the rest are refused, nothing is overdrawn. */
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { wireUsage } from "../support/openai-bodies.js";
import { errorReply } from "../support/upstream-replies.js";
import { CREDIT, chat, closeBooks, createPayer, summarize } from "./money.js";

const CALLS = 50;
/** One output token of `acme/dear` costs one credit, and that is all that a call may make: its hold is its cost. */
const ONE_CREDIT = { model: "acme/dear", max_tokens: 1 };

let app: TestApp;

beforeAll(async () => {
  // Holds of calls that are still under way are waited for as long as a busy machine takes to finish them.
  app = await createTestApp({ config: { contendedHoldWaitMs: 30_000 } });
});
beforeEach(() => {
  app.upstream.answer.pieces = ["Yes"];
  app.upstream.answer.usage = wireUsage(10, 1);
  // Long enough for the calls to meet.
  app.upstream.answer.delayMs = 50;
});
afterAll(() => app.close());

async function codeOf(response: Response): Promise<string> {
  return ((await response.json()) as { error: { code: string } }).error.code;
}

describe.each([{ stream: false }, { stream: true }])(`${CALLS} calls at once, stream: $stream`, ({ stream }) => {
  it.each([
    ["a key whose budget pays for 10", { pack: 100n * CREDIT, budget: 10n * CREDIT }, "KEY_BUDGET_EXHAUSTED"],
    ["an account whose balance pays for 10", { tier: 3n * CREDIT, crypto: 3n * CREDIT, pack: 4n * CREDIT }, "INSUFFICIENT_BALANCE"],
  ] as const)("on %s: 10 succeed", async (_, credits, code) => {
    const payer = await createPayer(app, credits);
    const called = app.upstream.requests.length;

    const responses = await Promise.all(Array.from({ length: CALLS }, () => chat(app, payer, { ...ONE_CREDIT, stream })));

    const served = responses.filter(({ status }) => status === 200);
    const refused = responses.filter(({ status }) => status === 402);
    expect([served.length, refused.length]).toEqual([10, CALLS - 10]);
    for (const response of served) {
      const text = await response.text();
      if (stream) expect(summarize(text)).toMatchObject({ isDone: true, usage: { cost: 1 } });
      else expect(response.headers.get("x-cost")).toBe("1");
    }
    for (const response of refused) {
      expect(response.headers.get("x-should-retry")).toBe("false");
      expect(await codeOf(response)).toBe(code);
    }
    expect(app.upstream.requests.length - called).toBe(10);
    const { rows, account, key } = await closeBooks(app, payer);
    expect(rows.map(({ id }) => id).sort()).toEqual(served.map(({ headers }) => headers.get("x-generation-id")).sort());
    expect(key.spent).toBe(10n * CREDIT);
    const { tier, crypto, pack } = account.buckets;
    expect(tier + crypto + pack).toBe("budget" in credits ? 90n * CREDIT : 0n);
  });

  it("on credits for 10: all that fit succeed when each costs less than its hold", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    // Half a credit is held of each that is under way, a tenth of it is charged: 50 x 0.05 = 2.5 of 10 credits.
    app.upstream.answer.usage = wireUsage(0, 25_000);

    const responses = await Promise.all(
      Array.from({ length: CALLS }, () => chat(app, payer, { model: "acme/chat", max_tokens: 250_000, stream })),
    );

    expect(responses.map(({ status }) => status)).toEqual(Array(CALLS).fill(200));
    await Promise.all(responses.map((response) => response.arrayBuffer()));
    const { account } = await closeBooks(app, payer);
    expect(account.buckets.pack).toBe((10n * CREDIT * 3n) / 4n);
  });

  it("leave the credits as they are when the upstream fails them all", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT, budget: 10n * CREDIT });
    app.upstream.replyAlways(errorReply(500));

    const responses = await Promise.all(Array.from({ length: CALLS }, () => chat(app, payer, { ...ONE_CREDIT, stream })));
    app.upstream.replyAlways(null);

    expect(responses.map(({ status }) => status)).toEqual(Array(CALLS).fill(502));
    const { rows, account, key } = await closeBooks(app, payer);
    expect(rows).toEqual([]);
    expect(account.buckets.pack).toBe(10n * CREDIT);
    expect(key).toEqual({ spent: 0n, held: 0n });
  });
});

describe("The credits end in the middle of a run of calls", () => {
  it("to the last credit, one call after the other", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT, budget: 25n * CREDIT });
    app.upstream.answer.delayMs = 0;
    const statuses: number[] = [];

    for (let call = 0; call < 27; call++) {
      const response = await chat(app, payer, ONE_CREDIT);
      statuses.push(response.status);
      await response.arrayBuffer();
    }

    expect(statuses).toEqual([...Array(25).fill(200), 402, 402]);
    expect((await closeBooks(app, payer)).key.spent).toBe(25n * CREDIT);
  });

  it("for callers who had plenty at first and whose upstream calls begin beside their holds", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT, budget: 40n * CREDIT });
    await (await chat(app, payer, ONE_CREDIT)).arrayBuffer();

    const responses = await Promise.all(Array.from({ length: CALLS }, () => chat(app, payer, ONE_CREDIT)));

    expect(responses.filter(({ status }) => status === 200)).toHaveLength(39);
    expect(responses.filter(({ status }) => status === 402)).toHaveLength(11);
    const { rows, key } = await closeBooks(app, payer);
    expect(rows).toHaveLength(40);
    expect(key.spent).toBe(40n * CREDIT);
  });
});

describe("D the official client, which retries by its own rules", () => {
  it("does not repeat a call that the key's budget refused", async () => {
    const payer = await createPayer(app, { pack: 100n * CREDIT, budget: 1n });
    let sent = 0;
    const client = new OpenAI({
      apiKey: payer.key,
      baseURL: `${app.baseUrl}/v1`,
      fetch: (url, init) => {
        sent += 1;
        return fetch(url as string, init as RequestInit);
      },
    });

    const failure = await client.chat.completions
      .create({ model: "acme/dear", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] })
      .catch((error: unknown) => error);

    expect(failure).toBeInstanceOf(APIError);
    expect(failure).toMatchObject({ status: 402, code: "KEY_BUDGET_EXHAUSTED", type: "insufficient_quota" });
    expect(sent).toBe(1);
  });
});
