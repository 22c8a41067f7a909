/**
 * Who may do what: every account operation on both faces, asked by every kind of caller. Each key type with each permission, sessions,
 * the same of another account, and nobody (Spec 5.4; decisions "Errors").
 */
import { isObjectType } from "graphql";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSchema } from "../../src/graphql/schema.js";
import { recordRoutes } from "../../src/rest/router.js";
import type { WebhooksDependencies } from "../../src/services/webhooks/webhooks.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Cast, createCast, databaseOf, type MatrixCaller } from "./support/matrix-callers.js";
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
  if (needs === "anybody") return refusal ?? "OK";
  if (caller.kind === "nobody") return "UNAUTHORIZED";
  if (!isAllowed(needs, caller)) return needs === "key" ? "BAD_REQUEST" : "FORBIDDEN";
  if (refusal !== undefined) return refusal;
  return target !== undefined && !caller.isOwn ? "NOT_FOUND" : "OK";
}

function isAllowed(needs: Operation["needs"], { kind, permissions }: MatrixCaller): boolean {
  switch (needs) {
    case "anybody":
    case "any":
      return true;
    case "key":
      return kind !== "session";
    case "session":
      return kind === "session";
    case "manager":
      return kind === "session" || (kind === "secret" && permissions.has("keys"));
    case "operator":
      return false;
    default:
      return permissions.has(needs);
  }
}

/** Something of the account for the operation to be about, a new one each time: what is revoked is gone. */
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
    default:
      // What is sent there is refused by the outbound guard.
      await prisma.webhookEndpoint.create({ data: { ...own, url: "https://127.0.0.1", secret: sealedSecret(id), events: [] } });
  }
  if (target === "delivery") {
    const row = { id, endpointId: id, event: "webhook.test", eventKey: id, payload: {}, nextAttemptAt: new Date() };
    await prisma.webhookDelivery.create({ data: { ...row, status: "delivered" } });
  }
  return id;
}

function sealedSecret(id: string): Uint8Array<ArrayBuffer> {
  const { secrets } = Reflect.get(app.services.webhooks, "deps") as WebhooksDependencies;
  return secrets.create(id).sealed;
}

async function askRest({ rest, target }: Operation, caller: MatrixCaller, prefix: string): Promise<string> {
  if (!rest) throw new Error("no route");
  const id = await createTarget(target);
  const response = await fetch(app.baseUrl + prefix + rest.path.replaceAll(":id", id), {
    method: rest.method,
    headers: { ...caller.headers, ...(rest.body !== undefined && { "content-type": "application/json" }) },
    ...(rest.body !== undefined && { body: JSON.stringify(rest.body) }),
  });
  const text = await response.text();
  return response.ok ? "OK" : (JSON.parse(text) as { error: { code: string } }).error.code;
}

async function askGraphQL({ graphql, target }: Operation, caller: MatrixCaller): Promise<string> {
  if (!graphql) throw new Error("no field");
  const id = await createTarget(target);
  const input = JSON.parse(JSON.stringify(graphql.input ?? {}).replaceAll("$id", id)) as unknown;
  const response = await fetch(`${app.baseUrl}/graphql`, {
    method: "POST",
    headers: { ...caller.headers, "content-type": "application/json" },
    body: JSON.stringify({ query: graphql.document.replaceAll("$id", id), ...(graphql.input && { variables: { input } }) }),
  });
  const { errors } = (await response.json()) as { errors?: { message: string; extensions: { code: string } }[] };
  return errors?.[0]?.extensions.code ?? "OK";
}

/** What each caller is told, by the caller's name: one comparison shows the whole row of the matrix. */
async function rowOf(ask: (caller: MatrixCaller) => Promise<string>): Promise<Record<string, string>> {
  const entries: [string, string][] = [];
  for (const caller of cast.callers) entries.push([caller.name, await ask(caller)]);
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
      expect(await rowOf((caller) => askRest(operation, caller, "/account"))).toEqual(expectedRow(operation));
    });

    it(`${rest.method} /api/account${rest.path} is the same`, async () => {
      for (const caller of [cast.session, ...cast.callers.slice(-1)]) {
        expect(await askRest(operation, caller, "/api/account")).toBe(expected(operation, caller));
      }
    });
  }
});

describe("an account operation on GraphQL", () => {
  for (const operation of OPERATIONS) {
    if (!operation.graphql) continue;
    it(`${operation.graphql.field} is for: ${operation.needs}`, async () => {
      expect(await rowOf((caller) => askGraphQL(operation, caller))).toEqual(expectedRow(operation));
    });
  }
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
      const type = createSchema().getType(name);
      return isObjectType(type) ? Object.keys(type.getFields()).map((field) => `${name}.${field}`) : [];
    });
    const asked = [...OPERATIONS.map(({ graphql }) => graphql?.field), ...ELSEWHERE];

    expect(fields).toContain("Account.balance");
    expect(fields.filter((field) => !asked.includes(field))).toEqual([]);
  });
});
