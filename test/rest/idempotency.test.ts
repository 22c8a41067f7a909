/** Idempotency-Key over HTTP (docs/spec/generation.md#idempotency): asked twice, charged once. */

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { IDEMPOTENT_ANSWER_BYTES_MAX, IDEMPOTENT_ANSWER_OVERHEAD_BYTES } from "../../src/services/idempotency/limits.js";
import type { Database } from "../../src/store/database.js";
import { execute, ok } from "../graphql/client.js";
import { MyMediaQuotaDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { errorReply, json, raw, sse, waitFor } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, createKey, expectEnvelope, type UsageJson } from "./client.js";
import { createStranger } from "./seed.js";

/** Of one account. */
const QUOTA_BYTES = 2800 * 1024;

let app: TestApp;
let client: Client;
let database: Database;
let key: string;

beforeAll(async () => {
  app = await createTestApp({ config: { mediaQuota: { bytesMax: QUOTA_BYTES, filesMax: 10, freeBytesMin: 0 } } });
  client = createClient(app.baseUrl, app.key);
  database = app.database;
});
afterAll(async () => {
  const broken = await findBrokenInvariants(database.pool, { isIdle: true });
  await app.close();
  expect(broken).toEqual({});
});
beforeEach(() => {
  key = randomUUID();
});

const hello = { messages: [{ role: "user", content: "Hello" }] };
const CHAT = "/v1/chat/completions";

function ask(body: unknown = hello, path = CHAT, more: { key?: string; headers?: Record<string, string> } = {}): Promise<Answer> {
  return client.post(path, body, { ...(more.key && { key: more.key }), headers: { "Idempotency-Key": key, ...more.headers } });
}

async function usageCount(): Promise<number> {
  return (await client.get("/account/usage?limit=50000")).json<UsageJson>().count;
}

/** Runs the work and answers how many charges and upstream calls it made. */
async function counted<Result>(work: () => Promise<Result>): Promise<{ result: Result; charges: number; calls: number }> {
  const [charges, calls] = [await usageCount(), app.upstream.requests.length];
  const result = await work();
  return { result, charges: (await usageCount()) - charges, calls: app.upstream.requests.length - calls };
}

const rowOf = (key: string) => database.prisma.idempotentRequest.findFirstOrThrow({ where: { key } });

/** The answer was not kept; its receipt was. */
function expectOmitted(refused: Answer, first: Answer, reason: string): void {
  expectEnvelope(refused, 409, "CONFLICT");
  const { message, details } = refused.json<{ error: { message: string; details: object } }>().error;
  expect(message).toContain(reason);
  expect(message).toContain("Nothing was charged now.");
  const cost = first.headers.get("x-cost") ?? expect.stringMatching(/^\d+\.\d+$/);
  expect(details).toEqual({ generationId: first.headers.get("x-generation-id"), cost });
}

const isReplay = (answer: Answer) => answer.headers.get("x-idempotent-replay") === "true";

describe("an Idempotency-Key", () => {
  it("has the same answer replayed, byte by byte, with its headers, unbilled", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Once." })));

    const { result, charges, calls } = await counted(async () => [await ask(), await ask(), await ask()]);

    const [first, ...replays] = result;
    expect(first).toMatchObject({ status: 200 });
    expect(first && isReplay(first)).toBe(false);
    for (const replayed of replays) {
      expect([replayed.status, replayed.text, isReplay(replayed)]).toEqual([200, first?.text, true]);
      for (const name of ["content-type", "x-generation-id", "x-model-used", "x-cost", "x-usage-input-text-tokens"]) {
        expect(replayed.headers.get(name), name).toBe(first?.headers.get(name));
      }
      expect(replayed.headers.get("x-request-id")).not.toBe(first?.headers.get("x-request-id"));
    }
    expect({ charges, calls }).toEqual({ charges: 1, calls: 1 });
  });

  it("is charged once for fifty requests at once", async () => {
    app.upstream.replyNext(json(chatCompletion(), { delayMs: 100 }));

    const { result, charges, calls } = await counted(() => Promise.all(Array.from({ length: 50 }, () => ask())));

    const served = result.filter(({ status }) => status === 200);
    expect(served.filter((answer) => !isReplay(answer))).toHaveLength(1);
    for (const answer of result.filter(({ status }) => status !== 200)) expectEnvelope(answer, 409, "CONFLICT");
    expect({ charges, calls }).toEqual({ charges: 1, calls: 1 });
    expect(isReplay(await ask())).toBe(true);
  });

  it("is 409 while the request runs, and says when to come again", async () => {
    let answer = () => {};
    app.upstream.replyNext(sse([waitFor(new Promise<void>((resolve) => (answer = resolve))), ...chatChunks(["Late."])]));
    const calls = app.upstream.requests.length;
    const first = ask({ ...hello, stream: true });
    await eventually(() => expect(app.upstream.requests.length).toBe(calls + 1));
    while ((await ask({ ...hello, stream: true })).status !== 409) await sleep(10);

    const refused = await ask({ ...hello, stream: true });
    answer();

    expectEnvelope(refused, 409, "CONFLICT");
    expect(refused.headers.get("retry-after")).toBe("1");
    expect(refused.headers.get("x-should-retry")).toBeNull();
    expect((await first).text).toContain("Late.");
    expect(isReplay(await ask({ ...hello, stream: true }))).toBe(true);
  });

  it.each([
    ["another body", { ...hello, temperature: 1 }, CHAT],
    ["another model", { ...hello, model: "acme/chat-b" }, CHAT],
    ["another operation", hello, "/text"],
  ])("is 409 for %s, and keeps its first answer", async (_, body, path) => {
    await ask();

    const refused = await ask(body, path);

    expectEnvelope(refused, 409, "CONFLICT");
    expect(refused.json<{ error: { param: string } }>().error.param).toBe("Idempotency-Key");
    expect(isReplay(await ask())).toBe(true);
  });

  it("does not mind the order of fields", async () => {
    await ask({ messages: hello.messages, temperature: 1, max_tokens: 5 });

    expect(isReplay(await ask({ max_tokens: 5, temperature: 1, messages: hello.messages }))).toBe(true);
  });

  it("is another one for another API key", async () => {
    const { key: other } = await createKey(app);
    await ask();

    const answer = await ask(hello, CHAT, { key: other });

    expect([answer.status, isReplay(answer)]).toEqual([200, false]);
  });

  it("has 1 to 255 characters", async () => {
    key = "k".repeat(255);
    expect((await ask()).status).toBe(200);
    expect(isReplay(await ask())).toBe(true);
    for (const bad of ["", "k".repeat(256)]) {
      const refused = await ask(hello, CHAT, { headers: { "Idempotency-Key": bad } });
      expectEnvelope(refused, 400, "BAD_REQUEST");
      expect(refused.json<{ error: { param: string } }>().error.param).toBe("Idempotency-Key");
    }
  });

  it("stays free when nothing was charged", async () => {
    app.upstream.replyNext(errorReply(500));

    expectEnvelope(await ask({ messages: [] }), 400, "BAD_REQUEST");
    expectEnvelope(await ask({ ...hello, model: "nobody/nothing" }), 400, "BAD_REQUEST");
    expectEnvelope(await ask(), 502, "UPSTREAM_ERROR");
    const { result, charges } = await counted(() => ask());

    expect([result.status, isReplay(result), charges]).toEqual([200, false, 1]);
  });

  it("needs a key like any request", async () => {
    await ask();

    expectEnvelope(await client.post(CHAT, hello, { key: null, headers: { "Idempotency-Key": key } }), 401, "UNAUTHORIZED");
  });

  it("ends after 24 hours", async () => {
    await ask();
    const { idempotentRequest } = database.prisma;
    const row = await idempotentRequest.findFirstOrThrow({ where: { key } });
    expect(Math.abs(row.expiresAt.getTime() - Date.now() - 24 * 60 * 60 * 1000)).toBeLessThan(60_000);
    const past = (seconds: number) => new Date(Date.now() - seconds * 1000);
    await idempotentRequest.update({ where: { id: row.id }, data: { createdAt: past(60), expiresAt: past(1) } });

    const answer = await ask({ ...hello, temperature: 0 });

    expect([answer.status, isReplay(answer)]).toEqual([200, false]);
  });

  it("is remembered without keeping answers for ever", async () => {
    await ask();
    const { idempotentRequest } = database.prisma;
    await idempotentRequest.updateMany({ where: { key }, data: { createdAt: new Date(0), expiresAt: new Date(1) } });

    expect(await app.services.idempotency.sweep()).toBeGreaterThanOrEqual(1);
    expect(await idempotentRequest.count({ where: { key } })).toBe(0);
  });

  it("has an answer of the maximum size replayed, and of one byte more only the receipt", async () => {
    const sizeOf = async (bytes: number) => {
      key = randomUUID();
      app.upstream.replyNext(json(chatCompletion({ content: "x".repeat(bytes) })));
      return [await ask(), await ask()] as const;
    };
    // Nearly as long, so that its usage has as many digits.
    const nearly = IDEMPOTENT_ANSWER_BYTES_MAX - 2048;
    const most = nearly + IDEMPOTENT_ANSWER_BYTES_MAX - Buffer.byteLength((await sizeOf(nearly))[0].text);

    const [kept, replayed] = await sizeOf(most);
    const { result, charges, calls } = await counted(() => sizeOf(most + 1));

    expect([Buffer.byteLength(kept.text), replayed.text === kept.text, isReplay(replayed)]).toEqual([
      IDEMPOTENT_ANSWER_BYTES_MAX,
      true,
      true,
    ]);
    const [large, refused] = result;
    expect([large.status, Buffer.byteLength(large.text)]).toEqual([200, IDEMPOTENT_ANSWER_BYTES_MAX + 1]);
    expectOmitted(refused, large, "too large to keep");
    expect({ charges, calls }).toEqual({ charges: 1, calls: 1 });
    expect(await rowOf(key)).toMatchObject({ body: null, bodyKey: null, omission: "too_large", sizeBytes: 0 });
  });

  it("is not kept as a stream of more bytes either", async () => {
    const piece = "x".repeat(64 * 1024);
    app.upstream.replyNext(sse(chatChunks(Array.from({ length: 17 }, () => piece))));

    const { result, charges } = await counted(
      async () => [await ask({ ...hello, stream: true }), await ask({ ...hello, stream: true })] as const,
    );

    const [streamed, refused] = result;
    expect(streamed.text.trimEnd().endsWith("data: [DONE]")).toBe(true);
    expectOmitted(refused, streamed, "too large to keep");
    expect(charges).toBe(1);
  });
});

describe("kept answers", () => {
  const free = { ...hello, model: "acme/free" };

  async function askOnce(stranger: string, bytes: number): Promise<Answer> {
    key = randomUUID();
    app.upstream.replyNext(json(chatCompletion({ content: "x".repeat(bytes) })));
    const answer = await ask(free, CHAT, { key: stranger });
    expect(answer.status).toBe(200);
    return answer;
  }

  it("count in their account's quota until they have expired; beyond it only the receipt is kept", async () => {
    const { key: stranger } = await createStranger(app);
    const overhead = Buffer.byteLength((await askOnce(stranger, 0)).text) + IDEMPOTENT_ANSWER_OVERHEAD_BYTES;
    const left = QUOTA_BYTES - overhead;
    const large = 1000 * 1024;
    for (const bytes of [large, large]) await askOnce(stranger, bytes - overhead);
    const last = await askOnce(stranger, left - 2 * large - overhead);
    expect([(await ask(free, CHAT, { key: stranger })).text === last.text, await usedBy(stranger)]).toEqual([true, QUOTA_BYTES]);

    const unkept = await askOnce(stranger, 0);
    const refused = await ask(free, CHAT, { key: stranger });

    expectOmitted(refused, unkept, "no room");
    const { accountId, ...row } = await rowOf(key);
    expect(row).toMatchObject({ body: null, omission: "no_room", sizeBytes: 0 });
    // Another account has its own quota, and its own row under the same key.
    await ask(free, CHAT);
    expect(isReplay(await ask(free, CHAT))).toBe(true);

    await database.prisma.idempotentRequest.updateMany({ where: { accountId }, data: { createdAt: new Date(0), expiresAt: new Date(1) } });
    await app.services.idempotency.sweep();
    expect(await usedBy(stranger)).toBe(0);
    const again = await askOnce(stranger, 0);
    expect((await ask(free, CHAT, { key: stranger })).text).toBe(again.text);
  });

  it("hinder uploads, and uploads them, in one quota", async () => {
    const { key: stranger } = await createStranger(app);
    for (const bytes of [0.9, 0.9].map((part) => part * IDEMPOTENT_ANSWER_BYTES_MAX)) await askOnce(stranger, bytes);

    const upload = await client.post(
      "/media/upload",
      { data: Buffer.alloc(IDEMPOTENT_ANSWER_BYTES_MAX * 1.3, 1).toString("base64") },
      { key: stranger },
    );

    expectEnvelope(upload, 413, "PAYLOAD_TOO_LARGE");
  });

  it("need room on the disk, which a generation does not", async () => {
    const freeBytes = vi.spyOn(app.infrastructure, "freeBytes").mockResolvedValue(0);
    try {
      const first = await ask();
      expect(first.status).toBe(200);
      expectOmitted(await ask(), first, "no room");
    } finally {
      freeBytes.mockRestore();
    }
  });

  async function usedBy(stranger: string): Promise<number | undefined> {
    return ok(await execute({ ...app, key: stranger }, MyMediaQuotaDocument)).me.mediaQuota?.usedBytes;
  }
});

describe("a stream with an Idempotency-Key", () => {
  const streamed = { ...hello, stream: true };

  it("is replayed event by event", async () => {
    app.upstream.replyNext(sse(chatChunks(["One, ", "two."])));

    const { result, charges, calls } = await counted(async () => [await ask(streamed), await ask(streamed)]);

    const [first, replayed] = result;
    expect(first?.text.endsWith("data: [DONE]\n\n")).toBe(true);
    expect(replayed?.text).toBe(first?.text);
    expect(replayed?.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect({ charges, calls }).toEqual({ charges: 1, calls: 1 });
  });

  it("that failed on the way is replayed with its failure, because it was charged", async () => {
    app.upstream.replyNext(sse(chatChunks(["Half "]).slice(0, 2), { end: "cut" }));

    const { result, charges, calls } = await counted(async () => [await ask(streamed), await ask(streamed)]);

    expect(result[0]?.text).toMatch(/\n\ndata: \{"error":.*\n\n$/);
    expect(result[1]?.text).toBe(result[0]?.text);
    expect({ charges, calls }).toEqual({ charges: 1, calls: 1 });
  });

  it.each([
    ["a chat", CHAT, streamed, "data: "],
    ["a response", "/v1/responses", { input: "Hello", stream: true }, "event: error\ndata: "],
  ])("of %s that its reader left is replayed as far as it came, and says so", async (_name, path, body, start) => {
    app.upstream.replyNext(sse(chatChunks(["Once ", "upon ", "a ", "time "]), { end: "hang" }));
    const leaving = new AbortController();
    const { result, charges } = await counted(async () => {
      const response = await fetch(app.baseUrl + path, {
        method: "POST",
        headers: { Authorization: `Bearer ${app.key}`, "Content-Type": "application/json", "Idempotency-Key": key },
        body: JSON.stringify(body),
        signal: leaving.signal,
      });
      const reader = response.body?.getReader();
      await reader?.read();
      leaving.abort();
      let answer = await ask(body, path);
      while (answer.status === 409) {
        await sleep(20);
        answer = await ask(body, path);
      }
      return answer;
    });

    expect(result.status).toBe(200);
    expect(isReplay(result)).toBe(true);
    expect(result.text).toContain("Once ");
    expect(result.text).not.toContain("[DONE]");
    const last = result.text.trimEnd().split("\n\n").at(-1) ?? "";
    expect(last.slice(0, start.length)).toBe(start);
    expect(JSON.parse(last.slice(start.length))).toMatchObject({
      error: { code: "CONFLICT", details: { generationId: result.headers.get("x-generation-id") } },
    });
    expect(charges).toBe(1);
  });

  it("is 409 when it was a sound that its reader left, because half a sound is no answer", async () => {
    app.upstream.replyNext({
      kind: "handler",
      handle: async (_request, response) => {
        response.writeHead(200, { "content-type": "audio/mpeg" });
        response.write(Buffer.alloc(32_768, 7));
      },
    });
    const body = { input: "A long speech.", model: "acme/speech", voice: "alloy" };
    const leaving = new AbortController();
    const { result, charges } = await counted(async () => {
      const response = await fetch(`${app.baseUrl}/v1/audio/speech`, {
        method: "POST",
        headers: { Authorization: `Bearer ${app.key}`, "Content-Type": "application/json", "Idempotency-Key": key },
        body: JSON.stringify(body),
        signal: leaving.signal,
      });
      await response.body?.getReader().read();
      leaving.abort();
      let answer = await ask(body, "/v1/audio/speech");
      while (answer.text.includes("still running")) {
        await sleep(20);
        answer = await ask(body, "/v1/audio/speech");
      }
      return answer;
    });

    expectCharged(result);
    expect(charges).toBe(1);
  });

  it("works with the official client", async () => {
    app.upstream.replyNext(sse(chatChunks(["Hi ", "there."])));
    const openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1` });
    const read = async () => {
      const stream = await openai.chat.completions.create(
        { model: "acme/chat", messages: [{ role: "user", content: "Hello" }], stream: true },
        { idempotencyKey: key, headers: { "Idempotency-Key": key } },
      );
      let text = "";
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
      return text;
    };

    const { result, charges } = await counted(async () => [await read(), await read()]);

    expect(result).toEqual(["Hi there.", "Hi there."]);
    expect(charges).toBe(1);
  });
});

describe("every generation route", () => {
  const input = "Text.";
  const routes: readonly (readonly [path: string, body: object, reply: () => void])[] = [
    ["/text", hello, () => app.upstream.replyNext(json(chatCompletion()))],
    ["/v1/responses", { input }, () => app.upstream.replyNext(json(chatCompletion()))],
    [
      "/v1/embeddings",
      { input, model: "acme/embedding" },
      () => app.upstream.replyNext(json({ data: [{ index: 0, embedding: [1, 0] }], usage: { prompt_tokens: 2, total_tokens: 2 } })),
    ],
    [
      "/v1/moderations",
      { input, model: "acme/moderation" },
      () => app.upstream.replyNext(json({ id: "m", model: "m", results: [{ flagged: false, categories: {}, category_scores: {} }] })),
    ],
    [
      "/v1/images/generations",
      { prompt: input, model: "acme/image" },
      () => app.upstream.replyNext(json({ created: 1, data: [{ b64_json: PNG }] })),
    ],
    [
      "/v1/audio/speech",
      { input, model: "acme/speech", voice: "alloy" },
      () => app.upstream.replyNext(raw(Buffer.alloc(2048, 7), { headers: { "content-type": "audio/mpeg" } })),
    ],
  ];
  const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

  it.each(routes)("replays POST %s", async (path, body, reply) => {
    reply();

    const { result, charges, calls } = await counted(async () => [await ask(body, path), await ask(body, path)]);

    const [first, replayed] = result;
    expect([first?.status, first && isReplay(first)], first?.text).toEqual([200, false]);
    expect([replayed?.status, replayed && isReplay(replayed)]).toEqual([200, true]);
    expect(replayed?.text).toBe(first?.text);
    expect(replayed?.headers.get("content-type")).toBe(first?.headers.get("content-type"));
    expect({ charges, calls }).toEqual({ charges: 1, calls: 1 });
  });

  it("recognizes a form by its fields and files, independent of its boundary", async () => {
    app.upstream.replyNext(json({ text: "Heard." }));
    const send = async (sound: number, language = "en") => {
      const form = new FormData();
      form.append("model", "acme/transcription");
      form.append("language", language);
      form.append("file", new Blob([wav(sound)], { type: "audio/wav" }), "a.wav");
      const headers = { Authorization: `Bearer ${app.key}`, "Idempotency-Key": key };
      const response = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, { method: "POST", headers, body: form });
      return { status: response.status, text: await response.text(), isReplay: response.headers.has("x-idempotent-replay") };
    };

    const { result, charges } = await counted(async () => [await send(1), await send(1), await send(2), await send(1, "de")]);

    expect(
      result.map(({ status, isReplay }) => ({ status, isReplay })),
      result[0]?.text,
    ).toEqual([
      { status: 200, isReplay: false },
      { status: 200, isReplay: true },
      { status: 409, isReplay: false },
      { status: 409, isReplay: false },
    ]);
    expect(charges).toBe(1);
  });
});

function expectCharged(answer: Answer): void {
  expect([answer.status, isReplay(answer), answer.headers.get("x-should-retry")], answer.text).toEqual([409, true, "false"]);
  expect(answer.json()).toMatchObject({ error: { code: "CONFLICT", details: { generationId: expect.any(String) } } });
}

/** A tenth of a second. */
function wav(sample: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(44 + 1600).fill(sample, 44);
  const view = new DataView(bytes.buffer);
  const text = (offset: number, value: string) => bytes.set(Buffer.from(value), offset);
  text(0, "RIFF");
  view.setUint32(4, bytes.length - 8, true);
  text(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, 8000, true);
  view.setUint32(28, 16_000, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  text(36, "data");
  view.setUint32(40, 1600, true);
  return bytes;
}

describe("the request of a process that died", () => {
  /** As if the one that worked on it were gone: what the database knows is all that is left. */
  async function abandon(): Promise<{ id: string; generationId: string }> {
    await ask();
    const { id, generationId } = await database.prisma.idempotentRequest.findFirstOrThrow({ where: { key } });
    await database.pool.query(
      "UPDATE idempotent_request SET status = 'running', status_code = NULL, headers = NULL, body = NULL, process_id = $2 WHERE id = $1",
      [id, randomUUID()],
    );
    return { id, generationId };
  }

  it("is not charged again when it was charged: the caller is given the generation's id", async () => {
    const { generationId } = await abandon();

    const { result, charges, calls } = await counted(() => ask());

    expectEnvelope(result, 409, "CONFLICT");
    expect(result.headers.get("x-should-retry")).toBe("false");
    expect(result.json<{ error: { details: unknown } }>().error.details).toEqual({ generationId });
    expect({ charges, calls }).toEqual({ charges: 0, calls: 0 });
    const { usage } = (await client.get("/account/usage?limit=100")).json<UsageJson>();
    expect(usage.map(({ request_id }) => request_id)).toContain(generationId);
  });

  it("is executed again when nothing was charged", async () => {
    const { id } = await abandon();
    await database.pool.query("UPDATE idempotent_request SET generation_id = $2 WHERE id = $1", [id, randomUUID()]);

    const { result, charges } = await counted(() => ask());

    expect([result.status, isReplay(result), charges]).toEqual([200, false, 1]);
  });

  it("waits while another process works on it", async () => {
    const { id } = await abandon();
    const processId = randomUUID();
    await database.prisma.gatewayProcess.create({ data: { id: processId, instanceId: randomUUID() } });
    await database.pool.query("UPDATE idempotent_request SET generation_id = $2, process_id = $3 WHERE id = $1", [
      id,
      randomUUID(),
      processId,
    ]);

    expectEnvelope(await ask(), 409, "CONFLICT");
    await database.prisma.gatewayProcess.update({ where: { id: processId }, data: { heartbeatAt: new Date(Date.now() - 31_000) } });
    expect((await ask()).status).toBe(200);
  });
});
