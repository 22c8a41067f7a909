/** Dates of retirement from the lists of upstreams and from the operator (docs/spec/models.md#retirement). */
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Catalog, loadCatalog } from "../../../src/services/catalog/catalog.js";
import { RetirementReader } from "../../../src/services/catalog/retirement-reader.js";
import type { StatedRetirements } from "../../../src/services/catalog/retirements.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { errorReply, json, raw } from "../../support/upstream-replies.js";

const MODEL = "openai/gpt-5.5";
const log = pino({ level: "silent" });
const list = (...data: unknown[]) => json({ object: "list", data });

describe("a model's date of retirement", () => {
  let openai: FakeUpstream;
  let openrouter: FakeUpstream;
  let catalog: Catalog;
  beforeEach(async () => {
    [openai, openrouter] = await Promise.all([startFakeUpstream(), startFakeUpstream()]);
    openrouter.replyAlways(list());
    const vendors = {
      openai: { apiKey: "of-openai", baseUrl: openai.baseUrl },
      openrouter: { apiKey: "of-openrouter", baseUrl: openrouter.baseUrl },
    };
    catalog = await loadCatalog(
      { modelsFile: null, hasSandboxModels: false, vendors, readEnv: () => null },
      { now: () => new Date("2026-11-28") },
    );
  });
  afterEach(() => Promise.all([openai.close(), openrouter.close()]));

  const read = async (stated: StatedRetirements = new Map()) => {
    const reader = new RetirementReader(stated, catalog, log);
    await reader.run();
    return reader;
  };
  const dateOf = (id = MODEL) => catalog.find(id)?.retiresAt?.toISOString() ?? null;

  it("is the latest of its routes, once each of them has one", async () => {
    openai.replyAlways(list({ id: "gpt-5.5", shutdown_date: "2027-03-01" }, { id: "gpt-5.4", shutdown_date: null }));
    const reader = await read();
    expect(dateOf()).toBeNull();

    openrouter.replyAlways(
      list({ id: MODEL, expiration_date: "2027-04-05T12:00:00Z" }, { id: "openai/gpt-5.4", expiration_date: "2027-01-01" }),
    );
    await reader.run();

    expect(dateOf()).toBe("2027-04-05T12:00:00.000Z");
    expect(dateOf("openai/gpt-5.4")).toBeNull();
    const [request] = openai.requests;
    expect([request?.path, request?.headers.authorization]).toEqual(["/v1/models", "Bearer of-openai"]);
  });

  it("is the operator's, if there is one", async () => {
    openai.replyAlways(list({ id: "gpt-5.5", shutdown_date: "2027-03-01" }));
    openrouter.replyAlways(list({ id: MODEL, expiration_date: "2027-03-01" }));
    await read(new Map([[MODEL, new Date("2027-02-01")]]));
    expect(dateOf()).toBe("2027-02-01T00:00:00.000Z");
    await read(new Map([[MODEL, null]]));
    expect(dateOf()).toBeNull();
    await read();
    expect(dateOf()).toBe("2027-03-01T00:00:00.000Z");
  });

  it("stays when a list cannot be read, and ends when it is stated no more", async () => {
    openai.replyAlways(list({ id: "gpt-5.5", shutdown_date: "2027-03-01" }));
    openrouter.replyAlways(list({ id: MODEL, expiration_date: "2027-03-01" }));
    const reader = await read();
    for (const reply of [errorReply(500), errorReply(401), raw("<html>"), json([]), { kind: "close", reset: true } as const]) {
      openai.replyAlways(reply);
      await reader.run();
      expect(dateOf()).toBe("2027-03-01T00:00:00.000Z");
    }
    openai.replyAlways(list({ id: "gpt-5.5", shutdown_date: null }));
    await reader.run();
    expect(dateOf()).toBeNull();
  });

  it("is none where the list states no date", async () => {
    openrouter.replyAlways(list({ id: MODEL, expiration_date: "2027-03-01" }));
    for (const shutdown_date of [
      "soon",
      "2027-13-01",
      "1999-01-01",
      "2027-03-01T25:00:00Z",
      1_800_000_000,
      {},
      [],
      true,
      "2".repeat(100_000),
    ]) {
      openai.replyAlways(list({ id: "gpt-5.5", shutdown_date }, null, 7, { id: {} }));
      await read();
      expect([shutdown_date, dateOf()]).toEqual([shutdown_date, null]);
    }
  });
});
