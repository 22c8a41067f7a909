/** FAST_PATHS=off: the built server answers with the same bytes as with the shortcuts of `src/fast`. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { OWNER_KEY, testModels } from "../support/app.js";
import { type BuiltServer, startBuiltServer } from "../support/built-server.js";
import { createTestDataDir } from "../support/database.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { wireUsage } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { json } from "../support/upstream-replies.js";

interface Gateway {
  readonly server: BuiltServer;
  readonly remove: () => Promise<void>;
}

describe("a gateway without its fast paths", () => {
  let upstream: FakeUpstream;
  let fast: Gateway;
  let plain: Gateway;

  beforeAll(async () => {
    upstream = await startFakeUpstream();
    upstream.answer.pieces = ["One ", "two\n", 'three "four" ', "fünf 🙂", "."];
    upstream.answer.usage = wireUsage(100, 10);
    [fast, plain] = await Promise.all([start("on"), start("off")]);
  });
  afterAll(async () => {
    await Promise.all([fast?.server.stop(), plain?.server.stop(), upstream?.close()]);
    await Promise.all([fast?.remove(), plain?.remove()]);
  });

  async function start(value: string): Promise<Gateway> {
    const { dataDir, remove } = await createTestDataDir();
    const models = {
      upstreams: [{ id: "acme", wireFormat: "openai", baseUrl: upstream.baseUrl, apiKey: "env:ACME_KEY" }],
      models: testModels(),
    };
    await writeFile(join(dataDir, "models.json"), JSON.stringify(models));
    const env = { FAST_PATHS: value, MODELS_FILE: join(dataDir, "models.json"), ACME_KEY: "acme-secret-key" };
    return { server: await startBuiltServer({ dataDir, env }), remove };
  }

  async function answerOf({ server }: Gateway, path: string, body?: object) {
    const answer = await fetch(server.baseUrl + path, {
      headers: { Authorization: `Bearer ${OWNER_KEY}`, "Content-Type": "application/json" },
      ...(body && { method: "POST", body: JSON.stringify(body) }),
    });
    const names = [...answer.headers.keys()].filter((name) => name !== "x-overhead-ms");
    return { status: answer.status, names, cost: answer.headers.get("x-cost"), body: withoutOwnParts(await answer.text(), server) };
  }

  /** Leaves out identifiers, times and addresses. */
  function withoutOwnParts(text: string, { baseUrl }: BuiltServer): string {
    return text
      .replaceAll(baseUrl, "")
      .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "id")
      .replaceAll(/"(timestamp|created|added_at)":("[^"]*"|\d+)/g, '"$1":0')
      .replaceAll(/_ms":[\d.]+/g, '_ms":0');
  }

  const chat = { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] };

  it.each<[string, string, object?]>([
    ["a chat", "/v1/chat/completions", chat],
    ["a streamed chat", "/v1/chat/completions", { ...chat, stream: true }],
    ["a streamed text", "/text/hello?model=acme%2Fchat&stream=true"],
    ["a refusal", "/v1/chat/completions", { ...chat, temperature: 3 }],
    ["a list", "/v1/models"],
    ["an unknown path", "/v1/nowhere"],
    ["a query", "/graphql", { query: "{ __typename }" }],
  ])("answers %s with the same bytes", async (_what, path, body) => {
    const [one, other] = [await answerOf(fast, path, body), await answerOf(plain, path, body)];

    expect(other).toEqual(one);
    expect(one.body.length).toBeGreaterThan(20);
  });

  it("answers large pictures with the same bytes, one after the other", async () => {
    // Above the smallest memory that is kept for reuse, 256 KiB.
    const large = Buffer.concat([await picture(), Buffer.alloc(1024 * 1024)]).toString("base64");
    upstream.replyAlways(json(imagesObject([Buffer.from(large, "base64")])));
    const body = { model: "acme/image", prompt: "a boat", size: "64x64" };

    for (let round = 0; round < 3; round += 1) {
      const [one, other] = [await answerOf(fast, "/v1/images/generations", body), await answerOf(plain, "/v1/images/generations", body)];
      expect(other).toEqual(one);
      expect([one.status, one.body.includes(large)]).toEqual([200, true]);
    }
    upstream.replyAlways(null);
  });
});
