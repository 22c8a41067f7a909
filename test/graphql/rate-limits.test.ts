import { once } from "node:events";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { type ChatCompletionInput, ChatDocument, ModelsDocument, StreamChatDocument } from "../operations/generated/graphql.js";
import { createKey, createClient as createRestClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks } from "../support/openai-bodies.js";
import { sse } from "../support/upstream-replies.js";
import { type Answer, type AnsweredError, post, textOf } from "./client.js";

const MODELS = textOf(ModelsDocument);
const CREATE = textOf(ChatDocument);
const STREAM = textOf(StreamChatDocument);

let app: TestApp;
let addresses = 0;

beforeAll(async () => {
  const limited = { modality: "text", upstream: "acme", upstreamModel: "limited", title: "Limited", prices: {} };
  app = await createTestApp({
    config: {
      trustProxyHops: 1,
      rateLimits: { anonymousRequestsPer10Seconds: 4, publishableRequestsPerMinute: 3, publishableCreditsPerHour: 10n ** 9n },
    },
    models: [{ ...limited, id: "acme/once", perUserRpm: 1 }],
  });
});
afterAll(() => app.close());

/** An address that no other test uses. */
function somewhere(): string {
  addresses += 1;
  return `198.51.100.${addresses}`;
}

async function ask(
  key: string | null,
  address: string,
  query: string,
  input?: ChatCompletionInput,
): Promise<{ answer: Answer; status: number; headers: Headers }> {
  const accept = query.startsWith("subscription") ? { accept: "text/event-stream" } : {};
  const response = await post(
    { ...app, key },
    { query, ...(input && { variables: { input } }) },
    { "x-forwarded-for": address, ...accept },
  );
  const text = await response.text();
  const [, data] = /^data: (.+)$/m.exec(text) ?? [null, text];
  return { answer: JSON.parse(data ?? "{}") as Answer, status: response.status, headers: response.headers };
}

function codeOf({ answer }: { answer: Answer }): string | undefined {
  return answer.errors?.[0]?.extensions.code;
}

function hello(model: string): ChatCompletionInput {
  return { model, messages: [{ role: "USER", content: "Hi" }] };
}

describe("over GraphQL", () => {
  it("an address without a good key is refused with 429 before its body is read", async () => {
    const address = somewhere();
    for (let index = 0; index < 4; index += 1) expect(codeOf(await ask(null, address, MODELS))).toBeUndefined();

    const refused = await ask(null, address, MODELS);

    expect(refused.status).toBe(429);
    expect(codeOf(refused)).toBe("RATE_LIMITED");
    const seconds = refused.answer.errors?.[0]?.extensions.retryAfterSeconds;
    expect(seconds).toBeLessThanOrEqual(10);
    expect(refused.headers.get("retry-after")).toBe(String(seconds));
    expect(codeOf(await ask("sk_wrong", address, MODELS))).toBe("RATE_LIMITED");
    expect(codeOf(await ask(app.key, address, MODELS))).toBeUndefined();
  });

  it("is counted together with the REST face", async () => {
    const address = somewhere();
    const rest = createRestClient(app.baseUrl, null);
    for (let index = 0; index < 4; index += 1) await ask(null, address, MODELS);

    expect((await rest.get("/v1/models", { headers: { "X-Forwarded-For": address } })).status).toBe(429);
  });

  it("a publishable key's mutations and subscriptions count, each of them also in one request", async () => {
    const { key } = await createKey(app, { type: "publishable" });
    const address = somewhere();
    app.upstream.replyNext(sse(chatChunks(["Hi"])));

    expect(codeOf(await ask(key, address, STREAM, hello("acme/chat")))).toBeUndefined();
    const twice = `mutation ($input: ChatCompletionInput!) {
      a: createChatCompletion(input: $input) { receipt { cost } }
      b: createChatCompletion(input: $input) { receipt { cost } }
      c: createChatCompletion(input: $input) { receipt { cost } }
    }`;
    const { answer } = await ask(key, address, twice, hello("acme/chat"));

    expect(answer.errors?.map(({ path, extensions }) => [path, extensions.code])).toEqual([[["c"], "RATE_LIMITED"]]);
    expect(answer.errors?.[0]?.extensions.retryAfterSeconds).toBeGreaterThan(0);
    expect(codeOf(await ask(key, address, STREAM, hello("acme/chat")))).toBe("RATE_LIMITED");
    expect(codeOf(await ask(key, somewhere(), CREATE, hello("acme/chat")))).toBeUndefined();
  });

  it("a WebSocket without a key counts, and each of its operations", async () => {
    const socket = new WebSocket(app.wsUrl, "graphql-transport-ws", { headers: { "x-forwarded-for": somewhere() } });
    const messages: { type: string; payload?: readonly AnsweredError[] }[] = [];
    socket.on("message", (data) => messages.push(JSON.parse(String(data))));
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init" }));
    for (let id = 1; id <= 4; id += 1) {
      await expect.poll(() => messages.filter(({ type }) => type !== "next").length).toBe(id);
      socket.send(JSON.stringify({ id: String(id), type: "subscribe", payload: { query: MODELS } }));
    }
    await expect.poll(() => messages.filter(({ type }) => type !== "next").length).toBe(5);
    socket.close();

    expect(messages.filter(({ type }) => type !== "next").map(({ type }) => type)).toEqual([
      "connection_ack",
      "complete",
      "complete",
      "complete",
      "error",
    ]);
    expect(messages.at(-1)?.payload?.[0]?.extensions).toMatchObject({ code: "RATE_LIMITED", retryAfterSeconds: expect.any(Number) });
  });

  it("a model's own limit counts each account's generations", async () => {
    expect(codeOf(await ask(app.key, somewhere(), CREATE, hello("acme/once")))).toBeUndefined();
    expect(codeOf(await ask(app.key, somewhere(), CREATE, hello("acme/once")))).toBe("RATE_LIMITED");
  });
});
