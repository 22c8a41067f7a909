import { getIntrospectionQuery, print } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { AccountKeysAndCatalogDocument, UsagePageFragmentDoc, WholePageOfUsageDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, codes, type Document, execute, executeText, subscribeWebSocket, type Target } from "./client.js";

let app: TestApp;
let closedApp: TestApp;

beforeAll(async () => {
  app = await createTestApp();
  closedApp = await createTestApp({ config: { graphql: { introspection: false, graphiql: false } } });
});

afterAll(async () => {
  await app.close();
  await closedApp.close();
});

/** One operation on each transport; what one refuses, the other must. */
const WAYS: readonly (readonly [string, (target: Target, document: Document) => Promise<Answer>])[] = [
  ["HTTP", executeText],
  ["a WebSocket", async (target, document) => (await subscribeWebSocket(target, document).next()) ?? {}],
];

const repeat = (count: number, text: (index: number) => string) => Array.from({ length: count }, (_, index) => text(index)).join(" ");
const nested = (levels: number) => `{ me { ${"a: __typename ... on Account { ".repeat(levels)} id ${"}".repeat(levels)} } }`;

const aliases = (count: number) => `{ me { ${repeat(count, (index) => `a${index}: handle`)} } }`;
const directives = (count: number) => `{ ${repeat(count, (index) => `d${index}: __typename @skip(if: false)`)} }`;
/** Names of `__typename` are not counted. */
const names = (count: number) => repeat(count, (index) => `n${index}: __typename`);
const named = (length: number) => `query ${"n".repeat(length)} { __typename }`;
const comments = (count: number) => `${"#\n".repeat(count)}{ __typename }`;
const characters = (count: number) => "{ __typename }".padEnd(count);
const tokens = (count: number) => `{ ${names(Math.floor((count - 2) / 3))} ${repeat((count - 2) % 3, () => "__typename")} }`;
const HOSTILE: readonly (readonly [string, Document, RegExp])[] = [
  ["11 levels", { query: nested(9) }, /depth limit of 10/],
  ["1,000 levels", { query: `{ ${"me { ".repeat(900)} id ${"} ".repeat(900)} }` }, /Token limit|depth limit/],
  ["201 aliases", { query: aliases(201) }, /Aliases limit of 200/],
  ["1,000 aliases", { query: `{ ${repeat(1_000, (index) => `a${index}: apiKey { name }`)} }` }, /limit/],
  ["21 directives", { query: directives(21) }, /Directives limit of 20/],
  ["2,001 tokens", { query: tokens(2_001) }, /Token limit of 2000/],
  ["a name of 256 characters", { query: named(256) }, /name has 256 characters, and at most 255/],
  ["2,001 comments", { query: comments(2_001) }, /more than 2000 comments/],
  ["262,145 characters", { query: characters(262_145) }, /262145 characters, and at most 262144/],
  [
    "fragments that select 5,001 fields",
    { query: `{ ${repeat(5, () => "me { ...F }")} ${names(1)} } fragment F on Account { ${repeat(999, () => "id")} }` },
    /costs more than 5000/,
  ],
  [
    "fragments that spread each other in a large circle",
    { query: `{ ...f0 } ${repeat(240, (index) => `fragment f${index} on Query { ...f${(index + 1) % 240} }`)}` },
    /depth limit of 10/,
  ],
  [
    "a variable of 1,000 values that is used 101 times",
    {
      query: `query ($of: [String!]) { ${repeat(101, (index) => `m${index}: models(first: 1, filter: { publishers: $of }) { totalCount }`)} }`,
      variables: { of: Array.from({ length: 1_000 }, () => "a") },
    },
    /costs \d+, and at most 5000/,
  ],
  [
    "a selection of the schema by 100 aliases",
    { query: `{ __schema { ${repeat(100, (index) => `a${index}: types { fields { name type { name description } } }`)} } }` },
    /costs more than 5000/,
  ],
  [
    "fragments that double at each of 30 levels",
    {
      query: `{ me { ...f0 } } ${repeat(30, (index) => `fragment f${index} on Account { ...f${index + 1} ...f${index + 1} }`)} fragment f30 on Account { id }`,
    },
    /limit/,
  ],
  [
    "fragments of a mutation that double at each of 30 levels",
    {
      query: `mutation { ...f0 } ${repeat(30, (index) => `fragment f${index} on Mutation { ...f${index + 1} ...f${index + 1} }`)} fragment f30 on Mutation { __typename }`,
    },
    /limit/,
  ],
  [
    "fragments that spread each other",
    { query: "{ me { ...a } } fragment a on Account { ...b } fragment b on Account { ...a }" },
    /within itself/,
  ],
  [
    "two full pages of usage",
    { query: `{ me { one: usage(first: 100) { ...UsagePage } two: usage(first: 100) { ...UsagePage } } } ${print(UsagePageFragmentDoc)}` },
    /costs \d+, and at most 5000/,
  ],
  [
    "two full pages of usage asked for by a variable",
    {
      query: `query ($n: Int) { me { one: usage(first: $n) { ...UsagePage } two: usage(first: $n) { ...UsagePage } } } ${print(UsagePageFragmentDoc)}`,
      variables: { n: 100 },
    },
    /costs \d+, and at most 5000/,
  ],
  [
    "two keys in one operation",
    { query: `mutation { a: createApiKey(input: { name: "a" }) { key } b: createApiKey(input: { name: "b" }) { key } }` },
    /only one/,
  ],
  [
    "two account changes behind fragments",
    {
      query: `mutation { ...a ... on Mutation { b: createApiKey(input: { name: "b" }) { key } } } fragment a on Mutation { a: revokeApiKey(input: { id: "x" }) { apiKey { id } } }`,
    },
    /only one/,
  ],
  [
    "introspection that goes in circles",
    { query: `{ __schema { types { ${"fields { type { ".repeat(6)} name ${"} } ".repeat(6)} } } }` },
    /introspection depth/i,
  ],
];

describe.each(WAYS)("hostile documents over %s", (_name, ask) => {
  it.each(HOSTILE)("refuses %s as BAD_REQUEST before anything runs", async (_what, document, message) => {
    const answer = await ask(app, document);

    expect(codes(answer)).toContain("BAD_REQUEST");
    expect(new Set(codes(answer))).toEqual(new Set(["BAD_REQUEST"]));
    expect(answer.errors?.map((error) => error.message).join("\n")).toMatch(message);
    expect(answer.data ?? null).toBeNull();
  });

  it.each([
    ["a document that is not GraphQL", { query: "{ me { id }" }],
    ["an empty document", { query: "" }],
    ["a field that does not exist", { query: "{ me { nonsense } }" }],
    ["an operation that does not exist", { query: "query A { me { id } }", operationName: "B" }],
    ["variables of a wrong type", { query: "query ($n: Int!) { me { usage(first: $n) { edges { cursor } } } }", variables: { n: "ten" } }],
    ["a missing variable", { query: "query ($n: Int!) { me { usage(first: $n) { edges { cursor } } } }" }],
    [
      "an unknown input field",
      { query: "mutation ($i: CreateApiKeyInput!) { createApiKey(input: $i) { key } }", variables: { i: { name: "a", nam: 1 } } },
    ],
    [
      "credits as a number",
      { query: "mutation ($i: CreateApiKeyInput!) { createApiKey(input: $i) { key } }", variables: { i: { name: "a", creditBudget: 1 } } },
    ],
    [
      "JSON that is nested 101 levels deep",
      {
        query: "mutation ($i: ChatCompletionInput!) { createChatCompletion(input: $i) { raw } }",
        variables: { i: { messages: [], extra: JSON.parse(`${'{"a":'.repeat(101)}1${"}".repeat(101)}`) } },
      },
    ],
  ] as readonly (readonly [string, Document])[])("refuses %s as BAD_REQUEST", async (_what, document) => {
    const answer = await ask(app, document);

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.data ?? null).toBeNull();
  });

  it.each([
    ["first", "first: 0"],
    ["first", "first: -1"],
    ["first", "first: 101"],
    ["after", 'after: "hand-made"'],
    ["after", 'after: ""'],
  ])("refuses a page with a wrong %s (%s)", async (param, args) => {
    const answer = await ask(app, { query: `{ me { usage(${args}) { edges { cursor } } } }` });

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param })]);
  });

  it.each([0, 91])("refuses daily usage of %i days", async (days) => {
    const answer = await ask(app, { query: `{ me { usageDaily(days: ${days}) { asOf } } }` });

    expect(answer.errors?.map(({ extensions }) => extensions)).toEqual([expect.objectContaining({ code: "BAD_REQUEST", param: "days" })]);
  });

  it("suggests names to callers who may introspect, and to no others", async () => {
    const misspelt = [
      { query: "{ mee { id } }" },
      { query: "{ models(firs: 1) { totalCount } }" },
      {
        query: "mutation ($i: CreateApiKeyInput!) { createApiKey(input: $i) { key } }",
        variables: { i: { name: "a", creditBudge: null } },
      },
    ];
    const askAll = (target: Target) => Promise.all(misspelt.map((document) => ask(target, document)));

    const [helped, guessed] = [await askAll({ ...app, key: null }), await askAll({ ...closedApp, key: null })];

    for (const answer of helped) expect(answer.errors?.[0]?.message).toContain("Did you mean");
    expect(JSON.stringify(guessed)).not.toContain("Did you mean");
    expect(guessed.flatMap(codes)).toHaveLength(3);
  });

  it("answers introspection when the configuration allows it", async () => {
    const answer = await ask(app, { query: getIntrospectionQuery() });

    expect(answer.errors).toBeUndefined();
    expect(answer.data).toMatchObject({ __schema: { queryType: { name: "Query" } } });
  });

  it("refuses introspection without a key when the configuration forbids it", async () => {
    const answers = [
      await ask({ ...closedApp, key: null }, { query: getIntrospectionQuery() }),
      await ask({ ...closedApp, key: null }, { query: '{ __type(name: "Query") { name } }' }),
    ];

    for (const answer of answers) expect(new Set(codes(answer))).toEqual(new Set(["BAD_REQUEST"]));
  });

  it("shows a browser no page when the configuration says so", async () => {
    const response = await fetch(`${closedApp.baseUrl}/graphql`, { headers: { accept: "text/html" } });

    expect(response.headers.get("content-type")).toMatch(/json/);
    expect((await fetch(`${closedApp.baseUrl}/graphql/assets/explorer.js`)).status).toBe(404);
  });

  it("gives every error its code, request id and time, and no HTTP headers", async () => {
    const { errors = [] } = await ask(app, { query: "{ nonsense }" });

    expect(errors[0]?.extensions).toEqual({ code: "BAD_REQUEST", requestId: expect.any(String), timestamp: expect.any(String) });
  });
});

describe.each(WAYS)("documents at a limit over %s", (_name, ask) => {
  it.each([
    ["10 levels", nested(8)],
    ["200 aliases", aliases(200)],
    ["20 directives", directives(20)],
    ["2,000 tokens", tokens(2_000)],
    ["a name of 255 characters", named(255)],
    ["2,000 comments", comments(2_000)],
    ["262,144 characters", characters(262_144)],
  ])("answers %s", async (_what, query) => {
    const answer = await ask(app, { query });

    expect(answer.errors).toBeUndefined();
  });

  it("answers a cost of 5,000 with its cost, and refuses one more", async () => {
    const pages = (count: number) => repeat(count, (index) => `p${index}: usage(first: 100) { edges { cursor } }`);
    const query = (more: number) => `{ me { ${pages(24)} ${names(more)} } }`;
    const { requested = 0 } = (await ask(app, { query: query(0) })).extensions?.cost ?? {};
    const more = 5_000 - requested;

    const [most, tooMuch] = [await ask(app, { query: query(more) }), await ask(app, { query: query(more + 1) })];

    expect(most.errors).toBeUndefined();
    expect(most.extensions?.cost).toEqual({ requested: 5_000, maximum: 5_000 });
    expect(tooMuch.errors?.[0]?.message).toMatch(/costs 5001, and at most 5000/);
    expect(tooMuch.extensions?.cost).toEqual({ requested: 5_001, maximum: 5_000 });
  });

  it("answers 16 generations, and refuses one more, before anything runs", async () => {
    const asked = app.upstream.requests.length;
    const chat = 'createChatCompletion(input: { model: "acme/free", messages: [{ role: USER, content: "Hi" }] }) { receipt { cost } }';
    const query = (count: number) => `mutation { ${repeat(count, (index) => `c${index}: ${chat}`)} }`;
    app.upstream.replyAlways(json(chatCompletion()));

    const tooMany = await ask(app, { query: query(17) });
    const askedThen = app.upstream.requests.length;
    const most = await ask(app, { query: query(16) });
    app.upstream.replyAlways(null);

    expect(tooMany.errors?.[0]?.message).toMatch(/at most 5000 is allowed: .* fewer generations/);
    expect(askedThen).toBe(asked);
    expect(most.errors).toBeUndefined();
  });

  it("states the cost with errors", async () => {
    const failed = await ask(app, { query: '{ me { agent(id: "nobody") { modelId } } }' });

    expect(codes(failed)).toHaveLength(1);
    expect(failed.extensions?.cost).toEqual({ requested: 3, maximum: 5_000 });
  });
});

describe.each(WAYS)("many errors over %s", (_name, ask) => {
  it("report 8,000 unknown fields of a variable by 20 short ones", async () => {
    const query = "mutation ($input: SignInInput!) { signIn(input: $input) { __typename } }";
    const input = Object.fromEntries(Array.from({ length: 8_000 }, (_, index) => [`k${index}`, 1]));

    const answer = await ask({ ...app, key: null }, { query, variables: { input } });

    expect(codes(answer)).toEqual(Array.from({ length: 20 }, () => "BAD_REQUEST"));
    expect(JSON.stringify(answer).length).toBeLessThan(8_000);
  });

  it("report 1,900 unknown fields of a document by 20", async () => {
    const answer = await ask(app, { query: `{ me { ${repeat(1_900, (index) => `zz${index}`)} } }` });

    expect(codes(answer)).toHaveLength(20);
  });

  it("name at most ten of the places that they are about", async () => {
    const answer = await ask(app, { query: `{ models(${repeat(600, () => "first: 1")}) { totalCount } }` });

    expect(answer.errors).toEqual([
      expect.objectContaining({
        message: 'There can be only one argument named "first".',
        locations: expect.objectContaining({ length: 10 }),
      }),
    ]);
  });

  it("state their place in the document, behind lines of each kind", async () => {
    const query = "{ __typename\n\r\n\r  me { id }\n  nonsense }";

    const answer = await ask(app, { query });

    expect(answer.errors).toEqual([expect.objectContaining({ locations: [{ line: 5, column: 3 }] })]);
  });
});

describe("honest documents", () => {
  it("lets a whole page of usage with every field through", async () => {
    expect(codes(await execute(app, WholePageOfUsageDocument))).toEqual([]);
  });

  it("lets every field of the account, the keys and the catalog through in one document", async () => {
    expect(codes(await execute(app, AccountKeysAndCatalogDocument))).toEqual([]);
  });
});
