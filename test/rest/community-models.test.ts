/** Community models through the whole gateway, as REST shows them (docs/spec/community-models.md). */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { PRICE_FIELDS } from "../../src/services/catalog/pricing.js";
import { COMMUNITY_MODELS_PER_ACCOUNT_MAX, PENDING_CHANGE_MS } from "../../src/services/community-models/limits.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { secretBoxOf } from "../support/secrets.js";
import { MovedClock } from "../support/webhooks.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope } from "./client.js";

const UNKNOWN = "0199f000-0000-7000-8000-000000000001";
const TOKEN = "upstream-credential-0123456789";
const PUBLIC_HOST = "https://1.1.1.1/v1/chat/completions";

const clock = new MovedClock();
let app: TestApp;
let url: string;

interface Model extends Record<string, unknown> {
  readonly id: string;
  readonly modelId: string;
  readonly pending: ({ readonly effectiveAt: string } & Record<string, unknown>) | null;
}

type Loose = Readonly<Record<string, unknown>>;

interface Owner extends Payer, Client {
  readonly handle: string;
}

/** An account with a key that manages its models, and permission to publish. */
async function createOwner({ isPublisher = true } = {}): Promise<Owner> {
  const payer = await createPayer(app, { pack: 10_000_000_000n });
  const { prisma } = databaseOf(app);
  await prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["keys"] } });
  const { handle } = await prisma.account.update({ where: { id: payer.accountId }, data: { isPublisher } });
  return { ...payer, ...createClient(app.baseUrl, payer.key), handle };
}

let owner: Owner;

beforeAll(async () => {
  app = await createTestApp({ clock, config: { upstreamAllowHosts: ["127.0.0.1", "localhost"] } });
  url = `${app.upstream.baseUrl}/chat/completions`;
});
beforeEach(async () => {
  owner = await createOwner();
});
afterAll(() => app.close());

let count = 0;

function textModel(more: object = {}): Record<string, unknown> {
  count += 1;
  const name = `model-${count}`;
  return { name, title: "A model", bearerToken: TOKEN, upstreamModel: "gpt-mock", api: "chat_completions", url, ...more };
}

async function create(more: object = {}, by: Client = owner): Promise<Model> {
  const answer = await by.post("/account/my-models", textModel(more));
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.json();
}

const patch = (id: string, body: object, by: Client = owner) => by.request("PATCH", `/account/my-models/${id}`, { body });

async function changed(id: string, body: object, by: Client = owner): Promise<Model> {
  const answer = await patch(id, body, by);
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.json();
}

const get = async (id: string): Promise<Model> => (await owner.get(`/account/my-models/${id}`)).json();

/** A model that has waited until it is public. */
async function createPublic(more: object = {}, by: Client = owner): Promise<Model> {
  const model = await create({ ...more, visibility: "public" }, by);
  clock.move(PENDING_CHANGE_MS);
  return model;
}

function refuse(answer: Answer, param: string | null, status = 400, code = "BAD_REQUEST"): void {
  expectEnvelope(answer, status, code);
  expect(answer.json<{ error: { param: string | null } }>().error.param).toBe(param);
}

describe("a text model", () => {
  it("is answered with every field of the specification, and without its credential", async () => {
    const prices = { promptTextPrice: 0.00000015, promptCachedPrice: 0, completionTextPrice: 0.000001234567 };
    const body = textModel({
      ...{ description: "Says things.", imagePricing: "request", inputModalities: ["text", "image"], requiredSafetyFeatures: ["secrets"] },
      ...{ advertised: { capabilities: ["tool_calling"], contextLength: 128_000 }, perUserRpm: 0.5, paidOnly: true, ...prices },
    });

    const answer = await owner.post("/api/account/my-models", body);

    expect(answer.status).toBe(200);
    const { bearerToken, ...shown } = body;
    const model = answer.json<Model>();
    expect(model).toEqual({
      ...shown,
      ...{ id: expect.any(String), modelId: `community/${owner.handle}/${shown.name}`, type: "proxy", modality: "text" },
      ...{ visibility: "private", fallbacks: [], pending: null },
      ...{ promptCacheWritePrice: 0.00000015, promptAudioPrice: 0.00000015, promptImagePrice: 0.00000015 },
      ...{
        completionReasoningPrice: 0.000001234567,
        completionAudioPrice: 0.000001234567,
        completionImagePrice: 0,
        completionVideoPrice: 0,
      },
      ...{ createdAt: expect.stringMatching(/Z$/), updatedAt: expect.stringMatching(/Z$/) },
    });
    expect(await get(model.id)).toEqual(model);
    const list = (await owner.get("/account/my-models")).json();
    expect(list).toEqual({ data: [model], provider: { name: null, url: null, iconUrl: null } });
  });

  it("keeps its credential sealed for its row, and in no log", async () => {
    const { id } = await create();

    const row = await databaseOf(app).prisma.communityModel.findUniqueOrThrow({ where: { id } });
    const box = secretBoxOf(app);
    const sealed = row.bearerToken as Uint8Array;
    expect(Buffer.from(sealed).includes(TOKEN)).toBe(false);
    expect(box.open({ table: "community_model", rowId: id, column: "bearer_token" }, sealed)).toBe(TOKEN);
    expect(JSON.stringify(app.logs)).not.toContain(TOKEN);
  });

  it("can be called at once with its credential, by its owner alone", async () => {
    const { modelId } = await create({ upstreamModel: "their-name" });
    const chat = { model: modelId, messages: [{ role: "user", content: "Hello" }] };

    const answer = await owner.post("/v1/chat/completions", chat);
    const request = await app.upstream.nextRequest();
    const stranger = await createClient(app.baseUrl, app.key).post("/v1/chat/completions", chat);

    expect(answer.status).toBe(200);
    expect(request.headers.authorization).toBe(`Bearer ${TOKEN}`);
    expect(request.json).toMatchObject({ model: "their-name" });
    refuse(stranger, "model");
  });

  it("names its owner", async () => {
    const data = { name: "Ada", githubUsername: `ada-${count}`, image: "https://pictures.example/ada.png" };
    await databaseOf(app).prisma.account.update({ where: { id: owner.accountId }, data });

    const { provider } = (await owner.get("/account/my-models")).json();

    expect(provider).toEqual({ name: "Ada", url: `https://github.com/ada-${count}`, iconUrl: data.image });
  });
});

describe("models of other media", () => {
  it.each([
    ["image", "completionImagePrice", ["text"]],
    ["video", "completionVideoPrice", ["text"]],
    ["transcription", "promptAudioPrice", ["audio"]],
    ["speech", "completionAudioPrice", ["text"]],
    ["embedding", "promptTextPrice", ["text"]],
  ])("%s: has a baseUrl, and %s", async (modality, price, inputs) => {
    const { upstreamModel, api, url: _, ...common } = textModel();
    const body = { ...common, modality, baseUrl: app.upstream.baseUrl, [price]: 0.25 };

    const answer = await owner.post("/account/my-models", body);

    expect(answer.status).toBe(200);
    const model = answer.json<Model>();
    expect(model).toMatchObject({
      modality,
      baseUrl: app.upstream.baseUrl,
      [price]: 0.25,
      upstreamModel: body.name,
      inputModalities: inputs,
    });
    expect(model).not.toHaveProperty("url");
    expect(model).not.toHaveProperty("api");
    const others = PRICE_FIELDS.filter((field) => field !== price);
    for (const field of others) expect(model[field]).toBe(0);
    refuse(await patch(model.id, { completionTextPrice: 0.1 }), "completionTextPrice");
    refuse(await owner.post("/account/my-models", { ...body, name: "another", completionReasoningPrice: 0.1 }), "completionReasoningPrice");
  });

  it("an image model changes its way of pricing with its prices", async () => {
    const { api, url: _, ...common } = textModel({ modality: "image", baseUrl: app.upstream.baseUrl, completionImagePrice: 0.04 });
    const { id } = (await owner.post("/account/my-models", common)).json<Model>();

    refuse(await patch(id, { promptTextPrice: 0.000001 }), "promptTextPrice");
    const tokens = await changed(id, { imagePricing: "tokens", promptTextPrice: 0.000001, completionImagePrice: 0.00004 });
    refuse(await patch(id, { imagePricing: "request" }), "promptTextPrice");
    const request = await changed(id, { imagePricing: "request", promptTextPrice: null });

    expect(tokens).toMatchObject({ promptTextPrice: 0.000001, promptImagePrice: 0.000001, completionImagePrice: 0.00004, pending: null });
    expect(request).toMatchObject({ imagePricing: "request", promptTextPrice: 0, completionImagePrice: 0.00004 });
  });
});

describe("an endpoint agent", () => {
  const agent = (more: object = {}) => {
    const { name, title, api } = textModel();
    return { name, title, api, url, ...more };
  };

  it("is registered without a credential and is shown with its own fields", async () => {
    const body = agent({ inputModalities: ["text", "image"], outputModalities: ["text", "3d"], perUserRpm: 2 });

    const answer = await owner.post("/account/my-models/endpoint-agents", body);

    const { id } = answer.json<Model>();
    expect(answer.json()).toEqual({
      ...{ ...body, id, type: "endpoint_agent", modelId: `community/${owner.handle}/${body.name}`, description: null },
      ...{ upstreamModel: body.name, visibility: "private", requiredSafetyFeatures: [], pending: null },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect(await changed(id, { url: `${url}?other=1`, api: "responses", perUserRpm: null })).toMatchObject({
      url: `${url}?other=1`,
      perUserRpm: null,
    });
    refuse(await patch(id, { bearerToken: TOKEN }), "bearerToken");
    refuse(await patch(id, { promptTextPrice: 0 }), "promptTextPrice");
    refuse(await owner.get(`/account/my-models/${id}/fallback-candidates`), "id");
    expect(await changed(id, { visibility: "public" })).toMatchObject({ visibility: "private", pending: { visibility: "public" } });
  });

  it("is refused a credential, a price, a private address and publishing without access", async () => {
    const path = "/account/my-models/endpoint-agents";
    const nobody = await createOwner({ isPublisher: false });

    refuse(await owner.post(path, agent({ bearerToken: TOKEN })), "bearerToken");
    refuse(await owner.post(path, agent({ completionTextPrice: 0.1 })), "completionTextPrice");
    refuse(await owner.post(path, agent({ url: "https://10.0.0.1/" })), "url");
    refuse(await nobody.post(path, agent({ visibility: "public" })), null, 403, "FORBIDDEN");
    expect((await owner.request("GET", path)).status).toBe(405);
  });
});

describe("an agent that the gateway runs", () => {
  it("is listed with the common fields, changed as an agent, and deleted here too", async () => {
    const { prisma } = databaseOf(app);
    const row = {
      id: UNKNOWN.replace("01", "02"),
      accountId: owner.accountId,
      type: "prompt_agent",
      name: "helper",
      title: "Helper",
    } as const;
    await prisma.communityModel.create({ data: { ...row, agent: { create: { systemPrompt: "Help.", baseModel: "acme/chat" } } } });

    const shown = await get(row.id);

    expect(Object.keys(shown).sort()).toEqual(
      [
        "createdAt",
        "description",
        "id",
        "modelId",
        "name",
        "pending",
        "requiredSafetyFeatures",
        "title",
        "type",
        "updatedAt",
        "visibility",
      ].sort(),
    );
    expect(shown).toMatchObject({ id: row.id, type: "prompt_agent", modelId: `community/${owner.handle}/helper` });
    refuse(await patch(row.id, { title: "Other" }), null);
    expect((await owner.request("DELETE", `/account/my-models/${row.id}`)).json()).toEqual({ id: row.id });
    expect(await prisma.agent.count({ where: { id: row.id } })).toBe(0);
  });
});

describe("names", () => {
  it("are taken once in an account, and free again when their model is gone", async () => {
    const first = await create({ name: "taken" });
    const second = await create();

    refuse(await owner.post("/account/my-models", textModel({ name: "taken" })), "name");
    refuse(await patch(second.id, { name: "taken" }), "name");
    const others = await createOwner();
    expect(await create({ name: "taken" }, others)).toMatchObject({ modelId: `community/${others.handle}/taken` });
    await owner.request("DELETE", `/account/my-models/${first.id}`);
    expect(await changed(second.id, { name: "taken" })).toMatchObject({ modelId: first.modelId });
  });

  it("go to one of those who ask at once", async () => {
    const answers = await Promise.all([1, 2, 3, 4].map(() => owner.post("/account/my-models", textModel({ name: "one-of-four" }))));

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400, 400, 400]);
    for (const answer of answers.filter(({ status }) => status === 400)) refuse(answer, "name");
  });

  it("stay while a model is public, because callers go by them", async () => {
    const { id } = await createPublic();

    refuse(await patch(id, { name: "renamed" }), "name");
    const hidden = await changed(id, { visibility: "private", name: "renamed" });

    expect(hidden).toMatchObject({ name: "renamed", visibility: "private", pending: null });
  });
});

describe("a change", () => {
  it("is of the fields that are sent alone, by PATCH or POST", async () => {
    const before = await create({ description: "First.", perUserRpm: 3, promptTextPrice: 0.000001, requiredSafetyFeatures: ["shield"] });

    const { updatedAt: _, ...retitled } = await changed(before.id, { title: "Another" });
    const posted = await owner.post(`/account/my-models/${before.id}/update`, {
      description: "",
      perUserRpm: null,
      advertised: { contextLength: 9 },
    });

    expect({ ...before, ...retitled }).toEqual({ ...before, title: "Another" });
    expect(posted.json()).toMatchObject({
      ...{ title: "Another", description: null, perUserRpm: null, promptTextPrice: 0.000001, requiredSafetyFeatures: ["shield"] },
      advertised: { capabilities: [], contextLength: 9 },
    });
  });

  it("of the address needs the credential again, and the same address does not", async () => {
    const { id } = await create();
    const other = `${url}?tenant=2`;
    const { prisma } = databaseOf(app);
    const sealed = (await prisma.communityModel.findUniqueOrThrow({ where: { id } })).bearerToken;

    refuse(await patch(id, { url: other }), "bearerToken");
    expect(await changed(id, { url })).toMatchObject({ url });
    expect((await prisma.communityModel.findUniqueOrThrow({ where: { id } })).bearerToken).toEqual(sealed);
    expect(await changed(id, { url: other, bearerToken: "another-credential" })).toMatchObject({ url: other });
    expect((await prisma.communityModel.findUniqueOrThrow({ where: { id } })).bearerToken).not.toEqual(sealed);
  });

  it("of no more and no less than it says: refused, nothing is changed", async () => {
    const before = await create();

    for (const [body, param] of [
      [{ title: "New", owner: "x" }, "owner"],
      [{ title: "New", modality: "image" }, "modality"],
      [{ title: "New", type: "endpoint_agent" }, "type"],
      [{ title: "New", baseUrl: url }, "baseUrl"],
      [{ title: "New", url: "https://10.0.0.1/", bearerToken: TOKEN }, "url"],
      [{ title: "New", completionVideoPrice: 1 }, "completionVideoPrice"],
      [{ title: "New", fallbacks: ["community/nobody/nothing"] }, "fallbacks.0"],
    ] as const) {
      refuse(await patch(before.id, body), param);
    }
    expect(await get(before.id)).toEqual(before);
  });
});

describe("the three hours", () => {
  const threeHoursAfter = (from: string | Date, ms = PENDING_CHANGE_MS) => new Date(new Date(from).getTime() + ms).toISOString();

  it("pass before a model is public, to the millisecond", async () => {
    clock.stop();
    const model = await create({ visibility: "public", completionTextPrice: 0.000001 });
    const others = await createOwner();
    const chat = () => others.post("/v1/chat/completions", { model: model.modelId, messages: [{ role: "user", content: "Hello" }] });

    expect(model).toMatchObject({
      visibility: "private",
      pending: { effectiveAt: threeHoursAfter(String(model.createdAt)), visibility: "public" },
    });
    clock.move(PENDING_CHANGE_MS - 1);
    expect(await get(model.id)).toMatchObject({ visibility: "private" });
    refuse(await chat(), "model");
    clock.move(1);
    expect(await get(model.id)).toMatchObject({ visibility: "public", pending: null });
    const answer = await chat();
    clock.goOn();

    expect(answer.status).toBe(200);
    expect(Number(answer.headers.get("x-cost"))).toBeGreaterThan(0);
  });

  it("pass before a public model costs anything else; the row says so only when it is next written", async () => {
    const { id } = await createPublic({ promptTextPrice: 0.000001 });

    const waiting = await changed(id, { promptTextPrice: 0.000002, paidOnly: true, title: "At once" });
    clock.move(PENDING_CHANGE_MS - 60_000);
    const still = await get(id);
    clock.move(60_000);
    const due = await get(id);
    const { prisma } = databaseOf(app);
    const unwritten = await prisma.communityModel.findUniqueOrThrow({ where: { id } });
    const written = await changed(id, { description: "Writes it." });

    const prices = { promptTextPrice: 0.000002, promptCachedPrice: 0.000002, promptCacheWritePrice: 0.000002, promptAudioPrice: 0.000002 };
    expect(waiting).toMatchObject({ title: "At once", promptTextPrice: 0.000001, paidOnly: false });
    expect(waiting.pending).toEqual({ effectiveAt: expect.stringMatching(/Z$/), paidOnly: true, ...prices, promptImagePrice: 0.000002 });
    expect(still).toEqual(waiting);
    expect(due).toMatchObject({ ...prices, paidOnly: true, pending: null });
    expect([unwritten.promptTextPrice, unwritten.paidOnly]).toEqual([1_000_000n, false]);
    expect(written).toMatchObject({ ...prices, paidOnly: true, pending: null });
    expect(await prisma.communityModel.findUniqueOrThrow({ where: { id } })).toMatchObject({
      promptTextPrice: 2_000_000n,
      paidOnly: true,
      pending: null,
    });
  });

  it("are not shortened by an unrelated change, another price or a new registration", async () => {
    const { id, name } = await createPublic({ promptTextPrice: 0.000001 });
    const first = await changed(id, { promptTextPrice: 0.000002 });
    clock.move(PENDING_CHANGE_MS / 2);

    const untouched = await changed(id, { title: "Other" });
    const again = await changed(id, { promptTextPrice: 0.000009 });
    const withdrawn = await changed(id, { promptTextPrice: 0.000001 });
    await owner.request("DELETE", `/account/my-models/${id}`);
    const anew = await create({ name, visibility: "public", promptTextPrice: 0.000009 });

    expect(untouched.pending).toEqual(first.pending);
    expect(Date.parse(String(again.pending?.effectiveAt)) - Date.parse(String(first.pending?.effectiveAt))).toBeGreaterThanOrEqual(
      PENDING_CHANGE_MS / 2,
    );
    expect(again).toMatchObject({ promptTextPrice: 0.000001, pending: { promptTextPrice: 0.000009 } });
    expect(withdrawn).toMatchObject({ promptTextPrice: 0.000001, pending: null });
    expect(anew).toMatchObject({
      visibility: "private",
      pending: { visibility: "public", effectiveAt: threeHoursAfter(String(anew.createdAt)) },
    });
  });

  it("do not keep a model from going private, and begin again after it", async () => {
    const { id } = await createPublic({ promptTextPrice: 0.000001 });
    await changed(id, { promptTextPrice: 0.000002 });

    const hidden = await changed(id, { visibility: "private" });
    const back = await changed(id, { visibility: "public" });

    expect(hidden).toMatchObject({ visibility: "private", promptTextPrice: 0.000001, pending: null });
    expect(back).toMatchObject({ visibility: "private", pending: { visibility: "public" } });
  });

  it("are for publishers: other accounts may do all but publish", async () => {
    const nobody = await createOwner({ isPublisher: false });
    const { id } = await create({}, nobody);

    refuse(await nobody.post("/account/my-models", textModel({ visibility: "public" })), null, 403, "FORBIDDEN");
    refuse(await patch(id, { visibility: "public" }, nobody), null, 403, "FORBIDDEN");
    expect(await changed(id, { visibility: "private", title: "Mine" }, nobody)).toMatchObject({ title: "Mine", pending: null });
    // An operator needs no list.
    expect(await create({ visibility: "public" }, createClient(app.baseUrl, app.key))).toMatchObject({ pending: { visibility: "public" } });
  });
});

describe("fallbacks", () => {
  const prices = { promptTextPrice: 0.000002, completionTextPrice: 0.000004 };

  it("are the account's own or public, no dearer, and shown as they were given; an empty list clears them", async () => {
    const others = await createOwner();
    const theirs = await createPublic(prices, others);
    const own = await create({ promptTextPrice: 0.000001 });

    const model = await create({ ...prices, fallbacks: [own.modelId, theirs.modelId] });
    const cleared = await changed(model.id, { fallbacks: [] });

    expect(model.fallbacks).toEqual([own.modelId, theirs.modelId]);
    expect(cleared.fallbacks).toEqual([]);
  });

  it("are refused by their place: itself, a stranger's, a dearer one, another modality, an agent, a circle", async () => {
    const others = await createOwner();
    const [own, dear, hidden] = [await create(prices), await create({ promptTextPrice: 0.000003 }), await create({}, others)];
    const { api, url: _, ...media } = textModel({ modality: "image", baseUrl: app.upstream.baseUrl });
    const image = (await owner.post("/account/my-models", media)).json<Model>();
    const agent = (
      await owner.post("/account/my-models/endpoint-agents", { name: "agent", title: "Agent", api: "responses", url })
    ).json<Model>();
    const next = await create({ ...prices, fallbacks: [own.modelId] });
    const last = await create({ ...prices, fallbacks: [next.modelId] });

    for (const bad of [own, dear, hidden, image, agent, next, last, { modelId: "community/nobody/nothing" }]) {
      const answer = await patch(own.id, { ...prices, fallbacks: [bad.modelId] });
      refuse(answer, "fallbacks.0");
    }
    const name = `itself-${count}`;
    refuse(await owner.post("/account/my-models", textModel({ name, fallbacks: [`community/${owner.handle}/${name}`] })), "fallbacks.0");
    refuse(await owner.post("/account/my-models", textModel({ ...prices, fallbacks: [own.modelId, dear.modelId] })), "fallbacks.1");
    // By its name alone a model can close a circle.
    const named = await create({ ...prices, name: `named-${count}` });
    const leading = await create({ ...prices, fallbacks: [named.modelId] });
    await changed(named.id, { name: `moved-${count}` });
    refuse(await owner.post("/account/my-models", textModel({ ...prices, name: named.name, fallbacks: [leading.modelId] })), "fallbacks.0");
    expect((await get(own.id)).fallbacks).toEqual([]);
  });

  it("stay at or below the model's prices when those change, at once or later", async () => {
    const own = await create(prices);
    const model = await createPublic({ ...prices, fallbacks: [own.modelId] });

    refuse(await patch(model.id, { promptTextPrice: 0.000001 }), "fallbacks.0");
    expect(await changed(model.id, { promptTextPrice: 0.000001, fallbacks: [] })).toMatchObject({
      fallbacks: [],
      pending: { promptTextPrice: 0.000001 },
    });
    expect(await changed(model.id, { title: "Nothing to do with them" })).toMatchObject({ fallbacks: [] });
  });

  it("that are gone let a price change", async () => {
    const own = await create();
    const model = await create({ ...prices, fallbacks: [own.modelId] });
    await owner.request("DELETE", `/account/my-models/${own.id}`);

    expect(await changed(model.id, { promptTextPrice: 0.000001 })).toMatchObject({ promptTextPrice: 0.000001, fallbacks: [own.modelId] });
    refuse(await patch(model.id, { fallbacks: [own.modelId] }), "fallbacks.0");
  });

  it("close no circle together, when two are changed at once", async () => {
    const [one, two] = [await create(prices), await create(prices)];

    const answers = await Promise.all([patch(one.id, { fallbacks: [two.modelId] }), patch(two.id, { fallbacks: [one.modelId] })]);

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
  });

  it("are found: the account's own first, then others' public ones, without any that would be refused", async () => {
    const others = await createOwner();
    const [cheap, dear] = [await createPublic({ promptTextPrice: 0.000001 }, others), await createPublic({ promptTextPrice: 0.1 }, others)];
    const [hidden, own] = [await create({}, others), await create({ promptTextPrice: 0.000001, description: "Mine." })];
    const model = await create(prices);
    const circle = await create({ ...prices, fallbacks: [model.modelId] });

    const answer = await owner.get(`/api/account/my-models/${model.id}/fallback-candidates`);

    const { data } = answer.json<{ data: { modelId: string; isOwn: boolean }[] }>();
    const found = data.map(({ modelId }) => modelId);
    expect(data[0]).toMatchObject({
      modelId: own.modelId,
      title: "A model",
      description: "Mine.",
      isOwn: true,
      promptTextPrice: 0.000001,
      promptCachedPrice: 0.000001,
    });
    expect(data.filter(({ isOwn }) => isOwn)).toHaveLength(1);
    expect(found).toContain(cheap.modelId);
    for (const { modelId } of [dear, hidden, model, circle]) expect(found).not.toContain(modelId);
    expect((await changed(model.id, { fallbacks: found.slice(0, 3) })).fallbacks).toEqual(found.slice(0, 3));
  });
});

describe("an account", () => {
  it(`has at most ${COMMUNITY_MODELS_PER_ACCOUNT_MAX} models`, async () => {
    const rows = Array.from({ length: COMMUNITY_MODELS_PER_ACCOUNT_MAX - 1 }, (_, index) => ({
      ...{
        id: crypto.randomUUID(),
        accountId: owner.accountId,
        type: "endpoint_agent" as const,
        name: `many-${index}`,
        title: "One of many",
      },
    }));
    await databaseOf(app).prisma.communityModel.createMany({ data: rows });

    const answers = await Promise.all([1, 2].map(() => owner.post("/account/my-models", textModel())));

    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409]);
    expect((await owner.get("/account/my-models")).json<{ data: unknown[] }>().data).toHaveLength(COMMUNITY_MODELS_PER_ACCOUNT_MAX);
  });
});

describe("addresses", () => {
  it.each([
    ...[
      "http://example.com/v1",
      "https://127.1.1.1",
      "https://[::ffff:7f00:1]",
      "https://0x7f.2",
      "https://10.0.0.1",
      "https://169.254.169.254",
    ],
    ...[
      "https://user:secret@1.1.1.1/",
      "https://1.1.1.1:22/",
      "https://1.1.1.1/#x",
      "file:///etc/passwd",
      "data:,x",
      "gopher://1.1.1.1",
      "",
      "x",
    ],
  ])("refuses %s", async (address) => {
    refuse(await owner.post("/account/my-models", textModel({ url: address })), "url");
  });

  it("refuses the gateway's own, and takes public ones", async () => {
    const { port } = new URL(app.baseUrl);

    refuse(await owner.post("/account/my-models", textModel({ url: `http://localhost:${port}/v1/chat/completions` })), "url");
    expect(await create({ url: PUBLIC_HOST })).toMatchObject({ url: PUBLIC_HOST });
  });
});

describe("refusals", () => {
  const OPERATIONS: readonly (readonly [method: string, path: string, body?: object])[] = [
    ["GET", "/account/my-models"],
    ["POST", "/account/my-models", { name: "n", title: "t", bearerToken: "b", api: "responses", url: PUBLIC_HOST }],
    ["POST", "/account/my-models/endpoint-agents", { name: "n", title: "t", api: "responses", url: PUBLIC_HOST }],
    ["GET", "/account/my-models/ID"],
    ["PATCH", "/account/my-models/ID", { title: "theirs" }],
    ["POST", "/account/my-models/ID/update", { title: "theirs" }],
    ["GET", "/account/my-models/ID/fallback-candidates"],
    ["DELETE", "/account/my-models/ID"],
  ];

  it("answer callers without a key or the permission, publishable keys, other accounts and unknown ids", async () => {
    const model = await create();
    const [without, publishable] = [
      await createKey(app, { accountPermissions: ["balance", "usage", "profile"] }),
      await createKey(app, { type: "publishable" }),
    ];
    for (const [method, path, body] of OPERATIONS) {
      const ask = (key: string | null, id = model.id, prefix = "") =>
        owner.request(method, prefix + path.replace("ID", id), { key, ...(body && { body }) });
      expectEnvelope(await ask(null), 401, "UNAUTHORIZED");
      expectEnvelope(await ask(without.key), 403, "FORBIDDEN");
      expectEnvelope(await ask(publishable.key), 403, "FORBIDDEN");
      if (!path.includes("ID")) continue;
      for (const prefix of ["", "/api"]) expectEnvelope(await ask(app.key, model.id, prefix), 404, "NOT_FOUND");
      expectEnvelope(await ask(owner.key, UNKNOWN), 404, "NOT_FOUND");
      expectEnvelope(await ask(owner.key, "not-an-id"), 404, "NOT_FOUND");
    }
    expect(await get(model.id)).toEqual(model);
  });
});

describe("deleting", () => {
  it("answers the id, and the model is gone, from the catalog too", async () => {
    const model = await create();

    const answer = await owner.request("DELETE", `/account/my-models/${model.id}`);

    expect([answer.status, answer.json()]).toEqual([200, { id: model.id }]);
    expectEnvelope(await owner.get(`/account/my-models/${model.id}`), 404, "NOT_FOUND");
    refuse(await owner.post("/v1/chat/completions", { model: model.modelId, messages: [{ role: "user", content: "Hello" }] }), "model");
  });
});

describe("the guide to publishing a model", () => {
  it("works as pasted", async () => {
    const guide = readFileSync(new URL("../../docs/publish-a-model.md", import.meta.url), "utf8");
    const blocks = [...guide.matchAll(/```sh\n([\s\S]*?)```/g)]
      .map(([, block = ""]) => block)
      .filter((block) => !block.includes("curl -N"));
    const script = blocks
      .join("\n")
      .replaceAll("http://localhost:4000", app.baseUrl)
      .replaceAll("http://127.0.0.1:11434/v1", app.upstream.baseUrl)
      .replaceAll(/^curl /gm, "echo; curl -s ");

    const { stdout } = await promisify(execFile)("bash", ["-ec", script], { env: { ...process.env, SLUICE_KEY: app.key } });

    const answers = stdout
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => JSON.parse(line) as Loose);
    expect(answers.filter(({ success, errors }) => success === false || errors !== undefined)).toEqual([]);
    expect(answers).toHaveLength(blocks.length + 1);
    expect(answers.map(({ pending }) => pending)).toContainEqual({ effectiveAt: expect.any(String), visibility: "public" });
  });
});
