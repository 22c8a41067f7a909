/** The registered models in memory: look-up, scheduled changes, and agreement between processes. */
import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Caller, KeyCaller } from "../../../src/context.js";
import { AppError } from "../../../src/errors.js";
import { Catalog } from "../../../src/services/catalog/catalog.js";
import { SANDBOX_SOURCE } from "../../../src/services/catalog/sandbox.js";
import { CommunityDirectory } from "../../../src/services/community-models/directory.js";
import { ModelHealthRecords } from "../../../src/services/community-models/health.js";
import { PENDING_CHANGE_MS } from "../../../src/services/community-models/limits.js";
import { RereadQueue } from "../../../src/services/community-models/reread-queue.js";
import { SecretBox } from "../../../src/services/secrets/secret-box.js";
import type { Database } from "../../../src/store/database.js";
import { openEvents } from "../../../src/store/events/open.js";
import { createMemoryEvents, type Events } from "../../../src/store/events.js";
import type { Prisma } from "../../../src/store/generated/prisma/client.js";
import { createMovableClock } from "../../support/clock.js";
import { createTestDatabase, silentLog, type TestDatabase } from "../../support/database.js";
import { isPostgresInstalled } from "../../support/postgres.js";
import { openSharedTestDatabase } from "../../support/shared-database.js";
import { createPostgresDatabase } from "../../support/suite-server.js";

const ANONYMOUS: Caller = { kind: "anonymous" };
const HOUR_SECONDS = 3600;
const KEY = randomBytes(32);
const box = new SecretBox(() => [KEY]);
const clock = createMovableClock();

interface Process {
  readonly events: Events;
  readonly directory: CommunityDirectory;
  readonly health: ModelHealthRecords;
  readonly catalog: Catalog;
}

interface Owner {
  readonly accountId: string;
  readonly handle: string;
  readonly caller: KeyCaller;
}

let test: TestDatabase;
let process: Process;
let owner: Owner;
let other: Owner;

async function openProcess(database: Database, events: Events = createMemoryEvents(silentLog)): Promise<Process> {
  const health = new ModelHealthRecords({ database, events, clock, log: silentLog, ownerOf: (model) => directory.ownerOf(model) });
  const directory = new CommunityDirectory({ database, events, box, health, clock, log: silentLog });
  const catalog = new Catalog([SANDBOX_SOURCE]);
  catalog.include(directory);
  await Promise.all([directory.load(), health.load()]);
  return { events, directory, health, catalog };
}

async function createOwner(database: Database): Promise<Owner> {
  const [accountId, handle] = [randomUUID(), `owner-${randomUUID()}`];
  await database.prisma.account.create({ data: { id: accountId, handle } });
  return { accountId, handle, caller: { kind: "key", accountId, modelLists: [] as KeyCaller["modelLists"] } as KeyCaller };
}

type Fields = Partial<Prisma.CommunityModelUncheckedCreateInput>;

/** Written and announced by `process`; read by it when this resolves. */
async function register(database: Database, { events, directory }: Process, { accountId, handle }: Owner, fields: Fields = {}) {
  const { id = randomUUID(), name = `m-${randomUUID()}` } = fields;
  const data = {
    ...{ id, accountId, name, type: "proxy" as const, title: "A model", api: "chat_completions" as const },
    ...{ inputModalities: ["text"], outputModalities: ["text"], url: "https://models.example/v1/chat", upstreamModel: "theirs" },
    ...fields,
  };
  await database.prisma.communityModel.create({ data });
  events.publish("community-model-changed", { accountId, modelId: id, change: "created" });
  await directory.upToDate();
  return { id, modelId: `community/${handle}/${name}` };
}

const add = (fields: Fields = {}, whose = owner) => register(test.database, process, whose, fields);

async function change(id: string, data: Prisma.CommunityModelUncheckedUpdateInput): Promise<void> {
  await test.database.prisma.communityModel.update({ where: { id }, data });
  process.events.publish("community-model-changed", { accountId: owner.accountId, modelId: id, change: "updated" });
  await process.directory.upToDate();
}

const find = (id: string, caller: Caller = other.caller) => process.directory.find(caller, id);

beforeAll(async () => {
  test = await createTestDatabase();
  process = await openProcess(test.database);
  [owner, other] = await Promise.all([createOwner(test.database), createOwner(test.database)]);
});
afterAll(async () => {
  await process.health.close();
  await process.directory.close();
  await test.close();
});

describe("a registered model", () => {
  it("matches its row", async () => {
    const { id, modelId } = await add({
      visibility: "public",
      description: "Sees and thinks.",
      inputModalities: ["text", "image"],
      requiredSafetyFeatures: ["privacy"],
      advertisedCapabilities: ["tool_calling", "reasoning"],
      advertisedContextLength: 4096,
      perUserRpm: 0.5,
      paidOnly: true,
      promptTextPrice: 2n,
      completionTextPrice: 3n,
    });

    expect(find(modelId, ANONYMOUS)).toMatchObject({
      id: modelId,
      ...{ aliases: [], publisher: "community", title: "A model", description: "Sees and thinks.", modality: "text" },
      ...{ inputModalities: ["text", "image"], outputModalities: ["text"], capabilities: ["tools", "reasoning", "vision"] },
      ...{ flags: { paid: true, alpha: false }, contextLength: 4096, perUserRpm: 0.5, paidOnly: true, isDefault: false },
      ...{
        routes: [{ upstreamModel: "theirs", upstreamName: "community" }],
        requiredSafetyFeatures: ["privacy"],
        isCommunity: true,
        isAgent: false,
        agentType: null,
      },
      ...{ owner: owner.handle, communityModelId: id, isPrivate: false, pendingChange: null },
      rates: expect.objectContaining({ inputTextTokens: 2n, inputCachedTokens: 2n, outputTextTokens: 3n }),
    });
  });

  it("belongs to its owner alone while it is private: free, and without public terms", async () => {
    const { modelId } = await add({ promptTextPrice: 2n, paidOnly: true, fallbacks: ["community/a/b"] });

    expect(find(modelId)).toBeNull();
    expect(find(modelId, ANONYMOUS)).toBeNull();
    const model = find(modelId, owner.caller);
    expect(model).toMatchObject({ isPrivate: true, paidOnly: false, prices: {}, fallbacks: [], flags: { paid: false } });
    const { isFree, ...rates } = model?.rates ?? {};
    expect(isFree).toBe(true);
    expect(new Set(Object.values(rates))).toEqual(new Set([0n]));
  });

  it.each([
    ["prompt_agent", null],
    ["code_agent", null],
    ["endpoint_agent", "https://models.example/v1/chat"],
  ] as const)("is an agent as %s", async (type, url) => {
    const { id, modelId } = await add({ type, url, visibility: "public" });

    expect(find(modelId)).toMatchObject({ isAgent: true, agentType: type, flags: { paid: false } });
    const upstream = process.directory.upstream(process.directory.registered(id)?.upstreamId ?? "");
    expect(upstream && { ...upstream }).toEqual(
      url && {
        ...{ id: expect.stringContaining(id), wireFormat: "openai-endpoint", baseUrl: url, apiKey: null, isTrusted: false },
        endpoint: { modality: "text", api: "chat_completions" },
      },
    );
  });
});

describe("a scheduled change", () => {
  const inThreeHours = () => new Date(clock.now().getTime() + PENDING_CHANGE_MS);

  it("makes a model public from its moment on, before anything is written or announced", async () => {
    const prices = { promptTextPrice: 7n, completionTextPrice: 9n };
    const { modelId } = await add({ ...prices, pending: { visibility: "public" }, pendingEffectiveAt: inThreeHours() });
    const before = find(modelId, owner.caller);
    expect(before?.pendingChange).toMatchObject({
      ...{ effectiveAt: inThreeHours(), visibility: "public", paidOnly: null, imagePricing: null },
      pricing: { rates: expect.objectContaining({ inputTextTokens: 7n, outputTextTokens: 9n }) },
    });

    clock.advance(3 * HOUR_SECONDS - 0.001);
    expect(find(modelId)).toBeNull();
    expect(find(modelId, owner.caller)).toBe(before);
    clock.advance(0.001);

    for (const caller of [ANONYMOUS, other.caller, owner.caller]) {
      expect(find(modelId, caller)).toMatchObject({ isPrivate: false, prices, pendingChange: null });
    }
    expect(find(modelId)).toBe(find(modelId));
  });

  it("raises a price from its moment on, and lets paid credits alone buy the model", async () => {
    const pending = { paidOnly: true, prices: { promptTextPrice: "5", completionTextPrice: null } };
    const prices = { promptTextPrice: 1n, completionTextPrice: 4n };
    const { modelId } = await add({ visibility: "public", ...prices, pending, pendingEffectiveAt: inThreeHours() });

    expect(find(modelId)).toMatchObject({ prices, paidOnly: false, pendingChange: { visibility: null, paidOnly: true } });
    clock.advance(3 * HOUR_SECONDS);

    expect(find(modelId)).toMatchObject({ prices: { promptTextPrice: 5n }, paidOnly: true, pendingChange: null });
  });
});

describe("a change", () => {
  it("counts as soon as it has been read: changed, private again, deleted", async () => {
    const { id, modelId } = await add({ visibility: "public" });

    await change(id, { title: "Another title", promptTextPrice: 8n });
    expect(find(modelId)).toMatchObject({ title: "Another title", prices: { promptTextPrice: 8n } });
    await change(id, { visibility: "private" });
    expect(find(modelId)).toBeNull();
    await test.database.prisma.communityModel.delete({ where: { id } });
    process.events.publish("community-model-changed", { accountId: owner.accountId, modelId: id, change: "deleted" });
    await process.directory.upToDate();

    expect(find(modelId, owner.caller)).toBeNull();
    expect(process.directory.registered(id)).toBeNull();
  });

  it("of the owner's handle gives all models other ids", async () => {
    const renamed = await createOwner(test.database);
    const { id } = await add({ name: "mine", visibility: "public" }, renamed);
    const handle = `renamed-${randomUUID()}`;

    await test.database.prisma.account.update({ where: { id: renamed.accountId }, data: { handle } });
    process.events.publish("account-renamed", { accountId: renamed.accountId });
    await process.directory.upToDate();

    expect(find(`community/${renamed.handle}/mine`)).toBeNull();
    expect(find(`community/${handle}/mine`)).toMatchObject({ communityModelId: id, owner: handle });
  });

  it("without an announcement is found at the next look-up", async () => {
    const late = await openProcess(test.database);
    const [kept, gone] = [await add({ visibility: "public" }), await add({ visibility: "public" })];
    await late.directory.look();
    await change(kept.id, { title: "Changed elsewhere" });
    await test.database.prisma.communityModel.delete({ where: { id: gone.id } });
    const born = await add({ visibility: "public" });

    expect(late.directory.find(ANONYMOUS, gone.modelId)).not.toBeNull();
    await late.directory.look();

    expect(late.directory.find(ANONYMOUS, kept.modelId)).toMatchObject({ title: "Changed elsewhere" });
    expect(late.directory.find(ANONYMOUS, gone.modelId)).toBeNull();
    expect(late.directory.find(ANONYMOUS, born.modelId)).not.toBeNull();
    expect(late.directory.list(ANONYMOUS, { reliableOnly: false }).length).toBeGreaterThan(1);
    await late.directory.close();
  });
});

describe("an upstream", () => {
  const upstreamOf = (modelId: string) => process.directory.upstream(find(modelId, owner.caller)?.routes[0].upstreamId ?? "");
  const seal = (id: string, text: string) => box.seal({ table: "community_model", rowId: id, column: "bearer_token" }, text);

  it("carries its owner's credential, and is another one when anything about it changes", async () => {
    const id = randomUUID();
    const { modelId } = await add({ id, bearerToken: seal(id, "first-token") });
    const before = find(modelId, owner.caller)?.routes[0].upstreamId ?? "";
    expect(before).toMatch(new RegExp(`^community:${id}:[0-9a-f]{16}$`));
    expect(upstreamOf(modelId)).toMatchObject({ id: before, apiKey: "first-token", isTrusted: false });

    const ids = [before];
    for (const data of [
      { url: "https://other.example/v1/chat" },
      { api: "responses" as const },
      { bearerToken: seal(id, "second-token") },
    ]) {
      await change(id, data);
      ids.push(find(modelId, owner.caller)?.routes[0].upstreamId ?? "");
    }
    await change(id, { title: "Only a title" });

    expect(new Set(ids).size).toBe(4);
    expect(find(modelId, owner.caller)?.routes[0].upstreamId).toBe(ids.at(-1));
    const now = { baseUrl: "https://other.example/v1/chat", apiKey: "second-token", endpoint: { modality: "text", api: "responses" } };
    expect(upstreamOf(modelId)).toMatchObject(now);
    // For a generation that began before.
    expect(process.directory.upstream(before)).toMatchObject({ ...now, id: ids.at(-1) });
  });

  it("whose credential cannot be opened is out of service", async () => {
    const { id, modelId } = await add({ bearerToken: seal(randomUUID(), "of another row") });

    expect(() => upstreamOf(modelId)).toThrow(expect.objectContaining({ code: "SERVICE_UNAVAILABLE" }));
    expect(find(modelId, owner.caller)?.communityModelId).toBe(id);
  });

  it("of a deleted or unknown model is none", async () => {
    expect(process.directory.upstream(`community:${randomUUID()}:0123456789abcdef`)).toBeNull();
    expect(process.directory.upstream("acme")).toBeNull();
    const gone = () => process.catalog.upstream(`community:${randomUUID()}:0123456789abcdef`);
    expect(gone).toThrow(AppError);
    expect(gone).toThrow(expect.objectContaining({ code: "UPSTREAM_ERROR" }));
  });
});

describe("fallbacks", () => {
  it("are those that may serve by now", async () => {
    const price = { promptTextPrice: 10n, completionTextPrice: 10n };
    const isPublic = { visibility: "public" as const, ...price };
    const stranger = await createOwner(test.database);
    const candidates = {
      sameprice: await add({ ...isPublic }, stranger),
      ownPrivate: await add({ ...price, promptTextPrice: 99n }),
      othersPrivate: await add(price, stranger),
      dearer: await add({ ...isPublic, completionTextPrice: 11n }, stranger),
      dearerSoon: await add(
        { ...isPublic, pending: { prices: { promptTextPrice: "11" } }, pendingEffectiveAt: new Date(clock.now().getTime() + 1000) },
        stranger,
      ),
      dearerWhenCached: await add({ ...isPublic, promptCachedPrice: 11n }, stranger),
      agent: await add({ visibility: "public", type: "endpoint_agent" }, stranger),
      image: await add({ visibility: "public", modality: "image" }, stranger),
    };
    const { modelId } = await add({
      ...isPublic,
      fallbacks: [...Object.values(candidates).map((each) => each.modelId), "community/nobody/nothing"],
    });
    const fallbacks = () => {
      const model = find(modelId);
      return model && process.catalog.fallbacksOf(model).map(({ id }) => id);
    };
    const { sameprice, ownPrivate, dearerSoon } = candidates;

    expect(fallbacks()).toEqual([sameprice.modelId, ownPrivate.modelId, dearerSoon.modelId]);
    clock.advance(1);
    expect(fallbacks()).toEqual([sameprice.modelId, ownPrivate.modelId]);
  });
});

describe("the catalog", () => {
  it("lists registered models after the others of their modality, and the owner's private ones to the owner", async () => {
    const whose = await createOwner(test.database);
    const text = await add({ name: "a", visibility: "public" }, whose);
    const hidden = await add({ name: "b" }, whose);
    const image = await add({ name: "c", visibility: "public", modality: "image" }, whose);
    const list = async (caller: Caller) => {
      const listed = await process.catalog.list({ caller } as Parameters<Catalog["list"]>[0], { reliability: "all" });
      return listed.filter(({ isCommunity, owner: handle }) => !isCommunity || handle === whose.handle);
    };

    const listed = await list(other.caller);
    const names = listed.map(({ id }) => id);

    expect(names.filter((id) => id.startsWith("community/"))).toEqual([text.modelId, image.modelId]);
    expect(names.indexOf(text.modelId)).toBe(listed.findIndex(({ modality }) => modality === "image") - 1);
    expect((await list(whose.caller)).map(({ id }) => id)).toEqual(expect.arrayContaining([text.modelId, hidden.modelId, image.modelId]));
  });

  it("gives agents no agents", async () => {
    const { modelId } = await add({ visibility: "public", type: "prompt_agent", url: null });
    const agent: KeyCaller = { ...other.caller, run: { parentRequestId: randomUUID(), maxCost: 0n } };

    expect(process.catalog.resolve(other.caller, modelId, "text").id).toBe(modelId);
    expect(() => process.catalog.resolve(agent, modelId, "text")).toThrow(
      expect.objectContaining({ code: "BAD_REQUEST", param: "model", message: "Agents cannot call agents." }),
    );
    await expect(process.catalog.get({ caller: agent } as Parameters<Catalog["get"]>[0], modelId)).rejects.toMatchObject({
      code: "NOT_FOUND",
    });
  });

  it("knows what a key's list of models means", async () => {
    const [named, unnamed] = [await add({ visibility: "public" }), await add({ visibility: "public" })];
    const key: KeyCaller = { ...other.caller, modelLists: [[named.modelId]] };

    expect(process.catalog.resolve(key, named.modelId, "text").id).toBe(named.modelId);
    expect(() => process.catalog.resolve(key, unnamed.modelId, "text")).toThrow(expect.objectContaining({ code: "FORBIDDEN" }));
  });
});

describe("health", () => {
  async function called(succeeded: number, failed: number) {
    const { id, modelId } = await add({ visibility: "public" });
    const model = find(modelId);
    if (!model) throw new Error("not there");
    for (let call = 0; call < succeeded; call += 1) process.health.succeeded(other.caller, model);
    for (let call = 0; call < failed; call += 1) process.health.failed(other.caller, model);
    await process.health.flush();
    await process.health.upToDate();
    const isListed = (caller: Caller, reliableOnly = true) => process.directory.list(caller, { reliableOnly }).includes(model);
    return { id, model, isListed };
  }

  it.each([
    [8, 2, "unreliable"],
    [81, 19, "healthy"],
    [80, 20, "unreliable"],
    [0, 9, "unknown"],
    [0, 10, "unreliable"],
    [10, 0, "healthy"],
  ] as const)("of %i calls that went well and %i that failed is %s", async (succeeded, failed, status) => {
    const { model, isListed } = await called(succeeded, failed);

    const requests = succeeded + failed;
    expect(process.directory.healthOf(model)).toEqual({ status, successRate: succeeded / requests, requests });
    expect(isListed(other.caller)).toBe(status !== "unreliable");
    expect(isListed(ANONYMOUS, false)).toBe(true);
    expect(isListed(owner.caller)).toBe(true);
    expect(find(model.id)).toBe(model);
  });

  it("leaves out the owner's own calls, and models of the catalog", async () => {
    const { id, model } = await called(1, 0);
    const builtIn = process.catalog.resolve(other.caller, undefined, "text");

    for (let call = 0; call < 20; call += 1) {
      process.health.failed(owner.caller, model);
      process.health.failed(other.caller, builtIn);
    }
    await process.health.flush();

    expect(await test.database.prisma.communityModelHealth.findMany({ where: { modelId: id } })).toMatchObject([
      { succeeded: 1, failed: 0 },
    ]);
    expect(process.catalog.healthOf(builtIn)).toEqual({ status: "unknown", successRate: null, requests: 0 });
  });

  it("forgets calls after a day", async () => {
    clock.advance(HOUR_SECONDS - ((clock.now().getTime() / 1000) % HOUR_SECONDS));
    const { id, model } = await called(1, 9);
    clock.advance(23 * HOUR_SECONDS + HOUR_SECONDS - 0.001);
    expect(process.directory.healthOf(model)).toMatchObject({ status: "unreliable", requests: 10 });
    clock.advance(0.001);
    expect(process.directory.healthOf(model)).toMatchObject({ status: "unknown", requests: 0 });

    await called(1, 0);

    expect(await test.database.prisma.communityModelHealth.count({ where: { modelId: id } })).toBe(0);
  });

  it("keeps calls that could not be stored", async () => {
    const { id, model } = await called(1, 0);
    const { pool } = test.database;
    await pool.query("ALTER TABLE community_model_health RENAME TO moved_away");
    process.health.failed(other.caller, model);
    await process.health.flush();
    await pool.query("ALTER TABLE moved_away RENAME TO community_model_health");

    await process.health.flush();

    expect(await test.database.prisma.communityModelHealth.findMany({ where: { modelId: id } })).toMatchObject([
      { succeeded: 1, failed: 1 },
    ]);
  });
});

describe.skipIf(!isPostgresInstalled)("two processes on one PostgreSQL", () => {
  it("agree on the registered models and their health", async () => {
    const shared = await createPostgresDatabase();
    const databases = await Promise.all([openSharedTestDatabase(shared.url), openSharedTestDatabase(shared.url)]);
    const events = await Promise.all(databases.map(({ database }) => openEvents({ redisUrl: null, database, log: silentLog })));
    const [one, two] = (await Promise.all(databases.map(({ database }, index) => openProcess(database, events[index])))) as [
      Process,
      Process,
    ];
    const [{ database }] = databases;
    const [whose, caller] = [await createOwner(database), (await createOwner(database)).caller];

    const { id, modelId } = await register(database, one, whose, { visibility: "public" });
    await expect.poll(() => two.directory.find(caller, modelId)).toMatchObject({ communityModelId: id });
    for (const { directory, health } of [one, two]) {
      const model = directory.find(caller, modelId);
      if (model) for (let call = 0; call < 5; call += 1) health.failed(caller, model);
    }
    await Promise.all([one.health.flush(), two.health.flush()]);
    for (const { directory } of [one, two]) {
      await expect.poll(() => directory.list(caller, { reliableOnly: true })).toEqual([]);
      expect(directory.list(caller, { reliableOnly: false })).toMatchObject([{ id: modelId }]);
    }
    await database.prisma.communityModel.delete({ where: { id } });
    one.events.publish("community-model-changed", { accountId: whose.accountId, modelId: id, change: "deleted" });
    await expect.poll(() => two.directory.find(caller, modelId)).toBeNull();

    for (const { directory, health } of [one, two]) await Promise.all([directory.close(), health.close()]);
    await Promise.all(events.map((each) => each.close()));
    await Promise.all(databases.map((each) => each.close()));
    await shared.drop();
  });
});

describe("the queue of models to read again", () => {
  it("reads models that were announced during a read, and repeats failed reads", async () => {
    const read: (readonly string[])[] = [];
    const failures: unknown[] = [];
    let isAway = true;
    const queue: RereadQueue = new RereadQueue(
      async (ids) => {
        read.push(ids);
        if (read.length === 1) queue.add(["b", "a"]);
        if (read.length === 2 && isAway) throw new Error("away");
      },
      (error) => failures.push(error),
    );

    queue.add(["a"]);
    await queue.upToDate();
    expect(read).toEqual([["a"], ["b", "a"]]);
    expect(failures).toEqual([new Error("away")]);
    isAway = false;
    queue.add(["c"]);
    await queue.upToDate();

    expect(read.at(-1)).toEqual(["b", "a", "c"]);
    await queue.close();
  });

  it("reads nothing during other work, and reads the models announced meanwhile after it", async () => {
    const steps: string[] = [];
    const queue = new RereadQueue(
      async (ids) => void steps.push(...ids),
      () => undefined,
    );

    await queue.between(async () => {
      queue.add(["a"]);
      await new Promise(setImmediate);
      steps.push("done");
    });
    await queue.upToDate();
    await expect(queue.between(() => Promise.reject(new Error("away")))).rejects.toThrow("away");
    queue.add(["b"]);
    await queue.upToDate();

    expect(steps).toEqual(["done", "a", "b"]);
    await queue.close();
  });
});
