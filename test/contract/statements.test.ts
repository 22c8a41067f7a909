/**
 * The number of SQL statements for clients' operations: it grows with the selection, never with the rows that are
 * found. Every list here holds twenty rows, so that a read for each of them would show.
 */
import {
  buildSchema,
  type GraphQLNamedType,
  type GraphQLObjectType,
  getNamedType,
  isInterfaceType,
  isLeafType,
  isObjectType,
} from "graphql";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, expect, it } from "vitest";
import { statementsOf } from "../../scripts/house/account-reads.js";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { printSdl } from "../../src/graphql/schema.js";
import { executeText, ok } from "../graphql/client.js";
import { createClient } from "../rest/client.js";
import { createStranger, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { directoryOf } from "../support/community-models.js";
import { signedIn, signUp } from "../support/sign-in.js";

/** Enough that no statement of the process itself is in all of them. */
const ROUNDS_MAX = 30;
const THINGS = 20;
const now = Date.now();

let app: TestApp;
let key: string;
const ids = {
  keys: [] as string[],
  usage: [] as string[],
  jobs: [] as string[],
  endpoints: [] as string[],
  models: [] as string[],
  files: [] as string[],
};

beforeAll(async () => {
  app = await createTestApp();
  const stranger = await createStranger(app);
  key = stranger.key;
  const { prisma } = app.database;
  const { accountId } = await prisma.apiKey.findUniqueOrThrow({ where: { id: stranger.keyId } });
  const newIds = () => Array.from({ length: THINGS }, () => uuidv7());
  ids.keys = [stranger.keyId, ...newIds().slice(1)];
  const bytes = (id: string) => new Uint8Array(Buffer.from(id.replaceAll("-", ""), "hex"));
  await prisma.apiKey.createMany({
    data: ids.keys.slice(1).map((id, index) => ({
      id,
      accountId,
      hash: bytes(id),
      type: index % 2 === 0 ? ("secret" as const) : ("publishable" as const),
      name: `key ${index}`,
      start: "sk_2345678",
      appKeyId: ids.keys[2] ?? null,
      // Made by the first key, so that its value is visible to that key.
      parentId: stranger.keyId,
      ancestorIds: [stranger.keyId],
    })),
  });
  ids.usage = (await Promise.all(ids.keys.map((id) => createUsage(app, id, 5, new Date(now - 60_000))))).flat();
  ids.jobs = ids.usage.slice(0, THINGS);
  await prisma.generationJob.createMany({
    data: ids.jobs.map((id, index) => ({
      id,
      accountId,
      apiKeyId: ids.keys[index] ?? null,
      modality: "video" as const,
      model: "acme/video",
      status: "succeeded" as const,
      progress: 100,
      request: {},
      resultKey: id,
      resultContentType: "video/mp4",
      receipt: {},
      processId: id,
      finishedAt: new Date(now),
      expiresAt: new Date(now + 3_600_000),
    })),
  });
  ids.endpoints = newIds();
  await prisma.webhookEndpoint.createMany({
    data: ids.endpoints.map((id) => ({ id, accountId, url: "https://example.com/", secret: bytes(id), events: [], isEnabled: false })),
  });
  await prisma.webhookDelivery.createMany({
    data: ids.endpoints.flatMap((endpointId) =>
      Array.from({ length: 5 }, () => uuidv7()).map((id) => ({
        ...{ id, endpointId, event: "webhook.test", eventKey: id, payload: { type: "webhook.test" }, status: "failed" as const },
        nextAttemptAt: new Date(now),
      })),
    ),
  });
  ids.models = newIds();
  await prisma.communityModel.createMany({
    data: ids.models.map((id, index) => ({
      ...{ id, accountId, name: `model-${index}`, title: `Model ${index}`, inputModalities: ["text"], outputModalities: ["text"] },
      ...(index % 2 === 0 ? { type: "proxy" as const, url: "https://example.com/" } : { type: "prompt_agent" as const }),
    })),
  });
  await prisma.agent.createMany({ data: ids.models.filter((_, index) => index % 2 === 1).map((id) => ({ id, baseModel: "acme/chat" })) });
  const change = (modelId: string) =>
    app.infrastructure.events.publish("community-model-changed", { accountId, modelId, change: "created" });
  ids.models.forEach(change);
  await directoryOf(app).upToDate();
  ids.files = newIds();
  await prisma.mediaObject.createMany({
    data: ids.files.map((id) => ({ id, accountId, contentType: "text/plain", sizeBytes: 1, tags: ["mill"], status: "complete" as const })),
  });
  await prisma.mediaTag.createMany({ data: ids.files.map((mediaId) => ({ tag: "mill", mediaId, createdAt: new Date(now) })) });
});

afterAll(() => app.close());

/**
 * The process also sends statements of its own, beside any round on a busy machine: only statements of every round are the operation's.
 */
async function statementsFor(query: string, expected: number): Promise<string[]> {
  let common: string[] | null = null;
  for (let round = 0; round < ROUNDS_MAX && common?.length !== expected; round += 1) {
    const sent = await statementsOf(async () => ok(await executeText({ ...app, key }, { query })));
    common = common === null ? sent : inBoth(common, sent);
  }
  return common ?? [];
}

function inBoth(some: readonly string[], others: readonly string[]): string[] {
  const left = [...others];
  return some.filter((statement) => {
    const at = left.indexOf(statement);
    if (at === -1) return false;
    left.splice(at, 1);
    return true;
  });
}

const idList = (type: string, of: readonly string[]) => of.map((id) => `"${toGlobalId(type, id)}"`).join(" ");
const FILTER = `filter: { from: "${new Date(now - 86_400_000).toISOString()}", modelIds: ["acme/chat"], statuses: [OK] }`;
const SUMMED = "requests cost inputTokens outputTokens errorRate responseTimeMs { p50 p95 p99 }";

const OPERATIONS: readonly (readonly [what: string, statements: number, query: () => string])[] = [
  ["who I am", 3, () => "{ me { id handle name email balance { available } lowBalance { threshold } } }"],
  ["my key", 3, () => "{ me { currentApiKey { id name permissions creditBudget } } }"],
  ["my keys", 6, () => "{ me { apiKeys(first: 100) { totalCount nodes { id name permissions creditBudget isValid app { name } } } } }"],
  ["what each key did last", 4, () => "{ me { apiKeys { nodes { usage(first: 3) { nodes { model { title } } } } } } }"],
  ["what each key did last, counted", 5, () => "{ me { apiKeys { nodes { usage(first: 3) { totalCount nodes { id } } } } } }"],
  [
    "what each key did first, and last",
    6,
    () => "{ me { apiKeys(first: 10) { nodes { new: usage(first: 1) { nodes { id } } old: usage(last: 1) { nodes { id } } } } } }",
  ],
  ["what each key has cost", 3, () => "{ me { apiKeys(first: 5) { nodes { name usageSummary(first: 1) { requests cost } } } } }"],
  [
    "what each key has cost by day",
    3,
    () => "{ me { apiKeys(first: 5) { nodes { name usageSummary(first: 1, groupBy: [DAY]) { requests cost } } } } }",
  ],
  ["what each app has brought", 4, () => "{ me { apiKeys { nodes { appUsage { totalRequests totalCost } } } } }"],
  ["my usage", 3, () => "{ me { usage(first: 20) { nodes { id cost model { title } modelUsed { title } apiKey { name } } } } }"],
  ["my usage, filtered and counted", 3, () => `{ me { usage(first: 20, ${FILTER}) { totalCount nodes { id cost } } } }`],
  ["my usage, searched", 4, () => `{ me { usage(first: 20, filter: { search: "key 1" }) { nodes { id cost } } } }`],
  ["my usage, the dearest first", 3, () => "{ me { usage(first: 20, orderBy: { field: COST, direction: DESC }) { nodes { id cost } } } }"],
  ["my usage with its jobs", 3, () => "{ me { usage(first: 20) { nodes { id job { status progress } } } } }"],
  ["a summary", 2, () => `{ me { usageSummary(${FILTER}, groupBy: [DAY, MODEL]) { from ${SUMMED} model { title } } } }`],
  ["a summary by key", 3, () => `{ me { usageSummary(groupBy: [KEY], first: 20) { ${SUMMED} apiKey { name } } } }`],
  ["usage by the day", 2, () => "{ me { usageDaily { days { date cost model { title } } } } }"],
  ["my jobs", 4, () => "{ me { jobs(first: 20) { nodes { id status model { title } apiKey { name } usageRecord { cost } } } } }"],
  ["a job", 2, () => `{ generationJob(id: "${ids.jobs[0]}") { id status usageRecord { cost } } }`],
  [
    "my webhooks with their log",
    5,
    () => "{ me { webhookEndpoints { nodes { url deliveries(first: 3) { nodes { event status endpoint { url } } } } } } }",
  ],
  ["my webhooks, counted", 6, () => "{ me { webhookEndpoints { totalCount nodes { url deliveries(first: 3) { totalCount } } } } }"],
  [
    "my agents",
    6,
    () =>
      "{ me { agents { nodes { id title health { status } model { id } usage { requests cost } ... on PromptAgent { baseModel { title } } } } } }",
  ],
  [
    "my models",
    5,
    () => "{ me { communityModels { nodes { id title pending { effectiveAt } health { status } provider { name } usage { cost } } } } }",
  ],
  [
    "the models",
    0,
    () => "{ models(first: 20) { totalCount nodes { id title pricing { inputTextTokens } health { status } fallbacks { id } } } }",
  ],
  ["the models, and whose they are", 2, () => "{ models(first: 40) { nodes { id owner { handle } communityModel { title } } } }"],
  ["a key by its id", 1, () => `{ node(id: "${toGlobalId("ApiKey", ids.keys[0] as string)}") { id ... on ApiKey { name } } }`],
  [
    "a hundred things by their ids",
    4,
    () => `{ nodes(ids: [${idList("ApiKey", ids.keys)} ${idList("UsageRecord", ids.usage.slice(0, 20))} ${idList("WebhookEndpoint", ids.endpoints)}
      ${idList("GenerationJob", ids.jobs)} ${idList("Model", Array(20).fill("acme/chat"))}])
      { id ... on ApiKey { name } ... on UsageRecord { cost } ... on WebhookEndpoint { url } ... on GenerationJob { status } ... on Model { title } } }`,
  ],
  ["my files", 2, () => "{ me { media(first: 20) { nodes { id size tags } } } }"],
  ["my files, counted and sorted", 3, () => "{ me { media(first: 20, orderBy: { field: SIZE }) { totalCount nodes { id size } } } }"],
  ["everybody's files", 2, () => `{ publicMedia(tag: "mill", first: 20) { nodes { id size tags } } }`],
  ["what my files take", 2, () => "{ me { mediaQuota { usedBytes } } }"],
  ["my integrations", 2, () => "{ me { integrations { id name } } }"],
];

it.each(OPERATIONS)("%s: %i statements", async (_what, expected, query) => {
  const statements = await statementsFor(query(), expected);

  expect(statements.length, statements.map((text) => text.trim().slice(0, 100)).join("\n")).toBe(expected);
});

/** Columns of secrets by their names in the database, and the models of this client that have them. */
const SECRET_COLUMN =
  /\b(?:hash|token|secret|previous_secret|bearer_token|device_code_hash|password|access_token|refresh_token|id_token)\b/;
const BY_SECRET = /\b(?:hash|token)" = \$/;
const SECRET_READS: readonly (readonly [table: string, read: () => Promise<unknown>])[] = [
  ["api_key", () => app.database.prisma.apiKey.findFirst()],
  ["session", () => app.database.prisma.session.findFirst()],
  ["sign_in_method", () => app.database.prisma.signInMethod.findFirst()],
  ["webhook_endpoint", () => app.database.prisma.webhookEndpoint.findFirst()],
  ["community_model", () => app.database.prisma.communityModel.findFirst()],
  ["authorization_code", () => app.database.prisma.authorizationCode.findFirst()],
  ["device_authorization", () => app.database.prisma.deviceAuthorization.findFirst()],
];

/** The statements that read a secret, except look-ups by a secret. */
async function secretReadsOf(work: () => Promise<unknown>): Promise<string[]> {
  return (await statementsOf(work)).filter((text) => SECRET_COLUMN.test(text) && !BY_SECRET.test(text));
}

const schema = buildSchema(printSdl());
const accountFields = Object.values((schema.getType("Account") as GraphQLObjectType).getFields());
const LISTS = accountFields.flatMap(({ name, type, deprecationReason }) => {
  const connection = getNamedType(type);
  const node = isObjectType(connection) && connection.name.endsWith("Connection") ? connection.getFields().nodes?.type : undefined;
  return node && !deprecationReason
    ? [[name, `{ me { ${name}(first: 5) { totalCount nodes ${plainFieldsOf(getNamedType(node))} } } }`]]
    : [];
}) as [name: string, query: string][];

/** Every field of a type that is a value and asks for nothing; of an interface, those of each type that it can be. */
function plainFieldsOf(type: GraphQLNamedType): string {
  const objects = isObjectType(type) ? [type] : isInterfaceType(type) ? schema.getPossibleTypes(type) : [];
  const fragments = objects.map((object) => {
    const plain = Object.values(object.getFields()).filter((field) => field.args.length === 0 && isLeafType(getNamedType(field.type)));
    return `... on ${object.name} { ${plain.map(({ name }) => `${object.name}_${name}: ${name}`).join(" ")} }`;
  });
  return `{ ${fragments.join(" ")} }`;
}

it("recognizes a read of a secret", async () => {
  for (const [table, read] of SECRET_READS) expect(await secretReadsOf(read), table).toHaveLength(1);
});

/** Keys and models are also read beside the requests: a read in every round belongs to the list. */
async function expectNoSecretReads(list: () => Promise<unknown>): Promise<void> {
  const rounds: string[][] = [];
  while (rounds.length < ROUNDS_MAX && rounds.at(-1)?.length !== 0) rounds.push(await secretReadsOf(list));
  expect(rounds.at(-1)).toEqual([]);
}

it.each(LISTS)("me.%s reads no secret, for any selection of its rows", async (name, query) => {
  const target = name === "sessions" ? { ...app, key: null, headers: signedIn(await signUp(app)) } : { ...app, key };

  await expectNoSecretReads(async () => expect((await executeText(target, { query })).errors).toBeUndefined());
});

it.each(["/account/keys", "/account/webhooks", "/account/my-models", "/account/agents", "/media/media"])(
  "GET %s reads no secret",
  async (path) => {
    await expectNoSecretReads(async () => expect((await createClient(app.baseUrl, key).get(path)).status).toBe(200));
  },
);
