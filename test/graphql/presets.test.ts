/** Presets of an account: named sets of model, system prompt and parameters. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  PRESET_EARLIER_BYTES_MAX,
  PRESET_EARLIER_MAX,
  PRESET_NAME_CHARS_MAX,
  PRESET_PARAMETERS_BYTES_MAX,
  PRESET_SYSTEM_PROMPT_CHARS_MAX,
  PRESETS_PER_ACCOUNT_MAX,
} from "../../src/services/presets/limits.js";
import {
  CreatePresetDocument,
  type CreatePresetInput,
  DeletePresetDocument,
  MyPresetsDocument,
  UpdatePresetDocument,
  type UpdatePresetInput,
} from "../operations/generated/graphql.js";
import { createKey } from "../rest/client.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, ok, type Target } from "./client.js";

let app: TestApp;
let me: Target;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const create = (input: CreatePresetInput, target: Target = app) => execute(target, CreatePresetDocument, { input });
const update = (input: UpdatePresetInput, target: Target = app) => execute(target, UpdatePresetDocument, { input });
const made = async (input: CreatePresetInput, target: Target = app) => ok(await create(input, target)).createPreset.preset;
const list = async (target: Target = app) => ok(await execute(target, MyPresetsDocument, { first: 100 })).me.presets;

describe("A preset", () => {
  it("keeps its model by canonical id, its system prompt and its parameters", async () => {
    const tools = [{ type: "function", function: { name: "get_weather", parameters: { type: "object" } } }];
    const parameters = { temperature: 0.2, max_tokens: 100, stop: ["END"], tools };

    const preset = await made({ name: "brief-answers", model: "acme/chat", systemPrompt: "Be brief.", parameters });

    expect(preset).toMatchObject({ name: "brief-answers", version: 1, modelId: "acme/chat", systemPrompt: "Be brief.", parameters });
    expect((await list())?.nodes).toContainEqual(preset);
  });

  it("has a version that grows with each change of the set, and not with a new name", async () => {
    const { id } = await made({ name: "versioned", parameters: { temperature: 1 } });

    const renamed = ok(await update({ id, name: "versioned-2" })).updatePreset.preset;
    const prompted = ok(await update({ id, systemPrompt: "Rhyme." })).updatePreset.preset;
    const reset = ok(await update({ id, model: "acme/chat-b", systemPrompt: null, parameters: {} })).updatePreset.preset;

    expect(renamed).toMatchObject({ name: "versioned-2", version: 1, parameters: { temperature: 1 } });
    expect(prompted).toMatchObject({ name: "versioned-2", version: 2, systemPrompt: "Rhyme.", parameters: { temperature: 1 } });
    expect(reset).toMatchObject({ name: "versioned-2", version: 3, modelId: "acme/chat-b", systemPrompt: null, parameters: {} });
  });

  it("keeps wishes in the form of a request, and its earlier sets", async () => {
    const provider = { order: ["acme"], allowsFallbacks: false, maxPrice: { prompt: "2" } };
    const { id, ...preset } = await made({ name: "wishing", model: "acme/chat", models: ["acme/chat-b", "acme/chat-b"], provider });
    const stated = { order: ["acme"], allow_fallbacks: false, max_price: { prompt: "2" } };
    expect(preset).toMatchObject({ provider: stated, models: ["acme/chat-b"], earlierVersions: [] });

    const changed = ok(await update({ id, provider: null, models: [] })).updatePreset.preset;

    expect(changed).toMatchObject({ version: 2, provider: null, models: [] });
    expect(changed.earlierVersions).toEqual([
      { version: 1, model: "acme/chat", systemPrompt: null, parameters: {}, provider: stated, models: ["acme/chat-b"] },
    ]);
  });

  it("keeps a bounded number of earlier sets", async () => {
    const { id } = await made({ name: "changing" });
    for (let version = 2; version <= PRESET_EARLIER_MAX + 3; version += 1) ok(await update({ id, systemPrompt: `${version}` }));
    const long = "x".repeat(PRESET_SYSTEM_PROMPT_CHARS_MAX);

    const earlierOf = async (systemPrompt: string) =>
      ok(await update({ id, systemPrompt })).updatePreset.preset.earlierVersions.map((each) => (each as { version: number }).version);

    expect(await earlierOf("last")).toEqual(Array.from({ length: PRESET_EARLIER_MAX }, (_, index) => PRESET_EARLIER_MAX + 3 - index));
    for (let turn = 0; turn < PRESET_EARLIER_MAX; turn += 1) await earlierOf(long);
    expect((await earlierOf("end")).length).toBe(Math.floor(PRESET_EARLIER_BYTES_MAX / (long.length + 100)));
  });

  it.each<[Partial<CreatePresetInput>, string]>([
    [{ models: ["acme/nothing"] }, "model"],
    [{ models: ["acme/embedding"] }, "model"],
    [{ models: Array(9).fill("acme/chat") }, "models"],
    [{ provider: { only: ["acme"], ignore: ["ACME"] } }, "provider.only"],
    [{ provider: { quantizations: ["int3"] } }, "provider.quantizations.0"],
  ])("is refused with %j, naming %s", async (more, param) => {
    const answer = await create({ name: "refused", ...more });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions?.param).toBe(param);
  });

  it("is deleted once", async () => {
    const { id, restId } = await made({ name: "short-lived" });

    expect(ok(await execute(app, DeletePresetDocument, { input: { id } })).deletePreset.deletedId).toBe(restId);
    expect(codes(await execute(app, DeletePresetDocument, { input: { id } }))).toEqual(["NOT_FOUND"]);
    expect(codes(await update({ id, name: "again" }))).toEqual(["NOT_FOUND"]);
    expect(codes(await update({ id: "none", name: "again" }))).toEqual(["NOT_FOUND"]);
  });

  it("refuses values out of their limits, with the field named", async () => {
    const { id } = await made({ name: "taken" });
    const longest = "n".repeat(PRESET_NAME_CHARS_MAX);
    const fitting = { stop: "s".repeat(PRESET_PARAMETERS_BYTES_MAX - '{"stop":""}'.length) };
    const refusals: readonly (readonly [Partial<CreatePresetInput>, string])[] = [
      [{ name: "" }, "name"],
      [{ name: "-a" }, "name"],
      [{ name: "Upper" }, "name"],
      [{ name: "a/b" }, "name"],
      [{ name: `${longest}n` }, "name"],
      [{ name: "taken" }, "name"],
      [{ model: "acme/none" }, "model"],
      [{ model: "acme/image" }, "model"],
      [{ systemPrompt: "p".repeat(PRESET_SYSTEM_PROMPT_CHARS_MAX + 1) }, "systemPrompt"],
      [{ parameters: { temperature: 3 } }, "parameters.temperature"],
      [{ parameters: { messages: [] } }, "parameters.messages"],
      [{ parameters: { stop: `${fitting.stop}s` } }, "parameters"],
      [{ parameters: [] }, "parameters"],
    ];
    for (const [input, param] of refusals) {
      const created = await create({ name: "refused", ...input });
      expect([input.name, param, codes(created), created.errors?.[0]?.extensions.param]).toEqual([
        input.name,
        param,
        ["BAD_REQUEST"],
        param,
      ]);
      if (input.name === "taken") continue;
      expect((await update({ id, ...input })).errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param });
    }
    const { id: other } = await made({ name: "other" });
    expect((await update({ id: other, name: "taken" })).errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "name" });
    const prompt = "p".repeat(PRESET_SYSTEM_PROMPT_CHARS_MAX);
    expect(await made({ name: longest, systemPrompt: prompt, parameters: fitting })).toMatchObject({ name: longest, systemPrompt: prompt });
  });

  it("belongs to its account, needs the permission KEYS, and is one of a bounded number", async () => {
    const { key } = await createStranger(app);
    me = { ...app, key };
    const { id } = await made({ name: "mine" });
    const plain = { ...app, key: (await createKey(app, { name: "plain" })).key };
    expect(codes(await create({ name: "no" }, plain))).toEqual(["FORBIDDEN"]);
    expect(codes(await update({ id, name: "no" }, plain))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute(plain, MyPresetsDocument))).toEqual(["FORBIDDEN"]);
    expect(codes(await update({ id, name: "no" }, me))).toEqual(["NOT_FOUND"]);
    expect(codes(await execute(me, DeletePresetDocument, { input: { id } }))).toEqual(["NOT_FOUND"]);
    expect((await list(me))?.nodes).toEqual([]);

    // The name of another account's preset is free. The last two race for the last place.
    await made({ name: "mine" }, me);
    for (let count = 1; count < PRESETS_PER_ACCOUNT_MAX - 1; count += 1) await made({ name: `preset-${count}` }, me);
    const last = await Promise.all([create({ name: "last" }, me), create({ name: "one-more" }, me)]);
    expect(last.flatMap(codes)).toEqual(["CONFLICT"]);
    expect((await list(me))?.totalCount).toBe(PRESETS_PER_ACCOUNT_MAX);
  });
});
