/** One generation as services call it: streams without a reader, and the limits of a reported usage. */
import { fileURLToPath } from "node:url";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { deriveContext, type RequestContext } from "../../../src/context.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import { costOf, toRateCard } from "../../../src/services/catalog/pricing.js";
import { CallerGone, Cancellation } from "../../../src/services/generation/cancellation.js";
import { capToHold } from "../../../src/services/generation/metered.js";
import type { GenerationRun } from "../../../src/services/generation/run.js";
import { GenerationStream } from "../../../src/services/generation/stream.js";
import { CREDIT, closeBooks, createPayer, type Payer } from "../../e2e/money.js";
import { createTestApp, type TestApp } from "../../support/app.js";
import { readSources } from "../../support/boundaries.js";
import { chatChunk } from "../../support/openai-bodies.js";
import { bytes, sse, waitFor } from "../../support/upstream-replies.js";

/** Long enough for an answer to begin on a busy machine. */
const TOTAL_MS = 2_000;
const root = fileURLToPath(new URL("../../../", import.meta.url));

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { timeouts: { connectMs: 10_000, idleMs: 10_000, totalMs: TOTAL_MS } } });
});
afterAll(() => app.close());

async function contextOf({ key }: Payer): Promise<RequestContext> {
  const caller = await app.services.apiKeys.authenticate(key);
  return { caller, requestId: "test", clientAddress: "127.0.0.1", signal: new AbortController().signal, log: pino({ level: "silent" }) };
}

/** How each kind of stream is asked for, and what its upstream says before it falls silent. */
const STREAMS = [
  {
    name: "chat",
    begin: (ctx: RequestContext) =>
      app.services.chat.stream(ctx, { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] }).events,
    reply: () => sse([chatChunk({ content: "Hello" }), waitFor(new Promise(() => {}))]),
  },
  {
    name: "speech",
    begin: (ctx: RequestContext) => app.services.speech.stream(ctx, { model: "acme/speech", input: "Hello" }).chunks,
    reply: () => sse([bytes(Buffer.from("sound")), waitFor(new Promise(() => {}))], { headers: { "content-type": "audio/mpeg" } }),
  },
];

describe.each(STREAMS)("a stream of $name", ({ begin, reply }) => {
  it("sends no request before it is read", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const asked = app.upstream.requests.length;

    const stream = begin(await contextOf(payer));

    expect(await stream.return?.()).toMatchObject({ done: true });
    expect(await stream.next()).toMatchObject({ done: true });
    expect(app.upstream.requests).toHaveLength(asked);
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("is charged when its time runs out without a reader", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(reply());
    const stream = begin(await contextOf(payer));

    expect(await stream.next()).toMatchObject({ done: false });

    await expect.poll(async () => (await closeBooks(app, payer)).rows, { interval: 20 }).toMatchObject([{ status: "cancelled" }]);
    await expect(stream.next()).rejects.toMatchObject({ code: "UPSTREAM_TIMEOUT" });
    expect(await stream.next()).toMatchObject({ done: true });
  });

  it("counts as running until it is settled", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(reply());
    const stream = begin(await contextOf(payer));

    await stream.next();

    expect(await streamsRunning()).toBe(1);
    await stream.return?.();
    expect(await streamsRunning()).toBe(0);
  });
});

it("reports a failed release to those who wait for the stream", async () => {
  const failure = new Error("The release failed.");
  const ended: string[] = [];
  const run = {
    cancellation: { leave: () => undefined },
    hold: () => Promise.reject(new Error("The hold was refused.")),
    release: () => Promise.reject(failure),
    end: () => ended.push("end"),
  };
  const stream = new GenerationStream({
    admit: () => run as unknown as GenerationRun,
    open: () => Promise.reject(new Error("Nobody is called.")),
  });

  await expect(stream.events.next()).rejects.toBe(failure);
  await stream.admitted;
  await expect(stream.opened).rejects.toBe(failure);
  expect(ended).toEqual(["end"]);
});

describe("a caller who leaves", () => {
  it("is reported by the connection, without a signal", () => {
    let leave = () => {};
    const cancellation = new Cancellation({ onGone: (listener) => (leave = listener) }, TOTAL_MS);

    expect(cancellation.signal.aborted).toBe(false);
    leave();

    expect(cancellation.isCallerGone).toBe(true);
    expect(cancellation.signal.reason).toBeInstanceOf(CallerGone);
    cancellation.dispose();
  });

  it("does not end a context with its own signal", () => {
    const { signal } = new AbortController();
    const ctx = { caller: { kind: "anonymous" }, signal, leaving: { onGone: () => {} } } as unknown as RequestContext;

    expect(deriveContext(ctx, { signal }).leaving).toBeUndefined();
    expect(deriveContext(ctx, { note: undefined }).leaving).toBe(ctx.leaving);
  });
});

async function streamsRunning(): Promise<number> {
  const response = await fetch(`${app.baseUrl}/metrics`);
  return Number(/^sluice_streams_running (\d+)$/m.exec(await response.text())?.[1]);
}

describe("the usage that an account's upstream reports", () => {
  const rates = toRateCard(
    { promptTextPrice: 1_000_000n, promptCacheWriteHourPrice: 5_000_000n, completionTextPrice: 2_000_000n },
    { modality: "text", imagePricing: "tokens" },
  );

  it.each([
    ["tokens of one kind", { ...NO_USAGE, outputTextTokens: 1_000 }],
    ["tokens of several", { ...NO_USAGE, inputTextTokens: 333, outputTextTokens: 777, outputReasoningTokens: 11 }],
    ["tokens with a price of their own", { ...NO_USAGE, inputCacheWriteTokens: 900, inputCacheWriteHourTokens: 900 }],
  ])("is cut to the hold: %s", (_, quantities) => {
    const held = costOf(quantities, rates) / 3n;

    const capped = capToHold({ quantities, source: "provider" }, rates, held);

    expect(costOf(capped.quantities, rates)).toBeLessThanOrEqual(held);
    expect(costOf(capped.quantities, rates)).toBeGreaterThan((held * 9n) / 10n);
    expect(capped.source).toBe("estimated");
  });

  it("is trusted up to the hold itself", () => {
    const quantities = { ...NO_USAGE, outputTextTokens: 1_000 };

    expect(capToHold({ quantities, source: "provider" }, rates, costOf(quantities, rates))).toEqual({ quantities, source: "provider" });
  });
});

describe("the money path", () => {
  it("opens, extends, settles and releases charges in one place", () => {
    const owners = ["src/services/credits/", "src/services/generation/planned-charge.ts", "src/services/generation/run.ts"];
    const others = [...readSources(root, ["src"])].filter(([file]) => !owners.some((owner) => file.startsWith(owner)));

    // `settle` is also the run's own, which hands it to the charge.
    const named = others.filter(([, text]) => /credits\.open\(|\bOpenCharge\b|charge\.(?:settle|release|meter)\(/.test(text));

    expect(named.map(([file]) => file)).toEqual([]);
  });
});
