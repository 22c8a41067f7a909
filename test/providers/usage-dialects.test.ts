/** The places of usage reports, of each vendor of the bundled catalog and of other servers of OpenAI's format. */
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { ChatChunk } from "../../src/formats/openai-chat/stream.js";
import { toUsage } from "../../src/formats/openai-chat/usage.js";
import { OutboundGuard } from "../../src/lib/outbound-guard.js";
import { UnknownWords } from "../../src/lib/unknown-words.js";
import { NO_USAGE, type ReportedUsage } from "../../src/lib/usage.js";
import { BUNDLED_VENDOR_ENTRIES } from "../../src/services/catalog/bundled.js";
import { BUNDLED_VENDORS, type BundledVendor } from "../../src/services/catalog/bundled-vendors.js";
import { connectUpstream } from "../../src/services/generation/upstreams.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { chatCompletion } from "../support/openai-bodies.js";
import { picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { event, handler, json, sse } from "../support/upstream-replies.js";

type Loose = Readonly<Record<string, unknown>>;

interface Fixture {
  readonly source: string;
  readonly chat?: {
    readonly whole: Loose;
    /** Of OpenAI's format; `events` of a format of the vendor's own. */
    readonly stream?: readonly Loose[];
    readonly events?: readonly Loose[];
    readonly amounts: Partial<ReportedUsage>;
  };
  readonly transcription?: { readonly whole: Loose; readonly durationMs: number | null };
  readonly image?: { readonly whole: Loose };
  readonly more?: readonly { readonly what: string; readonly usage: Loose; readonly amounts: Partial<ReportedUsage> }[];
}

interface OtherServer {
  readonly server: string;
  readonly usage: Loose;
  readonly amounts: Partial<ReportedUsage>;
}

const folder = new URL("../fixtures/usage/", import.meta.url);
const read = <Content>(name: string) => JSON.parse(readFileSync(new URL(`${name}.json`, folder), "utf8")) as Content;
const FIXTURES = BUNDLED_VENDORS.map((vendor) => [vendor, read<Fixture>(vendor)] as const);
const OTHERS = read<OtherServer[]>("others");
const CALL = { upstreamModel: "model", signal: new AbortController().signal, extra: {} };
const CHAT = { ...CALL, body: { model: "model", messages: [{ role: "user", content: "What is caching?" }] } };

let upstream: FakeUpstream;
const opened: { close(): Promise<void> }[] = [];
/** Names of reports that were not known. */
let unknown: string[] = [];

beforeAll(async () => {
  upstream = await startFakeUpstream();
});
afterEach(() => {
  unknown = [];
});
afterAll(async () => {
  await Promise.all(opened.map((each) => each.close()));
  await upstream.close();
});

function connect(vendor: BundledVendor) {
  const { wireFormat = "openai" } = BUNDLED_VENDOR_ENTRIES[vendor];
  const words = new UnknownWords({ warn: (line: { word: string }) => unknown.push(line.word) } as never, () => undefined);
  const connected = connectUpstream(
    { id: vendor, wireFormat, baseUrl: upstream.baseUrl, apiKey: "key-0123456789", isTrusted: true },
    { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 },
    new OutboundGuard({ allowHosts: ["127.0.0.1"] }),
    words,
  );
  opened.push(connected);
  return connected.at(0);
}

describe("the bundled vendors", () => {
  it("have a recorded body each", () => {
    const files = readdirSync(folder).map((name) => name.replace(".json", ""));
    expect(files.filter((name) => name !== "others").sort()).toEqual([...BUNDLED_VENDORS].sort());
  });

  it.each(FIXTURES.filter(([, { chat }]) => chat))("report a whole chat as %s does", async (vendor, { chat }) => {
    upstream.replyNext(json(chat?.whole));

    const answer = await connect(vendor).chat?.complete(CHAT);

    expect(answer?.usage).toEqual({ ...NO_USAGE, ...chat?.amounts });
    expect(unknown).toEqual([]);
  });

  it.each(FIXTURES.filter(([, { chat }]) => chat))(
    "report a streamed chat as %s does, once all of it has come",
    async (vendor, { chat }) => {
      const named = chat?.events?.map((each) => event(each, typeof each.type === "string" ? each.type : undefined));
      upstream.replyNext(sse(chat?.stream ?? named ?? [], { done: chat?.stream !== undefined }));

      const stream = await connect(vendor).chat?.stream(CHAT);
      const chunks: ChatChunk[] = [];
      for await (const batch of stream ? { [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator]() } : []) chunks.push(...batch);

      const reports = chunks.flatMap(({ usage }) => usage ?? []);
      expect(reports.at(-1)).toEqual({ ...NO_USAGE, ...chat?.amounts });
      expect(chunks.findLastIndex(({ usage }) => usage !== null)).toBeGreaterThanOrEqual(chunks.findLastIndex(saysSomething));
      expect(unknown).toEqual([]);
    },
  );

  it.each(FIXTURES.filter(([, { transcription }]) => transcription))(
    "report how long a recording is as %s does",
    async (vendor, { transcription }) => {
      upstream.replyNext(json(transcription?.whole));
      const audio = { bytes: recording(1), contentType: "audio/wav", name: "audio.wav" };
      const asked = { language: null, prompt: null, temperature: null, wantsSegments: false, wantsWords: false };

      const answer = await connect(vendor).transcription?.transcribe({ ...CALL, upstreamModel: "scribe_v1", audio, ...asked });

      expect(answer).toMatchObject({ durationMs: transcription?.durationMs, usage: null });
    },
  );

  it.each(FIXTURES.filter(([, { image }]) => image))("report no tokens of a picture as %s does", async (vendor, { image }) => {
    const png = await picture();
    upstream.replyAlways(
      handler(({ path }, response) => {
        const isPicture = path.endsWith(".png");
        response.writeHead(200, { "content-type": isPicture ? "image/png" : "application/json" });
        response.end(isPicture ? png : JSON.stringify(image?.whole).replaceAll("{upstream}", upstream.baseUrl));
      }),
    );
    const asked = { prompt: "a fox", size: null, count: 1, seed: null, negativePrompt: null, quality: null };
    const more = { isTransparent: false, format: null, reasoning: null, images: [], mask: null };

    const answer = await connect(vendor).image?.generate({ ...CALL, upstreamModel: "black-forest-labs/flux-schnell", ...asked, ...more });

    expect(answer).toMatchObject({ usage: null, images: [{ contentType: "image/png" }] });
    upstream.replyAlways(null);
  });

  it.each(FIXTURES.flatMap(([vendor, { more = [] }]) => more.map((each) => [vendor, each.what, each] as const)))(
    "report in further ways: %s, %s",
    (_vendor, _what, { usage, amounts }) => {
      expect(toUsage(usage, (names) => unknown.push(...names))).toEqual({ ...NO_USAGE, ...amounts });
      expect(unknown).toEqual([]);
    },
  );
});

describe("other servers of OpenAI's format", () => {
  it.each(OTHERS.map((other) => [other.server, other] as const))("report as %s does", (_server, { usage, amounts }) => {
    expect(toUsage(usage, (names) => unknown.push(...names))).toEqual({ ...NO_USAGE, ...amounts });
    expect(unknown).toEqual([]);
  });
});

describe("a report under an unknown name", () => {
  it("is read as far as its fields are known, and its names are logged without their values", async () => {
    const usage = {
      prompt_tokens: 9,
      completion_tokens: 4,
      brand_new: "secret text",
      prompt_tokens_details: { cached_tokens: 1, warm_tokens: 5 },
    };
    upstream.replyNext(json(chatCompletion({ usage: usage as never })));

    const answer = await connect("openai").chat?.complete(CHAT);

    expect(answer?.usage).toMatchObject({ inputTextTokens: 8, inputCachedTokens: 1, outputTextTokens: 4 });
    expect(unknown).toEqual(["brand_new", "prompt_tokens_details.warm_tokens"]);
  });

  it("logs a bounded number of names, of any report", () => {
    const usage = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`name_${index}`, index]));

    expect(toUsage(usage, (names) => unknown.push(...names))).toBeNull();

    expect(unknown).toHaveLength(20);
  });
});

function saysSomething({ text, object }: ChatChunk): boolean {
  return Boolean(text) || (object.choices ?? []).some(({ delta }) => Boolean(delta?.content));
}
