/** Agents of the account over GraphQL (docs/spec/agents.md). */
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { databaseOf } from "../e2e/money.js";
import { BAD_FIELDS, BAD_LISTS, LARGEST_AGENT, PROMPT_AGENT } from "../support/agents.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { type Answer, codes, execute, field, type Loose } from "./client.js";

const COMMON = "__typename id: restId modelId name title description visibility requiredSafetyFeatures createdAt updatedAt";
const PROMPT = "systemPrompt baseModelId mcpServers";
const CODE = "repository deployedCommitSha";
const AGENT = `${COMMON} ... on PromptAgent { ${PROMPT} } ... on CodeAgent { ${CODE} }`;
const CREATE = `mutation ($input: CreatePromptAgentInput!) { createPromptAgent(input: $input) { agent { ${COMMON} ${PROMPT} } } }`;
const CREATE_CODE = `mutation ($input: CreateCodeAgentInput!) { createCodeAgent(input: $input) { agent { ${COMMON} ${CODE} } } }`;
const UPDATE = `mutation ($input: UpdateAgentInput!) { updateAgent(input: $input) { agent { ${AGENT} } } }`;
const DELETE = "mutation ($input: DeleteAgentInput!) { deleteAgent(input: $input) { agent { id: restId } } }";
const GET = `query ($id: ID!) { me { agent(id: $id) { ${AGENT} } } }`;
const LIST = `query ($first: Int, $after: String) { me { agents(first: $first, after: $after) {
  edges { node { id: restId name } } pageInfo { hasNextPage endCursor } } } }`;
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

const ask = (query: string, variables: Record<string, unknown> = {}, key = member.key): Promise<Answer> =>
  execute({ ...app, key }, query, variables);
/** As the schema calls it. */
const { baseModel: baseModelId, ...OTHERS } = PROMPT_AGENT;
const GIVEN = { ...OTHERS, baseModelId };
/** Of a payload, or of `me`. */
const agentOf = (answer: Answer, name: string): Loose => {
  const { agent } = field(answer, name);
  if (!agent) throw new Error(`No agent in ${JSON.stringify(answer)}`);
  return agent;
};
const create = async (fields: object = {}): Promise<Loose> =>
  agentOf(await ask(CREATE, { input: { ...GIVEN, ...fields } }), "createPromptAgent");
const fieldOf = (name: string) => (name === "baseModel" ? "baseModelId" : name);
const enums = (values: readonly string[]) => values.map((value) => value.toUpperCase());
const names = async (): Promise<unknown> => field(await ask(LIST), "me").agents?.edges;

async function createCodeAgent(): Promise<string> {
  const { id } = await registerModel(app, member, { type: "code_agent", name: "coder", url: null, api: null, bearerToken: null });
  const code = { repository: "https://code.example/coder.git", deployedCommitSha: COMMIT, bundle: "" };
  await databaseOf(app).prisma.agent.create({ data: { id, ...code } });
  return id;
}

describe("agents", () => {
  it("are made, shown, changed and removed", async () => {
    const made = await create();

    expect(made).toEqual({
      ...{ __typename: "PromptAgent", id: expect.any(String), modelId: `community/${member.handle}/helper`, ...GIVEN },
      ...{ description: null, visibility: "PRIVATE", requiredSafetyFeatures: [], mcpServers: [] },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect(agentOf(await ask(GET, { id: made.id }), "me")).toEqual(made);
    const changes = {
      name: "other",
      description: "Adds.",
      visibility: "PUBLIC",
      mcpServers: ["SLUICE"],
      requiredSafetyFeatures: ["SHIELD"],
    };
    const changed = agentOf(await ask(UPDATE, { input: { id: made.id, ...changes } }), "updateAgent");
    expect(changed).toEqual({ ...made, ...changes, modelId: `community/${member.handle}/other`, updatedAt: expect.any(String) });
    expect(agentOf(await ask(UPDATE, { input: { id: made.id, description: null } }), "updateAgent")).toMatchObject({ description: null });
    expect(agentOf(await ask(DELETE, { input: { id: made.id } }), "deleteAgent")).toEqual({ id: made.id });
    expect(codes(await ask(GET, { id: made.id }))).toEqual(["NOT_FOUND"]);
  });

  it("take each field at its bound", async () => {
    const { mcpServers, requiredSafetyFeatures, baseModel: baseModelId, ...others } = LARGEST_AGENT;
    const texts = { ...others, baseModelId };
    const lists = { mcpServers: enums(mcpServers), requiredSafetyFeatures: enums(requiredSafetyFeatures) };

    expect(await create({ ...texts, ...lists })).toMatchObject({ ...texts, ...lists });
  });

  it("come in pages, newest first", async () => {
    for (const name of ["one", "two", "three"]) await create({ name });

    const first = field(await ask(LIST, { first: 2 }), "me").agents;
    const second = field(await ask(LIST, { first: 2, after: first?.pageInfo?.endCursor }), "me").agents;

    expect([first, second].map((page) => page?.pageInfo?.hasNextPage)).toEqual([true, false]);
    expect(first?.edges).toMatchObject([{ node: { name: "three" } }, { node: { name: "two" } }]);
    expect(second?.edges).toMatchObject([{ node: { name: "one" } }]);
  });

  it("of both types have one interface, each with what is its own", async () => {
    const id = await createCodeAgent();

    const shown = agentOf(await ask(GET, { id }), "me");

    expect(shown).toMatchObject({ __typename: "CodeAgent", repository: "https://code.example/coder.git", deployedCommitSha: COMMIT });
    const refused = await ask(UPDATE, { input: { id, title: "Coder" } });
    expect(refused.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "title" });
  });
});

describe("one agent", () => {
  it("is one thing among agents, among models and by its id, and leads to the model that it asks", async () => {
    const { id } = await create();
    const document = `query ($id: ID!, $node: ID!) {
      me {
        agents(last: 1) { totalCount nodes { id } }
        communityModels(first: 1) { nodes { id __typename } }
        agent(id: $node) { id model { isAgent restId } ... on PromptAgent { baseModel { restId } baseModelId } }
      }
      agent(id: $id) { id }
      node(id: $node) { id ... on Agent { title } ... on PromptAgent { systemPrompt } }
    }`;
    const node = toGlobalId("PromptAgent", id as unknown as string);

    const { data, errors } = await ask(document, { id, node });

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
      agent: { id: node },
      node: { id: node, title: PROMPT_AGENT.title, systemPrompt: PROMPT_AGENT.systemPrompt },
    });
  });
});

describe("a bad agent", () => {
  it("is not made, and none is changed to it", async () => {
    const made = await create({ name: "kept" });

    for (const [what, name, value] of BAD_FIELDS) {
      const refused = await ask(CREATE, { input: { ...GIVEN, [fieldOf(name)]: value } });
      const unchanged = await ask(UPDATE, { input: { id: made.id, [fieldOf(name)]: value } });

      for (const { errors } of [refused, unchanged])
        expect([what, errors?.[0]?.extensions]).toMatchObject([what, { code: "BAD_REQUEST", param: fieldOf(name) }]);
    }
    expect(agentOf(await ask(GET, { id: made.id }), "me")).toEqual(made);
    expect(await names()).toHaveLength(1);
  });

  it("is not made with lists that are none", async () => {
    for (const [what, name, values] of BAD_LISTS) {
      const answer = await ask(CREATE, { input: { ...GIVEN, [name]: enums(values) } });

      expect([what, ...codes(answer)]).toEqual([what, "BAD_REQUEST"]);
      expect(answer.errors?.[0]?.message).toContain(name);
    }
    expect(await names()).toEqual([]);
  });

  it.each([
    ["a prompt agent's repository", CREATE, { ...GIVEN, repository: "https://code.example/a.git" }],
    ["a changed repository", UPDATE, { id: uuidv7(), repository: "https://code.example/a.git" }],
    ["a code agent's title", CREATE_CODE, { repository: "https://code.example/a.git", title: "Coder" }],
  ])("is refused for a field that it does not have: %s", async (_what, query, input) => {
    const answer = await ask(query, { input });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.message).toMatch(/repository|title/);
  });

  it("made of code is refused for its description, and for a repository that is nobody's to fetch", async () => {
    const described = await ask(CREATE_CODE, { input: { repository: "https://code.example/a.git", description: "x" } });
    const inside = await ask(CREATE_CODE, { input: { repository: "https://127.0.0.1/a.git", description: "" } });

    expect(described.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "description" });
    expect(inside.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "repository" });
  });

  it("is refused for a name that is taken, and for an agent to ask", async () => {
    const { modelId } = await create();

    const twin = await ask(CREATE, { input: GIVEN });
    const recursive = await ask(CREATE, { input: { ...GIVEN, name: "second", baseModelId: modelId } });

    expect(twin.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "name" });
    expect(recursive.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "baseModelId" });
  });

  it("is not published by an account that may not", async () => {
    const { id } = await create();
    await databaseOf(app).prisma.account.update({ where: { id: member.accountId }, data: { isPublisher: false } });

    expect(codes(await ask(CREATE, { input: { ...GIVEN, name: "second", visibility: "PUBLIC" } }))).toEqual(["FORBIDDEN"]);
    expect(codes(await ask(UPDATE, { input: { id, visibility: "PUBLIC" } }))).toEqual(["FORBIDDEN"]);
  });
});

describe("another account's agent", () => {
  it("is not there", async () => {
    const { id } = await create();
    const stranger = (await createMember(app)).key;

    expect(codes(await ask(GET, { id }, stranger))).toEqual(["NOT_FOUND"]);
    expect(codes(await ask(UPDATE, { input: { id, title: "Mine" } }, stranger))).toEqual(["NOT_FOUND"]);
    expect(codes(await ask(DELETE, { input: { id } }, stranger))).toEqual(["NOT_FOUND"]);
    expect(agentOf(await ask(GET, { id }), "me")).toMatchObject(GIVEN);
  });
});
