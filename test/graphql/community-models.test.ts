/** Community models over GraphQL: the twins of the REST operations, and what becomes of models while their owner watches. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { PENDING_CHANGE_MS } from "../../src/services/community-models/limits.js";
import { createPayer, databaseOf } from "../e2e/money.js";
import {
  CommunityModelByIdDocument,
  CommunityModelChangedDocument,
  type CommunityModelChangedSubscription,
  CommunityModelNodeDocument,
  CreateApiKeyDocument,
  CreateCommunityModelDocument,
  type CreateCommunityModelInput,
  CreateEndpointAgentDocument,
  DeleteCommunityModelDocument,
  FallbackCandidatesDocument,
  ModelAndItsRegistrationDocument,
  MyCommunityModelDocument,
  MyCommunityModelsDocument,
  MyCommunityModelsUsageDocument,
  UpdateCommunityModelDocument,
  type UpdateCommunityModelInput,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { MovedClock } from "../support/webhooks.js";
import { type Answer, codes, execute, executeText, type Live, ok, type Target, TRANSPORTS, textOf } from "./client.js";

const TOKEN = "upstream-credential-0123456789";
const UNKNOWN = "0199f000-0000-7000-8000-000000000001";

const clock = new MovedClock();
let app: TestApp;
let url: string;
let key: string;
let accountId: string;
let handle: string;

beforeAll(async () => {
  app = await createTestApp({ clock, config: { upstreamAllowHosts: ["127.0.0.1"] } });
  url = `${app.upstream.baseUrl}/chat/completions`;
});
beforeEach(async () => {
  const { prisma } = databaseOf(app);
  let apiKeyId: string;
  ({ key, accountId, apiKeyId } = await createPayer(app, { pack: 1_000_000_000n }));
  await prisma.apiKey.update({ where: { id: apiKeyId }, data: { permissions: ["keys"] } });
  ({ handle } = await prisma.account.update({ where: { id: accountId }, data: { isPublisher: true } }));
});
afterAll(() => app.close());

const by = (asking: string | null = key): Target => ({ ...app, key: asking });

let count = 0;
const textModel = (more: Partial<CreateCommunityModelInput> = {}): CreateCommunityModelInput => {
  count += 1;
  return { name: `model-${count}`, title: "A model", bearerToken: TOKEN, api: "CHAT_COMPLETIONS", url, ...more };
};

const tryCreate = (input: CreateCommunityModelInput, asking?: string) => execute(by(asking), CreateCommunityModelDocument, { input });
const made = async (input: CreateCommunityModelInput) => ok(await tryCreate(input)).createCommunityModel.communityModel;
const create = async (more: Partial<CreateCommunityModelInput> = {}) => {
  const { restId: id, modelId } = await made(textModel(more));
  return { id, modelId };
};
const tryUpdate = (id: string, changes: Omit<UpdateCommunityModelInput, "id">, asking?: string) =>
  execute(by(asking), UpdateCommunityModelDocument, { input: { id, ...changes } });
const update = async (id: string, changes: Omit<UpdateCommunityModelInput, "id">) =>
  ok(await tryUpdate(id, changes)).updateCommunityModel.communityModel;
const tryFind = (id: string, asking?: string) => execute(by(asking), CommunityModelByIdDocument, { id });
const find = async (id: string) => ok(await tryFind(id)).me.communityModel;
const tryRemove = (id: string, asking?: string) => execute(by(asking), DeleteCommunityModelDocument, { id });
const param = ({ errors }: Answer<unknown>) => errors?.[0]?.extensions.param;

describe("a community model", () => {
  it("is created, shown, changed and deleted, its prices exact to the last decimal", async () => {
    const input = textModel({
      ...{ description: "Says things.", inputModalities: ["TEXT", "IMAGE"], requiredSafetyFeatures: ["SECRETS"], perUserRpm: 0.5 },
      ...{
        advertised: { capabilities: ["TOOL_CALLING"], contextLength: 8_000 },
        promptTextPrice: "0.000000000001",
        completionTextPrice: "0",
      },
    });

    const model = await made(input);
    const { name, title, description, api, inputModalities, requiredSafetyFeatures, perUserRpm, advertised } = input;
    const text = "0.000000000001";
    expect(model).toEqual({
      ...{
        __typename: "ProxyModel",
        restId: model.restId,
        modelId: `community/${handle}/${name}`,
        name,
        title,
        description,
        api,
        url,
        baseUrl: null,
      },
      ...{ inputModalities, requiredSafetyFeatures, perUserRpm, advertised, visibility: "PRIVATE", modality: "TEXT", upstreamModel: name },
      ...{
        imagePricing: "REQUEST",
        isPaidOnly: false,
        fallbackIds: [],
        pending: null,
        statedPrices: ["PROMPT_TEXT_PRICE", "COMPLETION_TEXT_PRICE"],
      },
      ...{ promptTextPrice: text, promptCachedPrice: text, promptCacheWritePrice: text, promptAudioPrice: text, promptImagePrice: text },
      ...{ completionTextPrice: "0", completionReasoningPrice: "0", completionAudioPrice: "0", completionImagePrice: "0" },
      ...{ completionVideoPrice: "0", createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect(await find(model.restId)).toEqual(model);
    const changed = await update(model.restId, { promptTextPrice: "0.25", title: "Other", advertised: null });
    expect(changed).toMatchObject({
      promptTextPrice: "0.25",
      title: "Other",
      description,
      advertised: { capabilities: [], contextLength: null },
    });
    const removed = await tryRemove(toGlobalId("ProxyModel", model.restId));
    expect(ok(removed).deleteCommunityModel.communityModel).toEqual({ restId: model.restId });
    expect(codes(await tryFind(model.restId))).toEqual(["NOT_FOUND"]);
  });

  it("of another medium has a baseUrl", async () => {
    const { api, url: _, ...common } = textModel({ modality: "SPEECH", baseUrl: app.upstream.baseUrl, completionAudioPrice: "0.000015" });

    expect(await made(common)).toMatchObject({
      modality: "SPEECH",
      api: null,
      url: null,
      baseUrl: app.upstream.baseUrl,
      completionAudioPrice: "0.000015",
    });
  });

  it("can be an endpoint agent", async () => {
    const input = { name: "agent", title: "Agent", api: "RESPONSES", url, outputModalities: ["TEXT", "THREE_D"] } as const;

    const { agent } = ok(await execute(by(), CreateEndpointAgentDocument, { input })).createEndpointAgent;

    expect(agent).toMatchObject({
      __typename: "EndpointAgentModel",
      ...input,
      inputModalities: ["TEXT"],
      upstreamModel: "agent",
      perUserRpm: null,
    });
    expect(await update(agent.restId, { perUserRpm: 1.5 })).toMatchObject({ perUserRpm: 1.5, api: "RESPONSES" });
    expect(param(await tryUpdate(agent.restId, { promptTextPrice: "0" }))).toBe("promptTextPrice");
    expect(param(await tryUpdate(agent.restId, { isPaidOnly: true }))).toBe("isPaidOnly");
    const variables = { input: { ...input, bearerToken: TOKEN } };
    expect(codes(await executeText(by(), { query: textOf(CreateEndpointAgentDocument), variables }))).toEqual(["BAD_REQUEST"]);
  });

  it("is listed a page at a time, newest first, with models of every type", async () => {
    const [first, second] = [await create(), await create()];
    const row = { accountId, title: "Agent", visibility: "public" } as const;
    const { prisma } = databaseOf(app);
    const later = new Date(Date.now() + 60_000);
    await prisma.communityModel.create({
      data: { ...row, id: crypto.randomUUID(), type: "prompt_agent", name: "prompt", createdAt: later },
    });
    await prisma.communityModel.create({
      data: { ...row, id: crypto.randomUUID(), type: "code_agent", name: "code", createdAt: new Date(later.getTime() + 1) },
    });
    const list = async (after: string | null = null) => ok(await execute(by(), MyCommunityModelsDocument, { first: 3, after })).me;

    const page = await list();
    const rest = await list(page.communityModels?.pageInfo.endCursor);

    expect(page.communityModels).toMatchObject({
      nodes: [
        { __typename: "CodeAgent", name: "code" },
        { __typename: "PromptAgent", name: "prompt" },
        { __typename: "ProxyModel", name: second.modelId.split("/")[2] },
      ],
      pageInfo: { hasNextPage: true },
    });
    expect(rest.communityModels?.nodes).toEqual([{ __typename: "ProxyModel", name: first.modelId.split("/")[2] }]);
    expect(page.communityModelProvider).toEqual({ name: null, url: null, iconUrl: null });
  });

  it("changes its public price only after three hours", async () => {
    const { id } = await create({ visibility: "PUBLIC", promptTextPrice: "0.000001" });
    clock.move(PENDING_CHANGE_MS);

    const waiting = await update(id, { promptTextPrice: null, completionTextPrice: "0.5", isPaidOnly: true });
    clock.move(PENDING_CHANGE_MS);
    const due = await find(id);

    expect(waiting).toMatchObject({ visibility: "PUBLIC", promptTextPrice: "0.000001", completionTextPrice: "0", isPaidOnly: false });
    expect(waiting.pending).toMatchObject({
      ...{ effectiveAt: expect.stringMatching(/Z$/), visibility: null, isPaidOnly: true, imagePricing: null },
      ...{
        promptTextPrice: "0",
        promptCachedPrice: "0",
        completionTextPrice: "0.5",
        completionReasoningPrice: "0.5",
        completionVideoPrice: null,
      },
    });
    expect(due).toMatchObject({
      promptTextPrice: "0",
      completionTextPrice: "0.5",
      isPaidOnly: true,
      pending: null,
      statedPrices: ["COMPLETION_TEXT_PRICE"],
    });
  });

  it("finds its fallbacks", async () => {
    const cheap = await create({ promptTextPrice: "0.000001" });
    const { id } = await create({ promptTextPrice: "0.000002" });
    const { communityModel } = ok(await execute(by(), FallbackCandidatesDocument, { id })).me;
    const found = communityModel?.__typename === "ProxyModel" ? (communityModel.fallbackCandidates ?? []) : [];
    const changed = await update(id, { fallbackIds: [toGlobalId("Model", cheap.modelId)] });

    expect(found.filter(({ isOwn }) => isOwn)).toEqual([
      { modelId: cheap.modelId, title: "A model", isOwn: true, promptTextPrice: "0.000001" },
    ]);
    expect(changed).toMatchObject({ fallbackIds: [cheap.modelId] });
  });
});

describe("edges", () => {
  it("lead from a model to its owner's registration and back, hidden from others", async () => {
    const cheap = await create({ promptTextPrice: "0.000001" });
    const { id, modelId } = await create({ promptTextPrice: "0.000002", fallbackIds: [cheap.modelId] });
    await update(id, { visibility: "PUBLIC" });
    clock.move(PENDING_CHANGE_MS);

    const own = ok(await execute(by(), ModelAndItsRegistrationDocument, { id: modelId })).model;
    const others = ok(await execute(by(null), ModelAndItsRegistrationDocument, { id: modelId })).model;

    expect(own).toMatchObject({
      ...{ owner: { handle }, ownerHandle: handle },
      communityModel: {
        ...{ id: toGlobalId("ProxyModel", id), __typename: "ProxyModel", model: { restId: modelId }, provider: { name: null } },
        ...{ fallbackIds: [cheap.modelId], fallbacks: [{ restId: cheap.modelId }], health: { status: "UNKNOWN" } },
        fallbackCandidates: expect.arrayContaining([{ modelId: cheap.modelId, model: { restId: cheap.modelId }, isOwn: true }]),
      },
    });
    expect(others).toEqual({ owner: null, ownerHandle: handle, communityModel: null });
  });

  it("lead to the sum of others' spending on a model, without its owner's", async () => {
    const { modelId } = await create();
    const idle = await create();
    const other = await createPayer(app, { pack: 1n });
    const day = (back: number) => new Date(new Date(clock.now().getTime() - back * 86_400_000).toISOString().slice(0, 10));
    const row = { model: modelId, meterSource: "pack", requests: 2, costNanocredits: 1_500_000_000n } as const;
    const rows = [0, 6, 7].map((back) => ({ ...row, accountId: other.accountId, day: day(back) }));
    await databaseOf(app).prisma.usageDaily.createMany({ data: [...rows, { ...row, accountId, day: day(0) }] });
    const { communityModels } = ok(await execute(by(), MyCommunityModelsUsageDocument, { days: 7 })).me;

    expect(communityModels?.nodes).toEqual([
      { modelId: idle.modelId, week: { requests: 0, cost: "0", from: day(6).toISOString() }, usage: { requests: 0, cost: "0" } },
      { modelId, week: { requests: 4, cost: "3", from: day(6).toISOString() }, usage: { requests: 6, cost: "4.5" } },
    ]);
    expect(param(await execute(by(), MyCommunityModelsUsageDocument, { days: 0 }))).toBe("days");
  });

  it("lead from any id to its object, by the type's own query", async () => {
    const { id } = await create();
    const node = (typeName: string, asking?: string | null) =>
      execute(by(asking), CommunityModelNodeDocument, { id: toGlobalId(typeName, id) });

    expect(ok(await node("ProxyModel")).node).toEqual({ __typename: "ProxyModel", restId: id, title: "A model" });
    expect((await node("PromptAgent")).data).toEqual({ node: null });
    expect((await node("ProxyModel", app.key)).data).toEqual({ node: null });
    expect(codes(await node("ProxyModel", null))).toEqual(["UNAUTHORIZED"]);
  });

  it("of me lead to one, and refuse the id of another type", async () => {
    const { id } = await create();
    const one = (given: string) => execute(by(), MyCommunityModelDocument, { id: given });

    for (const given of [id, toGlobalId("ProxyModel", id)]) {
      expect(ok(await one(given)).me.communityModel).toEqual({ restId: id, title: "A model" });
    }
    const wrong = await one(toGlobalId("Model", "acme/chat"));
    expect([codes(wrong), param(wrong)]).toEqual([["BAD_REQUEST"], "id"]);
  });
});

describe("bad input", () => {
  const FALLBACK = "community/nobody/nothing";

  it.each<[string, Partial<CreateCommunityModelInput>, string]>([
    ["a long name", { name: "a".repeat(121) }, "name"],
    ["a name with a space", { name: "a b" }, "name"],
    ["a long title", { title: "t".repeat(43) }, "title"],
    ["a long description", { description: "d".repeat(1_001) }, "description"],
    ["an empty credential", { bearerToken: "" }, "bearerToken"],
    [
      "six safety features",
      { requiredSafetyFeatures: ["PRIVACY", "SECRETS", "SEXUAL", "VIOLENCE", "SHIELD", "SHIELD"] },
      "requiredSafetyFeatures",
    ],
    ["a safety feature twice", { requiredSafetyFeatures: ["SHIELD", "SHIELD"] }, "requiredSafetyFeatures.1"],
    ["no input", { inputModalities: [] }, "inputModalities"],
    ["an input that there is not", { inputModalities: ["THREE_D"] }, "inputModalities.0"],
    ["a long context", { advertised: { contextLength: 10_000_001 } }, "advertised.contextLength"],
    ["four fallbacks", { fallbackIds: [1, 2, 3, 4].map((digit) => FALLBACK + digit) }, "fallbackIds"],
    ["a fallback twice", { fallbackIds: [FALLBACK, FALLBACK] }, "fallbackIds.1"],
    ["a fallback that there is not", { fallbackIds: [FALLBACK] }, "fallbackIds.0"],
    ["no requests a minute", { perUserRpm: 0 }, "perUserRpm"],
    ["fewer than none", { perUserRpm: -1 }, "perUserRpm"],
    ["a price below 0", { promptTextPrice: "-1" }, "promptTextPrice"],
    ["a price above 1,000", { promptTextPrice: "1000.000000000001" }, "promptTextPrice"],
    ["a price that is not used", { completionVideoPrice: "0.000000000001" }, "completionVideoPrice"],
    ["a private address", { url: "https://127.1.1.1/" }, "url"],
    ["an address in the clear", { url: "http://example.com/" }, "url"],
    ["an address with a name in it", { url: "https://me@1.1.1.1/" }, "url"],
    ["a port of other services", { url: "https://1.1.1.1:22/" }, "url"],
  ])("%s is named, when a model is made and when it is changed", async (_what, more, wrong) => {
    const { id } = await create();

    const answers = [await tryCreate(textModel(more)), await tryUpdate(id, { bearerToken: TOKEN, ...more })];

    expect(answers.map((answer) => [codes(answer), param(answer)])).toEqual([
      [["BAD_REQUEST"], wrong],
      [["BAD_REQUEST"], wrong],
    ]);
  });

  it.each<[unknown, string]>([
    ["0.0000000000001", "a price of 13 decimals"],
    [0.5, "a price as a number"],
    ["NaN", "a price that is none"],
    ["1e-6", "a price in powers of ten"],
  ])("%s: %s is refused", async (price, _what) => {
    const variables = { input: { ...textModel(), promptTextPrice: price } };
    expect(codes(await executeText(by(), { query: textOf(CreateCommunityModelDocument), variables }))).toEqual(["BAD_REQUEST"]);
  });

  it("names a missing field, a taken name or another account's id", async () => {
    const model = await create({ promptTextPrice: "0.1" });
    const dear = await create({ promptTextPrice: "0.2" });
    const { url: _, ...nowhere } = textModel();
    await databaseOf(app).prisma.account.update({ where: { id: accountId }, data: { isPublisher: false } });

    expect(param(await tryCreate(nowhere))).toBe("url");
    expect(param(await tryCreate(textModel({ name: model.modelId.split("/")[2] ?? "" })))).toBe("name");
    expect(param(await tryUpdate(model.id, { fallbackIds: [dear.modelId] }))).toBe("fallbackIds.0");
    expect(param(await tryUpdate(model.id, { fallbackIds: [model.modelId] }))).toBe("fallbackIds.0");
    expect(param(await tryUpdate(model.id, { url: `${url}?other` }))).toBe("bearerToken");
    expect(codes(await tryUpdate(model.id, { visibility: "PUBLIC" }))).toEqual(["FORBIDDEN"]);
  });

  it("of another account's id finds nothing", async () => {
    const { id } = await create();
    const operations = [
      tryFind,
      (asked: string, asking?: string) => execute(by(asking), FallbackCandidatesDocument, { id: asked }),
      (asked: string, asking?: string) => tryUpdate(asked, { title: "theirs" }, asking),
      tryRemove,
    ];

    for (const operation of operations) {
      expect(codes(await operation(id, app.key))).toEqual(["NOT_FOUND"]);
      for (const none of [UNKNOWN, "not-an-id"]) expect(codes(await operation(none))).toEqual(["NOT_FOUND"]);
    }
    expect(await find(id)).toMatchObject({ title: "A model" });
  });
});

describe.each(TRANSPORTS)("communityModelChanged over %s", (_name, subscribe) => {
  /** The start of a subscription cannot be observed: models are made until it reports the first. */
  async function watch(): Promise<Live<CommunityModelChangedSubscription>> {
    const live = subscribe(by(), CommunityModelChangedDocument);
    let first: object | null | undefined;
    void live.next().then((answer) => {
      first = answer;
    });
    await expect
      .poll(async () => {
        await create();
        return first !== undefined;
      })
      .toBe(true);
    return live;
  }

  /** The next event of this model. */
  async function told(live: Live<CommunityModelChangedSubscription>, id: string) {
    for (;;) {
      const change = ok(await live.next()).communityModelChanged;
      if (change.communityModelId === id) return change;
    }
  }

  it("reports changes of the account's models, and of no others", async () => {
    const live = await watch();

    await tryCreate(textModel(), app.key);
    const { id } = await create();
    const created = await told(live, id);
    await update(id, { title: "Another" });
    const updated = await told(live, id);
    await tryRemove(id);
    const deleted = await told(live, id);
    live.leave();

    expect(created).toEqual({
      communityModelId: id,
      change: "CREATED",
      communityModel: { __typename: "ProxyModel", title: "A model", visibility: "PRIVATE", pending: null },
    });
    expect(updated).toMatchObject({ change: "UPDATED", communityModel: { title: "Another" } });
    expect(deleted).toEqual({ communityModelId: id, change: "DELETED", communityModel: null });
  });

  it("reports scheduled changes when they become due", async () => {
    const { id } = await create({ visibility: "PUBLIC" });
    clock.move(PENDING_CHANGE_MS - 60_000);
    const live = await watch();

    // The alarm was set for a minute from now: a write makes it look again.
    clock.move(60_000);
    await create();
    const due = await told(live, id);
    live.leave();

    expect(due).toMatchObject({ change: "UPDATED", communityModel: { visibility: "PUBLIC", pending: null } });
  });

  it("wakes by itself", async () => {
    const { id } = await create({ visibility: "PUBLIC" });
    const live = await watch();
    const { prisma } = databaseOf(app);
    const effectiveAt = new Date(clock.now().getTime() + 300);
    await prisma.communityModel.update({ where: { id }, data: { pendingEffectiveAt: effectiveAt } });

    // Something is written, so that it hears of the other time.
    await create();
    const due = await told(live, id);
    live.leave();

    expect(due).toMatchObject({ change: "UPDATED", communityModel: { visibility: "PUBLIC", pending: null } });
  });

  it("is for those who manage keys", async () => {
    const bare = ok(await execute(by(), CreateApiKeyDocument, { input: { name: "k", accountPermissions: [] } })).createApiKey.key;

    const answers = [
      ...(await subscribe(by(null), CommunityModelChangedDocument).rest()),
      ...(await subscribe(by(bare), CommunityModelChangedDocument).rest()),
    ];

    expect(answers.flatMap(codes)).toEqual(["UNAUTHORIZED", "FORBIDDEN"]);
  });
});
