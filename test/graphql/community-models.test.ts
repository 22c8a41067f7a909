/** Community models over GraphQL: the twins of the REST operations, and what becomes of models while their owner watches. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { PENDING_CHANGE_MS } from "../../src/services/community-models/limits.js";
import { createPayer, databaseOf } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { MovedClock } from "../support/webhooks.js";
import { type Answer, codes, execute, field, type Live, type Loose, TRANSPORTS } from "./client.js";

const TOKEN = "upstream-credential-0123456789";
const UNKNOWN = "0199f000-0000-7000-8000-000000000001";
const COMMON = "__typename id: restId modelId name title description visibility requiredSafetyFeatures createdAt updatedAt";
const PRICES = `promptTextPrice promptCachedPrice promptCacheWritePrice promptAudioPrice promptImagePrice completionTextPrice
  completionReasoningPrice completionAudioPrice completionImagePrice completionVideoPrice`;
const PENDING = `pending { effectiveAt visibility isPaidOnly imagePricing ${PRICES} }`;
const PROXY = `modality api url baseUrl upstreamModel imagePricing inputModalities advertised { capabilities contextLength } perUserRpm isPaidOnly
  fallbackIds statedPrices ${PRICES}`;
const AGENT = "inputModalities outputModalities api url upstreamModel perUserRpm";
const MODEL = `${COMMON} ${PENDING} ... on ProxyModel { ${PROXY} } ... on EndpointAgentModel { ${AGENT} }`;

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

const ask = (query: string, variables: Record<string, unknown> = {}, by: string | null = key): Promise<Answer> =>
  execute({ ...app, key: by }, query, variables);

const CREATE = `mutation($input: CreateCommunityModelInput!) { createCommunityModel(input: $input) { communityModel { ${COMMON} ${PENDING} ${PROXY} } } }`;
const CREATE_AGENT = `mutation($input: CreateEndpointAgentInput!) { createEndpointAgent(input: $input) { agent { ${COMMON} ${AGENT} } } }`;
const UPDATE = `mutation($input: UpdateCommunityModelInput!) { updateCommunityModel(input: $input) { communityModel { ${MODEL} } } }`;
const DELETE = "mutation($id: ID!) { deleteCommunityModel(input: { id: $id }) { communityModel { id: restId } } }";

let count = 0;
const textModel = (more: object = {}) => {
  count += 1;
  return { name: `model-${count}`, title: "A model", bearerToken: TOKEN, api: "CHAT_COMPLETIONS", url, ...more };
};

interface Made {
  readonly id: string;
  readonly modelId: string;
}

/** The object of a mutation's payload. */
const objectOf = <Shape = Loose>(answer: Answer, mutation: string, name = "communityModel") =>
  field(answer, mutation)[name] as unknown as Shape;
const create = async (more: object = {}): Promise<Made> => objectOf(await ask(CREATE, { input: textModel(more) }), "createCommunityModel");
const update = (id: string, changes: object): Promise<Answer> => ask(UPDATE, { input: { id, ...changes } });
const param = ({ errors }: Answer) => errors?.[0]?.extensions.param;

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

    const made = objectOf<Made>(await ask(CREATE, { input }), "createCommunityModel");
    const { name, title, description, api, inputModalities, requiredSafetyFeatures, perUserRpm, advertised } = input as Record<
      string,
      unknown
    >;
    const text = "0.000000000001";
    expect(made).toEqual({
      ...{
        __typename: "ProxyModel",
        id: made.id,
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
    expect(field(await ask(`query($id: ID!) { communityModel(id: $id) { ${MODEL} } }`, { id: made.id }), "communityModel")).toEqual(made);
    const changed = objectOf(await update(made.id, { promptTextPrice: "0.25", title: "Other", advertised: null }), "updateCommunityModel");
    expect(changed).toMatchObject({
      promptTextPrice: "0.25",
      title: "Other",
      description,
      advertised: { capabilities: [], contextLength: null },
    });
    expect(objectOf(await ask(DELETE, { id: toGlobalId("ProxyModel", made.id) }), "deleteCommunityModel")).toEqual({ id: made.id });
    expect(codes(await ask("query($id: ID!) { communityModel(id: $id) { id } }", { id: made.id }))).toEqual(["NOT_FOUND"]);
  });

  it("of another medium has a baseUrl", async () => {
    const { api, url: _, ...common } = textModel({ modality: "SPEECH", baseUrl: app.upstream.baseUrl, completionAudioPrice: "0.000015" });

    const made = objectOf(await ask(CREATE, { input: common }), "createCommunityModel");

    expect(made).toMatchObject({
      modality: "SPEECH",
      api: null,
      url: null,
      baseUrl: app.upstream.baseUrl,
      completionAudioPrice: "0.000015",
    });
  });

  it("can be an endpoint agent", async () => {
    const input = { name: "agent", title: "Agent", api: "RESPONSES", url, outputModalities: ["TEXT", "THREE_D"] };

    const made = objectOf<Made>(await ask(CREATE_AGENT, { input }), "createEndpointAgent", "agent");

    expect(made).toMatchObject({
      __typename: "EndpointAgentModel",
      ...input,
      inputModalities: ["TEXT"],
      upstreamModel: "agent",
      perUserRpm: null,
    });
    expect(objectOf(await update(made.id, { perUserRpm: 1.5 }), "updateCommunityModel")).toMatchObject({
      perUserRpm: 1.5,
      api: "RESPONSES",
    });
    expect(param(await update(made.id, { promptTextPrice: "0" }))).toBe("promptTextPrice");
    expect(param(await update(made.id, { isPaidOnly: true }))).toBe("isPaidOnly");
    expect(codes(await ask(CREATE_AGENT, { input: { ...input, bearerToken: TOKEN } }))).toEqual(["BAD_REQUEST"]);
  });

  it("is listed a page at a time, newest first, whatever its type", async () => {
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
    const query = `query($after: String) { me { communityModelProvider { name url iconUrl }
      communityModels(first: 3, after: $after) { edges { node { __typename name } } pageInfo { hasNextPage endCursor } } } }`;

    const page = field(await ask(query), "me");
    const rest = field(await ask(query, { after: page.communityModels?.pageInfo?.endCursor }), "me");

    const nodes = (me: Loose) => (me.communityModels?.edges as unknown as { node: object }[] | undefined)?.map(({ node }) => node);
    expect(nodes(page)).toEqual([
      { __typename: "CodeAgent", name: "code" },
      { __typename: "PromptAgent", name: "prompt" },
      { __typename: "ProxyModel", name: second.modelId.split("/")[2] },
    ]);
    expect(nodes(rest)).toEqual([{ __typename: "ProxyModel", name: first.modelId.split("/")[2] }]);
    expect(page.communityModels?.pageInfo).toMatchObject({ hasNextPage: true });
    expect(page.communityModelProvider).toEqual({ name: null, url: null, iconUrl: null });
  });

  it("waits three hours for what costs others more or less", async () => {
    const { id } = await create({ visibility: "PUBLIC", promptTextPrice: "0.000001" });
    clock.move(PENDING_CHANGE_MS);

    const waiting = objectOf(
      await update(id, { promptTextPrice: null, completionTextPrice: "0.5", isPaidOnly: true }),
      "updateCommunityModel",
    );
    clock.move(PENDING_CHANGE_MS);
    const due = field(await ask(`query($id: ID!) { communityModel(id: $id) { ${MODEL} } }`, { id }), "communityModel");

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
    const query = "query($id: ID!) { fallbackCandidates(communityModelId: $id) { modelId title isOwn promptTextPrice } }";

    const found = field(await ask(query, { id }), "fallbackCandidates") as unknown as Loose[];
    const changed = objectOf(await update(id, { fallbackIds: [toGlobalId("Model", cheap.modelId)] }), "updateCommunityModel");

    expect(found.filter(({ isOwn }) => isOwn)).toEqual([
      { modelId: cheap.modelId, title: "A model", isOwn: true, promptTextPrice: "0.000001" },
    ]);
    expect(changed.fallbackIds).toEqual([cheap.modelId]);
  });
});

describe("edges", () => {
  it("lead from a model to what its owner registered and back, and from nobody else's", async () => {
    const cheap = await create({ promptTextPrice: "0.000001" });
    const { id, modelId } = await create({ promptTextPrice: "0.000002", fallbackIds: [cheap.modelId] });
    await update(id, { visibility: "PUBLIC" });
    clock.move(PENDING_CHANGE_MS);
    const document = `query($id: ID!) { model(id: $id) { owner { handle } ownerHandle communityModel { id __typename
      ... on ProxyModel { fallbackIds fallbacks { restId } fallbackCandidates { modelId model { restId } isOwn } model { restId } provider { name } health { status } } } } }`;

    const own = field(await ask(document, { id: modelId }), "model");
    const others = await ask(document, { id: modelId }, null);

    expect(own).toMatchObject({
      ...{ owner: { handle }, ownerHandle: handle },
      communityModel: {
        ...{ id: toGlobalId("ProxyModel", id), __typename: "ProxyModel", model: { restId: modelId }, provider: { name: null } },
        ...{ fallbackIds: [cheap.modelId], fallbacks: [{ restId: cheap.modelId }], health: { status: "UNKNOWN" } },
        fallbackCandidates: expect.arrayContaining([{ modelId: cheap.modelId, model: { restId: cheap.modelId }, isOwn: true }]),
      },
    });
    expect(others).toEqual({ data: { model: { owner: null, ownerHandle: handle, communityModel: null } }, extensions: expect.anything() });
  });

  it("lead to what others have spent on a model in sum, and leave out what its owner has", async () => {
    const { modelId } = await create();
    const idle = await create();
    const other = await createPayer(app, { pack: 1n });
    const day = (back: number) => new Date(new Date(clock.now().getTime() - back * 86_400_000).toISOString().slice(0, 10));
    const row = { model: modelId, meterSource: "pack", requests: 2, costNanocredits: 1_500_000_000n } as const;
    const rows = [0, 6, 7].map((back) => ({ ...row, accountId: other.accountId, day: day(back) }));
    await databaseOf(app).prisma.usageDaily.createMany({ data: [...rows, { ...row, accountId, day: day(0) }] });
    const query = `{ me { communityModels(first: 2) { nodes { modelId week: usage(days: 7) { requests cost from } usage { requests cost } } } } }`;

    const { communityModels } = field(await ask(query), "me");

    expect(communityModels?.nodes).toEqual([
      { modelId: idle.modelId, week: { requests: 0, cost: "0", from: day(6).toISOString() }, usage: { requests: 0, cost: "0" } },
      { modelId, week: { requests: 4, cost: "3", from: day(6).toISOString() }, usage: { requests: 6, cost: "4.5" } },
    ]);
    expect(param(await ask("{ me { communityModels { nodes { usage(days: 0) { cost } } } } }"))).toBe("days");
  });

  it("lead from any id to its object, each type's for itself", async () => {
    const { id } = await create();
    const node = (typeName: string, by: string | null = key) =>
      ask("query($id: ID!) { node(id: $id) { __typename restId ... on CommunityModel { title } } }", { id: toGlobalId(typeName, id) }, by);

    expect(field(await node("ProxyModel"), "node")).toEqual({ __typename: "ProxyModel", restId: id, title: "A model" });
    expect((await node("PromptAgent")).data).toEqual({ node: null });
    expect((await node("ProxyModel", app.key)).data).toEqual({ node: null });
    expect(codes(await node("ProxyModel", null))).toEqual(["UNAUTHORIZED"]);
  });

  it("of me lead to one, and refuse the id of another type", async () => {
    const { id } = await create();
    const one = (given: string) => ask("query($id: ID!) { me { communityModel(id: $id) { restId title } } }", { id: given });

    for (const given of [id, toGlobalId("ProxyModel", id)]) {
      expect(field(await one(given), "me").communityModel).toEqual({ restId: id, title: "A model" });
    }
    const wrong = await one(toGlobalId("Model", "acme/chat"));
    expect([codes(wrong), param(wrong)]).toEqual([["BAD_REQUEST"], "id"]);
  });
});

describe("bad input", () => {
  const FALLBACK = "community/nobody/nothing";

  it.each<[string, object, string]>([
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

    const answers = [await ask(CREATE, { input: textModel(more) }), await update(id, { bearerToken: TOKEN, ...more })];

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
    expect(codes(await ask(CREATE, { input: textModel({ promptTextPrice: price }) }))).toEqual(["BAD_REQUEST"]);
  });

  it("names what is missing, taken or another's", async () => {
    const model = await create({ promptTextPrice: "0.1" });
    const dear = await create({ promptTextPrice: "0.2" });
    const { url: _, ...nowhere } = textModel();
    await databaseOf(app).prisma.account.update({ where: { id: accountId }, data: { isPublisher: false } });

    expect(param(await ask(CREATE, { input: nowhere }))).toBe("url");
    expect(param(await ask(CREATE, { input: textModel({ name: model.modelId.split("/")[2] }) }))).toBe("name");
    expect(param(await update(model.id, { fallbackIds: [dear.modelId] }))).toBe("fallbackIds.0");
    expect(param(await update(model.id, { fallbackIds: [model.modelId] }))).toBe("fallbackIds.0");
    expect(param(await update(model.id, { url: `${url}?other` }))).toBe("bearerToken");
    expect(codes(await update(model.id, { visibility: "PUBLIC" }))).toEqual(["FORBIDDEN"]);
  });

  it("of another account's id finds nothing", async () => {
    const { id } = await create();
    const operations = [
      "query($id: ID!) { communityModel(id: $id) { id } }",
      "query($id: ID!) { fallbackCandidates(communityModelId: $id) { modelId } }",
      'mutation($id: ID!) { updateCommunityModel(input: { id: $id, title: "theirs" }) { communityModel { id } } }',
      DELETE,
    ];

    for (const operation of operations) {
      expect(codes(await ask(operation, { id }, app.key)), operation).toEqual(["NOT_FOUND"]);
      for (const none of [UNKNOWN, "not-an-id"]) expect(codes(await ask(operation, { id: none })), operation).toEqual(["NOT_FOUND"]);
    }
    expect(field(await ask("query($id: ID!) { communityModel(id: $id) { title } }", { id }), "communityModel")).toEqual({
      title: "A model",
    });
  });
});

describe.each(TRANSPORTS)("communityModelChanged over %s", (_name, subscribe) => {
  const SUBSCRIPTION =
    "subscription { communityModelChanged { communityModelId change communityModel { __typename title visibility pending { effectiveAt } } } }";

  /** A subscription begins at no moment that a test could see: models are made until the first is told. */
  async function watch(): Promise<Live> {
    const live = subscribe({ ...app, key }, { query: SUBSCRIPTION });
    let first: Answer | null | undefined;
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

  /** The next that is told of this model. */
  async function told(live: Live, id: string): Promise<Loose> {
    for (;;) {
      const change = field(await live.next(), "communityModelChanged");
      if ((change.communityModelId as unknown as string) === id) return change;
    }
  }

  it("tells what becomes of the account's models, and of no others", async () => {
    const live = await watch();

    await ask(CREATE, { input: textModel() }, app.key);
    const { id } = await create();
    const created = await told(live, id);
    await update(id, { title: "Another" });
    const updated = await told(live, id);
    await ask(DELETE, { id });
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

  it("tells when what was scheduled has come due", async () => {
    const { id } = await create({ visibility: "PUBLIC" });
    clock.move(PENDING_CHANGE_MS - 60_000);
    const live = await watch();

    // The alarm was set for a minute from now: it looks anew when anything is written.
    clock.move(60_000);
    await create();
    const due = await told(live, id);
    live.leave();

    expect(due).toMatchObject({ change: "UPDATED", communityModel: { visibility: "PUBLIC", pending: null } });
  });

  it("rings by itself", async () => {
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
    const answers = [
      ...(await subscribe({ ...app, key: null }, { query: SUBSCRIPTION }).rest()),
      ...(await (async () => {
        const created = await ask('mutation { createApiKey(input: { name: "k", accountPermissions: [] }) { key } }');
        return subscribe({ ...app, key: field<{ key: string }>(created, "createApiKey").key }, { query: SUBSCRIPTION }).rest();
      })()),
    ];

    expect(answers.flatMap(codes)).toEqual(["UNAUTHORIZED", "FORBIDDEN"]);
  });
});
