/** Bad input on REST routes: the refusal and its code, without a charge or a request to an upstream. */

import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createApiKeyText } from "../../src/lib/api-key-format.js";
import {
  API_KEY_ALLOWED_MODELS_MAX,
  API_KEY_EXPIRES_IN_SECONDS_MAX,
  CHAT_MESSAGES_MAX,
  CREDITS_MAX,
  JSON_BODY_BYTES_MAX,
  JSON_DEPTH_MAX,
} from "../../src/limits.js";
import { execute } from "../graphql/client.js";
import { ChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { hang, json, raw, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, type UsageJson, waitForUsage } from "./client.js";
import { createStranger, expireKey } from "./seed.js";
import { bodyOf, sendRaw } from "./serve.js";

const CHAT = "/v1/chat/completions";
const MESSAGES = [{ role: "user", content: "Hello" }];

let app: TestApp;
let client: Client;
let port: number;

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["pictures.example"] } });
  client = createClient(app.baseUrl, app.key);
  port = Number(new URL(app.baseUrl).port);
});
afterAll(() => app.close());

async function state() {
  const balance = (await client.get("/account/balance")).json();
  const { usage } = (await client.get("/account/usage?limit=1")).json<UsageJson>();
  return { balance, newest: usage[0]?.id, upstreamRequests: app.upstream.requests.length };
}

/** The answer is this error, and nothing was charged, recorded or asked of an upstream. */
async function expectRefused(send: () => Promise<Answer>, status: number, code: string): Promise<Answer> {
  const before = await state();
  const answer = await send();
  expectEnvelope(answer, status, code);
  expect(await state()).toEqual(before);
  return answer;
}

function chat(body: object, key = app.key): Promise<Answer> {
  return client.post(CHAT, { model: "acme/chat", messages: MESSAGES, ...body }, { key });
}

describe("keys", () => {
  it("refuses a chat without one (1)", async () => {
    await expectRefused(() => client.post(CHAT, { messages: MESSAGES }, { key: null }), 401, "UNAUTHORIZED");
  });

  it("refuses a mistyped one without looking it up (2)", async () => {
    const mistyped = `${app.key.slice(0, -1)}${app.key.endsWith("w") ? "x" : "w"}`;

    await expectRefused(() => chat({}, mistyped), 401, "UNAUTHORIZED");
    // A look-up would make it a promise.
    expect(() => app.services.apiKeys.authenticate(mistyped)).toThrow();
  });

  it("refuses an expired, a revoked and an unknown one, each with its own message (3)", async () => {
    const [expired, revoked] = [await createKey(app), await createKey(app)];
    await expireKey(app, expired.id);
    await client.request("DELETE", `/account/keys/${revoked.id}`);
    const unknown = createApiKeyText("sk");

    const messages: unknown[] = [];
    for (const key of [expired.key, revoked.key, unknown]) {
      const answer = await expectRefused(() => chat({}, key), 401, "UNAUTHORIZED");
      messages.push(answer.json<{ error: { message: string } }>().error.message);
    }
    expect(messages).toEqual([
      expect.stringMatching(/^The API key expired at \S+\.$/),
      expect.stringMatching(/^The API key was revoked at \S+\.$/),
      "The API key is unknown to this gateway.",
    ]);
  });

  it("refuses two of them (4)", async () => {
    await expectRefused(() => client.post(CHAT, {}, { headers: { Authorization: `Bearer Bearer ${app.key}` } }), 401, "UNAUTHORIZED");
  });

  it("refuses one that is long, not ASCII or holds a NUL (5)", async () => {
    for (const key of [`sk_${"x".repeat(10 * 1024)}`, "sk_ünïcödé"]) {
      await expectRefused(
        () => client.get("/account/key", { headers: { Authorization: `Bearer ${Buffer.from(key).toString("latin1")}` } }),
        401,
        "UNAUTHORIZED",
      );
    }
    await expectRefused(() => client.get("/account/key?key=sk_%00", { key: null }), 401, "UNAUTHORIZED");
    const nul = await sendRaw(port, `GET /account/key HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer sk_\0\r\n\r\n`);
    expect(bodyOf(nul)).toMatchObject({ status: 400, error: { code: "BAD_REQUEST" } });
  });
});

describe("account routes", () => {
  for (const prefix of ["/account", "/api/account"]) {
    it(`refuse operations without the permission, under ${prefix} (6, 7)`, async () => {
      const publishable = await createKey(app, { type: "publishable" });
      const secret = await createKey(app);

      await expectRefused(() => client.get(`${prefix}/keys`, { key: publishable.key }), 403, "FORBIDDEN");
      await expectRefused(() => client.get(`${prefix}/usage`, { key: secret.key }), 403, "FORBIDDEN");
    });

    it(`refuse to revoke the calling key, under ${prefix} (8)`, async () => {
      const { data } = (await client.get(`${prefix}/keys`)).json<{ data: { id: string; start: string }[] }>();
      const own = data.find(({ start }) => start === app.key.slice(0, 10));

      await expectRefused(() => client.request("DELETE", `${prefix}/keys/${own?.id}`), 400, "BAD_REQUEST");
      expect((await client.get(`${prefix}/key`)).status).toBe(200);
    });

    it(`give no key the permission to manage keys, under ${prefix} (9)`, async () => {
      const answer = await client.post(`${prefix}/keys`, { name: "x", accountPermissions: ["keys", "usage"] });

      expect(answer).toMatchObject({ status: 200 });
      expect(answer.json()).toMatchObject({ permissions: ["usage"] });
    });

    const wrongKeys: readonly (readonly [what: string, body: string])[] = [
      ["no name", "{}"],
      ["an empty name", '{"name":""}'],
      ["a name of 121 characters", JSON.stringify({ name: "x".repeat(121) })],
      ["a name that is no string", '{"name":5}'],
      ["a NUL in the name", '{"name":"a\\u0000b"}'],
      ["an unknown type", '{"name":"x","type":"root"}'],
      ["an unknown field", '{"name":"x","admin":true}'],
      ["a prototype", '{"name":"x","__proto__":{"admin":true}}'],
      ["an unknown permission", '{"name":"x","accountPermissions":["root"]}'],
      ["a model that is no string", '{"name":"x","allowedModels":[5]}'],
      ["a NUL in a model", '{"name":"x","allowedModels":["a\\u0000b"]}'],
      ["too many models", JSON.stringify({ name: "x", allowedModels: Array(API_KEY_ALLOWED_MODELS_MAX + 1).fill("a/b") })],
      ...["0", "-1", "1.5", String(API_KEY_EXPIRES_IN_SECONDS_MAX + 1), "1e309", '"60"'].map(
        (value) => [`expiresIn ${value}`, `{"name":"x","expiresIn":${value}}`] as const,
      ),
      ...["-1", '"5"', "1e30", "1e309", "NaN", "0.0000000001", String(CREDITS_MAX + 1)].map(
        (value) => [`creditBudget ${value}`, `{"name":"x","creditBudget":${value}}`] as const,
      ),
    ];
    for (const [what, body] of wrongKeys) {
      it(`refuse a key with ${what}, under ${prefix} (10, 11)`, async () => {
        const before = (await client.get(`${prefix}/keys`)).text;

        await expectRefused(() => client.post(`${prefix}/keys`, body), 400, "BAD_REQUEST");
        expect((await client.get(`${prefix}/keys`)).text).toBe(before);
      });
    }

    for (const query of [
      "days=0",
      "days=91",
      "limit=0",
      "limit=50001",
      "before=yesterday",
      "before=2026-02-30T00:00:00Z",
      "before_id=x",
      "format=xml",
    ]) {
      it(`refuse usage with ${query}, under ${prefix} (42, 44)`, async () => {
        await expectRefused(() => client.get(`${prefix}/usage?${query}`), 400, "BAD_REQUEST");
        await expectRefused(() => client.get(`${prefix}/key/usage?${query}`), 400, "BAD_REQUEST");
      });
    }

    it(`take usage at the bounds, under ${prefix} (42)`, async () => {
      for (const query of ["days=1", "days=90", "limit=1", "limit=50000", "format=csv", "before=2026-01-31T12:00:00Z"]) {
        expect((await client.get(`${prefix}/usage?${query}`)).status).toBe(200);
      }
      for (const query of ["days=0", "days=91", "format=xml"]) {
        await expectRefused(() => client.get(`${prefix}/usage/daily?${query}`), 400, "BAD_REQUEST");
      }
    });
  }

  it("take a key at the bounds (10, 11)", async () => {
    const name = "x".repeat(120);
    for (const body of [
      { name },
      { name, expiresIn: 1 },
      { name, expiresIn: API_KEY_EXPIRES_IN_SECONDS_MAX },
      { name, creditBudget: 0 },
      { name, creditBudget: CREDITS_MAX },
    ]) {
      expect((await client.post("/account/keys", body)).status).toBe(200);
    }
  });
});

describe("money", () => {
  it("calls no upstream for an account that cannot pay, and serves it free models (12)", async () => {
    const { key } = await createStranger(app);

    await expectRefused(() => chat({}, key), 402, "INSUFFICIENT_BALANCE");
    await expectRefused(() => chat({ stream: true }, key), 402, "INSUFFICIENT_BALANCE");
    expect((await chat({ model: "acme/free" }, key)).status).toBe(200);
  });

  it("lets exactly those of a hundred at once through that the budget pays for (13)", async () => {
    const { key } = await createKey(app, { creditBudget: 10, accountPermissions: ["balance"] });
    app.upstream.replyAlways(json(chatCompletion({ content: "x", usage: wireUsage(5, 1) })));

    const answers = await Promise.all(Array.from({ length: 100 }, () => chat({ model: "acme/dear", max_tokens: 1 }, key)));

    app.upstream.replyAlways(null);
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(10);
    const refused = answers.filter(({ status }) => status !== 200);
    for (const answer of refused) expectEnvelope(answer, 402, "KEY_BUDGET_EXHAUSTED");
    expect((await client.get("/account/balance", { key })).json()).toEqual({ balance: 0 });
  });
});

describe("models", () => {
  it("refuses one that the key may not call (14)", async () => {
    const some = await createKey(app, { allowedModels: ["acme/free"] });
    const none = await createKey(app, { allowedModels: [] });

    await expectRefused(() => chat({}, some.key), 403, "FORBIDDEN");
    await expectRefused(() => chat({ model: "acme/free" }, none.key), 403, "FORBIDDEN");
    expect((await chat({ model: "acme/free" }, some.key)).status).toBe(200);
  });

  it("refuses an unknown one, also another account's private one, and names the closest (15, 16)", async () => {
    for (const model of ["acme/chatt", "community/somebody/private", "", "x".repeat(254), "__proto__", "a\0b"]) {
      const answer = await expectRefused(() => chat({ model }), 400, "BAD_REQUEST");
      expect(answer.json()).toMatchObject({ error: { param: "model" } });
    }
    expect((await chat({ model: "acme/chatt" })).text).toContain("acme/chat");
    expect((await chat({ model: "chat" })).status).toBe(200);
  });
});

describe("chat bodies", () => {
  const wrong: Readonly<Record<string, object>> = {
    "no messages": { messages: undefined },
    "an empty list of messages": { messages: [] },
    "messages that are no list": { messages: "Hello" },
    "one message too many": { messages: Array(CHAT_MESSAGES_MAX + 1).fill(MESSAGES[0]) },
    "a message without a role": { messages: [{ content: "x" }] },
    "the role root": { messages: [{ role: "root", content: "x" }] },
    "a message without content": { messages: [{ role: "user" }] },
    "content that is a number": { messages: [{ role: "user", content: 5 }] },
    "a content part of an unknown type": { messages: [{ role: "user", content: [{ type: "smell" }] }] },
    "a text part without text": { messages: [{ role: "user", content: [{ type: "text" }] }] },
    "temperature -0.1": { temperature: -0.1 },
    "temperature 2.1": { temperature: 2.1 },
    'temperature "1"': { temperature: "1" },
    "temperature of a NUL": { temperature: "\0" },
    "seed -2": { seed: -2 },
    "seed 1.5": { seed: 1.5 },
    "stream as a string": { stream: "true" },
    "max_tokens 0": { max_tokens: 0 },
    "n 0": { n: 0 },
    "an unknown response format": { response_format: { type: "xml" } },
    "two different caps": { max_tokens: 1, max_completion_tokens: 4096 },
    "a model that is a number": { model: 5 },
  };
  for (const [what, body] of Object.entries(wrong)) {
    it(`refuses ${what}, on both routes (17, 18, 24)`, async () => {
      const answer = await expectRefused(() => chat(body), 400, "BAD_REQUEST");

      expect(answer.json()).toMatchObject({
        error: { param: expect.any(String), details: { fieldErrors: expect.any(Object), formErrors: [] } },
      });
      await expectRefused(() => client.post("/text", { messages: MESSAGES, ...body }), 400, "BAD_REQUEST");
    });
  }

  it("takes the bounds (17, 18)", async () => {
    const right: readonly object[] = [
      { temperature: 0 },
      { temperature: 2 },
      { seed: -1 },
      { max_tokens: 5, max_completion_tokens: 5 },
      { messages: Array(CHAT_MESSAGES_MAX).fill(MESSAGES[0]), model: "acme/free" },
    ];
    for (const body of right) expect((await chat(body)).status).toBe(200);
  });

  const bodies: Readonly<Record<string, string>> = {
    null: "null",
    "an array": "[]",
    "a string": '"x"',
    nothing: "",
    "broken JSON": '{"messages":',
    "a byte order mark": `\uFEFF${JSON.stringify({ messages: MESSAGES })}`,
    "JSON nested one level too deep": `{"a":${"[".repeat(JSON_DEPTH_MAX)}${"]".repeat(JSON_DEPTH_MAX)}}`,
    "JSON nested 20,000 levels deep": `{"messages":${"[".repeat(20_000)}${"]".repeat(20_000)}}`,
  };
  for (const [what, body] of Object.entries(bodies)) {
    it(`refuses ${what} (19, 20)`, async () => {
      await expectRefused(() => client.request("POST", CHAT, { body }), 400, "BAD_REQUEST");
    });
  }

  it("takes the last of a key that appears twice (19)", async () => {
    const body = `{"model":"acme/nothing","model":"acme/free","messages":${JSON.stringify(MESSAGES)}}`;

    expect((await client.request("POST", CHAT, { body })).headers.get("x-model-used")).toBe("acme/free");
  });

  it("refuses a body over the limit, declared or sent, and closes the connection (21)", async () => {
    const head = `POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.key}\r\nContent-Type: application/json\r\n`;
    const before = await state();

    const declared = await sendRaw(port, `${head}Content-Length: ${JSON_BODY_BYTES_MAX + 1}\r\n\r\n`);
    const block = `100000\r\n${" ".repeat(0x100000)}\r\n`;
    const sent = await sendRaw(port, `${head}Transfer-Encoding: chunked\r\n\r\n`, ...Array(JSON_BODY_BYTES_MAX / 0x100000 + 1).fill(block));

    for (const answer of [declared, sent]) {
      expect(answer).toMatch(/^HTTP\/1\.1 413 /);
      expect(bodyOf(answer)).toMatchObject({ status: 413, error: { code: "PAYLOAD_TOO_LARGE" } });
    }
    expect(await state()).toEqual(before);
  });

  it("refuses another content type (22)", async () => {
    for (const contentType of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]) {
      const options = { headers: { "Content-Type": contentType }, body: JSON.stringify({ messages: MESSAGES }) };
      await expectRefused(() => client.request("POST", CHAT, options), 415, "UNSUPPORTED_MEDIA_TYPE");
    }
  });

  it("lets prototype keys change nothing (23)", async () => {
    for (const key of ["__proto__", "constructor"]) {
      const body = `{"model":"acme/free","messages":${JSON.stringify(MESSAGES)},"${key}":{"admin":true,"prototype":{"admin":true}}}`;

      expect((await client.request("POST", CHAT, { body })).status).toBe(200);
      expect({}).not.toHaveProperty("admin");
    }
  });
});

describe("paths", () => {
  it("takes a prompt that looks like a file name, and refuses a path that cannot be decoded (39)", async () => {
    expect((await client.get("/text/..%2f..%2fetc%2fpasswd")).text).toBe("Hello, world.");
    for (const path of ["/text/%00", "/text/a%00b", "/text/%zz", "/text/%", "/v1/models/%00"]) {
      await expectRefused(() => client.get(path), 400, "BAD_REQUEST");
    }
    const long = await sendRaw(
      port,
      `GET /text/${"a".repeat(1024 * 1024)} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.key}\r\n\r\n`,
    );
    expect(bodyOf(long)).toMatchObject({ status: 400, error: { code: "BAD_REQUEST" } });
  });
});

describe("addresses that an upstream would fetch", () => {
  const user = (part: object) => ({ messages: [{ role: "user", content: [{ type: "text", text: "What is https://10.0.0.1/?" }, part] }] });
  const picture = (url: string) => user({ type: "image_url", image_url: { url } });
  const asked = (part: object) => ({ model: "acme/chat", input: [{ role: "user", content: [part] }] });
  const AT = "messages.0.content.1";

  it.each([
    ["the cloud's own data", CHAT, picture("http://169.254.169.254/latest/meta-data"), `${AT}.image_url.url`],
    ["a private address", CHAT, picture("https://10.0.0.1/a.png"), `${AT}.image_url.url`],
    ["this machine", CHAT, picture("https://[::1]/a.png"), `${AT}.image_url.url`],
    ["a name of the network's own", CHAT, picture("https://upstream/a.png"), `${AT}.image_url.url`],
    ["an address of another kind", CHAT, picture(" FILE:///etc/passwd"), `${AT}.image_url.url`],
    ["a picture as a text", CHAT, user({ type: "image_url", image_url: "https://127.0.0.1/" }), `${AT}.image_url`],
    [
      "a film in a stream",
      CHAT,
      { ...user({ type: "video_url", video_url: { url: "http://10.0.0.1/" } }), stream: true },
      `${AT}.video_url.url`,
    ],
    ["a document", CHAT, user({ type: "file", file: { file_url: "http://10.0.0.1/" } }), `${AT}.file.file_url`],
    [
      "a recording",
      CHAT,
      user({ type: "input_audio", input_audio: { data: "http://10.0.0.1/", format: "wav" } }),
      `${AT}.input_audio.data`,
    ],
    ["Responses", "/v1/responses", asked({ type: "input_image", image_url: "http://10.0.0.1/" }), "messages.0.content.0.image_url.url"],
    ["moderations", "/v1/moderations", { input: [{ type: "image_url", image_url: { url: "http://10.0.0.1/" } }] }, "input.0.image_url.url"],
  ])("may not be %s", async (_what, path, body, param) => {
    const model = path === CHAT ? { model: "acme/chat" } : {};
    const answer = await expectRefused(() => client.post(path, { ...model, ...body }), 400, "BAD_REQUEST");

    expect(answer.json<{ error: { param: string } }>().error.param).toBe(param);
  });

  it("may not be such through GraphQL either", async () => {
    const parts = [{ image: { url: "http://169.254.169.254/" } }];
    const calls = app.upstream.requests.length;

    const answer = await execute(app, ChatDocument, { input: { model: "acme/chat", messages: [{ role: "USER", parts }] } });

    expect(answer).toMatchObject({ errors: [{ extensions: { code: "BAD_REQUEST", param: "messages.0.parts.0.image.url" } }] });
    expect(app.upstream.requests.length).toBe(calls);
  });

  it("may be data: URLs, hosts that the operator allows, and the media host's own links", async () => {
    const { url: own } = (await client.post("/media/upload", { data: "aGVsbG8=" })).json<{ url: string }>();
    for (const url of ["data:image/png;base64,iVBORw0KGgo=", "http://pictures.example/a.png", own]) {
      app.upstream.replyNext(json(chatCompletion()));
      expect((await chat(picture(url))).status, url).toBe(200);
    }
  });

  it("are of a bounded number of hosts", async () => {
    const content = Array.from({ length: 17 }, (_, index) => ({ type: "image_url", image_url: { url: `https://a${index}.invalid/` } }));

    const answer = await expectRefused(() => chat({ messages: [{ role: "user", content }] }), 400, "BAD_REQUEST");

    expect(answer.text).toContain("At most 16 hosts");
  });
});

describe("upstreams", () => {
  it("charges once for a stream that the caller drops at its third chunk, and closes the upstream (25)", async () => {
    app.upstream.replyNext(sse(chatChunks(["one ", "two ", "three "], { finishReason: null, usage: null }), { end: "hang" }));
    const body = JSON.stringify({ model: "acme/chat", messages: MESSAGES, stream: true });
    const socket = connect(port, "127.0.0.1");
    await once(socket, "connect");
    socket.write(
      `POST ${CHAT} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${app.key}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
    let text = "";
    for await (const piece of socket) {
      text += piece;
      if (text.includes("three ")) break;
    }
    const generation = /X-Generation-Id: (\S+)/i.exec(text)?.[1];

    const row = await waitForUsage(client, ({ request_id }) => request_id === generation);

    expect(row).toMatchObject({
      status: "cancelled",
      usage_source: "partial",
      output_text_tokens: expect.toSatisfy((count: number) => count > 0),
    });
    await app.upstream.requests.at(-1)?.closedByClient;
    const { usage } = (await client.get("/account/usage")).json<UsageJson>();
    expect(usage.filter(({ request_id }) => request_id === generation)).toHaveLength(1);
  });

  it("reports a stream that the upstream cuts in an error event, and charges the delivered part (27)", async () => {
    app.upstream.replyNext(sse(chatChunks(["one ", "two "], { finishReason: null, usage: null }), { end: "cut" }));

    const answer = await chat({ stream: true });

    expect(answer.status).toBe(200);
    expect(answer.text).toMatch(/\n\ndata: \{"error":\{"code":"UPSTREAM_ERROR",.*\}\}\n\n$/);
    expect(answer.text).not.toContain("[DONE]");
    const row = await waitForUsage(client, ({ request_id }) => request_id === answer.headers.get("x-generation-id"));
    expect(row).toMatchObject({ usage_source: "partial", cost_usd: expect.toSatisfy((cost: number) => cost > 0) });
  });

  it("does not follow one that redirects (30)", async () => {
    const elsewhere: FakeUpstream = await startFakeUpstream();
    const before = await client.get("/account/usage?limit=1");
    app.upstream.replyNext(raw("", { status: 302, headers: { location: `${elsewhere.baseUrl}/chat/completions` } }));

    expectEnvelope(await chat({}), 502, "UPSTREAM_ERROR");

    expect(elsewhere.requests).toHaveLength(0);
    expect((await client.get("/account/usage?limit=1")).text).toBe(before.text);
    await elsewhere.close();
  });
});

describe("an upstream that hangs", () => {
  it("is given up, answered with 504 and not charged for (26)", async () => {
    const impatient = await createTestApp({ config: { timeouts: { connectMs: 10_000, idleMs: 1_000, totalMs: 2_000 } } });
    try {
      const own = createClient(impatient.baseUrl, impatient.key);
      impatient.upstream.replyAlways(hang());

      for (const stream of [false, true]) {
        expectEnvelope(await own.post(CHAT, { model: "acme/chat", messages: MESSAGES, stream }), 504, "UPSTREAM_TIMEOUT");
      }

      expect((await own.get("/account/usage")).json()).toMatchObject({ count: 0 });
      expect((await own.get("/account/balance")).json()).toEqual({ balance: 100 });
    } finally {
      await impatient.close();
    }
  });
});
