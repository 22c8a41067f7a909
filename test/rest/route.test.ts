import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { AppError } from "../../src/errors.js";
import type { Endpoint } from "../../src/rest/endpoint.js";
import { type Route, withContract } from "../../src/rest/route.js";
import { anonymous, bodyOf, sendRaw, serve, type TestServer } from "./serve.js";

let server: TestServer;
/** The same routes, every one of them found by Express. */
let express: TestServer;

function addRoutes(route: Route, endpoint: Endpoint): void {
  route("/public", { GET: endpoint({ id: null, isPublic: true, handler: (ctx) => ({ kind: ctx.caller.kind }) }) });
  route("/private", { GET: endpoint({ id: null, handler: () => ({}) }) });
  route("/items", {
    GET: endpoint({ id: null, isPublic: true, handler: () => [] }),
    POST: endpoint({ id: null, isPublic: true, handler: () => ({}) }),
  });
  route("/items/:id", {
    DELETE: endpoint({ id: null, isPublic: true, handler: (_ctx, { exchange }) => ({ id: exchange.parameter("id") }) }),
  });
  route("/files/*path", {
    GET: endpoint({ id: null, isPublic: true, handler: (_ctx, { exchange }) => ({ path: exchange.parameter("path") }) }),
  });
  route("/files/words", { GET: endpoint({ id: null, isPublic: true, handler: () => "never answers: what is above takes it" }) });
  route("/breaks", {
    GET: withContract(
      () => {
        throw new Error("broken at once");
      },
      { id: null },
    ),
    POST: withContract(
      async () => {
        throw new AppError("CONFLICT", "Broken in the end.");
      },
      { id: null },
    ),
  });
  route("/echo", { POST: endpoint({ id: null, isPublic: true, body: z.looseObject({}), handler: (_ctx, { body }) => body }) });
  route("/query", { GET: endpoint({ id: null, isPublic: true, query: z.looseObject({}), handler: (_ctx, { query }) => query }) });
}

beforeAll(async () => {
  [server, express] = await Promise.all([serve(addRoutes), serve(addRoutes, anonymous, {}, undefined, false)]);
});
afterAll(() => Promise.all([server.close(), express.close()]));

async function send(path: string, headers: Record<string, string> = {}, method = "GET") {
  const response = await fetch(server.baseUrl + path, { method, headers });
  const text = await response.text();
  return { status: response.status, headers: response.headers, json: text === "" ? null : JSON.parse(text) };
}

describe("paths and methods", () => {
  it("answers 404 in the envelope", async () => {
    const answer = await send("/nowhere");

    expect(answer).toMatchObject({ status: 404, json: { status: 404, success: false, error: { code: "NOT_FOUND", param: null } } });
    expect(answer.headers.get("content-type")).toBe("application/json; charset=utf-8");
  });

  it("answers 405 with Allow to another method", async () => {
    const answer = await send("/items", {}, "PUT");

    expect(answer).toMatchObject({ status: 405, json: { error: { code: "METHOD_NOT_ALLOWED" } } });
    expect(answer.headers.get("allow")).toBe("GET, POST, HEAD, OPTIONS");
  });

  it("answers HEAD like GET, without a body", async () => {
    const answer = await send("/public", {}, "HEAD");

    expect(answer).toMatchObject({ status: 200, json: null });
    expect(answer.headers.get("content-length")).toBe(String('{"kind":"anonymous"}'.length));
    expect((await send("/items/5", {}, "HEAD")).status).toBe(405);
  });

  it("answers with and without a slash at the end", async () => {
    expect((await send("/public/")).status).toBe(200);
  });

  it("takes slashes in a path's rest raw and encoded", async () => {
    expect((await send("/files/a/b")).json).toEqual({ path: "a/b" });
    expect((await send("/files/a%2Fb")).json).toEqual({ path: "a/b" });
    expect((await send("/files/..%2f..%2fetc%2fpasswd")).json).toEqual({ path: "../../etc/passwd" });
  });

  for (const path of ["/files/%zz", "/files/%00", "/files/a%", "/files/%ff", "/nowhere/%zz", "/%00"]) {
    it(`answers 400 to ${path}`, async () => {
      const answer = await sendRaw(server.port, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);

      expect(bodyOf(answer)).toMatchObject({ status: 400, success: false, error: { code: "BAD_REQUEST" } });
    });
  }

  it("answers 400 in the envelope to bytes that are not HTTP and to a path of 1 MB", async () => {
    for (const request of [
      "NONSENSE\r\n\r\n",
      "GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \0\r\n\r\n",
      `GET /${"a".repeat(1024 * 1024)} HTTP/1.1\r\nHost: localhost\r\n\r\n`,
    ]) {
      const answer = await sendRaw(server.port, request);

      expect(answer).toMatch(/^HTTP\/1\.1 400 /);
      expect(answer).toMatch(/\r\nX-Request-Id: [0-9a-f-]{36}\r\n/);
      expect(bodyOf(answer)).toMatchObject({ status: 400, success: false, error: { code: "BAD_REQUEST", type: "invalid_request_error" } });
    }
  });

  it("answers a request target that names no path with 404", async () => {
    expect(bodyOf(await sendRaw(server.port, "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"))).toMatchObject({
      status: 404,
    });
  });
});

describe("a route that is found by one look-up", () => {
  const targets = [
    ...[
      "/public",
      "/public/",
      "/PUBLIC",
      "//public",
      "/public//",
      "/pub%6Cic",
      "/public?",
      "/public?x=1#y",
      "/public#y",
      "/public%",
      "/public;x",
    ],
    ...["/private", "/items", "/items/", "/items/5", "/items?x=%zz", "/items%2F5", "/files/words", "/files/", "/files", "/breaks", "/echo"],
    ...["/query?a=1&b=%20c", "/query?a=%", "/query?key=x", "/query?a=1&a=2", "/nowhere", "*", "http://x/public", "http://x/nowhere?a=1"],
  ];
  const methods = ["GET", "HEAD", "POST", "PUT", "OPTIONS", "PURGE"];

  it("is answered as Express would answer it, for every request", async () => {
    const body = '{"a":[1]}';
    const head = `Host: localhost\r\nX-Request-Id: same\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\nConnection: close`;
    const cases = targets.flatMap((target) => methods.map((method) => `${method} ${target} HTTP/1.1\r\n${head}\r\n\r\n${body}`));

    const answers = await Promise.all(
      cases.map(async (request) => {
        const [direct, routed] = await Promise.all([sendRaw(server.port, request), sendRaw(express.port, request)]);
        return { request, direct: withoutTime(direct), routed: withoutTime(routed) };
      }),
    );

    for (const { request, direct, routed } of answers) expect(direct, request).toBe(routed);
    expect(answers.find(({ request }) => request.startsWith("POST /echo "))?.direct).toMatch(/^HTTP\/1\.1 200 [\s\S]*\{"a":\[1\]\}$/);
  });
});

function withoutTime(answer: string): string {
  return answer.replace(/\r\nDate: [^\r]+/, "").replace(/"timestamp":"[^"]+"/, "");
}

describe("browsers", () => {
  it("may read every answer, and send no cookies", async () => {
    for (const path of ["/public", "/private", "/nowhere"]) {
      const { headers } = await send(path, { Origin: "https://page.example" });

      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-expose-headers")).toBe("*");
      expect(headers.get("access-control-allow-credentials")).toBeNull();
    }
  });

  it("learn the allowed headers in a preflight", async () => {
    const asked = "authorization, x-stainless-os,x-stainless-retry-count";

    const answer = await send(
      "/items",
      { Origin: "https://page.example", "Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": asked },
      "OPTIONS",
    );

    expect(answer.status).toBe(204);
    expect(answer.headers.get("access-control-allow-methods")).toBe("GET, POST, HEAD, OPTIONS");
    expect(answer.headers.get("access-control-allow-headers")).toBe(
      "Authorization, Content-Type, Idempotency-Key, X-Request-Id, authorization, x-stainless-os, x-stainless-retry-count",
    );
    expect(answer.headers.get("vary")).toBe("Access-Control-Request-Headers");
  });

  it("get only valid header names reflected", async () => {
    const answer = await send("/items", { "Access-Control-Request-Headers": "x-fine, <script>, a:b, x y" }, "OPTIONS");

    expect(answer.headers.get("access-control-allow-headers")).toBe("Authorization, Content-Type, Idempotency-Key, X-Request-Id, x-fine");
  });
});
