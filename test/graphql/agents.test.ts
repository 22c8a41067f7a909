/** Agents of the account over GraphQL (docs/spec/agents.md). */
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { databaseOf } from "../e2e/money.js";
import { BAD_FIELDS, BAD_LISTS, LARGEST_AGENT, PROMPT_AGENT } from "../support/agents.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { type Answer, codes, execute, field, type Loose } from "./client.js";

const COMMON = "__typename id modelId name title description visibility requiredSafetyFeatures createdAt updatedAt";
const PROMPT = "systemPrompt baseModel mcpServers";
const CODE = "repository deployedCommitSha";
const AGENT = `${COMMON} ... on PromptAgent { ${PROMPT} } ... on CodeAgent { ${CODE} }`;
const CREATE = `mutation ($input: CreatePromptAgentInput!) { createPromptAgent(input: $input) { ${COMMON} ${PROMPT} } }`;
const CREATE_CODE = `mutation ($input: CreateCodeAgentInput!) { createCodeAgent(input: $input) { ${COMMON} ${CODE} } }`;
const UPDATE = `mutation ($input: UpdateAgentInput!) { updateAgent(input: $input) { ${AGENT} } }`;
const DELETE = "mutation ($input: DeleteAgentInput!) { deleteAgent(input: $input) { id } }";
const GET = `query ($id: ID!) { agent(id: $id) { ${AGENT} } }`;
const LIST = `query ($first: Int, $after: String) { me { agents(first: $first, after: $after) {
  edges { node { id name } } pageInfo { hasNextPage endCursor } } } }`;
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
const create = async (fields: object = {}): Promise<Loose> =>
  field(await ask(CREATE, { input: { ...PROMPT_AGENT, ...fields } }), "createPromptAgent");
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
      ...{ __typename: "PromptAgent", id: expect.any(String), modelId: `community/${member.handle}/helper`, ...PROMPT_AGENT },
      ...{ description: null, visibility: "PRIVATE", requiredSafetyFeatures: [], mcpServers: [] },
      ...{ createdAt: expect.any(String), updatedAt: expect.any(String) },
    });
    expect(field(await ask(GET, { id: made.id }), "agent")).toEqual(made);
    const changes = {
      name: "other",
      description: "Adds.",
      visibility: "PUBLIC",
      mcpServers: ["SLUICE"],
      requiredSafetyFeatures: ["SHIELD"],
    };
    const changed = field(await ask(UPDATE, { input: { id: made.id, ...changes } }), "updateAgent");
    expect(changed).toEqual({ ...made, ...changes, modelId: `community/${member.handle}/other`, updatedAt: expect.any(String) });
    expect(field(await ask(UPDATE, { input: { id: made.id, description: null } }), "updateAgent")).toMatchObject({ description: null });
    expect(field(await ask(DELETE, { input: { id: made.id } }), "deleteAgent")).toEqual({ id: made.id });
    expect(codes(await ask(GET, { id: made.id }))).toEqual(["NOT_FOUND"]);
  });

  it("take each field at its bound", async () => {
    const { mcpServers, requiredSafetyFeatures, ...texts } = LARGEST_AGENT;
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

    const shown = field(await ask(GET, { id }), "agent");

    expect(shown).toMatchObject({ __typename: "CodeAgent", repository: "https://code.example/coder.git", deployedCommitSha: COMMIT });
    const refused = await ask(UPDATE, { input: { id, title: "Coder" } });
    expect(refused.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "title" });
  });
});

describe("a bad agent", () => {
  it("is not made, and none is changed to it", async () => {
    const made = await create({ name: "kept" });

    for (const [what, name, value] of BAD_FIELDS) {
      const refused = await ask(CREATE, { input: { ...PROMPT_AGENT, [name]: value } });
      const unchanged = await ask(UPDATE, { input: { id: made.id, [name]: value } });

      for (const { errors } of [refused, unchanged])
        expect([what, errors?.[0]?.extensions]).toMatchObject([what, { code: "BAD_REQUEST", param: name }]);
    }
    expect(field(await ask(GET, { id: made.id }), "agent")).toEqual(made);
    expect(await names()).toHaveLength(1);
  });

  it("is not made with lists that are none", async () => {
    for (const [what, name, values] of BAD_LISTS) {
      const answer = await ask(CREATE, { input: { ...PROMPT_AGENT, [name]: enums(values) } });

      expect([what, ...codes(answer)]).toEqual([what, "BAD_REQUEST"]);
      expect(answer.errors?.[0]?.message).toContain(name);
    }
    expect(await names()).toEqual([]);
  });

  it.each([
    ["a prompt agent's repository", CREATE, { ...PROMPT_AGENT, repository: "https://code.example/a.git" }],
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

    const twin = await ask(CREATE, { input: PROMPT_AGENT });
    const recursive = await ask(CREATE, { input: { ...PROMPT_AGENT, name: "second", baseModel: modelId } });

    expect(twin.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "name" });
    expect(recursive.errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "baseModel" });
  });

  it("is not published by an account that may not", async () => {
    const { id } = await create();
    await databaseOf(app).prisma.account.update({ where: { id: member.accountId }, data: { isPublisher: false } });

    expect(codes(await ask(CREATE, { input: { ...PROMPT_AGENT, name: "second", visibility: "PUBLIC" } }))).toEqual(["FORBIDDEN"]);
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
    expect(field(await ask(GET, { id }), "agent")).toMatchObject(PROMPT_AGENT);
  });
});
