import { once } from "node:events";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { type JsonObject, readJsonBody, TURN_BYTES } from "../../src/http/body.js";
import { sendError } from "../../src/http/errors.js";
import type { Exchange } from "../../src/http/exchange.js";
import { JSON_BRACKETS_MAX, JSON_DEPTH_MAX, JSON_KEYS_MAX, JSON_VALUES_MAX } from "../../src/limits.js";
import { type RouteHandler, withContract } from "../../src/rest/route.js";
import { BodyBudget } from "../../src/services/requests/body-budget.js";
import { anonymous, bodyOf, sendRaw, serve, type TestServer } from "./serve.js";

const BYTES_MAX = 100_000;

const bodies = new BodyBudget(1);
let server: TestServer;

beforeAll(async () => {
  server = await serve((route, endpoint) => {
    const reading = (bytesMax: number | undefined, toAnswer: (body: JsonObject) => unknown): RouteHandler => {
      const answer = async (exchange: Exchange) => {
        const allowance = bodies.allowPassing();
        try {
          exchange.sendJson(toAnswer(await readJsonBody(exchange.req, allowance, bytesMax)));
        } catch (error) {
          sendError(exchange, error);
        } finally {
          allowance.release();
        }
      };
      return withContract(answer, { id: null });
    };
    route("/echo", { POST: reading(BYTES_MAX, (body) => ({ body })) });
    route("/large", { POST: reading(undefined, ({ text }) => ({ length: String(text).length, end: String(text).slice(-4) })) });
    route("/loose", { POST: endpoint({ id: null, isPublic: true, body: z.looseObject({}), handler: (_ctx, { body }) => ({ body }) }) });
  });
});
afterAll(() => server.close());

async function post(body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) {
  const response = await fetch(`${server.baseUrl}/echo`, {
    method: "POST",
    body,
    headers: { "Content-Type": "application/json", ...headers },
  });
  return { status: response.status, headers: response.headers, json: JSON.parse(await response.text()) };
}

function head(...lines: string[]): string {
  return `${["POST /echo HTTP/1.1", "Host: localhost", ...lines].join("\r\n")}\r\n\r\n`;
}

/** A JSON object of exactly this many bytes. */
function bodyOfBytes(bytes: number): string {
  return JSON.stringify({ text: "x".repeat(bytes - '{"text":""}'.length) });
}

describe("the type of a JSON body", () => {
  for (const contentType of [
    "application/json",
    "application/json; charset=utf-8",
    'Application/JSON;charset="UTF-8"',
    "application/json;profile=x; charset=UTF8",
    "application/vnd.api+json",
  ]) {
    it(`accepts ${contentType}`, async () => {
      const answer = await post('{"a":1}', { "Content-Type": contentType });

      expect(answer).toMatchObject({ status: 200, json: { body: { a: 1 } } });
    });
  }

  for (const contentType of [
    "text/plain",
    "application/x-www-form-urlencoded",
    "application/jsonp",
    "application/json; charset=utf-16",
    "json",
  ]) {
    it(`refuses ${contentType} with 415`, async () => {
      const answer = await post('{"a":1}', { "Content-Type": contentType });

      expect(answer).toMatchObject({ status: 415, json: { success: false, error: { code: "UNSUPPORTED_MEDIA_TYPE" } } });
    });
  }

  it("refuses a body without a Content-Type with 415", async () => {
    const answer = await sendRaw(server.port, head("Content-Length: 2", "Connection: close"), "{}");

    expect(answer).toMatch(/^HTTP\/1\.1 415 /);
    expect(bodyOf(answer)).toMatchObject({ status: 415, error: { code: "UNSUPPORTED_MEDIA_TYPE" } });
  });

  it("refuses a compressed body with 415", async () => {
    const answer = await post(gzipSync('{"a":1}'), { "Content-Encoding": "gzip" });

    expect(answer).toMatchObject({ status: 415, json: { error: { code: "UNSUPPORTED_MEDIA_TYPE" } } });
  });

  it("accepts the encoding `identity`", async () => {
    expect(await post('{"a":1}', { "Content-Encoding": "identity" })).toMatchObject({ status: 200 });
  });
});

describe("the size of a JSON body", () => {
  it("accepts a body of the limit's size", async () => {
    expect(await post(bodyOfBytes(BYTES_MAX))).toMatchObject({ status: 200 });
  });

  it("answers 413 to a body of one byte more and closes the connection", async () => {
    const answer = await post(bodyOfBytes(BYTES_MAX + 1));

    expect(answer).toMatchObject({ status: 413, json: { error: { code: "PAYLOAD_TOO_LARGE" } } });
    expect(answer.headers.get("connection")).toBe("close");
  });

  it("answers 413 to a declared length over the limit before any of the body has come", async () => {
    const answer = await sendRaw(server.port, head("Content-Type: application/json", `Content-Length: ${BYTES_MAX + 1}`));

    expect(answer).toMatch(/^HTTP\/1\.1 413 .*\r\n/);
    expect(bodyOf(answer)).toMatchObject({ error: { code: "PAYLOAD_TOO_LARGE" } });
  });

  it("answers 413 to a chunked body as soon as it passes the limit, and closes the connection", async () => {
    const chunk = `${(BYTES_MAX + 1).toString(16)}\r\n${"x".repeat(BYTES_MAX + 1)}\r\n`;

    const answer = await sendRaw(server.port, head("Content-Type: application/json", "Transfer-Encoding: chunked"), chunk);

    expect(answer).toMatch(/^HTTP\/1\.1 413 /);
    expect(answer).toMatch(/\r\nConnection: close\r\n/i);
    expect(bodyOf(answer)).toMatchObject({ error: { code: "PAYLOAD_TOO_LARGE" } });
  });

  it("accepts a chunked body under the limit", async () => {
    const chunks = '5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n';

    const answer = await sendRaw(
      server.port,
      head("Content-Type: application/json", "Transfer-Encoding: chunked", "Connection: close"),
      chunks,
    );

    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(answer).toContain('{"body":{"a":1}}');
  });

  it("answers the refusal to a caller that is still sending a large body", async () => {
    const response = await fetch(`${server.baseUrl}/echo`, {
      method: "POST",
      body: new Uint8Array(8 * 1024 * 1024),
      headers: { "Content-Type": "application/json" },
    });

    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: "PAYLOAD_TOO_LARGE" } });
  });

  it("keeps the connection when a small body was refused unread", async () => {
    const refused = `POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 7\r\n\r\n{"a":1}`;
    const next = head("Content-Type: application/json", "Content-Length: 7", "Connection: close");

    const answer = await sendRaw(server.port, refused, next, '{"a":1}');

    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 404", "HTTP/1.1 200"]);
  });
});

describe("the text of a JSON body", () => {
  const malformed: Readonly<Record<string, string | Uint8Array<ArrayBuffer>>> = {
    nothing: "",
    "white space": "  \n",
    null: "null",
    "an array": "[]",
    "a string": '"x"',
    "a number": "5",
    "broken JSON": '{"a":1',
    "JSON and more": '{"a":1} {"b":2}',
    "a byte order mark": '\uFEFF{"a":1}',
    "invalid UTF-8": Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]),
    "UTF-16": Buffer.from('{"a":1}', "utf16le"),
    NaN: '{"a":NaN}',
  };
  for (const [name, body] of Object.entries(malformed)) {
    it(`answers 400 to ${name}`, async () => {
      expect(await post(body)).toMatchObject({ status: 400, json: { success: false, error: { code: "BAD_REQUEST" } } });
    });
  }

  it("does not quote the body in the message", async () => {
    const answer = await post('{"secret":"hunter2" oops}');

    expect(answer.json.error.message).toBe("The body is not valid JSON (at position 20).");
  });

  it("takes the last of a key that appears twice", async () => {
    expect(await post('{"a":1,"a":2}')).toMatchObject({ status: 200, json: { body: { a: 2 } } });
  });

  it("accepts a body nested as deep as the limit, and refuses one level more", async () => {
    const nested = (levels: number) => `${'{"a":'.repeat(levels - 1)}{}${"}".repeat(levels - 1)}`;

    expect(await post(nested(JSON_DEPTH_MAX))).toMatchObject({ status: 200 });
    expect(await post(nested(JSON_DEPTH_MAX + 1))).toMatchObject({ status: 400 });
  });

  it("accepts as many keys and values as the limits, and refuses one more", async () => {
    const large = (body: string) =>
      fetch(`${server.baseUrl}/large`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
    const keys = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":{}`).join(",")}}`;
    const values = (count: number) =>
      `{"a":[${Array(count - 2)
        .fill("1")
        .join(",")}]}`;
    const objects = (count: number) =>
      `{"a":[${Array(count - 2)
        .fill("{}")
        .join(",")}]}`;

    for (const body of [keys(JSON_KEYS_MAX), values(JSON_VALUES_MAX), objects(JSON_BRACKETS_MAX)])
      expect((await large(body)).status).toBe(200);
    for (const [body, excess] of [
      [keys(JSON_KEYS_MAX + 1), "has more than 20000 keys"],
      [values(JSON_VALUES_MAX + 1), "has more than 400000 values"],
      [objects(JSON_BRACKETS_MAX + 1), "has more than 150000 objects and lists"],
    ] as const) {
      const answer = await large(body);
      expect(answer.status).toBe(400);
      expect(await answer.json()).toMatchObject({ error: { code: "BAD_REQUEST", message: `The body ${excess}.` } });
    }
  });

  it("decodes a large body with characters split across its pieces", async () => {
    for (const lead of ["", "x", "xx", "xxx"]) {
      const text = lead + "é中😀".repeat(100_000);
      const answer = await fetch(`${server.baseUrl}/large`, {
        method: "POST",
        body: JSON.stringify({ text }),
        headers: { "Content-Type": "application/json" },
      });
      expect(await answer.json()).toEqual({ length: text.length, end: "é中😀" });
    }
  });

  it.each([
    ["a NUL", String.raw`{"a":[{"b":"x\u0000"}]}`, "a.0.b", "must not hold a NUL character"],
    [
      "half of a surrogate pair",
      String.raw`{"a":{"b":"\ud83d"}}`,
      "a.b",
      "must not hold half of a surrogate pair (a character that was cut in two)",
    ],
    ["the other half", String.raw`{"a":"\uDE00\ud83d"}`, "a", "must not hold half of a surrogate pair (a character that was cut in two)"],
    ["a NUL in a name", String.raw`{"a":{"\u0000b":1}}`, "a.\0b", "must not hold a NUL character"],
  ])("refuses %s, and names its field", async (_what, body, param, problem) => {
    expect(await post(body)).toMatchObject({
      status: 400,
      json: { error: { code: "BAD_REQUEST", param, message: `${param}: ${problem}`, details: { fieldErrors: { [param]: [problem] } } } },
    });
    // A large body is read in another way.
    const large = `${body.slice(0, -1)},"large":"${"x".repeat(TURN_BYTES)}"}`;
    expect(await post(large)).toMatchObject({ status: 400, json: { error: { param } } });
  });

  it("takes whole surrogate pairs and other escapes", async () => {
    expect(await post(String.raw`{"a":"\ud83d\ude00\u00e9\\u0000"}`)).toMatchObject({ status: 200, json: { body: { a: "😀é\\u0000" } } });
  });

  it("answers 400 to a body nested 20,000 levels deep", async () => {
    expect(await post(`{"a":${"[".repeat(20_000)}${"]".repeat(20_000)}}`)).toMatchObject({
      status: 400,
      json: { error: { code: "BAD_REQUEST" } },
    });
  });

  for (const body of ['{"__proto__":{"admin":true}}', '{"constructor":{"prototype":{"admin":true}}}']) {
    it(`lets ${body} change no other object`, async () => {
      const response = await fetch(`${server.baseUrl}/loose`, { method: "POST", body, headers: { "Content-Type": "application/json" } });

      expect(response.status).toBe(200);
      expect({}).not.toHaveProperty("admin");
      expect(Object).not.toHaveProperty("admin");
    });
  }
});

describe("a body that never ends", () => {
  it("is not answered when the caller leaves, and the next request is", async () => {
    const socket = connect(server.port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(head("Content-Type: application/json", "Content-Length: 100"));
    socket.write('{"a":');
    socket.destroy();
    await once(socket, "close");

    expect(await post("{}")).toMatchObject({ status: 200 });
    expect(server.logged).toEqual([]);
  });

  it("is answered with 400 when the server's time for a request is up", async () => {
    const impatient = await serve(
      (route, endpoint) => {
        route("/echo", { POST: endpoint({ id: null, isPublic: true, body: z.looseObject({}), handler: () => ({}) }) });
      },
      anonymous,
      { requestTimeout: 100, headersTimeout: 100, connectionsCheckingInterval: 50 },
    );

    const answer = await sendRaw(impatient.port, head("Content-Type: application/json", "Content-Length: 100"), '{"a":');

    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(bodyOf(answer)).toMatchObject({ error: { code: "BAD_REQUEST", message: "The request did not arrive in time." } });
    expect(impatient.logged).toEqual([]);
    await impatient.close();
  });
});
