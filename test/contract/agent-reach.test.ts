/**
 * The reach of an agent at work (docs/spec/agents.md#run-tokens): its token is tried on every route and every root
 * field. Those outside of these lists must be refused, so that a new one is out of its reach until it is added here.
 */
import { type GraphQLField, type GraphQLObjectType, getNamedType, isCompositeType } from "graphql";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { KeyCaller } from "../../src/context.js";
import { schema } from "../../src/graphql/schema.js";
import { systemClock } from "../../src/lib/clock.js";
import { toTemplate } from "../../src/rest/route.js";
import { recordRoutes } from "../../src/rest/router.js";
import { codes, connect, subscribeWith } from "../graphql/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { runTokensOf } from "../support/secrets.js";

const ROUTES = [
  "POST /v1/chat/completions",
  "POST /v1/completions",
  "POST /v1/responses",
  "GET /v1/responses",
  "POST /v1/responses/input_tokens",
  "POST /v1/responses/compact",
  ...["GET", "DELETE"].flatMap((method) => [`${method} /v1/responses/:response`, `${method} /v1/conversations/:conversation`]),
  "POST /v1/responses/:response/cancel",
  "GET /v1/responses/:response/input_items",
  "POST /v1/conversations",
  "POST /v1/conversations/:conversation",
  ...["GET", "POST"].map((method) => `${method} /v1/conversations/:conversation/items`),
  ...["GET", "DELETE"].map((method) => `${method} /v1/conversations/:conversation/items/:item`),
  "POST /v1/messages",
  "POST /v1/messages/count_tokens",
  ...["generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents"].flatMap((operation) => [
    `POST /v1beta/models/*model\\:${operation}`,
    `POST /v1/models/*model\\:${operation}`,
  ]),
  "GET /v1beta/models",
  "GET /v1beta/models/*id",
  "GET /v1/realtime",
  "POST /v1/embeddings",
  "POST /v1/moderations",
  "POST /v1/quote",
  "POST /v1/rerank",
  "POST /v2/rerank",
  "GET /v1/models",
  "GET /v1/models/*id",
  "GET /models",
  "GET /text/models",
  "GET /image/models",
  "GET /video/models",
  "GET /audio/models",
  "GET /embeddings/models",
  "POST /text",
  "GET /text/*prompt",
  "HEAD /text/*prompt",
  "POST /v1/images/generations",
  "POST /v1/images/edits",
  "POST /v1/images/variations",
  "GET /image/*prompt",
  "GET /video/*prompt",
  "POST /v1/videos",
  "GET /v1/videos/:generation",
  "DELETE /v1/videos/:generation",
  "GET /v1/videos/:generation/content",
  "GET /generations/:generation/content",
  "POST /v1/audio/speech",
  "POST /v1/audio/transcriptions",
  "POST /v1/audio/translations",
  "GET /audio/*text",
];
/** Addresses that are in no contract of REST. */
const OTHERS = [
  "GET /dashboard",
  "GET /dashboard/keys",
  "GET /schema.graphql",
  "POST /account/nowhere",
  "GET /.well-known/oauth-authorization-server",
];

const FIELDS = [
  ...["models", "model", "generationJob", "countTokens", "quote", "storedResponse"].map((name) => `Query.${name}`),
  ...["createChatCompletion", "createResponse", "createEmbeddings", "createModeration", "rerank"].map((name) => `Mutation.${name}`),
  ...["generateImage", "editImage", "varyImage", "createSpeech", "createTranscription", "generateMusic"].map((name) => `Mutation.${name}`),
  ...["startImage", "startVideo", "startMusic", "cancelGeneration"].map((name) => `Mutation.${name}`),
  ...["startResponse", "cancelStoredResponse", "deleteStoredResponse"].map((name) => `Mutation.${name}`),
  ...["chatCompletion", "response", "speech", "generationProgress"].map((name) => `Subscription.${name}`),
];

const BEYOND = "A run token of an agent can only generate and list models.";

let app: TestApp;
let token: string;

beforeAll(async () => {
  const rateLimits = { anonymousRequestsPer10Seconds: 1_000_000, publishableRequestsPerMinute: 60, publishableCreditsPerHour: 10n ** 9n };
  app = await createTestApp({ config: { rateLimits } });
  const caller = (await app.services.apiKeys.authenticate(app.key)) as KeyCaller;
  token = runTokensOf(app, systemClock).issue(caller, { parentRequestId: uuidv7(), maxCost: 0n });
});
afterAll(() => app.close());

interface Asked {
  readonly status: number;
  readonly isBeyond: boolean;
}

async function ask(method: string, path: string, headers: Readonly<Record<string, string>>): Promise<Asked> {
  const response = await fetch(app.baseUrl + toTemplate(path).replace(/\{\w+\}/g, "x"), { method, headers, redirect: "manual" });
  return { status: response.status, isBeyond: (await response.text()).includes(BEYOND) };
}

const bearer = () => ({ Authorization: `Bearer ${token}` });

describe("an agent at work", () => {
  const routes = recordRoutes().flatMap(({ path, methods }) => Object.keys(methods).map((method) => `${method} ${path}`));

  it("may use every route of the list, and /mcp", async () => {
    expect(ROUTES.filter((route) => !routes.includes(route))).toEqual([]);
    for (const route of [...ROUTES, "POST /mcp"]) {
      const [method = "", path = ""] = route.split(" ");
      const { status, isBeyond } = await ask(method, path, bearer());
      // The requests have no input, so most of the answers name the missing field.
      expect([route, isBeyond, status !== 403]).toEqual([route, false, true]);
    }
  });

  it("is refused by every other route, also where that reads no credentials", async () => {
    const letIn = new Set(ROUTES);
    const others = [...routes.filter((route) => !letIn.has(route)), ...OTHERS];
    expect(others.length).toBeGreaterThan(80);
    for (const route of others) {
      const [method = "", path = ""] = route.split(" ");
      const { status, isBeyond } = await ask(method, path, bearer());
      const isTold = method === "HEAD" || isBeyond || status === 404;
      expect([route, [403, 404].includes(status), isTold]).toEqual([route, true, true]);
    }
  });

  it("is recognized by its token in every place", async () => {
    const encoded = `%61${encodeURIComponent(token).slice(1)}`;
    const ways = [
      ["/healthz", { authorization: `bearer   ${token}` }],
      [`/healthz?key=${token}`, {}],
      [`/healthz?x=1&%6bey=${encoded}`, {}],
      ["/sign-up", { ...bearer(), accept: "text/html" }],
    ] as const;

    for (const [path, headers] of ways) expect([path, await ask("GET", path, headers)]).toEqual([path, { status: 403, isBeyond: true }]);
  });

  it("gets no explorer of the schema", async () => {
    const response = await fetch(`${app.baseUrl}/graphql`, { headers: { ...bearer(), accept: "text/html" } });

    expect([response.ok, (await response.text()).includes("<html")]).toEqual([false, false]);
  });
});

/** A valid document that asks for the field and nothing of it, with a variable for each argument that it must have. */
function documentOf(kind: string, { name, args, type }: GraphQLField<unknown, unknown>): string {
  const variables = args.map((argument) => `$${argument.name}: ${argument.type}`);
  const passed = args.map((argument) => `${argument.name}: $${argument.name}`);
  const inParentheses = (list: readonly string[]) => (list.length === 0 ? "" : `(${list.join(", ")})`);
  const selection = isCompositeType(getNamedType(type)) ? " { __typename }" : "";
  return `${kind}${inParentheses(variables)} { ${name}${inParentheses(passed)}${selection} }`;
}

async function codesOf(query: string, variables: object = {}): Promise<string[]> {
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { ...bearer(), "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ query, variables }),
  });
  const text = await response.text();
  const [, data] = /^data: (.+)$/m.exec(text) ?? [null, text];
  const { errors = [] } = JSON.parse(data ?? "{}") as { errors?: { message: string; extensions: { code: string } }[] };
  return errors.map(({ message, extensions: { code } }) => (message === BEYOND ? `beyond: ${code}` : code));
}

describe("an agent at work, on GraphQL", () => {
  const roots = [
    ["query", schema.getQueryType()],
    ["mutation", schema.getMutationType()],
    ["subscription", schema.getSubscriptionType()],
  ] as [string, GraphQLObjectType][];
  const fields = roots.flatMap(([kind, root]) =>
    Object.values(root.getFields()).map((field) => ({ kind, name: `${root.name}.${field.name}`, field })),
  );

  it("may select the fields of the list, and is refused every other root field", async () => {
    const letIn = new Set(FIELDS);
    expect(FIELDS.filter((name) => !fields.some((field) => field.name === name))).toEqual([]);
    expect(fields.length).toBeGreaterThan(80);
    for (const { kind, name, field } of fields) {
      const found = await codesOf(documentOf(kind, field));
      if (letIn.has(name)) expect([name, found.filter((code) => code.startsWith("beyond"))]).toEqual([name, []]);
      else expect([name, found]).toEqual([name, ["beyond: FORBIDDEN"]]);
    }
  });

  it.each([
    ["under another name", "{ models: me { id } }"],
    ["beside one that is allowed", "{ models(first: 1) { nodes { id } } me { id } }"],
    ["in a fragment", "query { ...a } fragment a on Query { ...b } fragment b on Query { me { id } }"],
    ["in a fragment without a name", "{ ... on Query { ... { me { id } } } }"],
    ["behind a directive", "query ($no: Boolean = false) { models(first: 1) { nodes { id } } me @include(if: $no) { id } }"],
    ["by its global id", '{ node(id: "x") { id } }'],
    ["in the operation that is named", "query a { models(first: 1) { nodes { id } } me { id } }"],
  ])("is refused such a field %s", async (_how, query) => {
    expect(await codesOf(query)).toEqual(["beyond: FORBIDDEN"]);
  });

  it.each([
    ["a query", "{ me { id } }"],
    ["a mutation", 'mutation { signIn(input: { email: "a@example.com", password: "wrong" }) { accountId } }'],
    ["a subscription", "subscription { balanceChanged { __typename } }"],
  ])("is refused %s over a WebSocket, too", async (_kind, query) => {
    const client = connect({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: token });
    const answer = await subscribeWith(client, { query }).next();
    await client.dispose();

    expect(codes(answer ?? {})).toEqual(["FORBIDDEN"]);
    expect(answer?.errors?.[0]?.message).toBe(BEYOND);
  });

  it("can read no more of the schema than the names of its fields", async () => {
    expect(await codesOf("{ __typename }")).toEqual([]);
    for (const field of ["__schema { queryType { name } }", '__type(name: "Account") { name }']) {
      expect([field, new Set(await codesOf(`{ ${field} }`))]).toEqual([field, new Set(["BAD_REQUEST"])]);
    }
  });
});
