/**
 * The worst operations that the limits let through, and the worst that they refuse, hold the event loop for no longer than it takes to parse and
 * write the largest body once (some 50 ms; of one text as long as a body may be, 150): over HTTP and on a WebSocket, with and without a key.
 */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { getIntrospectionQuery } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseDocument } from "../../src/graphql/documents/parse.js";
import { GRAPHQL_DOCUMENT_CHARS_MAX, GRAPHQL_MESSAGE_BYTES_MAX } from "../../src/graphql/limits.js";
import {
  GRAPHQL_ANONYMOUS_BODY_BYTES_MAX,
  GRAPHQL_BODY_BYTES_MAX,
  JSON_KEYS_MAX,
  JSON_TEXTS_MAX,
  JSON_VALUES_MAX,
} from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { compile } from "../support/compile.js";
import { type DistantClient, startDistantClient } from "../support/distant-client.js";
import { SERIAL } from "../support/distant-orders.js";
import { bestHold, longestHoldMs, showHold } from "../support/loop-holds.js";

let app: TestApp;
let client: DistantClient;
let upstream: Worker;
let folder: string;
beforeAll(async () => {
  const compiled = await compile(fileURLToPath(new URL("../support/programs/quiet-upstream.ts", import.meta.url)));
  ({ folder } = compiled);
  upstream = new Worker(compiled.program);
  const [port] = (await once(upstream, "message")) as [number];
  const free = { promptTextPrice: "0", completionTextPrice: "0" };
  const far = (id: string, modality: string, prices: object) => ({ id, modality, upstream: "far", upstreamModel: "m", title: id, prices });
  app = await createTestApp({
    config: { rateLimits: { anonymousRequestsPer10Seconds: 1_000_000, publishableRequestsPerMinute: 60, publishableCreditsPerHour: 1n } },
    upstreams: [{ id: "far", wireFormat: "openai", baseUrl: `http://127.0.0.1:${port}/v1` }],
    models: [far("far/chat", "text", free), far("far/embedding", "embedding", { promptTextPrice: "0" })],
  });
  client = await startDistantClient();
});
afterAll(async () => {
  await client.close();
  await app.close();
  await upstream.terminate();
  await rm(folder, { recursive: true, force: true });
});

interface Operation {
  readonly query: string;
  readonly operationName?: string;
  readonly variables?: object;
}

const many = (count: number, text: (index: number) => string) => Array.from({ length: count }, (_, index) => text(index)).join(" ");

/** The document with as many pieces as its tokens and characters allow. */
function filled(document: (pieces: string) => string, piece: (index: number) => string): string {
  const isTaken = (count: number) => {
    try {
      return parseDocument(document(many(count, piece))).kind === "Document";
    } catch {
      return false;
    }
  };
  let least = 1;
  let beyond = 2_001;
  while (beyond - least > 1) {
    const middle = (least + beyond) >> 1;
    if (isTaken(middle)) least = middle;
    else beyond = middle;
  }
  return document(many(least, piece));
}

const thrice = (text: string) => many(3, () => text);
const nested = ["fallbacks", "fallbacks", "fallbacks", "nodes", "models"].reduce(
  (inside, field) => thrice(`${field} { ${inside} }`),
  "id id",
);
const TEXT_CHARS = GRAPHQL_DOCUMENT_CHARS_MAX - 1_000;

const DOCUMENTS: Readonly<Record<string, () => Operation>> = {
  "fields that are asked for three times at each level": () => ({ query: `{ ${nested} }` }),
  "one field as often as it goes": () => ({
    query: filled(
      (pieces) => `{ me { ${pieces} } }`,
      () => "id",
    ),
  }),
  "fields that do not exist": () => ({
    query: filled(
      (pieces) => `{ me { ${pieces} } }`,
      (index) => `communityModelsOfThisAccount${index}`,
    ),
  }),
  "types that do not exist": () => ({
    query: filled(
      (pieces) => `{ ${pieces} }`,
      (index) => `... on CreateCommunityModelPayloads${index} { id }`,
    ),
  }),
  "arguments that do not exist": () => ({
    query: filled(
      (pieces) => `{ models(${pieces}) { totalCount } }`,
      (index) => `firsts${index}: 1`,
    ),
  }),
  "one argument as often as it goes": () => ({
    query: filled(
      (pieces) => `{ models(${pieces}) { totalCount } }`,
      () => "first: 1",
    ),
  }),
  "variables that are not used": () => ({
    query: filled(
      (pieces) => `query (${pieces}) { __typename }`,
      (index) => `$v${index}: Int`,
    ),
  }),
  "variables that are not defined": () => ({
    query: filled(
      (pieces) => `{ nodes(ids: [${pieces}]) { id } }`,
      (index) => `$v${index}`,
    ),
  }),
  "operations that share a fragment of many variables": () => ({
    query: filled(
      (pieces) => `${pieces} fragment f on Query { nodes(ids: [${many(450, () => "$v")}]) { id } }`,
      (index) => `query q${index}($v: ID!) { ...f }`,
    ),
    operationName: "q0",
    variables: { v: "a" },
  }),
  "subscriptions to two fields each": () => ({
    query: filled(
      (pieces) => pieces,
      (index) => `subscription q${index} { usageRecorded { id } balanceChanged { account { id } } }`,
    ),
    operationName: "q0",
  }),
  "fragments that are not used": () => ({
    query: filled(
      (pieces) => `{ __typename } ${pieces}`,
      (index) => `fragment f${index} on Query { __typename }`,
    ),
  }),
  "fragments in a circle": () => ({
    query: filled(
      (pieces) => `{ ...f0 } ${pieces}`,
      (index) => `fragment f${index} on Query { ...f0 }`,
    ),
  }),
  "5,000 fields of fragments": () => ({
    query: `{ ${many(5, () => "...F")} me { id } } fragment F on Query { me { ${many(990, () => "id")} } }`,
  }),
  "fields of an interface beside those of its types": () => ({
    query: filled(
      (pieces) => `{ node(id: "x") { ${pieces} } }`,
      (index) => `... on ${["Account", "ApiKey", "Model", "Node"][index % 4]} { id __typename }`,
    ),
  }),
  "a list of as many values as it goes": () => ({
    query: filled(
      (pieces) => `{ nodes(ids: [${pieces}]) { id } }`,
      () => '"a"',
    ),
  }),
  "a list of as many wrong values": () => ({
    query: filled(
      (pieces) => `{ nodes(ids: [${pieces}]) { id } }`,
      () => "true",
    ),
  }),
  "input objects without their fields": () => ({
    query: filled(
      (pieces) => `mutation { createChatCompletion(input: { messages: [${pieces}] }) { raw } }`,
      () => "{}",
    ),
  }),
  "lists within lists": () => ({
    query: `mutation { createChatCompletion(input: { messages: [], extra: ${"[".repeat(980)}${"]".repeat(980)} }) { raw } }`,
  }),
  "as many comments as there may be": () => ({ query: `${"#\n".repeat(1_900)}{ __typename }` }),
  "lines, and an error in each of many": () => ({
    query: filled(
      (pieces) => `{ me { ${pieces} } ${"\n".repeat(TEXT_CHARS - 20_000)} }`,
      (index) => `zz${index}`,
    ),
  }),
  "a text of escapes": () => ({ query: `{ models(after: "${"\\n".repeat(TEXT_CHARS / 2)}") { totalCount } }` }),
  "a text of lines": () => ({ query: `{ models(after: """${"\n".repeat(TEXT_CHARS)}""") { totalCount } }` }),
  "a long text in place of a name": () => ({
    query: `mutation { createChatCompletion(input: { messages: [{ role: "${"x".repeat(TEXT_CHARS)}" }] }) { raw } }`,
  }),
  "aliases that each fail": () => ({
    query: filled(
      (pieces) => `{ ${pieces} }`,
      (index) => `a${index}: models(first: 0) { totalCount }`,
    ),
  }),
  "ids that find nothing": () => ({
    query: filled(
      (pieces) => `{ ${pieces} }`,
      (index) => `a${index}: nodes(ids: [${many(90, () => '"QWNjb3VudDow"')}]) { id }`,
    ),
  }),
  "pages at the most that they may cost": () => ({
    query: `{ ${many(6, (index) => `a${index}: models(first: 50) { nodes { id restId title description publisher capabilities inputModalities outputModalities contextLength aliases voices } }`)} }`,
  }),
  "the whole schema": () => ({
    query: getIntrospectionQuery({
      ...{ descriptions: true, specifiedByUrl: true, directiveIsRepeatable: true, schemaDescription: true },
      ...{ inputValueDeprecation: true, oneOf: true },
    }),
  }),
  "texts of the schema by many aliases": () => ({
    query: `{ __schema { types { fields { ${many(190, (index) => `a${index}: description`)} } } } }`,
  }),
  "empty lists of the schema by many aliases": () => ({
    query: `{ __schema { types { ${many(60, (index) => `a${index}: possibleTypes { name }`)} fields { ${many(100, (index) => `b${index}: args { name }`)} } } } }`,
  }),
};

/** Room for the rest of an operation. */
const REST = 100;
const list = (count: number, item: unknown) => Array.from({ length: count }, () => item);
const keys = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
const CHAT = "mutation ($input: ChatCompletionInput!) { createChatCompletion(input: $input) { raw } }";
const chat = (extra: unknown): Operation => ({
  query: CHAT,
  variables: { input: { model: "far/chat", messages: [{ role: "USER", content: "Hi" }], extra } },
});

const VARIABLES: Readonly<Record<string, () => Operation>> = {
  "unknown fields, as many as there may be keys": () => ({
    query: "mutation ($input: SignInInput!) { signIn(input: $input) { __typename } }",
    variables: { input: keys(JSON_KEYS_MAX - REST) },
  }),
  "JSON of as many keys as there may be": () => chat(keys(JSON_KEYS_MAX - REST)),
  "JSON of as many values as there may be": () => chat({ k: list(JSON_VALUES_MAX - REST, 1) }),
  "as many messages as there may be": () => ({
    query: CHAT,
    variables: { input: { model: "far/chat", messages: list(5_000, { role: "USER", content: "Hi" }) } },
  }),
  "texts, as many as there may be": () => ({
    query: "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }",
    variables: { ids: list(JSON_TEXTS_MAX - REST, "a") },
  }),
  "a variable of many values, used as often as its cost allows": () => ({
    query: `query ($of: [String!]) { ${many(45, (index) => `m${index}: models(first: 1, filter: { publishers: $of }) { totalCount }`)} }`,
    variables: { of: list(1_000, "a") },
  }),
  "wrong values, as many as there may be": () => ({
    query: "query ($ids: [ID!]!) { nodes(ids: $ids) { id } }",
    variables: { ids: list(JSON_VALUES_MAX - REST, true) },
  }),
  "tokens, as many as there may be values": () => ({
    query: "mutation ($input: CreateEmbeddingsInput!) { createEmbeddings(input: $input) { __typename } }",
    variables: { input: { model: "far/embedding", input: [{ tokens: list(JSON_VALUES_MAX - REST, 12_345) }] } },
  }),
};

const LONG: Readonly<Record<string, (chars: number) => Operation>> = {
  "a long text": (chars) => ({
    query: "query ($after: String) { models(after: $after) { totalCount } }",
    variables: { after: "x".repeat(chars) },
  }),
  "a long prompt": (chars) => ({
    query: CHAT,
    variables: { input: { model: "far/chat", messages: [{ role: "USER", content: "x".repeat(chars) }] } },
  }),
  "a long text in place of a number": (chars) => ({
    query: "query ($first: Int) { models(first: $first) { totalCount } }",
    variables: { first: "1".repeat(chars) },
  }),
  "a long text in place of a name": (chars) => ({
    query: "query ($of: [Modality!]) { models(filter: { modalities: $of }) { totalCount } }",
    variables: { of: "x".repeat(chars) },
  }),
  "a long name of an unknown field": (chars) => ({
    query: "mutation ($input: SignInInput!) { signIn(input: $input) { __typename } }",
    variables: { input: { ["x".repeat(chars)]: 1 } },
  }),
};

const WAYS = ["HTTP", "a WebSocket"] as const;
type Way = (typeof WAYS)[number];

/** Whether the operation is taken or refused does not matter here, as long as nothing fails. */
async function expectShortHolds(way: Way, key: string | null, operation: Operation): Promise<void> {
  const mostMs = longestHoldMs();
  const url = way === "HTTP" ? `${app.baseUrl}/graphql` : app.wsUrl;
  // Documents that were validated are remembered by their text.
  await client.load(
    { url, headers: key === null ? {} : { authorization: `Bearer ${key}` } },
    { ...operation, query: `#${SERIAL}\n${operation.query}` },
  );
  const { longestMs, result } = await bestHold(() => client.send(), mostMs);

  const answer = `${result.status} ${result.text.slice(0, 300)}`;
  showHold(longestMs, mostMs, `${way} ${expect.getState().currentTestName} ${answer}`);
  expect(answer).toMatch(/^[24]\d\d /);
  expect(answer).not.toContain("INTERNAL_ERROR");
  expect(longestMs, answer).toBeLessThan(mostMs);
}

describe.each(WAYS)("over %s the loop is not held by", (way) => {
  it.each(Object.entries(DOCUMENTS))("a document: %s", async (_what, toOperation) => {
    await expectShortHolds(way, app.key, toOperation());
  });

  it.each(Object.entries(DOCUMENTS))("a document without a key: %s", async (_what, toOperation) => {
    const operation = toOperation();
    const isTaken = JSON.stringify(operation).length < GRAPHQL_ANONYMOUS_BODY_BYTES_MAX - REST;

    if (isTaken) await expectShortHolds(way, null, operation);
    else expect(operation.query.length).toBeGreaterThan(GRAPHQL_ANONYMOUS_BODY_BYTES_MAX / 3);
  });

  it.each(Object.entries(VARIABLES))("variables: %s", async (_what, toOperation) => {
    await expectShortHolds(way, app.key, toOperation());
  });

  it("variables of many unknown fields without a key", async () => {
    const query = "mutation ($input: SignInInput!) { signIn(input: $input) { __typename } }";

    await expectShortHolds(way, null, { query, variables: { input: keys(9_000) } });
  });

  it.each(Object.entries(LONG))("as many bytes as there may be: %s", async (_what, toOperation) => {
    const bytesMax = way === "HTTP" ? GRAPHQL_BODY_BYTES_MAX : GRAPHQL_MESSAGE_BYTES_MAX;

    await expectShortHolds(way, app.key, toOperation(bytesMax - 1_000));
  });
});
