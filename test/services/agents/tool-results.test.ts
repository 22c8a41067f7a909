/** What a prompt agent's model is shown of a tool's answer. */
import { describe, expect, it } from "vitest";
import {
  TOOL_RESULT_CHARS_MAX,
  TOOL_RESULT_IMAGE_CHARS_MAX,
  TOOL_RESULT_IMAGES_MAX,
  TOOL_RESULT_SOUNDS_MAX,
} from "../../../src/services/agents/limits.js";
import { showResult } from "../../../src/services/agents/tool-results.js";

const NONE = { images: false, sounds: false };
const ALL = { images: true, sounds: true };
const ROWS = { rows: [{ city: "Oslo", number: 4711 }] };

const text = (said: string) => ({ type: "text", text: said });
const image = (data: string) => ({ type: "image", data, mimeType: "image/png" });
const sound = (data: string, mimeType = "audio/wav") => ({ type: "audio", data, mimeType });
const embedded = (mimeType: string, blob: string) => ({ type: "resource", resource: { uri: "file:///a", blob, mimeType } });
const result = (...content: readonly Readonly<Record<string, unknown>>[]) => ({ isError: false, content });
const base64 = (said: string) => Buffer.from(said).toString("base64");

describe("content", () => {
  it.each([
    ["texts, a line apart", result(text("one"), text("two")), "one\n\ntwo"],
    ["an error", { ...result(text("no such city")), isError: true }, "The tool failed: no such city"],
    ["nothing", result(), "The tool answered nothing."],
    ["sound", result(sound("AAAA")), "(sound, audio/wav, which cannot be shown)"],
    ["a link", result({ type: "resource_link", uri: "file:///a", name: "A" }), "A: file:///a"],
    ["a link that is described", result({ type: "resource_link", uri: "file:///a", description: "All." }), "file:///a (All.)"],
    ["a resource of text", result({ type: "resource", resource: { uri: "file:///a", text: "hello" } }), "file:///a:\nhello"],
    ["a resource whose bytes are text", result(embedded("text/csv; charset=utf-8", base64("a,ü"))), "file:///a:\na,ü"],
    ["a resource whose bytes are JSON", result(embedded("application/ld+json", base64("{}"))), "file:///a:\n{}"],
    ["a resource of bytes", result(embedded("application/gzip", "AAAA")), "file:///a (application/gzip, which cannot be shown)"],
    ["a picture in a resource", result(embedded("image/png", "AAAA")), "(file:///a: a picture, image/png, which cannot be shown)"],
    ["a block of another kind", result({ type: "hologram", depth: 3 }), '{"type":"hologram","depth":3}'],
    ["a text that is none", result({ type: "text", text: 5 }), '{"type":"text","text":5}'],
  ])("is shown as text: %s", (_what, answered, shown) => {
    expect(showResult(answered, NONE)).toEqual({ text: shown, images: [], sounds: [] });
  });

  it("is cut where it is longer than a model is to read", () => {
    const whole = "a".repeat(TOOL_RESULT_CHARS_MAX);

    expect(showResult(result(text(whole)), NONE).text).toBe(whole);
    expect(showResult(result(text(`${whole}b`)), NONE).text).toBe(`${whole}\n(cut here: it has ${whole.length + 1} characters)`);
  });
});

describe("structured content", () => {
  it.each([
    ["alone", result(), '{"degrees":3}'],
    ["beside a text", result(text("1 row found, see structured content.")), '1 row found, see structured content.\n\n{"degrees":3}'],
    ["beside a link", result({ type: "resource_link", uri: "file:///a", name: "A" }), 'A: file:///a\n\n{"degrees":3}'],
    [
      "beside a resource",
      result(embedded("application/gzip", "A")),
      'file:///a (application/gzip, which cannot be shown)\n\n{"degrees":3}',
    ],
    ["of a failure", { ...result(text("no")), isError: true }, 'The tool failed: no\n\n{"degrees":3}'],
    ["of a failure without a text", { ...result(), isError: true }, 'The tool failed: {"degrees":3}'],
    ["beside other JSON", result(text('{"degrees":4}')), '{"degrees":4}\n\n{"degrees":3}'],
    ["beside the same JSON, however written", result(text('{ "degrees":\n 3.0 }')), '{ "degrees":\n 3.0 }'],
    ["beside the same JSON and a text", result(text("It is cold."), text('{"degrees":3}')), 'It is cold.\n\n{"degrees":3}'],
  ])("is shown %s", (_what, answered, shown) => {
    expect(showResult({ ...answered, structuredContent: { degrees: 3 } }, NONE).text).toBe(shown);
  });

  it("is shown to the model of a search", () => {
    const answered = { ...result(text("1 row found, see structured content.")), structuredContent: ROWS };

    expect(showResult(answered, NONE).text).toContain(JSON.stringify(ROWS));
  });

  it.each([
    ["a text", "hello", "hello"],
    ["a number", 5, "5"],
    ["a list", [1, 2], "[1, 2]"],
  ])("that only wraps %s is not shown beside it", (_what, value, said) => {
    expect(showResult({ ...result(text(said)), structuredContent: { result: value } }, NONE).text).toBe(said);
    expect(showResult({ ...result(text(said)), structuredContent: { value } }, NONE).text).toContain(JSON.stringify({ value }));
  });

  it("without a field says nothing beside a text", () => {
    expect(showResult({ ...result(text("done")), structuredContent: {} }, NONE).text).toBe("done");
    expect(showResult({ ...result(), structuredContent: {} }, NONE).text).toBe("{}");
  });

  it("does not repeat a long text", () => {
    const poem = "Roses are red. ".repeat(20);
    const shown = showResult({ ...result(text(poem)), structuredContent: { text: poem, cost: 1, short: "Roses" } }, NONE).text;

    expect(shown).toBe(`${poem}\n\n{"text":"(the text above)","cost":1,"short":"Roses"}`);
  });

  it("has half of the room beside a long text, and more beside a short one", () => {
    const half = TOOL_RESULT_CHARS_MAX / 2;
    const long = showResult({ ...result(text("X".repeat(10 * half))), structuredContent: { Y: "Y".repeat(10 * half) } }, NONE).text;
    const short = showResult({ ...result(text("X")), structuredContent: { Y: "Y".repeat(10 * half) } }, NONE).text;

    expect([long.split("X").length - 1, long.split("Y").length - 1]).toEqual([half, half - '{"":"'.length]);
    expect(short.length).toBeGreaterThan(2 * half);
    expect(short.length).toBeLessThan(2 * half + 100);
  });
});

describe("pictures and sounds", () => {
  it("are bounded in number and in size", () => {
    const many = Array.from({ length: TOOL_RESULT_IMAGES_MAX + 1 }, (_, index) => image(`${index}AAA`));
    const largest = image("A".repeat(TOOL_RESULT_IMAGE_CHARS_MAX));
    const larger = image("A".repeat(TOOL_RESULT_IMAGE_CHARS_MAX + 1));

    const shown = showResult(result(...many), ALL);
    expect(shown.images).toEqual(many.slice(0, -1).map(({ data }) => `data:image/png;base64,${data}`));
    expect(shown.text.split("\n\n").at(-1)).toBe("(a picture, image/png, which cannot be shown)");
    expect(showResult(result(larger, largest), ALL).images).toHaveLength(1);
    expect(showResult(result(...many), NONE).images).toEqual([]);
  });

  it("of resources are shown like any other", () => {
    const shown = showResult(result(embedded("image/png", "AAAA"), embedded("audio/mpeg", "BBBB")), ALL);

    expect(shown).toEqual({
      text: "(file:///a: a picture, image/png: it follows)\n\n(file:///a: sound, audio/mpeg: it follows)",
      images: ["data:image/png;base64,AAAA"],
      sounds: [{ data: "BBBB", format: "mp3" }],
    });
  });

  it("that are heard are of the formats that models take", () => {
    const many = Array.from({ length: TOOL_RESULT_SOUNDS_MAX + 1 }, (_, index) => sound(`${index}AAA`));

    expect(showResult(result(...many), ALL).sounds).toHaveLength(TOOL_RESULT_SOUNDS_MAX);
    expect(showResult(result(sound("A", "audio/ogg")), ALL)).toMatchObject({
      sounds: [],
      text: "(sound, audio/ogg, which cannot be shown)",
    });
    expect(showResult(result(sound("A", "audio/x-wav")), ALL).sounds).toEqual([{ data: "A", format: "wav" }]);
    expect(showResult(result(sound("A")), { images: true, sounds: false }).sounds).toEqual([]);
  });
});
