import { describe, expect, it } from "vitest";
import { ProviderError } from "../../src/formats/upstream-error.js";
import { OutboundError } from "../../src/lib/outbound-guard.js";
import { FREE_STEP_ATTEMPTS_MAX } from "../../src/limits.js";
import { isPassing, repeatFreeStep, waitMsAfter } from "../../src/providers/free-steps.js";

const status = (code: number, retryAfterSeconds?: number) =>
  new ProviderError("status", "no", { status: code, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) });

describe("trouble", () => {
  it.each([404, 408, 409, 425, 429, 500, 502, 503, 504, 520, 524])("of the status %i passes", (code) => {
    expect(isPassing(status(code))).toBe(true);
    expect(isPassing(new OutboundError("answer", "no", undefined, code))).toBe(true);
  });

  it.each([400, 401, 402, 403, 405, 410, 413, 415, 422, 451])("of the status %i does not pass", (code) => {
    expect(isPassing(status(code))).toBe(false);
    expect(isPassing(new OutboundError("answer", "no", undefined, code))).toBe(false);
  });

  it("of a connection passes; an answer that cannot be read, a host that is refused, and any other error do not", () => {
    for (const kind of ["network", "closed", "timeout", "cut"] as const) expect(isPassing(new ProviderError(kind, "no"))).toBe(true);
    expect(isPassing(new OutboundError("host", "no", new Error("ECONNRESET")))).toBe(true);

    expect(isPassing(new ProviderError("invalid-response", "no"))).toBe(false);
    expect(isPassing(new OutboundError("host", "no"))).toBe(false);
    expect(isPassing(new ProviderError("network", "no", { cause: new OutboundError("host", "no") }))).toBe(false);
    expect(isPassing(new OutboundError("size", "no"))).toBe(false);
    expect(isPassing(new Error("no"))).toBe(false);
  });
});

describe("a free step", () => {
  const signal = new AbortController().signal;

  it("is tried a bounded number of times", async () => {
    const waits: number[] = [];
    let attempts = 0;
    const attempt = async () => {
      attempts += 1;
      throw status(503);
    };

    await expect(repeatFreeStep(signal, attempt, async (ms) => void waits.push(ms))).rejects.toMatchObject({ status: 503 });

    expect(attempts).toBe(FREE_STEP_ATTEMPTS_MAX);
    expect(waits).toEqual([250, 500, 1_000, 2_000, 4_000, 4_000]);
  });

  it("waits for the requested time, within a bound", () => {
    expect(waitMsAfter(1, status(429, 2))).toBe(2_000);
    expect(waitMsAfter(1, status(429, 3_600))).toBe(30_000);
  });

  it("ends with the signal's reason while it waits", async () => {
    const leaving = new AbortController();
    const reason = new Error("gone");
    const repeated = repeatFreeStep(leaving.signal, async () => {
      throw status(503, 30);
    });
    leaving.abort(reason);

    await expect(repeated).rejects.toBe(reason);
  });
});
