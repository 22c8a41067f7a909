/** Where the graph leads from each thing that has an id of its own, and whom it leads there. */
import { getNamedType, isCompositeType, isInterfaceType, isObjectType } from "graphql";
import { v7 as uuidv7 } from "uuid";
import { responseIdOf } from "../../../src/formats/openai-responses/answer.js";
import { toGlobalId } from "../../../src/graphql/global-ids.js";
import { schema } from "../../../src/graphql/schema.js";
import { toStoredTerms } from "../../../src/services/api-keys/grant-terms.js";
import { createUserCode, formatUserCode } from "../../../src/services/authorizations/device-codes.js";
import { createFailures } from "../../rest/seed.js";
import type { TestApp } from "../../support/app.js";
import { registerModel } from "../../support/community-models.js";
import { secretBoxOf } from "../../support/secrets.js";
import { giveCredits } from "../../support/sign-in.js";
import { databaseOf, type MatrixCaller } from "./matrix-callers.js";
import type { Needs } from "./matrix-operations.js";

/**
 * shown: to every caller that sees its start. none: it leads nowhere from this one. started: like jobs. Else the
 * further permission that it needs.
 */
type EdgeNeeds = "shown" | "none" | "started" | Needs;

/**
 * private: shown to every caller of the account, an agent at work included, and to no other. started: a job, which
 * every secret key of the account may see, and a publishable one only when it has started it. open: shown to every
 * account. kept: a response that a session stored, which sessions and secret keys with the permission `usage` may read,
 * but none that an app was granted.
 */
type ThingNeeds = "private" | "started" | "open" | "kept" | Needs;

interface Terms {
  readonly needs: ThingNeeds;
  readonly edges: Readonly<Record<string, EdgeNeeds>>;
}

export interface Thing extends Terms {
  readonly name: string;
  readonly type: string;
  readonly id: string;
}

const MODEL_EDGES = { model: "shown", health: "shown", provider: "shown", pending: "none", usage: "manager" } as const;

/** By type what a thing of it takes, and each of its edges. Where one thing differs, it says so itself. */
const TYPES = {
  ApiKey: { needs: "manager", edges: { app: "none", appUsage: "none", usage: "usage", usageSummary: "usage" } },
  UsageRecord: {
    needs: "usage",
    edges: { model: "shown", modelUsed: "shown", apiKey: "manager", usage: "shown", attempts: "shown", job: "started" },
  },
  CreditGrant: { needs: "balance", edges: {} },
  LedgerLine: { needs: "balance", edges: {} },
  LoggedRequest: { needs: "usage", edges: { model: "shown", apiKey: "manager", usageRecord: "none" } },
  ModelRoutes: { needs: "operator", edges: { routes: "shown", ignored: "shown" } },
  AuditEntry: { needs: "operator", edges: { actor: "shown", account: "shown" } },
  GenerationJob: {
    needs: "started",
    edges: { model: "shown", apiKey: "manager", result: "shown", receipt: "shown", usageRecord: "usage", error: "none" },
  },
  App: { needs: "open", edges: { owner: "shown" } },
  Session: { needs: "session", edges: {} },
  AuthorizationRequest: { needs: "session", edges: { app: "shown", client: "none", asked: "shown" } },
  DeviceAuthorization: { needs: "session", edges: { app: "shown", asked: "shown", granted: "shown" } },
  Integration: { needs: "manager", edges: {} },
  WebhookEndpoint: { needs: "manager", edges: { deliveries: "manager" } },
  WebhookDelivery: { needs: "manager", edges: { endpoint: "manager" } },
  Earning: { needs: "balance", edges: {} },
  CreditTopUp: { needs: "balance", edges: {} },
  Alert: { needs: "usage", edges: {} },
  Preset: { needs: "manager", edges: {} },
  UsageLimit: { needs: "manager", edges: { raise: "none", usage: "shown" } },
  VendorKey: { needs: "manager", edges: {} },
  StoredResponse: { needs: "kept", edges: { response: "shown" } },
  ProxyModel: { needs: "manager", edges: { ...MODEL_EDGES, advertised: "shown", fallbacks: "shown", fallbackCandidates: "manager" } },
  EndpointAgentModel: { needs: "manager", edges: MODEL_EDGES },
  PromptAgent: { needs: "manager", edges: { ...MODEL_EDGES, baseModel: "shown" } },
  CodeAgent: { needs: "manager", edges: { ...MODEL_EDGES, runs: "manager" } },
  Model: {
    needs: "private",
    edges: {
      ...{ flags: "shown", pricing: "shown", health: "shown", pendingChange: "none", fallbacks: "shown", activity: "shown" },
      ...{ communityModel: "manager", owner: "any", priceHistory: "shown" },
    },
  },
} as const satisfies Record<string, Terms>;

/**
 * Types that other tests cover: the account field by field, with all its operations; media, which lead nowhere, and
 * runs, which their keys see too, in their own tests.
 */
const ELSEWHERE = ["Account", "MediaFile", "MediaObject", "Run"];

/** The types and edges that the schema has and the table has not, and the other way round. */
export function unknownEdges(): string[] {
  const node = schema.getType("Node");
  const types = isInterfaceType(node) ? schema.getPossibleTypes(node) : [];
  const inSchema = types
    .filter(({ name }) => !ELSEWHERE.includes(name))
    .flatMap((type) => [type.name, ...edgesOf(type.name).map((edge) => `${type.name}.${edge}`)]);
  const inTable = Object.entries(TYPES).flatMap(([type, { edges }]) => [type, ...Object.keys(edges).map((edge) => `${type}.${edge}`)]);
  return [...inSchema.filter((edge) => !inTable.includes(edge)), ...inTable.filter((edge) => !inSchema.includes(edge))];
}

/** A field that leads on is one whose answer has fields. */
function edgesOf(typeName: string): string[] {
  const type = schema.getType(typeName);
  if (!isObjectType(type)) return [];
  return Object.values(type.getFields()).flatMap(({ name, type: its }) => (isCompositeType(getNamedType(its)) ? [name] : []));
}

interface Differences {
  readonly needs?: ThingNeeds;
  readonly edges?: Readonly<Record<string, EdgeNeeds>>;
}

function toThing(name: string, type: keyof typeof TYPES, id: string, { needs, edges }: Differences = {}): Thing {
  return { name, type, id, needs: needs ?? TYPES[type].needs, edges: { ...TYPES[type].edges, ...edges } };
}

/** Objects of every type, of the account's; and for each of its keys that key itself, with its usage. */
export async function createThings(
  app: TestApp,
  accountId: string,
  callers: readonly MatrixCaller[],
): Promise<(caller: MatrixCaller) => Thing[]> {
  const { prisma } = databaseOf(app);
  const { handle } = await prisma.account.findUniqueOrThrow({ where: { id: accountId } });
  const [appKey, endpoint, delivery, failed, preset, vendorKey, topUp, usageLimit, alert] = Array.from({ length: 9 }, () => uuidv7()) as [
    ...[string, string, string, string, string, string, string, string, string],
  ];
  const share = { kind: "model", payerId: uuidv7(), source: "community/other/model", day: new Date("2026-11-28") } as const;
  const { id: earning } = await prisma.earning.create({
    data: { ...share, generationId: uuidv7(), accountId, soldNanocredits: 1n, nanocredits: 1n },
    select: { id: true },
  });
  await prisma.topUp.create({
    data: { id: topUp, accountId, processor: "development", nanocredits: 1n, currency: "usd", amountCents: 1n, expiresAt: new Date() },
  });
  await prisma.alert.create({
    data: {
      ...{ id: alert, accountId, kind: "key_unused", occurrence: alert, subjectId: alert, details: {}, isSilenced: false },
      createdAt: new Date(),
    },
  });
  await prisma.preset.create({ data: { id: preset, accountId, name: preset, parameters: {} } });
  await prisma.vendorKey.create({
    data: { id: vendorKey, accountId, vendor: "none", name: vendorKey, secret: bytesOf(vendorKey), ending: "" },
  });
  await prisma.usageLimit.create({ data: { id: usageLimit, accountId, metric: "tokens", amount: 1_000n, minutes: 1 } });
  const key = { accountId, name: "of an app", start: "pk_target0", type: "publishable" as const };
  await prisma.apiKey.create({ data: { ...key, id: appKey, appKeyId: appKey, hash: bytesOf(appKey) } });
  await prisma.webhookEndpoint.create({
    data: { id: endpoint, accountId, url: "https://127.0.0.1", secret: bytesOf(endpoint), events: [] },
  });
  await prisma.webhookDelivery.create({
    data: {
      id: delivery,
      endpointId: endpoint,
      event: "webhook.test",
      eventKey: delivery,
      payload: {},
      status: "failed",
      nextAttemptAt: new Date(),
    },
  });
  const { id: session } = await prisma.session.findFirstOrThrow({ where: { accountId }, orderBy: { createdAt: "asc" } });
  const [request, userCode, integration] = await createConnections(app, accountId, session, appKey);
  const owner = { accountId, handle, key: "", keyId: "" };
  const agent = { url: null, api: null, upstreamModel: null, bearerToken: null } as const;
  const proxy = await registerModel(app, owner);
  const endpointAgent = await registerModel(app, owner, { type: "endpoint_agent", bearerToken: null });
  const promptAgent = await registerModel(app, owner, { ...agent, type: "prompt_agent", agent: { create: { baseModel: "acme/chat" } } });
  const codeAgent = await registerModel(app, owner, {
    ...agent,
    type: "code_agent",
    agent: { create: { repository: "https://example.com/" } },
  });
  const paying = new Map([appKey, ...callers.flatMap(({ apiKeyId }) => apiKeyId ?? [])].map((apiKeyId) => [apiKeyId, uuidv7()]));
  await createJobs(app, accountId, paying, failed);
  const [refused = ""] = await createFailures(app, appKey, 1, new Date(), { model: "acme/chat" });
  await giveCredits(app, accountId, 1);
  const { transactionId: grant } = await prisma.ledgerEntry.findFirstOrThrow({ where: { accountId, kind: "grant" } });
  const { id: act } = await prisma.auditEntry.findFirstOrThrow({ where: { accountId } });
  const shared = [
    toThing("an act of an operator", "AuditEntry", act),
    toThing("the routes of a model", "ModelRoutes", "acme/chat"),
    toThing("an app's key", "ApiKey", appKey, { edges: { app: "shown", appUsage: "usage" } }),
    toThing("its record", "UsageRecord", paying.get(appKey) as string),
    toThing("a grant", "CreditGrant", grant),
    toThing("its line of the ledger", "LedgerLine", grant),
    toThing("a refused request", "LoggedRequest", refused),
    toThing("its job", "GenerationJob", paying.get(appKey) as string),
    toThing("a failed job", "GenerationJob", failed, { edges: { result: "none", receipt: "none", usageRecord: "none", error: "shown" } }),
    toThing("an app", "App", appKey),
    toThing("a session", "Session", session),
    toThing("what an app asks", "AuthorizationRequest", request),
    toThing("a device", "DeviceAuthorization", userCode),
    toThing("a connection", "Integration", integration),
    toThing("a webhook", "WebhookEndpoint", endpoint),
    toThing("a share of a charge", "Earning", earning),
    toThing("a top-up", "CreditTopUp", topUp),
    toThing("an alert", "Alert", alert),
    toThing("a preset", "Preset", preset),
    toThing("a usage limit", "UsageLimit", usageLimit),
    toThing("a vendor key", "VendorKey", vendorKey),
    toThing("a stored response", "StoredResponse", await createStoredResponse(app, accountId)),
    toThing("its delivery", "WebhookDelivery", delivery),
    toThing("a model", "ProxyModel", proxy.id),
    toThing("the same in the catalog", "Model", proxy.modelId),
    toThing("an endpoint agent", "EndpointAgentModel", endpointAgent.id),
    toThing("a prompt agent", "PromptAgent", promptAgent.id),
    toThing("a code agent", "CodeAgent", codeAgent.id),
  ];
  return ({ kind, apiKeyId, isAppsKey }) => {
    if (apiKeyId === undefined) return shared;
    const id = paying.get(apiKeyId) as string;
    const ofApp = { app: isAppsKey ? "shown" : "none", appUsage: kind === "publishable" ? "usage" : "none" } as const;
    return [
      ...shared,
      toThing("the calling key", "ApiKey", apiKeyId, { needs: "any", edges: { ...ofApp, usage: "shown", usageSummary: "shown" } }),
      toThing("what it paid", "UsageRecord", id, { edges: { apiKey: "shown", job: "shown" } }),
      toThing("what it started", "GenerationJob", id, { needs: "any", edges: { apiKey: "shown" } }),
    ];
  };
}

/** What an app asks of the session, a device that the account has let fetch a key, and a connection: their ids. */
async function createConnections(
  app: TestApp,
  accountId: string,
  sessionId: string,
  appKeyId: string,
): Promise<readonly [request: string, userCode: string, integration: string]> {
  const { prisma } = databaseOf(app);
  const [request, device, integration, userCode] = [uuidv7(), uuidv7(), uuidv7(), createUserCode()];
  const expiresAt = new Date(Date.now() + 600_000);
  const terms = { ...toStoredTerms({ models: null, creditBudget: 1n, expiresInDays: 1, permissions: [], marginPercent: 0 }) };
  const asked = { redirectUrl: "https://app.example/cb", appKeyId, terms, state: null, codeChallenge: null };
  await prisma.authorizationRequest.create({ data: { id: request, accountId, sessionId, request: asked, expiresAt } });
  await prisma.deviceAuthorization.create({
    data: {
      ...{ id: device, deviceCodeHash: bytesOf(device), userCode, appKeyId, accountId, status: "approved", grant: terms },
      ...{ intervalSeconds: 5, clientAddress: "127.0.0.1", expiresAt },
    },
  });
  await prisma.developmentConnection.create({ data: { id: integration, accountId, toolkit: "notes", status: "active" } });
  return [request, formatUserCode(userCode), integration];
}

/** A job of each key that was charged, with its usage record; and a failed one without a key. */
async function createJobs(app: TestApp, accountId: string, paying: ReadonlyMap<string, string>, failed: string): Promise<void> {
  const { prisma } = databaseOf(app);
  const ended = new Date();
  const job = {
    accountId,
    modality: "video",
    model: "acme/video",
    request: {},
    finishedAt: ended,
    expiresAt: new Date(ended.getTime() + 3_600_000),
  } as const;
  await prisma.generationJob.createMany({
    data: [
      {
        ...job,
        id: failed,
        processId: failed,
        apiKeyId: [...paying.keys()][0] as string,
        status: "failed",
        errorCode: "UPSTREAM_ERROR",
        errorMessage: "It failed.",
      },
      ...[...paying].map(([apiKeyId, id]) => ({
        ...{
          ...job,
          id,
          processId: id,
          apiKeyId,
          status: "succeeded" as const,
          progress: 100,
          resultKey: id,
          resultContentType: "video/mp4",
        },
        receipt: { costNanocredits: "1", heldNanocredits: "1" },
      })),
    ],
  });
  const record = {
    accountId,
    timestamp: ended,
    modality: "video",
    model: "acme/video",
    modelUsed: "acme/video",
    meterSource: "pack",
  } as const;
  const measured = { costNanocredits: 1n, responseTimeMs: 5, status: "ok", usageSource: "provider" } as const;
  await prisma.usageRecord.createMany({ data: [...paying].map(([apiKeyId, id]) => ({ ...record, ...measured, id, apiKeyId })) });
}

/** Of a session. Returns its id in the Responses format. */
async function createStoredResponse(app: TestApp, accountId: string): Promise<string> {
  const { prisma } = databaseOf(app);
  const id = uuidv7();
  const box = secretBoxOf(app);
  const seal = (column: string, value: unknown) => box.seal({ table: "stored_response", rowId: id, column }, JSON.stringify(value));
  const now = new Date();
  await prisma.storedResponse.create({
    data: {
      ...{ id, accountId, model: "acme/chat", status: "completed", isBackground: false, hasEvents: false },
      ...{ threadBytes: 2, threadLength: 1, sizeBytes: 2, createdAt: now, finishedAt: now },
      ...{ input: seal("input", []), answer: seal("answer", { id: responseIdOf(id), status: "completed", output: [] }) },
      expiresAt: new Date(now.getTime() + 3_600_000),
    },
  });
  return responseIdOf(id);
}

function bytesOf(id: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Buffer.from(id.replaceAll("-", ""), "hex"));
}

/** One document that goes along every edge of all of the things; of models alone, by their names, where nothing is found by its global id. */
export function walkOf(things: readonly Thing[], by: "id" | "name" = "id"): string {
  const walks = things.map(({ type, id, edges }, index) => {
    const selections = Object.keys(edges).map((edge) => `${edge}_${type}: ${edge} { __typename }`);
    const start = by === "id" ? `node(id: "${toGlobalId(type, id)}")` : `model(id: "${id}")`;
    return `t${index}: ${start} { id ... on ${type} { __typename ${selections.join(" ")} } }`;
  });
  return `{ ${walks.join(" ")} }`;
}

export interface Walked {
  readonly data?: Readonly<Record<string, Readonly<Record<string, unknown>> | null>>;
  readonly errors?: readonly { readonly path?: readonly (string | number)[]; readonly extensions: { readonly code: string } }[];
}

/** shown, none, or the code of the refusal: of each thing, and of each of its edges where the thing is shown. */
export function outcomesOf(things: readonly Thing[], { data, errors = [] }: Walked): Record<string, string> {
  const codeAt = (...path: string[]) => errors.find((error) => error.path?.join() === path.join())?.extensions.code ?? "none";
  const outcomes = things.flatMap(({ name, type, edges }, index) => {
    const found = data?.[`t${index}`];
    if (!found) return [[name, codeAt(`t${index}`)]];
    const ofEdges = Object.keys(edges).map((edge) => {
      const field = `${edge}_${type}`;
      return [`${name}: ${edge}`, found[field] === null ? codeAt(`t${index}`, field) : "shown"];
    });
    return [[name, "shown"], ...ofEdges];
  });
  return Object.fromEntries(outcomes) as Record<string, string>;
}

/** `isAllowed` says who holds a permission. */
export function expectedOf(
  things: readonly Thing[],
  caller: MatrixCaller,
  isAllowed: (needs: Needs, caller: MatrixCaller) => boolean,
): Record<string, string> {
  const outcomes = things.flatMap(({ name, needs, edges }) => {
    const ofThing = outcomeOfThing(needs, caller, isAllowed);
    if (ofThing !== "shown") return [[name, ofThing]];
    return [[name, ofThing], ...Object.entries(edges).map(([edge, its]) => [`${name}: ${edge}`, outcomeOfEdge(its, caller, isAllowed)])];
  });
  return Object.fromEntries(outcomes) as Record<string, string>;
}

function outcomeOfThing(needs: ThingNeeds, caller: MatrixCaller, isAllowed: (needs: Needs, caller: MatrixCaller) => boolean): string {
  const { kind, isOwn } = caller;
  if (needs === "private") return isOwn ? "shown" : "none";
  if (kind === "nobody") return "UNAUTHORIZED";
  if (needs === "open") return "shown";
  if (needs === "kept") {
    const isReader = kind === "session" || (kind === "secret" && !caller.isAppsKey && caller.permissions.has("usage"));
    return isOwn && isReader ? "shown" : "none";
  }
  if (needs === "started") return isOwn && kind !== "publishable" ? "shown" : "none";
  if (!isAllowed(needs, caller)) return "FORBIDDEN";
  return isOwn ? "shown" : "none";
}

function outcomeOfEdge(needs: EdgeNeeds, caller: MatrixCaller, isAllowed: (needs: Needs, caller: MatrixCaller) => boolean): string {
  if (needs === "shown" || needs === "none") return needs;
  if (needs === "started") return caller.kind === "publishable" ? "none" : "shown";
  return caller.kind !== "agent" && isAllowed(needs, caller) ? "shown" : "FORBIDDEN";
}
