/** What `/mcp` answers at its largest: clients take no event of more than 1 MiB, and a call is charged when its files are there. */
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { serviceUnavailable } from "../../src/errors.js";
import { MCP_EVENT_BYTES_MAX, MCP_INLINE_BYTES_MAX, MCP_REPEATED_TEXT_BYTES_MAX } from "../../src/services/mcp/limits.js";
import { booksWith, CREDIT, closeBooks, createPayer, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { json, raw } from "../support/upstream-replies.js";

interface Result {
  readonly isError: boolean;
  readonly content: readonly { readonly type: string; readonly text?: string; readonly data?: string }[];
  readonly structuredContent: Readonly<Record<string, unknown>>;
}

let app: TestApp;
let payer: Payer;
let png: Buffer;

beforeAll(async () => {
  const described = Array.from({ length: 200 }, (_, index) => ({
    id: `acme/long-${index}`,
    modality: "text",
    upstream: "acme",
    upstreamModel: "long",
    title: `Long ${index}`,
    description: '"€" '.repeat(250),
    prices: { promptTextPrice: "0", completionTextPrice: "0" },
  }));
  app = await createTestApp({ models: described });
  png = Buffer.concat([await picture(), Buffer.alloc(MCP_INLINE_BYTES_MAX)]);
});
afterAll(() => app.close());
beforeEach(async () => {
  payer = await createPayer(app, { pack: 10n * CREDIT });
});

/** The result of a call, and the bytes of the largest event that it came in. */
async function call(name: string, args: object): Promise<Result & { readonly eventBytes: number }> {
  const headers = {
    authorization: `Bearer ${payer.key}`,
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: "x".repeat(256), method: "tools/call", params: { name, arguments: args } });
  const answer = await fetch(`${app.baseUrl}/mcp`, { method: "POST", headers, body });
  expect(answer.headers.get("content-type")).toMatch("text/event-stream");
  const events = (await answer.text()).split("\n\n");
  const data = events.flatMap((event) => event.split("\n").filter((line) => line.startsWith("data: {")));
  const { result } = JSON.parse((data.at(-1) ?? "").slice("data: ".length)) as { result: Result };
  return { ...result, eventBytes: Math.max(...events.map((event) => Buffer.byteLength(event))) };
}

/** `count` pictures of so many bytes together, each with a prompt that takes as much room as any. */
function pictures(count: number, bytes: number) {
  const size = Math.floor(bytes / count);
  const files = Array.from({ length: count }, (_, index) => png.subarray(0, index === 0 ? bytes - size * (count - 1) : size));
  const { data, ...more } = imagesObject(files) as { data: object[] };
  const prompt = "\ud800\u0001€".repeat(5_000);
  return json({ ...more, data: data.map((item) => ({ ...item, revised_prompt: prompt })) });
}

describe("the largest event", () => {
  it.each([
    [MCP_INLINE_BYTES_MAX, "audio"],
    [MCP_INLINE_BYTES_MAX + 1, "text"],
  ])("of a sound of %i bytes holds it as %s", async (size, type) => {
    const wav = Buffer.alloc(size);
    wav.write("RIFF____WAVEfmt ");
    app.upstream.replyNext(raw(wav, { headers: { "content-type": "audio/wav" } }));

    const { content, eventBytes } = await call("generate_speech", { input: "Hi.", model: "acme/speech", response_format: "wav" });

    expect(content).toMatchObject([{ type }]);
    expect(eventBytes).toBeLessThan(MCP_EVENT_BYTES_MAX);
  });

  it.each([
    [MCP_INLINE_BYTES_MAX, "image"],
    [MCP_INLINE_BYTES_MAX + 1, "text"],
  ])("of ten pictures of %i bytes holds them as %s", async (size, type) => {
    app.upstream.replyNext(pictures(10, size));

    const { content, structuredContent, eventBytes } = await call("generate_image", { prompt: "a boat", model: "acme/image", n: 10 });

    expect(content.map((block) => block.type)).toEqual(Array(10).fill(type));
    expect(structuredContent.revised_prompts).toHaveLength(10);
    expect(eventBytes).toBeLessThan(MCP_EVENT_BYTES_MAX);
  });

  it.each([
    [MCP_REPEATED_TEXT_BYTES_MAX - 2, true],
    [MCP_REPEATED_TEXT_BYTES_MAX - 1, false],
    [900_000, false],
  ])("of a text of %i bytes repeats it: %s", async (length, isRepeated) => {
    const text = "a".repeat(length);
    app.upstream.replyNext(json(chatCompletion({ content: text })));

    const { content, structuredContent, eventBytes } = await call("generate_text", { prompt: "a", model: "acme/free" });

    expect([content[0]?.text === text, structuredContent.text === text]).toEqual([true, isRepeated]);
    expect(eventBytes).toBeLessThan(MCP_EVENT_BYTES_MAX);
  });

  it("of models leaves out those that do not fit, and states their number", async () => {
    const { structuredContent, eventBytes } = await call("list_models", { search: "Long", limit: 200 });

    const { models, count } = structuredContent as { models: unknown[]; count: number };
    expect(count).toBe(200);
    expect(models.length).toBeGreaterThan(100);
    expect(models.length).toBeLessThan(200);
    expect(eventBytes).toBeLessThan(MCP_EVENT_BYTES_MAX);
  });
});

describe("a file that is too large for a result", () => {
  const wav = () => raw(Buffer.concat([Buffer.from("RIFF____WAVEfmt "), png]), { headers: { "content-type": "audio/wav" } });

  it("is published before its call is charged: without a place for it nothing is", async () => {
    const publish = vi.spyOn(app.services.mediaLinks, "publish").mockRejectedValue(serviceUnavailable("The file store does not answer."));
    onTestFinished(() => publish.mockRestore());
    app.upstream.replyNext(wav(), pictures(2, MCP_INLINE_BYTES_MAX + 1));

    const speech = await call("generate_speech", { input: "Hi.", model: "acme/speech", response_format: "wav" });
    const drawn = await call("generate_image", { prompt: "a boat", model: "acme/image", n: 2 });

    for (const { isError, structuredContent } of [speech, drawn]) {
      expect([isError, structuredContent]).toMatchObject([true, { error: { code: "SERVICE_UNAVAILABLE" } }]);
    }
    expect((await closeBooks(app, payer)).rows).toEqual([]);
  });

  it("is charged once, and its link works", async () => {
    app.upstream.replyNext(pictures(1, MCP_INLINE_BYTES_MAX + 1));

    const { structuredContent } = await call("generate_image", { prompt: "a boat", model: "acme/image" });

    const [link = ""] = structuredContent.urls as string[];
    const file = await fetch(link.replace("//localhost", "//127.0.0.1"));
    expect([file.status, file.headers.get("content-length")]).toEqual([200, String(MCP_INLINE_BYTES_MAX + 1)]);
    expect((await booksWith(app, payer, 1)).rows[0]).toMatchObject({ costNanocredits: 40_000_000n });
  });
});
