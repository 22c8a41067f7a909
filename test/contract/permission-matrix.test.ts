/**
 * Permissions: every account operation on both faces, tried by every kind of caller. Each key type with each
 * permission, sessions, the same of another account, and an anonymous caller (docs/spec/keys.md#permissions,
 * docs/spec/errors.md#codes).
 */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { getNamedType, getNullableType, isInputObjectType, isListType, isObjectType } from "graphql";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { schema } from "../../src/graphql/schema.js";
import { systemClock } from "../../src/lib/clock.js";
import { toTemplate } from "../../src/rest/route.js";
import { recordRoutes } from "../../src/rest/router.js";
import { EndpointSecrets } from "../../src/services/webhooks/sender.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { secretBoxOf } from "../support/secrets.js";
import { type Cast, createAppsKey, createCast, databaseOf, type MatrixCaller } from "./support/matrix-callers.js";
import { createThings, expectedOf, outcomesOf, unknownEdges, type Walked, walkOf } from "./support/matrix-edges.js";
import { ELSEWHERE, NOBODY, OPERATIONS, type Operation, type Target } from "./support/matrix-operations.js";

let app: TestApp;
let cast: Cast;

beforeAll(async () => {
  const rateLimits = {
    anonymousRequestsPer10Seconds: 1_000_000,
    publishableRequestsPerMinute: 1_000_000,
    publishableCreditsPerHour: 10n ** 9n,
  };
  app = await createTestApp({ config: { rateLimits } });
  cast = await createCast(app);
});
afterAll(() => app.close());

/** OK, or the code of the refusal. */
function expected({ needs, target, refusal }: Operation, caller: MatrixCaller): string {
  if (caller.kind === "agent") return "FORBIDDEN";
  if (needs === "everyone") return refusal ?? "OK";
  if (caller.kind === "nobody") return "UNAUTHORIZED";
  if (!isAllowed(needs, caller)) return needs === "key" ? "BAD_REQUEST" : "FORBIDDEN";
  if (refusal !== undefined) return refusal;
  return target !== undefined && !caller.isOwn ? "NOT_FOUND" : "OK";
}

function isAllowed(needs: Operation["needs"], { kind, permissions }: MatrixCaller): boolean {
  switch (needs) {
    case "everyone":
    case "any":
      return true;
    case "key":
      return kind !== "session";
    case "session":
      return kind === "session";
    case "secret":
      return kind === "session" || kind === "secret";
    case "manager":
      return kind === "session" || (kind === "secret" && permissions.has("keys"));
    case "operator":
      return false;
    default:
      return permissions.has(needs);
  }
}

/**
 * An object of the account for the operation: a new one for a permitted caller, because a revoked one is gone; the same
 * for all others.
 */
function targetsOf(operation: Operation): (caller: MatrixCaller) => Promise<string> {
  let kept: Promise<string> | undefined;
  return (caller) => {
    if (expected(operation, caller) === "OK") return createTarget(operation.target);
    kept ??= createTarget(operation.target);
    return kept;
  };
}

async function createTarget(target: Target | undefined): Promise<string> {
  if (target === undefined) return NOBODY;
  const { prisma } = databaseOf(app);
  const id = uuidv7();
  const own = { id, accountId: cast.accountId };
  const hash = new Uint8Array(Buffer.from(id.replaceAll("-", ""), "hex"));
  switch (target) {
    case "key":
      await prisma.apiKey.create({ data: { ...own, hash, type: "secret", name: "target", start: "sk_target0" } });
      break;
    case "app":
      await prisma.apiKey.create({ data: { ...own, hash, type: "publishable", name: "app", start: "pk_target0" } });
      break;
    case "model":
      await prisma.communityModel.create({ data: { ...own, type: "proxy", name: id, title: "target", url: "https://example.com/" } });
      break;
    case "agent":
      await prisma.communityModel.create({
        data: { ...own, type: "prompt_agent", name: id, title: "target", inputModalities: [], outputModalities: [], agent: { create: {} } },
      });
      break;
    case "connection":
      await prisma.developmentConnection.create({ data: { ...own, toolkit: "notes", status: "active" } });
      break;
    case "session":
      await prisma.session.create({ data: { ...own, token: id, expiresAt: new Date(Date.now() + 60_000) } });
      break;
    case "preset":
      await prisma.preset.create({ data: { ...own, name: id, parameters: {} } });
      break;
    case "vendorKey":
      await prisma.vendorKey.create({ data: { ...own, vendor: "acme", name: id, secret: hash, ending: "" } });
      break;
    case "usageLimit":
      await prisma.apiKey.create({ data: { ...own, hash, type: "secret", name: "limited", start: "sk_target0" } });
      await prisma.usageLimit.create({ data: { ...own, apiKeyId: id, metric: "requests", amount: 1n, minutes: 1 } });
      break;
    default:
      // The outbound guard refuses deliveries to it.
      await prisma.webhookEndpoint.create({ data: { ...own, url: "https://127.0.0.1", secret: sealedSecret(id), events: [] } });
  }
  if (target === "delivery") {
    const row = { id, endpointId: id, event: "webhook.test", eventKey: id, payload: {}, nextAttemptAt: new Date() };
    await prisma.webhookDelivery.create({ data: { ...row, status: "delivered" } });
  }
  return id;
}

function sealedSecret(id: string): Uint8Array<ArrayBuffer> {
  return new EndpointSecrets(secretBoxOf(app), systemClock).create(id).sealed;
}

async function askRest({ rest }: Operation, caller: MatrixCaller, prefix: string, id: string): Promise<string> {
  if (!rest) throw new Error("no route");
  const response = await fetch(app.baseUrl + prefix + rest.path.replaceAll(":id", id), {
    method: rest.method,
    headers: { ...caller.headers, ...(rest.body !== undefined && { "content-type": "application/json" }) },
    ...(rest.body !== undefined && { body: JSON.stringify(rest.body) }),
  });
  const text = await response.text();
  return response.ok ? "OK" : (JSON.parse(text) as { error: { code: string } }).error.code;
}

async function askGraphQL({ graphql }: Operation, caller: MatrixCaller, id: string): Promise<string> {
  if (!graphql) throw new Error("no field");
  const input = JSON.parse(JSON.stringify(graphql.input ?? {}).replaceAll("$id", id)) as unknown;
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { ...caller.headers, "content-type": "application/json" },
    body: JSON.stringify({ query: graphql.document.replaceAll("$id", id), ...(graphql.input && { variables: { input } }) }),
  });
  const { errors } = (await response.json()) as { errors?: { message: string; extensions: { code: string } }[] };
  return errors?.[0]?.extensions.code ?? "OK";
}

/** The result of each caller, by its name: one comparison shows the whole row of the matrix. */
async function rowOf(operation: Operation, ask: (caller: MatrixCaller, id: string) => Promise<string>): Promise<Record<string, string>> {
  const targetFor = targetsOf(operation);
  const entries: [string, string][] = [];
  for (const caller of cast.callers) entries.push([caller.name, await ask(caller, await targetFor(caller))]);
  return Object.fromEntries(entries);
}

function expectedRow(operation: Operation): Record<string, string> {
  return Object.fromEntries(cast.callers.map((caller) => [caller.name, expected(operation, caller)]));
}

describe("an account operation on REST", () => {
  for (const operation of OPERATIONS) {
    const { rest } = operation;
    if (!rest) continue;
    it(`${rest.method} /account${rest.path} is for: ${operation.needs}`, async () => {
      expect(await rowOf(operation, (caller, id) => askRest(operation, caller, "/account", id))).toEqual(expectedRow(operation));
    });

    it(`${rest.method} /api/account${rest.path} is the same`, async () => {
      const targetFor = targetsOf(operation);
      for (const caller of [cast.session, ...cast.callers.slice(-1)]) {
        expect(await askRest(operation, caller, "/api/account", await targetFor(caller))).toBe(expected(operation, caller));
      }
    });
  }
});

describe("an account operation on GraphQL", () => {
  for (const operation of OPERATIONS) {
    if (!operation.graphql) continue;
    it(`${operation.graphql.field} is for: ${operation.needs}`, async () => {
      expect(await rowOf(operation, (caller, id) => askGraphQL(operation, caller, id))).toEqual(expectedRow(operation));
    });
  }
});

/** What no operation takes, and what no face may look at before it knows who asks. */
const RUBBISH_QUERY = `format=%22&days=x&limit=x&first=x&cursor=%22&before=x&strip=x&search=${"x".repeat(1_000)}`;

async function askRestWithRubbish({ rest }: Operation, caller: MatrixCaller): Promise<string> {
  if (!rest) throw new Error("no route");
  const path = rest.path.replaceAll(":id", NOBODY).replace(/\?.*/, "");
  const response = await fetch(`${app.baseUrl}/account${path}?${rest.method === "GET" ? RUBBISH_QUERY : ""}`, {
    method: rest.method,
    headers: { ...caller.headers, ...(rest.body !== undefined && { "content-type": "application/json" }) },
    ...(rest.body !== undefined && { body: '{"' }),
  });
  return ((await response.json()) as { error: { code: string } }).error.code;
}

/** Of the types that the contract says, and of no value that any service takes. */
function rubbishInput(field: string): Record<string, unknown> {
  const argument = schema
    .getMutationType()
    ?.getFields()
    [field]?.args.find(({ name }) => name === "input");
  const type = argument && getNamedType(argument.type);
  if (!isInputObjectType(type)) throw new Error(`${field} takes no input.`);
  const values: Readonly<Record<string, unknown>> = { String: " ".repeat(1_000), Int: -1, Float: -1, Credits: "-1", Price: "-1" };
  return Object.fromEntries(
    Object.values(type.getFields()).flatMap(({ name, type: its }) => {
      const value = values[getNamedType(its).name];
      return value === undefined ? [] : [[name, isListType(getNullableType(its)) ? [value] : value]];
    }),
  );
}

async function askGraphQLWithRubbish({ graphql }: Operation, caller: MatrixCaller): Promise<string> {
  if (!graphql?.input) throw new Error("no input");
  const named = JSON.parse(JSON.stringify(graphql.input).replaceAll("$id", NOBODY)) as Record<string, unknown>;
  const input = { ...named, ...rubbishInput(graphql.field.replace("Mutation.", "")) };
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { ...caller.headers, "content-type": "application/json" },
    body: JSON.stringify({ query: graphql.document, variables: { input } }),
  });
  const { errors } = (await response.json()) as { errors?: { extensions: { code: string } }[] };
  return errors?.[0]?.extensions.code ?? "OK";
}

function oneOfEach(callers: readonly MatrixCaller[]): readonly MatrixCaller[] {
  return callers.filter(({ kind }, index) => callers.findIndex((other) => other.kind === kind) === index);
}

/** The refusals of callers without access, which do not depend on the input. */
function refusals(operation: Operation): Record<string, string> {
  const rows = oneOfEach(cast.callers.filter((caller) => ["UNAUTHORIZED", "FORBIDDEN"].includes(expected(operation, caller)))).map(
    (caller) => [caller.name, expected(operation, caller)] as const,
  );
  return Object.fromEntries(rows);
}

async function rowOfRefused(operation: Operation, ask: (caller: MatrixCaller) => Promise<string>): Promise<Record<string, string>> {
  const refused = refusals(operation);
  const asking = oneOfEach(cast.callers.filter(({ name }) => Object.hasOwn(refused, name)));
  return Object.fromEntries(await Promise.all(asking.map(async (caller) => [caller.name, await ask(caller)] as const)));
}

describe("a caller without access is refused before the input is read", () => {
  it("on REST", async () => {
    for (const operation of OPERATIONS.filter(({ rest, needs }) => rest && needs !== "everyone" && needs !== "key")) {
      const row = await rowOfRefused(operation, (caller) => askRestWithRubbish(operation, caller));
      expect(row, `${operation.rest?.method} ${operation.rest?.path}`).toEqual(refusals(operation));
    }
  });

  it("on GraphQL", async () => {
    for (const operation of OPERATIONS.filter(({ graphql, needs }) => graphql?.input && needs !== "everyone" && needs !== "key")) {
      const row = await rowOfRefused(operation, (caller) => askGraphQLWithRubbish(operation, caller));
      expect(row, operation.graphql?.field).toEqual(refusals(operation));
    }
  });
});

/** What may stand in the place of a key, and is none. */
const NO_KEYS = ["no-key", "two keys", "Bearer x", `sk_${"x".repeat(43)}`, "ag_x", "\u00fc"];

/** Every route that looks at keys, and a request to it that is wrong in every other way, too. */
function keyedRequests(): { readonly method: string; readonly path: string; readonly isPublic: boolean }[] {
  return recordRoutes().flatMap(({ path, methods }) =>
    Object.entries(methods)
      .filter(([, { readsKey = true }]) => readsKey)
      .map(([method, { isPublic = false }]) => ({
        method,
        path: `${toTemplate(path).replace(/\{\w+\}/g, "x")}?${RUBBISH_QUERY}`,
        isPublic,
      })),
  );
}

/** The words after the scheme name the error of the credential. */
function schemeOf(challenge: string | null | undefined): string | undefined {
  return challenge?.split(" ", 1)[0];
}

async function askWrongly({ method, path }: { readonly method: string; readonly path: string }, authorization?: string) {
  const response = await fetch(app.baseUrl + path, {
    method,
    headers: { ...(authorization !== undefined && { authorization }), "content-type": "application/json" },
    ...(method !== "GET" && method !== "HEAD" && { body: '{"' }),
  });
  await response.arrayBuffer();
  return `${method} ${path} ${response.status} ${schemeOf(response.headers.get("www-authenticate"))}`;
}

describe("a credential that is no key", () => {
  const requests = keyedRequests();
  const refused = ({ method, path }: { readonly method: string; readonly path: string }) => `${method} ${path} 401 Bearer`;

  it("is 401 on every route, with the right scheme, before anything else of the request is read", async () => {
    const answers = requests.map((request, index) => askWrongly(request, `Bearer ${NO_KEYS[index % NO_KEYS.length]}`));

    expect(requests.length).toBeGreaterThan(60);
    expect(await Promise.all(answers)).toEqual(requests.map(refused));
  });

  it("is 401 like none at all on every route that is not public", async () => {
    const guarded = requests.filter(({ isPublic }) => !isPublic);

    expect(await Promise.all(guarded.map((request) => askWrongly(request)))).toEqual(guarded.map(refused));
  });

  it.each(NO_KEYS)("is 401 on GraphQL and for a realtime session: %s", async (key) => {
    const graphql = { method: "POST", path: "/graphql" };
    const socket = new WebSocket(`${app.wsUrl.replace("/graphql", "/v1/realtime")}?model=acme/realtime`, {
      headers: { authorization: `Bearer ${key}` },
    });
    const [, answer] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];
    answer.resume();

    expect([answer.statusCode, schemeOf(answer.headers["www-authenticate"])]).toEqual([401, "Bearer"]);
    expect(await askWrongly(graphql, `Bearer ${key}`)).toBe(refused(graphql));
  });
});

async function walk({ headers }: MatrixCaller, query: string): Promise<Walked> {
  const answer = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { ...headers, "content-type": "application/json" },
    body: JSON.stringify({ query }),
  });
  return (await answer.json()) as Walked;
}

describe("the graph", () => {
  it("leads each caller as far as it may see, along every edge of everything that has an id", async () => {
    const callers = [...cast.callers, await createAppsKey(app, cast.accountId)];
    const thingsOf = await createThings(app, cast.accountId, callers);

    for (const caller of callers.filter(({ kind }) => kind !== "agent")) {
      const things = thingsOf(caller);
      expect(outcomesOf(things, await walk(caller, walkOf(things))), caller.name).toEqual(expectedOf(things, caller, isAllowed));
    }
  });

  it("leads agents at work to models by their names, and to nothing by its id", async () => {
    const agent = cast.callers.find(({ kind }) => kind === "agent");
    if (!agent) throw new Error("no agent at work");
    const things = (await createThings(app, cast.accountId, [agent]))(agent);
    const models = things.filter(({ type }) => type === "Model");

    expect(await walk(agent, walkOf(things))).toMatchObject({ errors: [{ extensions: { code: "FORBIDDEN" } }] });
    expect(outcomesOf(models, await walk(agent, walkOf(models, "name")))).toEqual(expectedOf(models, agent, isAllowed));
  });

  it("has no edge that the matrix leaves out", () => {
    expect(unknownEdges()).toEqual([]);
  });
});

describe("the matrix", () => {
  it("leaves out no account route", () => {
    const routes = recordRoutes()
      .filter(({ path }) => path.startsWith("/account/"))
      .flatMap(({ path, methods }) => Object.keys(methods).map((method) => `${method} ${path.replace(/:\w+/g, ":id")}`));
    const asked = OPERATIONS.map(({ rest }) => rest && `${rest.method} /account${rest.path.replace(/\?.*/, "")}`);

    expect(routes).toContain("GET /account/profile");
    expect(routes.filter((route) => !asked.includes(route))).toEqual([]);
  });

  it("leaves out no field of the account", () => {
    const fields = ["Query", "Mutation", "Account"].flatMap((name) => {
      const type = schema.getType(name);
      return isObjectType(type) ? Object.keys(type.getFields()).map((field) => `${name}.${field}`) : [];
    });
    const asked = [...OPERATIONS.map(({ graphql }) => graphql?.field), ...ELSEWHERE];

    expect(fields).toContain("Account.balance");
    expect(fields.filter((field) => !asked.includes(field))).toEqual([]);
  });
});
