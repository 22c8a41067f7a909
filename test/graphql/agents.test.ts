/** Agents of the account over GraphQL (docs/spec/agents.md). */
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { databaseOf } from "../e2e/money.js";
import {
  AgentEverywhereDocument,
  type AgentPartsFragment,
  AvailableMcpServersDocument,
  CreateCodeAgentDocument,
  type CreateCodeAgentInput,
  CreatePromptAgentDocument,
  type CreatePromptAgentInput,
  DeleteAgentDocument,
  MissingMcpServersDocument,
  MyAgentDocument,
  MyAgentsDocument,
  type MyAgentsQueryVariables,
  UpdateAgentDocument,
  type UpdateAgentInput,
} from "../operations/generated/graphql.js";
import { BAD_FIELDS, BAD_LISTS, LARGEST_AGENT, PROMPT_AGENT } from "../support/agents.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { type Answer, codes, execute, executeText, ok, textOf } from "./client.js";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";

let app: TestApp;
let member: Member;

beforeAll(async () => {
  app = await createTestApp();
});
beforeEach(async () => {
  member = await createMember(app);
});
afterAll(() => app.close());

const by = (key = member.key) => ({ ...app, key });
/** As the schema calls it. */
const { baseModel: baseModelId, ...OTHERS } = PROMPT_AGENT;
const GIVEN = { ...OTHERS, baseModelId };
const tryCreate = (fields: Partial<CreatePromptAgentInput> = {}) =>
  execute(by(), CreatePromptAgentDocument, { input: { ...GIVEN, ...fields } });
const create = async (fields: Partial<CreatePromptAgentInput> = {}) => ok(await tryCreate(fields)).createPromptAgent.agent;
const tryUpdate = (input: UpdateAgentInput, key?: string) => execute(by(key), UpdateAgentDocument, { input });
const update = async (input: UpdateAgentInput) => ok(await tryUpdate(input)).updateAgent.agent;
const tryRemove = (id: string, key?: string) => execute(by(key), DeleteAgentDocument, { id });
const tryGet = (id: string, key?: string) => execute(by(key), MyAgentDocument, { id });
const get = async (id: string): Promise<AgentPartsFragment | null> => ok(await tryGet(id)).me.agent;
const list = async (page: MyAgentsQueryVariables = {}) => ok(await execute(by(), MyAgentsDocument, page)).me.agents;
const refusal = ({ errors }: Answer<unknown>) => errors?.[0]?.extensions;
const fieldOf = (name: string) => (name === "baseModel" ? "baseModelId" : name);
const enums = (values: readonly string[]) => values.map((value) => value.toUpperCase());

async function createCodeAgent(): Promise<string> {
  const { id } = await registerModel(app, member, { type: "code_agent", name: "coder", url: null, api: null, bearerToken: null });
  const code = { repository: "https://code.example/coder.git", deployedCommitSha: COMMIT, bundle: "" };
  await databaseOf(app).prisma.agent.create({ data: { id, ...code } });
  return id;
}

describe("the MCP servers of this gateway", () => {
  it("are listed to who may make agents, and those that an agent lacks with the agent", async () => {
    const { restId } = await create({ mcpServers: ["SLUICE", "SEARCH"] });
    const id = toGlobalId("PromptAgent", restId);

    expect(ok(await execute(by(), AvailableMcpServersDocument)).mcpServers).toEqual(["SLUICE"]);
    expect(ok(await execute(by(), MissingMcpServersDocument, { id })).node).toEqual({
      mcpServers: ["SLUICE", "SEARCH"],
      missingMcpServers: ["SEARCH"],
    });
  });

  it("are refused to anonymous callers", async () => {
    expect(codes(await execute({ ...app, key: null }, AvailableMcpServersDocument))).toEqual(["UNAUTHORIZED"]);
  });
});

describe("agents", () => {
  it("are made, shown, changed and removed", async () => {
    const made = await create();

    expect(made).toEqual({
      ...{ __typename: "PromptAgent", restId: expect.any(String), modelId: `community/${member.handle}/helper`, ...GIVEN },
      ...{ description: null, visibility: "PRIVATE", requiredSafetyFeatures: [], mcpServers: [] },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect(await get(made.restId)).toEqual(made);
    const changes: Omit<UpdateAgentInput, "id"> = {
      name: "other",
      description: "Adds.",
      visibility: "PUBLIC",
      mcpServers: ["SLUICE"],
      requiredSafetyFeatures: ["SHIELD"],
    };
    const changed = await update({ id: made.restId, ...changes });
    expect(changed).toEqual({ ...made, ...changes, modelId: `community/${member.handle}/other`, updatedAt: expect.any(String) });
    expect(await update({ id: made.restId, description: null })).toMatchObject({ description: null });
    expect(ok(await tryRemove(made.restId)).deleteAgent).toEqual({ agent: { restId: made.restId } });
    expect(codes(await tryGet(made.restId))).toEqual(["NOT_FOUND"]);
  });

  it("take each field at its bound", async () => {
    const { mcpServers: _, requiredSafetyFeatures: __, baseModel, ...others } = LARGEST_AGENT;
    const texts = { ...others, baseModelId: baseModel };
    const lists: Pick<CreatePromptAgentInput, "mcpServers" | "requiredSafetyFeatures"> = {
      mcpServers: ["FFMPEG", "COMPUTER", "SLUICE", "SEARCH", "INTEGRATIONS", "ADA"],
      requiredSafetyFeatures: ["PRIVACY", "SECRETS", "SEXUAL", "VIOLENCE", "SHIELD"],
    };

    expect(await create({ ...texts, ...lists })).toMatchObject({ ...texts, ...lists });
  });

  it("come in pages, newest first", async () => {
    for (const name of ["one", "two", "three"]) await create({ name });

    const first = await list({ first: 2 });
    const second = await list({ first: 2, after: first?.pageInfo.endCursor ?? null });

    expect([first, second].map((page) => page?.pageInfo.hasNextPage)).toEqual([true, false]);
    expect(first?.edges).toMatchObject([{ node: { name: "three" } }, { node: { name: "two" } }]);
    expect(second?.edges).toMatchObject([{ node: { name: "one" } }]);
  });

  it("of both types share one interface, each with its own fields", async () => {
    const id = await createCodeAgent();

    const shown = await get(id);

    expect(shown).toMatchObject({ __typename: "CodeAgent", repository: "https://code.example/coder.git", deployedCommitSha: COMMIT });
    expect(refusal(await tryUpdate({ id, title: "Coder" }))).toMatchObject({ code: "BAD_REQUEST", param: "title" });
  });
});

describe("one agent", () => {
  it("is the same object among agents, among models and by its id, and leads to its base model", async () => {
    const { restId: id } = await create();
    const node = toGlobalId("PromptAgent", id);

    const { data, errors } = await execute(by(), AgentEverywhereDocument, { node });

    expect(errors).toBeUndefined();
    expect(data).toEqual({
      me: {
        agents: { totalCount: 1, nodes: [{ id: node }] },
        communityModels: { nodes: [{ id: node, __typename: "PromptAgent" }] },
        agent: {
          ...{ id: node, model: { isAgent: true, restId: `community/${member.handle}/helper` } },
          ...{ baseModel: { restId: "acme/chat" }, baseModelId: "acme/chat" },
        },
      },
      node: { id: node, title: PROMPT_AGENT.title, systemPrompt: PROMPT_AGENT.systemPrompt },
    });
  });
});

describe("a bad agent", () => {
  it("is refused when it is made and when it is changed", async () => {
    const made = await create({ name: "kept" });

    for (const [what, name, value] of BAD_FIELDS) {
      const changed = { [fieldOf(name)]: value };
      for (const { errors } of [await tryCreate(changed), await tryUpdate({ id: made.restId, ...changed })])
        expect([what, errors?.[0]?.extensions]).toMatchObject([what, { code: "BAD_REQUEST", param: fieldOf(name) }]);
    }
    expect(await get(made.restId)).toEqual(made);
    expect((await list())?.edges).toHaveLength(1);
  });

  it("is refused with values that are no lists", async () => {
    for (const [what, name, values] of BAD_LISTS) {
      const variables = { input: { ...GIVEN, [name]: enums(values) } };
      const answer = await executeText(by(), { query: textOf(CreatePromptAgentDocument), variables });

      expect([what, ...codes(answer)]).toEqual([what, "BAD_REQUEST"]);
      expect(answer.errors?.[0]?.message).toContain(name);
    }
    expect((await list())?.edges).toEqual([]);
  });

  it.each([
    ["a prompt agent's repository", textOf(CreatePromptAgentDocument), { ...GIVEN, repository: "https://code.example/a.git" }],
    ["a changed repository", textOf(UpdateAgentDocument), { id: uuidv7(), repository: "https://code.example/a.git" }],
    ["a code agent's title", textOf(CreateCodeAgentDocument), { repository: "https://code.example/a.git", title: "Coder" }],
  ])("is refused with a field of the other type: %s", async (_what, query, input) => {
    const answer = await executeText(by(), { query, variables: { input } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.message).toMatch(/repository|title/);
  });

  it("made of code is refused with a description, and with a repository that must not be fetched", async () => {
    const tryCode = (input: CreateCodeAgentInput) => execute(by(), CreateCodeAgentDocument, { input });
    const described = await tryCode({ repository: "https://code.example/a.git", description: "x" });
    const inside = await tryCode({ repository: "https://127.0.0.1/a.git", description: "" });

    expect(refusal(described)).toMatchObject({ code: "BAD_REQUEST", param: "description" });
    expect(refusal(inside)).toMatchObject({ code: "BAD_REQUEST", param: "repository" });
  });

  it("is refused for a name that is taken, and for an agent to ask", async () => {
    const { modelId } = await create();

    expect(refusal(await tryCreate())).toMatchObject({ code: "BAD_REQUEST", param: "name" });
    expect(refusal(await tryCreate({ name: "second", baseModelId: modelId }))).toMatchObject({ code: "BAD_REQUEST", param: "baseModelId" });
  });

  it("is not published by an account that may not", async () => {
    const { restId: id } = await create();
    await databaseOf(app).prisma.account.update({ where: { id: member.accountId }, data: { isPublisher: false } });

    expect(codes(await tryCreate({ name: "second", visibility: "PUBLIC" }))).toEqual(["FORBIDDEN"]);
    expect(codes(await tryUpdate({ id, visibility: "PUBLIC" }))).toEqual(["FORBIDDEN"]);
  });
});

describe("another account's agent", () => {
  it("is answered like a missing one", async () => {
    const { restId: id } = await create();
    const stranger = (await createMember(app)).key;

    expect(codes(await tryGet(id, stranger))).toEqual(["NOT_FOUND"]);
    expect(codes(await tryUpdate({ id, title: "Mine" }, stranger))).toEqual(["NOT_FOUND"]);
    expect(codes(await tryRemove(id, stranger))).toEqual(["NOT_FOUND"]);
    expect(await get(id)).toMatchObject(GIVEN);
  });
});
