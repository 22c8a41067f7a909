/** Introspection counts in the cost by the size of its result, on every transport: the whole schema fits into one operation, and not much more. */
import { executeSync, getIntrospectionQuery, type IntrospectionOptions, parse } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { schema } from "../../src/graphql/schema.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Answer, codes, type Document, executeText, subscribeSse, subscribeWebSocket, type Target } from "./client.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

const WAYS: readonly (readonly [string, (target: Target, document: Document) => Promise<Answer>])[] = [
  ["HTTP", executeText],
  ["server-sent events", async (target, document) => (await subscribeSse(target, document).next()) ?? {}],
  ["a WebSocket", async (target, document) => (await subscribeWebSocket(target, document).next()) ?? {}],
];

/** As graphql-js answers it. */
const executed = (query: string, variableValues = {}) =>
  JSON.parse(JSON.stringify(executeSync({ schema, document: parse(query), variableValues }).data)) as Answer["data"];

const EVERYTHING: IntrospectionOptions = {
  descriptions: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
};
/** What Apollo, urql and graphql-request bring; GraphiQL; graphql-codegen; and every option at once. */
const CLIENTS: readonly (readonly [string, IntrospectionOptions])[] = [
  ["graphql-js with its defaults", {}],
  ["GraphiQL", { inputValueDeprecation: true, schemaDescription: true }],
  [
    "graphql-codegen",
    { descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true, inputValueDeprecation: true },
  ],
  ["every option", EVERYTHING],
];

const seq = (count: number, text: (index: number) => string) => Array.from({ length: count }, (_, index) => text(index)).join(" ");
const TYPE = `fragment T on __Type { name description fields(includeDeprecated: true) { name description args { name description type { name kind ofType { name kind ofType { name } } } defaultValue } type { name kind ofType { name } } } inputFields { name description type { name kind } } enumValues { name description } possibleTypes { name } }`;
const NESTED = TYPE.replace("type { name kind ofType { name } } } inputFields", "type { ...U } } inputFields");

describe.each(WAYS)("over %s", (_name, ask) => {
  it.each(CLIENTS)("the whole schema is answered in one operation: %s", async (_client, options) => {
    const query = getIntrospectionQuery(options);

    const answer = await ask(app, { query, operationName: "IntrospectionQuery" });

    expect(answer.errors).toBeUndefined();
    expect(answer.data).toEqual(executed(query));
    // A fifth is left for the growth of the schema.
    expect(answer.extensions?.cost?.requested).toBeLessThan(4_000);
  });

  it.each([
    ["a selection of it by 190 aliases", `{ __schema { ${seq(190, (index) => `a${index}: types { ...T }`)} } } ${TYPE}`],
    [
      "60 aliases with a fragment inside of each type of a field",
      `{ __schema { ${seq(60, (index) => `a${index}: types { ...T }`)} } } ${NESTED} fragment U on __Type { name description fields { name description } }`,
    ],
    [
      "the whole schema twice",
      `{ ${seq(2, (index) => `s${index}: __schema { types { ...F } directives { args { ...A } } }`)} } ${wholeFragments()}`,
    ],
    ["types by name, each with all of its fields", `{ ${seq(150, (index) => `t${index}: __type(name: "Query") { ...T }`)} } ${TYPE}`],
    ["one text by many aliases", `{ __schema { types { fields { ${seq(190, (index) => `d${index}: description`)} } } } }`],
    ["empty lists", `{ __schema { types { fields { ${seq(190, (index) => `a${index}: args { name }`)} } } } }`],
  ])("is refused: %s", async (_what, query) => {
    const answer = await ask(app, { query });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.message).toMatch(/costs (\d+, and at most 5000|more than 5000)/);
    expect(answer.data ?? null).toBeNull();
  });

  it("costs as much as it returns, for each request", async () => {
    const costOf = async (count: number) => {
      const query = `{ ${seq(count, (index) => `t${index}: __type(name: "ApiKey") { ...T }`)} } ${TYPE}`;
      return (await ask(app, { query })).extensions?.cost?.requested ?? 0;
    };

    const [once, ten] = [await costOf(1), await costOf(10)];

    expect(once).toBeGreaterThan(10);
    expect(ten).toBeGreaterThan(once * 9);
  });

  it("is answered beside other fields, in the operation's order", async () => {
    const query = `query ($all: Boolean!, $name: String! = "Query") {
      first: __typename
      __type(name: $name) { kind __typename }
      ...Rest
      ... @include(if: $all) { __schema { queryType { name } } }
      unknown: __type(name: "Nothing") { name }
      models(first: 1) { __typename }
    } fragment Rest on Query { me { __typename } other: __type(name: "UsageFilter") { inputFields(includeDeprecated: $all) { name } } }`;

    const answer = await ask(app, { query, variables: { all: true } });

    expect(answer.errors).toBeUndefined();
    expect(Object.keys(answer.data ?? {})).toEqual(["first", "__type", "me", "other", "__schema", "unknown", "models"]);
    expect(answer.data).toMatchObject({
      first: "Query",
      __type: { kind: "OBJECT", __typename: "__Type" },
      me: { __typename: "Account" },
      __schema: { queryType: { name: "Query" } },
      unknown: null,
      models: { __typename: "ModelConnection" },
    });
  });

  it("takes names that every object has, and merges fields that are selected twice", async () => {
    const query = `{ __schema { __proto__: queryType { constructor: name } queryType { name } ...More } } fragment More on __Schema { queryType { kind } }`;

    const answer = await ask(app, { query });

    const read = JSON.parse(JSON.stringify(answer)) as { data: { __schema: object } };
    expect(Object.entries(read.data.__schema)).toEqual([
      ["__proto__", { constructor: "Query" }],
      ["queryType", { name: "Query", kind: "OBJECT" }],
    ]);
  });

  it("leaves out fields that directives leave out", async () => {
    const query = `query ($no: Boolean!) { __schema @skip(if: $no) { queryType { name } } __type(name: "Query") { name @include(if: $no) kind @skip(if: false) } }`;

    const answers = [await ask(app, { query, variables: { no: true } }), await ask(app, { query, variables: { no: false } })];

    expect(answers.map(({ data }) => data)).toEqual([
      { __type: { name: "Query", kind: "OBJECT" } },
      { __schema: { queryType: { name: "Query" } }, __type: { kind: "OBJECT" } },
    ]);
  });

  it("comes whole where it is deferred", async () => {
    const query = "{ ... @defer { __schema { queryType { name } } } me { ... @defer { __typename } } }";

    const answer = await ask(app, { query });

    expect(answer.data).toEqual({ __schema: { queryType: { name: "Query" } }, me: { __typename: "Account" } });
  });
});

/** Those of the standard introspection query, renamed. */
function wholeFragments(): string {
  return `fragment F on __Type { kind name description fields(includeDeprecated: true) { name description args { ...A } type { ...R } isDeprecated deprecationReason } inputFields { ...A } interfaces { ...R } enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason } possibleTypes { ...R } }
    fragment A on __InputValue { name description type { ...R } defaultValue }
    fragment R on __Type { kind name ofType { kind name ofType { kind name ofType { kind name } } } }`;
}
