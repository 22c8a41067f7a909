/** The memory of fields that upstreams refused. */
import { describe, expect, it } from "vitest";
import { COMMON } from "../../../src/formats/openai-chat/dialect.js";
import type { Refusable } from "../../../src/formats/openai-chat/refused-fields.js";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { LEARNED_MODELS_MAX, LEARNED_MS, LearnedFields } from "../../../src/providers/openai/learned-fields.js";

const ACME = { id: "acme", isRegistered: false };

function memory() {
  let now = Date.parse("2026-11-27T00:00:00Z");
  const noted: string[] = [];
  const learned = new LearnedFields({ now: () => new Date(now) }, ({ id }, model, field) => noted.push(`${id} ${model} ${field}`));
  return { learned, noted, pass: (ms: number) => (now += ms) };
}

const refusal = (status: number, ...refusedFields: Refusable[]) => new ProviderError("status", "Refused.", { status, refusedFields });

const inWords = (...refusedFields: Refusable[]) =>
  new ProviderError("status", "Refused.", { status: 400, refusedFields, isRefusedInWords: true });

describe("learned fields", () => {
  it("change the dialect of the one model until they expire", () => {
    const { learned, pass } = memory();
    learned.learn(ACME, "m", ["stream_options"]);
    pass(LEARNED_MS / 2);
    learned.learn(ACME, "m", ["max_completion_tokens"]);
    const dialect = learned.dialectOf(ACME, "m", COMMON);

    expect(dialect).toMatchObject({ streamOptions: false, renamesCap: true });
    expect(learned.dialectOf(ACME, "m", COMMON)).toBe(dialect);
    expect(learned.dialectOf(ACME, "other", COMMON)).toBe(COMMON);
    expect(learned.dialectOf({ ...ACME, id: "other" }, "m", COMMON)).toBe(COMMON);
    pass(LEARNED_MS / 2);
    expect(learned.dialectOf(ACME, "m", COMMON)).toMatchObject({ streamOptions: true, renamesCap: true });
    expect(learned.read().map(({ field }) => field)).toEqual(["max_completion_tokens"]);
    pass(LEARNED_MS / 2);
    expect(learned.dialectOf(ACME, "m", COMMON)).toBe(COMMON);
    expect(learned.read()).toEqual([]);
  });

  it("are noted once, and named without the model of an account", () => {
    const { learned, noted } = memory();
    learned.learn(ACME, "m", ["store"]);
    learned.learn(ACME, "m", ["store"]);
    learned.learn({ id: "community-1", isRegistered: true }, "secret", ["store"]);

    expect(noted).toEqual(["acme m store", "community-1 secret store"]);
    expect(learned.read()).toMatchObject([
      { upstreamId: "acme", upstreamModel: "m" },
      { upstreamId: null, upstreamModel: null },
    ]);
  });

  it("are those of a bounded number of models", () => {
    const { learned } = memory();
    for (let index = 0; index <= LEARNED_MODELS_MAX; index += 1) learned.learn(ACME, `m${index}`, ["store"]);

    expect(learned.read()).toHaveLength(LEARNED_MODELS_MAX);
    expect(learned.has(ACME, "m0", "store")).toBe(false);
    expect(learned.has(ACME, `m${LEARNED_MODELS_MAX}`, "store")).toBe(true);
  });

  it("have one name of the cap, the last that was refused", () => {
    const { learned } = memory();
    for (const field of ["max_tokens", "max_completion_tokens", "max_tokens"] as const) learned.learn(ACME, "m", [field]);

    expect(learned.dialectOf(ACME, "m", COMMON)).toMatchObject({ outputCap: "max_completion_tokens", renamesCap: true });
    expect(learned.has(ACME, "m", "max_completion_tokens")).toBe(false);
  });

  it.each([
    ["an answer", null, true],
    ["a refusal of another field", refusal(400, "user"), true],
    ["a refusal of the same field", refusal(400, "store"), false],
    ["a refusal in words, which may be the caller's", inWords("user"), false],
    ["a refusal of no field", refusal(400), false],
    ["a failure", refusal(503), false],
  ])("are remembered or not after %s of the second request", async (_what, error, isRemembered) => {
    const { learned } = memory();
    const ask = () => (error ? Promise.reject(error) : Promise.resolve("answer"));
    const asked = learned.at(ACME).askAgain("m", ["store"], ask);

    if (error) await expect(asked).rejects.toBe(error);
    else expect(await asked).toBe("answer");
    expect(learned.has(ACME, "m", "store")).toBe(isRemembered);
  });
});
