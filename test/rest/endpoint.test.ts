import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import type { Caller } from "../../src/context.js";
import { AppError, rateLimited, unauthenticated } from "../../src/errors.js";
import type { Authenticator } from "../../src/http/context.js";
import { createEndpoint } from "../../src/rest/endpoint.js";
import { json, jsonOr, writtenJson } from "../../src/rest/openapi/answer.js";
import type { RouteHandler } from "../../src/rest/route.js";
import { BodyBudget } from "../../src/services/requests/body-budget.js";
import { queryFlag, queryInteger } from "../../src/services/requests/query-values.js";
import { bodyOf, sendRaw, serve, type TestServer } from "./serve.js";

const KNOWN_KEY = "sk_known";

/** Knows one key; refuses a wrong one, and takes a request without one as anonymous. */
const oneKey: Authenticator = {
  authenticate: (token): Caller => {
    if (token === null) return { kind: "anonymous" };
    if (token !== KNOWN_KEY) throw unauthenticated("This API key is not valid.");
    return { kind: "session", accountId: "a", isOperator: false, sessionId: "s" };
  },
};

const itemInput = z.strictObject({
  name: z.string(),
  parts: z
    .array(
      z.union([
        z.string(),
        z.strictObject({ type: z.literal("text"), text: z.string() }),
        z.strictObject({ type: z.literal("image"), url: z.url() }),
      ]),
    )
    .optional(),
});

const thing = json("Thing", z.looseObject({ name: z.string(), madeAt: z.date(), parts: z.array(z.string()) }));

let server: TestServer;

beforeAll(async () => {
  server = await serve((route, endpoint) => {
    route("/whoami", { GET: endpoint({ id: null, handler: (ctx) => ({ kind: ctx.caller.kind, requestId: ctx.requestId }) }) });
    route("/public", { GET: endpoint({ id: null, isPublic: true, handler: (ctx) => ({ kind: ctx.caller.kind }) }) });
    route("/items", {
      GET: endpoint({
        id: null,
        isPublic: true,
        query: z.strictObject({ days: queryInteger(z.int().min(1).max(90)).default(30), all: queryFlag.optional() }),
        handler: (_ctx, { query }) => ({ query }),
      }),
      POST: endpoint({ id: null, body: itemInput, handler: (_ctx, { body }) => ({ body }) }),
    });
    route("/things/:name", {
      GET: endpoint({
        id: "getThing",
        tag: "Service",
        summary: "Returns a thing.",
        answer: thing,
        isPublic: true,
        params: z.object({ name: z.string().max(5) }),
        handler: (_ctx, { params }) => ({ name: params.name, madeAt: new Date(0), parts: [] as readonly string[] }),
      }),
    });
    route("/own-cache", {
      GET: endpoint({
        id: null,
        handler: (_ctx, { exchange }) => {
          exchange.setHeaders({ "Cache-Control": "private, max-age=60" });
          return {};
        },
      }),
    });
    route("/fails/:how", {
      GET: endpoint({
        id: null,
        isPublic: true,
        handler: (_ctx, { exchange }) => {
          const how = exchange.parameter("how");
          if (how === "unknown") throw new Error("password is hunter2");
          if (how === "internal") throw new AppError("INTERNAL_ERROR", "the pepper is missing");
          if (how === "limit") throw rateLimited("Slow down.", 1.2);
          if (how === "final") throw new AppError("UPSTREAM_ERROR", "Cut.", { isFinal: true });
          if (how === "upstream") throw new AppError("UPSTREAM_ERROR", "Away.", { cause: new Error("connect refused") });
          if (how === "upgrade") throw new AppError("UPGRADE_REQUIRED", "Connect with a WebSocket.");
          if (how === "falsy") throw undefined;
          throw new AppError(how.toUpperCase() as AppError["code"], "No.");
        },
      }),
    });
  }, oneKey);
});
afterAll(() => server.close());

async function get(path: string, headers: Record<string, string> = {}, method = "GET") {
  const response = await fetch(server.baseUrl + path, { method, headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: text === "" ? null : JSON.parse(text) };
}

async function post(body: unknown) {
  const response = await fetch(`${server.baseUrl}/items`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${KNOWN_KEY}` },
  });
  return { status: response.status, json: JSON.parse(await response.text()) };
}

describe("credentials", () => {
  it("takes the key from the Authorization header, in any case of the scheme", async () => {
    for (const authorization of [`Bearer ${KNOWN_KEY}`, `bearer ${KNOWN_KEY}`, `Bearer  ${KNOWN_KEY}`]) {
      expect(await get("/whoami", { Authorization: authorization })).toMatchObject({ status: 200, json: { kind: "session" } });
    }
  });

  it("takes the key from the query", async () => {
    expect(await get(`/whoami?key=${KNOWN_KEY}`)).toMatchObject({ status: 200, json: { kind: "session" } });
  });

  it("lets the header win over the query", async () => {
    expect(await get("/whoami?key=sk_wrong", { Authorization: `Bearer ${KNOWN_KEY}` })).toMatchObject({ status: 200 });
    expect(await get(`/whoami?key=${KNOWN_KEY}`, { Authorization: "Bearer sk_wrong" })).toMatchObject({ status: 401 });
  });

  it("answers 401 with WWW-Authenticate to no key, another scheme, an empty one and a wrong one", async () => {
    const headers: Record<string, string>[] = [
      {},
      { Authorization: "Basic abc" },
      { Authorization: KNOWN_KEY },
      { Authorization: "Bearer" },
      { Authorization: "Bearer sk_wrong" },
    ];
    for (const sent of headers) {
      const answer = await get("/whoami", sent);

      expect(answer).toMatchObject({
        status: 401,
        json: { status: 401, success: false, error: { code: "UNAUTHORIZED", type: "authentication_error" } },
      });
      expect(answer.headers.get("www-authenticate")).toMatch(/^Bearer(?: error="invalid_token", error_description="[^"]+")?$/);
    }
    expect(await get("/whoami?key=")).toMatchObject({ status: 401 });
  });

  it("answers 401 to a key with a NUL in the query and one that is not ASCII in the header", async () => {
    expect(await get("/whoami?key=sk_%00")).toMatchObject({ status: 401 });
    expect(
      bodyOf(
        await sendRaw(server.port, "GET /whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer sk_\xe9\r\n\r\n"),
      ),
    ).toMatchObject({
      status: 401,
    });
  });

  it("answers 401 to a key of 10 KB", async () => {
    expect(await get("/whoami", { Authorization: `Bearer sk_${"x".repeat(10 * 1024)}` })).toMatchObject({ status: 401 });
  });

  it("answers 400 to a credential that was given twice", async () => {
    const twice = `GET /whoami HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer ${KNOWN_KEY}\r\nauthorization: Bearer ${KNOWN_KEY}\r\n\r\n`;

    expect(bodyOf(await sendRaw(server.port, twice))).toMatchObject({
      status: 400,
      error: { code: "BAD_REQUEST", param: "Authorization" },
    });
    expect(await get(`/whoami?key=${KNOWN_KEY}&key=${KNOWN_KEY}`)).toMatchObject({ status: 400, json: { error: { param: "key" } } });
  });

  it("answers 401 to a value that cannot be a key", async () => {
    for (const text of [`Bearer Bearer ${KNOWN_KEY}`, `Bearer ${KNOWN_KEY} ${KNOWN_KEY}`, "Bearer"]) {
      expect(await get("/whoami", { Authorization: text })).toMatchObject({ status: 401 });
    }
  });

  it("lets an anonymous caller use a public route, and refuses a wrong key there", async () => {
    expect(await get("/public")).toMatchObject({ status: 200, json: { kind: "anonymous" } });
    expect(await get("/public?key=sk_wrong")).toMatchObject({ status: 401 });
  });

  it("refuses a caller without a key before it looks at the body", async () => {
    const response = await fetch(`${server.baseUrl}/items`, { method: "POST", body: "not JSON" });

    expect(response.status).toBe(401);
    expect(await response.json()).toMatchObject({ error: { code: "UNAUTHORIZED" } });
  });

  it("keeps the answer to a key in the URL out of caches and referrers, errors included", async () => {
    for (const path of [`/whoami?key=${KNOWN_KEY}`, "/whoami?key=sk_wrong", `/nowhere?a=1&key=${KNOWN_KEY}`]) {
      const { headers } = await get(path);

      expect(headers.get("referrer-policy")).toBe("no-referrer");
      expect(headers.get("cache-control")).toBe("private, no-store");
    }
    expect((await get(`/own-cache?key=${KNOWN_KEY}`)).headers.get("cache-control")).toBe("private, max-age=60");
    expect((await get("/public")).headers.get("referrer-policy")).toBeNull();
  });
});

describe("the request id", () => {
  it("echoes the caller's when it is well-formed, up to 128 characters", async () => {
    for (const id of ["a", "Abc-1._x", "x".repeat(128)]) {
      const answer = await get("/whoami", { Authorization: `Bearer ${KNOWN_KEY}`, "X-Request-Id": id });

      expect(answer.headers.get("x-request-id")).toBe(id);
      expect(answer.json.requestId).toBe(id);
    }
  });

  it("makes one otherwise", async () => {
    for (const id of ["x".repeat(129), "a b", "a/b", undefined]) {
      const answer = await get("/nowhere", id === undefined ? {} : { "X-Request-Id": id });

      expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(answer.json.error.requestId).toBe(answer.headers.get("x-request-id"));
    }
  });
});

describe("input", () => {
  it("names every wrong field by its path, and the first one as param", async () => {
    const answer = await post({ name: 5, parts: ["ok", { type: "text", text: 1 }, { type: "image", url: "x" }], extra: true });

    expect(answer).toMatchObject({
      status: 400,
      json: {
        success: false,
        error: {
          code: "BAD_REQUEST",
          type: "invalid_request_error",
          param: "name",
          message: "4 fields are wrong: name: expected a string; parts.1.text: expected a string; parts.2.url: must be a URL; and 1 more",
          details: {
            fieldErrors: {
              name: ["expected a string"],
              "parts.1.text": ["expected a string"],
              "parts.2.url": ["must be a URL"],
              extra: ["is not known here; the closest that are: name, parts"],
            },
            formErrors: [],
          },
        },
      },
    });
  });

  it("names at most twenty fields of some hundred", async () => {
    const answer = await post({ name: "x", parts: Array.from({ length: 500 }, () => 5) });

    expect(Object.keys(answer.json.error.details.fieldErrors)).toHaveLength(20);
    expect(answer.json.error.message).toMatch(/^500 fields are wrong: parts\.0: .*; parts\.2: [^;]*; and 497 more$/);
  });

  it("names the first wrong item of thousands, and counts the unknown fields", async () => {
    const wrong = await post({ name: "x", parts: Array.from({ length: 2_000 }, () => 5) });
    const unknown = await post({
      name: "x",
      parts: [],
      ...Object.fromEntries(Array.from({ length: 2_000 }, (_, index) => [`k${index}`, 1])),
    });

    expect(wrong.json.error).toMatchObject({ param: "parts.0", details: { fieldErrors: { "parts.0": [expect.any(String)] } } });
    expect(Object.keys(unknown.json.error.details.fieldErrors)).toHaveLength(20);
    expect(unknown.json.error.message).toMatch(/^2000 fields are wrong: k0: .*; k2: .*; and 1997 more$/);
  });

  it("refuses a field named __proto__ like any unknown one", async () => {
    const response = await fetch(`${server.baseUrl}/items`, {
      method: "POST",
      body: '{"name":"x","__proto__":{"admin":true}}',
      headers: { "Content-Type": "application/json", Authorization: `Bearer ${KNOWN_KEY}` },
    });

    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { param: "__proto__" } });
    expect({}).not.toHaveProperty("admin");
  });

  it("reads query parameters, with defaults", async () => {
    expect(await get("/items?days=90&all=1")).toMatchObject({ status: 200, json: { query: { days: 90, all: true } } });
    expect(await get("/items")).toMatchObject({ status: 200, json: { query: { days: 30 } } });
  });

  for (const query of [
    "days=0",
    "days=91",
    "days=1e1",
    "days=%205",
    "days=",
    "days=-1",
    "days=5.0",
    "all=yes",
    "all=TRUE",
    "days=1&days=2",
    "other=1",
    "days=5%zz",
    "all=%00",
    "__proto__=1",
  ]) {
    it(`answers 400 to ?${query}`, async () => {
      expect(await get(`/items?${query}`)).toMatchObject({ status: 400, json: { error: { code: "BAD_REQUEST" } } });
    });
  }
});

describe("errors", () => {
  it("hides an unknown error, and logs it once with the request id and without the query", async () => {
    const before = server.logged.length;

    const answer = await get("/fails/unknown?key=sk_known&token=abc");

    expect(answer).toMatchObject({
      status: 500,
      json: { status: 500, success: false, error: { code: "INTERNAL_ERROR", type: "api_error" } },
    });
    expect(JSON.stringify(answer.json)).not.toContain("hunter2");
    const lines = server.logged.slice(before);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      requestId: answer.json.error.requestId,
      method: "GET",
      route: "/fails/{how}",
      err: { message: "password is hunter2" },
    });
    expect(JSON.stringify(lines)).not.toMatch(/sk_known|token/);
  });

  it("hides an internal error", async () => {
    expect(JSON.stringify((await get("/fails/internal")).json)).not.toContain("pepper");
  });

  it("answers 500 when undefined was thrown", async () => {
    expect(await get("/fails/falsy")).toMatchObject({ status: 500 });
  });

  it("logs the cause of a 5xx and hides it from the caller", async () => {
    const before = server.logged.length;

    const answer = await get("/fails/upstream");

    expect(answer).toMatchObject({ status: 502, json: { error: { message: "Away." } } });
    expect(JSON.stringify(answer.json)).not.toContain("refused");
    expect(JSON.stringify(server.logged.slice(before))).toContain("connect refused");
  });

  it("does not log a caller's mistake", async () => {
    const before = server.logged.length;

    await get("/fails/forbidden");

    expect(server.logged.slice(before)).toEqual([]);
  });

  it("sends Retry-After in whole seconds with 429", async () => {
    const answer = await get("/fails/limit");

    expect(answer).toMatchObject({ status: 429, json: { error: { code: "RATE_LIMITED", type: "rate_limit_error" } } });
    expect(answer.headers.get("retry-after")).toBe("2");
  });

  it("tells SDKs not to retry 402, 403, 409 and failures after an upstream began", async () => {
    for (const how of ["insufficient_balance", "key_budget_exhausted", "forbidden", "conflict", "final"]) {
      expect((await get(`/fails/${how}`)).headers.get("x-should-retry")).toBe("false");
    }
    for (const how of ["limit", "upstream", "unknown", "not_found"]) {
      expect((await get(`/fails/${how}`)).headers.get("x-should-retry")).toBeNull();
    }
  });

  it("gives every code its status", async () => {
    const statuses: Record<string, number> = {
      bad_request: 400,
      content_blocked: 400,
      unauthorized: 401,
      insufficient_balance: 402,
      key_budget_exhausted: 402,
      forbidden: 403,
      not_found: 404,
      method_not_allowed: 405,
      conflict: 409,
      payload_too_large: 413,
      unsupported_media_type: 415,
      upgrade_required: 426,
      rate_limited: 429,
      internal_error: 500,
      upstream_error: 502,
      service_unavailable: 503,
      upstream_timeout: 504,
    };
    for (const [how, status] of Object.entries(statuses)) {
      const answer = await get(`/fails/${how}`);

      expect(answer.status).toBe(status);
      expect(answer.json).toEqual({
        status,
        success: false,
        error: {
          code: how.toUpperCase(),
          message: expect.any(String),
          type: expect.any(String),
          param: null,
          requestId: answer.headers.get("x-request-id"),
          timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        },
      });
    }
  });
});

describe("a declared answer", () => {
  it("is the value of the handler, with dates in ISO 8601", async () => {
    expect(await get("/things/a")).toMatchObject({ status: 200, json: { name: "a", madeAt: "1970-01-01T00:00:00.000Z", parts: [] } });
  });

  it("refuses a parameter of the path by its schema", async () => {
    expect(await get("/things/longer")).toMatchObject({ status: 400, json: { error: { param: "name" } } });
  });

  it("does not compile with a result of another shape", () => {
    const words = { id: "getThing", tag: "Service", summary: "Returns a thing." } as const;
    const endpoint = createEndpoint(oneKey, 0, new BodyBudget(1));
    const made = { name: "a", madeAt: new Date(0), parts: [] };

    const handlers: readonly RouteHandler[] = [
      // @ts-expect-error Two fields are missing.
      endpoint({ ...words, answer: thing, handler: async () => ({ name: "a" }) }),
      // @ts-expect-error A field has another type.
      endpoint({ ...words, answer: thing, handler: () => ({ ...made, name: 1 }) }),
      // @ts-expect-error Nothing is returned.
      endpoint({ ...words, answer: thing, handler: async () => {} }),
      // @ts-expect-error The handler says that it sends the answer itself.
      endpoint({ ...words, answer: writtenJson(thing), handler: () => made }),
      // @ts-expect-error A value is there, of another shape.
      endpoint({ ...words, answer: jsonOr(thing, "text/csv"), handler: () => ({ name: "a" }) }),
      // @ts-expect-error An operation has an answer.
      endpoint({ ...words, handler: () => made }),
      endpoint({ ...words, answer: jsonOr(thing, "text/csv"), handler: () => undefined }),
      endpoint({ ...words, answer: thing, handler: () => made }),
    ];

    expect(handlers.map(({ contract }) => contract.id)).toEqual(Array(handlers.length).fill("getThing"));
  });
});
