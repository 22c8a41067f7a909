/**
 * The worst bodies that the limits let through hold the event loop for no longer than it takes to parse and write the largest one twice
 * (some 50 ms): each route that takes a body, at the limits of keys, values, depth and texts, and with as many messages, tools and parts as
 * there may be. Whether the route takes the body or refuses it is nothing to this test, as long as nothing fails.
 */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { request } from "node:http";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  CHAT_MESSAGES_MAX,
  EMBEDDING_INPUTS_MAX,
  JSON_BODY_BYTES_MAX,
  JSON_BRACKETS_MAX,
  JSON_DEPTH_MAX,
  JSON_KEYS_MAX,
  JSON_TEXTS_MAX,
  JSON_VALUES_MAX,
} from "../../src/limits.js";
import { toTemplate } from "../../src/rest/route.js";
import { recordRoutes } from "../../src/rest/router.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { compile } from "../support/compile.js";
import { bestHold, longestHoldMs, showHold } from "../support/loop-holds.js";

type Json = Record<string, unknown>;

let app: TestApp;
let upstream: Worker;
let folder: string;

beforeAll(async () => {
  const compiled = await compile(fileURLToPath(new URL("../support/programs/quiet-upstream.ts", import.meta.url)));
  ({ folder } = compiled);
  upstream = new Worker(compiled.program);
  const [port] = (await once(upstream, "message")) as [number];
  const far = (id: string, modality: string, prices: object) => ({ id, modality, upstream: "far", upstreamModel: "m", title: id, prices });
  app = await createTestApp({
    config: {
      rateLimits: {
        anonymousRequestsPer10Seconds: 1_000_000,
        publishableRequestsPerMinute: 1_000_000,
        publishableCreditsPerHour: 10n ** 9n,
      },
    },
    upstreams: [
      { id: "far", wireFormat: "openai", baseUrl: `http://127.0.0.1:${port}/v1` },
      { id: "silent", wireFormat: "openai", baseUrl: `http://127.0.0.1:${port}/silence` },
    ],
    models: [
      { ...far("far/silent", "text", { promptTextPrice: "0", completionTextPrice: "0" }), upstream: "silent" },
      far("far/chat", "text", { promptTextPrice: "0", completionTextPrice: "0" }),
      far("far/image", "image", { completionImagePrice: "0" }),
      far("far/speech", "speech", { completionAudioPrice: "0" }),
      far("far/embedding", "embedding", { promptTextPrice: "0" }),
      far("far/moderation", "moderation", { promptTextPrice: "0" }),
      far("far/video", "video", { completionVideoPrice: "0" }),
    ],
  });
});
afterAll(async () => {
  await app.close();
  await upstream.terminate();
  await rm(folder, { recursive: true, force: true });
});

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
}

/** The body is built before, outside of the measured time. */
function send({ method, path, body, headers }: Sent): Promise<{ readonly status: number; readonly text: string }> {
  return new Promise((resolve, reject) => {
    const all = { authorization: `Bearer ${app.key}`, "content-length": body.length, connection: "close", ...headers };
    const sending = request(app.baseUrl + path, { method, headers: all }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString("latin1", 0, 1_000) }));
      response.on("error", reject);
    });
    sending.on("error", reject);
    sending.end(body);
  });
}

function json(method: string, path: string, value: unknown, headers: Readonly<Record<string, string>> = {}): Sent {
  return { method, path, body: Buffer.from(JSON.stringify(value)), headers: { "content-type": "application/json", ...headers } };
}

/** Sends it and answers its status; the loop was not held for long. */
async function expectShortHolds(sent: Sent): Promise<number> {
  const mostMs = longestHoldMs();
  const { longestMs, result } = await bestHold(() => send(sent), mostMs);
  const told = `${sent.method} ${sent.path} ${sent.body.toString("latin1", 0, 80)}: ${result.status} ${result.text.slice(0, 200)}`;
  showHold(longestMs, mostMs, `REST ${expect.getState().currentTestName} ${told}`);
  expect(result.status, told).toBeLessThan(500);
  expect(longestMs, told).toBeLessThan(mostMs);
  return result.status;
}

const keys = (count: number, value: unknown = 1): Json =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, value]));
/** Room for the rest of the body. */
const REST = 400;
const deep = (levels: number): unknown => {
  let value: unknown = [];
  for (let level = 1; level < levels; level += 1) value = [value];
  return value;
};
const DEEP = deep(JSON_DEPTH_MAX - 10);

/** Named after the limit that each reaches. */
const WORST: Readonly<Record<string, () => unknown>> = {
  keys: () => keys(JSON_KEYS_MAX - REST),
  "keys of many objects": () => Array.from({ length: JSON_KEYS_MAX - REST }, (_, index) => ({ [`k${index}`]: index })),
  "empty objects": () => Array(JSON_BRACKETS_MAX - REST).fill({}),
  "empty objects and numbers": () => [...Array(JSON_BRACKETS_MAX - REST).fill({}), ...Array(JSON_VALUES_MAX - JSON_BRACKETS_MAX).fill(1.5)],
  numbers: () => Array(JSON_VALUES_MAX - REST).fill(1.5),
  texts: () => Array.from({ length: JSON_TEXTS_MAX - REST }, (_, index) => `t${index}`),
  depth: () => Array(Math.floor((JSON_BRACKETS_MAX - REST) / (JSON_DEPTH_MAX - 10))).fill(DEEP),
  "a long text": () => "ä ".repeat(2 ** 20),
};

const routes = recordRoutes().flatMap(({ path, methods }) =>
  Object.entries(methods).flatMap(([method, { body, isPage, example }]) => {
    const template = toTemplate(path);
    // The same routes are at two places.
    if (!body || isPage || path.startsWith("/api/account")) return [];
    return [
      {
        name: `${method} ${template}`,
        method,
        path: template.replace(/\{\w+\}/g, "x"),
        example: (example?.body ?? {}) as Json,
      },
    ];
  }),
);

/** All of them are read alike. */
const READ: readonly string[] = ["empty objects", "texts"];

describe.each(READ)("a body at the limit of %s", (what) => {
  const worst = WORST[what]?.();

  it.each(routes.map((one) => [one.name, one] as const))("in a field that is not known to %s", async (_name, { method, path, example }) => {
    await expectShortHolds(json(method, path, { ...example, zz: worst }));
  });
});

describe("a body of as many unknown fields as there may be", () => {
  it.each(routes.map((one) => [one.name, one] as const))("%s", async (_name, { method, path, example }) => {
    await expectShortHolds(json(method, path, { ...example, ...keys(JSON_KEYS_MAX - REST) }));
  });
});

const GENERATIONS: readonly (readonly [path: string, body: Json, fields: readonly string[]])[] = [
  [
    "/v1/chat/completions",
    { model: "far/chat", messages: [{ role: "user", content: "a" }] },
    ["messages", "stop", "tools", "tool_choice", "response_format", "provider_options", "metadata"],
  ],
  ["/v1/responses", { model: "far/chat", input: "a" }, ["input", "tools", "text", "reasoning", "metadata", "include"]],
  ["/v1/images/generations", { model: "far/image", prompt: "a" }, ["prompt", "image", "provider_options"]],
  ["/v1/audio/speech", { model: "far/speech", input: "a" }, ["input", "voice"]],
  ["/v1/embeddings", { model: "far/embedding", input: "a" }, ["input"]],
  ["/v1/moderations", { model: "far/moderation", input: "a" }, ["input"]],
  ["/v1/videos", { model: "far/video", prompt: "a" }, ["input_reference"]],
];

describe.each(Object.entries(WORST))("a generation at the limit of %s", (what, make) => {
  const worst = make();

  it.each(GENERATIONS)("through an upstream: %s", async (path, body, fields) => {
    await expectShortHolds(json("POST", path, { ...body, zz: worst }));
    if (what === "numbers" || what === "depth" || what === "empty objects and numbers") return;
    for (const field of fields) await expectShortHolds(json("POST", path, { ...body, [field]: worst }));
  });

  it("with an Idempotency-Key", async () => {
    const body = { model: "far/chat", messages: [{ role: "user", content: "a" }], zz: worst };
    const key = `hold-${what.replaceAll(" ", "-")}`;
    await expectShortHolds(json("POST", "/v1/chat/completions", body, { "idempotency-key": key }));
  });

  it("with safety features", async () => {
    const body = { model: "far/chat", messages: [{ role: "user", content: "a" }], safe: "secrets,privacy", zz: worst };
    await expectShortHolds(json("POST", "/v1/chat/completions", body));
  });
});

const CHAT = { model: "far/chat", messages: [{ role: "user", content: "a" }] };
const message = { role: "user", content: "a" };
const call = (index: number) => ({ id: `c${index}`, type: "function", function: { name: "f", arguments: "{}" } });
const many = <Item>(count: number, item: (index: number) => Item) => Array.from({ length: count }, (_, index) => item(index));

/** Good ones, of as much as the limits let through. */
const MANY: Readonly<Record<string, readonly [path: string, body: Json]>> = {
  "messages of a chat": ["/v1/chat/completions", { ...CHAT, messages: many(CHAT_MESSAGES_MAX, () => message) }],
  "parts of a message": [
    "/v1/chat/completions",
    { ...CHAT, messages: [{ role: "user", content: many(9_000, (index) => ({ type: "text", text: `a${index}` })) }] },
  ],
  "tools of a chat": [
    "/v1/chat/completions",
    { ...CHAT, tools: many(4_900, (index) => ({ type: "function", function: { name: `f${index}`, description: "d" } })) },
  ],
  "properties of a tool": [
    "/v1/chat/completions",
    { ...CHAT, tools: [{ type: "function", function: { name: "f", parameters: { type: "object", properties: keys(19_000, {}) } } }] },
  ],
  "calls of a message": [
    "/v1/chat/completions",
    { ...CHAT, messages: [{ role: "assistant", content: null, tool_calls: many(3_900, call) }, ...many(2, () => message)] },
  ],
  "fields of a message": ["/v1/chat/completions", { ...CHAT, messages: [{ ...message, ...keys(19_900) }] }],
  "stop sequences": ["/v1/chat/completions", { ...CHAT, model: "sandbox/text", stop: many(99_000, (index) => `s${index}`) }],
  "messages of a streamed chat": ["/v1/chat/completions", { ...CHAT, stream: true, messages: many(CHAT_MESSAGES_MAX, () => message) }],
  "items of a response": ["/v1/responses", { model: "far/chat", input: many(CHAT_MESSAGES_MAX, () => message) }],
  "calls of a response": [
    "/v1/responses",
    { model: "far/chat", input: many(4_900, (index) => ({ type: "function_call", call_id: `c${index}`, name: "f", arguments: "{}" })) },
  ],
  "tools of a response": [
    "/v1/responses",
    { model: "far/chat", input: "a", tools: many(6_000, (index) => ({ type: "function", name: `f${index}`, description: "d" })) },
  ],
  "tokens of embeddings": ["/v1/embeddings", { model: "far/embedding", input: many(40, () => Array(7_500).fill(1_234)) }],
  "one input of tokens": ["/v1/embeddings", { model: "far/embedding", input: Array(300_000).fill(1_234) }],
  "inputs of embeddings": [
    "/v1/embeddings",
    { model: "far/embedding", input: many(EMBEDDING_INPUTS_MAX, (index) => `text ${index} ${"word ".repeat(100)}`) },
  ],
  "inputs of a moderation": [
    "/v1/moderations",
    { model: "far/moderation", input: many(2_048, (index) => `text ${index} ${"word ".repeat(100)}`) },
  ],
};

describe("a generation of many", () => {
  it.each(Object.entries(MANY))("%s", async (_what, [path, body]) => {
    await expectShortHolds(json("POST", path, body));
  });

  it("takes input at its limits", async () => {
    for (const what of ["messages of a chat", "parts of a message", "tools of a chat", "calls of a message", "items of a response"]) {
      const [path, body] = MANY[what] as readonly [string, Json];
      expect((await send(json("POST", path, body))).status, what).toBe(200);
    }
  });
});

describe("a text of as many bytes as there may be", () => {
  const text = "x".repeat(JSON_BODY_BYTES_MAX - 1_000);

  it.each([
    ["a message", "/v1/chat/completions", { ...CHAT, messages: [{ role: "user", content: text }] }],
    [
      "many messages",
      "/v1/chat/completions",
      { ...CHAT, messages: many(100, () => ({ role: "user", content: text.slice(0, text.length / 101) })) },
    ],
    ["a field of the vendor's", "/v1/chat/completions", { ...CHAT, zz: text }],
    ["the input of a response", "/v1/responses", { model: "far/chat", input: text }],
    ["the input of embeddings", "/v1/embeddings", { model: "far/embedding", input: text }],
    ["the prompt of a picture", "/v1/images/generations", { model: "far/image", prompt: text }],
    ["a name", "/account/keys", { name: text }],
  ])("%s", async (_what, path, body) => {
    await expectShortHolds(json("POST", path, body));
  });
});

describe("the stream of an upstream", () => {
  it("of 40 MB of comments, as many as there may be between its chunks", async () => {
    const sent = json("POST", "/v1/chat/completions", { ...CHAT, model: "far/silent", stream: true });

    expect(await expectShortHolds(sent)).toBe(200);
    expect((await send(sent)).text).toContain('"content":"a"');
  });
});

describe("a form", () => {
  const boundary = "b0undary";
  const form = (parts: readonly (readonly [head: string, content: string])[]): Sent => {
    const text = parts.map(([head, content]) => `--${boundary}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`).join("");
    return {
      method: "POST",
      path: "/v1/images/edits",
      body: Buffer.from(`${text}--${boundary}--\r\n`),
      headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    };
  };

  it.each([
    ["as many fields as there may be", many(62, (index) => [`name="f${index}"`, "x".repeat(16_000)] as const)],
    ["thousands of parts", many(50_000, (index) => [`name="f${index}"`, ""] as const)],
    ["thousands of items of a list", many(50_000, () => ['name="list[]"', ""] as const)],
    ["thousands of files", many(20_000, (index) => [`name="image[]"; filename="${index}"`, "x"] as const)],
    ["a name of many brackets", [[`name="a${"[b]".repeat(20_000)}"`, "x"] as const]],
    ["a head without end", [[`name="a"\r\nX: ${"x".repeat(1_000_000)}`, "x"] as const]],
  ])("of %s", async (_what, parts) => {
    await expectShortHolds(form([['name="model"', "far/image"], ...parts]));
  });
});
