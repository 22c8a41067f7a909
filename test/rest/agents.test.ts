/** Agents of the account over REST (docs/spec/agents.md). */
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { COMMUNITY_MODELS_PER_ACCOUNT_MAX } from "../../src/services/community-models/limits.js";
import { databaseOf } from "../e2e/money.js";
import { BAD_FIELDS, BAD_LISTS, LARGEST_AGENT, PROMPT_AGENT } from "../support/agents.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { changeModel, createMember, type Member, registerModel } from "../support/community-models.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";

let app: TestApp;
let member: Member;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
});
beforeEach(async () => {
  member = await createMember(app);
  client = createClient(app.baseUrl, member.key);
});
afterAll(() => app.close());

interface AgentJson {
  readonly id: string;
  readonly name: string;
  readonly updatedAt: string;
  readonly [field: string]: unknown;
}

async function create(fields: Readonly<Record<string, unknown>> = {}): Promise<AgentJson> {
  const answer = await client.post("/account/agents", { ...PROMPT_AGENT, ...fields });
  expect(answer.text).toContain('"id"');
  return answer.json<AgentJson>();
}

/** As it stands when its repository has been deployed. */
async function createCodeAgent(): Promise<string> {
  const { id } = await registerModel(app, member, { type: "code_agent", name: "coder", url: null, api: null, bearerToken: null });
  const repository = "https://code.example/coder.git";
  await databaseOf(app).prisma.agent.create({ data: { id, repository, deployedCommitSha: COMMIT, bundle: "" } });
  return id;
}

const patch = (id: string, body: unknown) => client.request("PATCH", `/account/agents/${id}`, { body });

describe("a prompt agent", () => {
  it("needs only its required fields, and is shown alike on both faces", async () => {
    const made = await create();

    expect(made).toEqual({
      id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      ...PROMPT_AGENT,
      description: null,
      visibility: "private",
      requiredSafetyFeatures: [],
      createdAt: expect.stringMatching(/Z$/),
      updatedAt: made.createdAt,
      type: "prompt_agent",
      mcpServers: [],
    });
    expect((await client.get(`/account/agents/${made.id}`)).json()).toEqual(made);
    expect((await client.get(`/api/account/agents/${made.id}`)).json()).toEqual(made);
    expect((await client.get("/account/agents")).json()).toEqual({ data: [made] });
  });

  it("takes each field at its bound", async () => {
    const answer = await client.post("/account/agents", { ...LARGEST_AGENT, type: "prompt_agent", visibility: "public" });

    expect(answer.json()).toMatchObject({ ...LARGEST_AGENT, type: "prompt_agent", visibility: "public" });
    // A reference at its bound is looked up, and not found.
    const unknown = await client.post("/account/agents", { ...PROMPT_AGENT, baseModel: "b".repeat(253) });
    expectEnvelope(unknown, 400, "BAD_REQUEST");
    expect(unknown.text).toContain("There is no model");
  });

  it("can be called at once, by its owner alone while it is private", async () => {
    await create();
    const stranger = createClient(app.baseUrl, (await createMember(app)).key);
    const body = { model: `community/${member.handle}/helper`, messages: [{ role: "user", content: "Hi" }] };

    expect((await client.post("/v1/chat/completions", body)).status).toBe(200);
    expectEnvelope(await stranger.post("/v1/chat/completions", body), 400, "BAD_REQUEST");
    expect((await client.get(`/models?search=${member.handle}`)).json()).toMatchObject([
      { name: body.model, agent: true, community: true },
    ]);
  });

  it("refuses bad fields when it is made and when it is changed", async () => {
    const made = await create({ name: "kept" });

    for (const [what, field, value] of [...BAD_FIELDS, ...BAD_LISTS]) {
      const refused = await client.post(
        "/account/agents",
        { ...PROMPT_AGENT, [field]: value },
        { headers: { "Idempotency-Key": "agent" } },
      );
      const unchanged = await patch(made.id, { [field]: value });

      for (const answer of [refused, unchanged]) {
        expect([what, answer.status]).toEqual([what, 400]);
        expectEnvelope(answer, 400, "BAD_REQUEST");
        expect(answer.json<{ error: { param: string } }>().error.param).toMatch(new RegExp(`^${field}`));
      }
    }
    expect((await client.get("/account/agents")).json()).toEqual({ data: [made] });
  });

  it("refuses too few fields and too many", async () => {
    for (const [what, change, param] of [
      ["without a name", { name: undefined }, "name"],
      ["without a title", { title: undefined }, "title"],
      ["without a system prompt", { systemPrompt: undefined }, "systemPrompt"],
      ["without a base model", { baseModel: undefined }, "baseModel"],
      ["with an unknown field", { temperature: 1 }, "temperature"],
      ["with a repository", { repository: "https://code.example/a.git" }, "repository"],
      ["of an unknown type", { type: "endpoint_agent" }, "type"],
      ["of an unknown visibility", { visibility: "unlisted" }, "visibility"],
    ] as const) {
      const answer = await client.post("/account/agents", { ...PROMPT_AGENT, ...change });

      expect([what, answer.status]).toEqual([what, 400]);
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param } });
    }
    expect((await client.get("/account/agents")).json()).toEqual({ data: [] });
  });

  it("changes in the fields that are sent and in no other", async () => {
    const { updatedAt, ...made } = await create({ description: "Helps.", mcpServers: ["sluice"], requiredSafetyFeatures: ["secrets"] });

    const renamed = (await patch(made.id, { name: "other", description: "" })).json<AgentJson>();
    expect(renamed).toEqual({ ...made, name: "other", description: null, updatedAt: expect.any(String) });
    expect(Date.parse(renamed.updatedAt)).toBeGreaterThanOrEqual(Date.parse(updatedAt));
    const changes = { title: "New", systemPrompt: "Do it.", baseModel: "chat", mcpServers: [], requiredSafetyFeatures: ["privacy"] };
    expect((await patch(made.id, changes)).json()).toEqual({ ...renamed, ...changes, updatedAt: expect.any(String) });
    expect((await patch(made.id, {})).json()).toMatchObject(changes);
    expect((await client.get(`/models?search=${member.handle}`)).json()).toMatchObject([
      { name: `community/${member.handle}/other`, title: "New" },
    ]);
  });

  it("refuses bad changes", async () => {
    await create({ name: "taken" });
    const made = await create();

    for (const [what, change, param] of [
      ["an unknown field", { type: "code_agent" }, "type"],
      ["a repository", { repository: "https://code.example/a.git" }, "repository"],
      ["a name that is taken", { name: "taken" }, "name"],
      ["a null", { title: null }, "title"],
    ] as const) {
      const answer = await patch(made.id, change);

      expect([what, answer.status]).toEqual([what, 400]);
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param } });
    }
    expect((await client.get(`/account/agents/${made.id}`)).json()).toEqual(made);
  });

  it("has a name that nothing else of the account has, and others' accounts may", async () => {
    await create();
    const taken = await client.post("/account/agents", PROMPT_AGENT);
    const stranger = createClient(app.baseUrl, (await createMember(app)).key);

    expectEnvelope(taken, 400, "BAD_REQUEST");
    expect(taken.json()).toMatchObject({ error: { param: "name" } });
    expect((await stranger.post("/account/agents", PROMPT_AGENT)).status).toBe(200);
  });

  it("may not have an agent as its base model, itself included, nor another account's private model", async () => {
    const first = await create();
    const agentId = `community/${member.handle}/helper`;
    const others = await registerModel(app, await createMember(app));

    for (const baseModel of [agentId, others.modelId]) {
      const answer = await client.post("/account/agents", { ...PROMPT_AGENT, name: "second", baseModel });
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param: "baseModel" } });
    }
    expectEnvelope(await patch(first.id, { baseModel: agentId }), 400, "BAD_REQUEST");
  });

  it("asks a private model of its owner's only while it is private itself", async () => {
    const { id, modelId: baseModel } = await registerModel(app, member);
    const made = await create({ baseModel });

    for (const answer of [
      await patch(made.id, { visibility: "public" }),
      await client.post("/account/agents", { ...PROMPT_AGENT, name: "second", baseModel, visibility: "public" }),
    ]) {
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param: "baseModel" } });
    }
    await changeModel(app, member, id, { visibility: "public" });
    expect((await patch(made.id, { visibility: "public" })).json()).toMatchObject({ visibility: "public" });
    const { id: privateId, modelId } = await registerModel(app, member);
    expect(privateId).not.toBe(id);
    expectEnvelope(await patch(made.id, { baseModel: modelId }), 400, "BAD_REQUEST");
  });

  it("is removed with its model", async () => {
    const { id } = await create();

    expect((await client.request("DELETE", `/account/agents/${id}`)).json()).toEqual({ id });

    expectEnvelope(await client.get(`/account/agents/${id}`), 404, "NOT_FOUND");
    expectEnvelope(await client.request("DELETE", `/account/agents/${id}`), 404, "NOT_FOUND");
    expect((await client.get(`/models?search=${member.handle}`)).json()).toEqual([]);
    expect(await databaseOf(app).prisma.agent.count({ where: { id } })).toBe(0);
  });
});

describe("publishing", () => {
  it("needs publisher access, when an agent is made and when it is changed", async () => {
    const made = await create();
    await databaseOf(app).prisma.account.update({ where: { id: member.accountId }, data: { isPublisher: false } });

    expectEnvelope(await client.post("/account/agents", { ...PROMPT_AGENT, name: "second", visibility: "public" }), 403, "FORBIDDEN");
    expectEnvelope(await patch(made.id, { visibility: "public" }), 403, "FORBIDDEN");
    const code = { type: "code_agent", repository: "https://127.0.0.1/a.git", visibility: "public" };
    expectEnvelope(await client.post("/account/agents", code), 403, "FORBIDDEN");
    expect((await client.get("/account/agents")).json()).toEqual({ data: [made] });
  });

  it("takes effect at once, and so does taking it back", async () => {
    const { id } = await create();
    const model = `community/${member.handle}/helper`;
    const stranger = createClient(app.baseUrl, (await createMember(app)).key);
    const call = () => stranger.post("/v1/chat/completions", { model, messages: [{ role: "user", content: "Hi" }] });

    expect((await patch(id, { visibility: "public" })).json()).toMatchObject({ visibility: "public" });
    expect((await call()).status).toBe(200);
    expect((await patch(id, { visibility: "private" })).json()).toMatchObject({ visibility: "private" });
    expectEnvelope(await call(), 400, "BAD_REQUEST");
  });
});

describe("a code agent", () => {
  it("refuses bad fields", async () => {
    for (const [what, change, param] of [
      ["a description", { description: "x" }, "description"],
      ["a name", { name: "coder" }, "name"],
      ["a title", { title: "Coder" }, "title"],
      ["a system prompt", { systemPrompt: "x" }, "systemPrompt"],
      ["no repository", { repository: undefined }, "repository"],
      ["a repository that is no address", { repository: "coder" }, "repository"],
      ["a repository on a private address", { repository: "https://127.0.0.1/a.git" }, "repository"],
      ["a repository whose address is too long", { repository: `https://code.example/${"a".repeat(2048)}` }, "repository"],
      ["six safety features", { requiredSafetyFeatures: Array(6).fill("privacy") }, "requiredSafetyFeatures"],
    ] as const) {
      const answer = await client.post("/account/agents", { type: "code_agent", repository: "https://code.example/a.git", ...change });

      expect([what, answer.status]).toEqual([what, 400]);
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json<{ error: { param: string } }>().error.param).toMatch(new RegExp(`^${param}`));
    }
  });

  it("is shown with its repository and commit, and keeps both and its identity", async () => {
    const id = await createCodeAgent();

    const shown = (await client.get(`/account/agents/${id}`)).json<AgentJson>();
    expect(shown).toEqual({
      ...{ id, name: "coder", title: "coder", description: null, visibility: "private", requiredSafetyFeatures: [] },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String), type: "code_agent" },
      ...{ repository: "https://code.example/coder.git", deployedCommitSha: COMMIT },
    });
    for (const [field, value] of Object.entries({ ...PROMPT_AGENT, description: "", mcpServers: [], repository: "https://a.example" })) {
      const answer = await patch(id, { [field]: value });
      expectEnvelope(answer, 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param: field } });
    }
    const changes = { visibility: "public", requiredSafetyFeatures: ["shield"] };
    expect((await patch(id, changes)).json()).toEqual({ ...shown, ...changes, updatedAt: expect.any(String) });
  });
});

describe("another account's agent", () => {
  it("is answered like an unknown one", async () => {
    const { id } = await create();
    const stranger = createClient(app.baseUrl, (await createMember(app)).key);

    for (const path of [id, "not-an-id", uuidv7()].flatMap((each) => [`/account/agents/${each}`, `/api/account/agents/${each}`])) {
      expectEnvelope(await stranger.get(path), 404, "NOT_FOUND");
      expectEnvelope(await stranger.request("PATCH", path, { body: { title: "Mine" } }), 404, "NOT_FOUND");
      expectEnvelope(await stranger.request("DELETE", path), 404, "NOT_FOUND");
    }
    expect((await client.get(`/account/agents/${id}`)).json()).toMatchObject(PROMPT_AGENT);
  });

  it("is answered unlike a registered model", async () => {
    const { id } = await registerModel(app, member);

    expectEnvelope(await client.get(`/account/agents/${id}`), 404, "NOT_FOUND");
    expectEnvelope(await client.request("DELETE", `/account/agents/${id}`), 404, "NOT_FOUND");
    expect((await client.get("/account/agents")).json()).toEqual({ data: [] });
    expect(await databaseOf(app).prisma.communityModel.count({ where: { id } })).toBe(1);
  });
});

describe("how many", () => {
  it("an account has is bounded, models and agents together", async () => {
    const row = { accountId: member.accountId, type: "proxy" as const, inputModalities: ["text"], outputModalities: ["text"] };
    const rows = Array.from({ length: COMMUNITY_MODELS_PER_ACCOUNT_MAX - 1 }, (_, index) => ({
      ...row,
      ...{ id: uuidv7(), name: `m${index}`, title: "m" },
    }));
    await databaseOf(app).prisma.communityModel.createMany({ data: rows });

    await create();
    expectEnvelope(await client.post("/account/agents", { ...PROMPT_AGENT, name: "second" }), 409, "CONFLICT");
  });
});
