import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ChunkFrame, textOfFilling } from "../../../src/formats/openai-chat/chunk-frame.js";
import type { RawLine } from "../../../src/lib/sse.js";

/** An event as it stands within a piece of the wire. */
function lineOf(json: string, before = "data: ", after = "\n\n"): RawLine {
  const [start, body] = [Buffer.byteLength(before), Buffer.byteLength(json)];
  return { raw: Buffer.from(before + json + after).toString("latin1"), start, end: start + body };
}

function chunk(content: string, fields: object = {}): string {
  return JSON.stringify({ id: "c1", choices: [{ index: 0, delta: { content } }], ...fields });
}

function frameOf(json: string): ChunkFrame | null {
  return ChunkFrame.of(lineOf(json), JSON.parse(json));
}

function textIn(frame: ChunkFrame | null, line: RawLine): string | null {
  const fillings = frame?.match(line) ?? null;
  return fillings === null ? null : textOfFilling(fillings[0] ?? "");
}

const text = fc.string({ unit: fc.constantFrom("a", "ä", "語", "🎉", '"', "\\", "/", "\n", "\0", "\u2028", '"content":"', "}") });

describe("a frame of chunks", () => {
  it("has the text that a parser reads, wherever the chunk stands", () => {
    fc.assert(
      fc.property(text, text, fc.string(), (first, said, before) => {
        expect(textIn(frameOf(chunk(first)), lineOf(chunk(said), before))).toBe(said);
      }),
      { numRuns: 300 },
    );
  });

  it("reads only what a parser reads alike, however a chunk was changed", () => {
    const frame = frameOf(chunk("abc"));
    const whole = chunk("some text");
    const letters = fc.constantFrom("", '"', "\\", "\\u00", "x", ",", "{", "}", "\n", "\u0001", '","content":"');
    fc.assert(
      fc.property(fc.nat(whole.length), fc.nat(2), letters, (at, dropped, letter) => {
        const changed = whole.slice(0, at) + letter + whole.slice(at + dropped);
        const found = textIn(frame, lineOf(changed));
        if (found === null) return;
        expect(JSON.parse(changed)).toEqual(JSON.parse(chunk(found)));
      }),
      { numRuns: 1_000 },
    );
  });

  it.each([
    ["another field", chunk("a", { id: "c2" })],
    ["one field more", chunk("a", { usage: null })],
    ["a text without its end", chunk("a").slice(0, -6)],
    ["a letter more at its end", `${chunk("a")} `],
    ["a text with a line break that is not escaped", chunk("?").replace("?", "\n")],
    ["nothing", ""],
  ])("does not match an event with %s", (_what, json) => {
    expect(frameOf(chunk("a"))?.match(lineOf(json))).toBeNull();
  });

  it("cuts out padding of any length beside the text", () => {
    const padded = (content: string, padding: string) => lineOf(chunk(content, { obfuscation: padding }));

    const frame = frameOf(chunk("a", { obfuscation: "xyz" }));

    expect(frame?.match(padded("b", "0123456789"))).toEqual(["b", "0123456789"]);
    expect(frame?.match(padded("", ""))).toEqual(["", ""]);
  });

  it.each<[string, object]>([
    ["two choices", { choices: [{ delta: { content: "a" } }, { delta: { content: "b" } }] }],
    ["no choice", { choices: [] }],
    ["the end of a choice", { choices: [{ delta: { content: "a" }, finish_reason: "stop" }] }],
    ["usage", { choices: [{ delta: { content: "a" } }], usage: { prompt_tokens: 1 } }],
    ["an error", { choices: [{ delta: { content: "a" } }], error: { message: "broken" } }],
    ["text that is no string", { choices: [{ delta: { content: ["a"] } }] }],
    ["reasoning", { choices: [{ delta: { content: "a", reasoning: "b" } }] }],
    ["a refusal", { choices: [{ delta: { content: "a", refusal: "b" } }] }],
    ["a tool call", { choices: [{ delta: { content: "a", tool_calls: [{}] } }] }],
    ["speech", { choices: [{ delta: { content: "a", audio: { data: "" } } }] }],
    ["another field of that name before the text", { x: { content: "b" }, choices: [{ delta: { content: "a" } }] }],
  ])("is not made of a chunk with %s", (_what, object) => {
    expect(frameOf(JSON.stringify(object))).toBeNull();
  });

  it("is made of a chunk whose other fields are empty", () => {
    const delta = { role: "assistant", content: "a", refusal: null, reasoning: "", tool_calls: null };

    expect(frameOf(JSON.stringify({ choices: [{ delta, finish_reason: null }], usage: null, error: null }))).not.toBeNull();
  });

  it("is rewritten once for all of its chunks", () => {
    const json = chunk("a", { model: "secret", obfuscation: "x" });
    const frame = frameOf(json);

    const literals = frame?.rewritten((data, object) => {
      expect(JSON.parse(data.toString())).toEqual(object);
      return Buffer.from(JSON.stringify({ ...object, model: "acme/näme" }));
    });

    const [before = "", between = "", after = ""] = literals ?? [];
    const written = Buffer.from(`${before}b${between}y${after}`, "latin1").toString();
    expect(JSON.parse(written)).toEqual(JSON.parse(chunk("b", { model: "acme/näme", obfuscation: "y" })));
  });

  it("cannot be rewritten without its text, or with its text twice", () => {
    const frame = frameOf(chunk("a"));

    expect(frame?.rewritten(() => null)).toBeNull();
    expect(frame?.rewritten(() => Buffer.from("{}"))).toBeNull();
    expect(frame?.rewritten((data) => Buffer.concat([data, data]))).toBeNull();
  });
});

describe("the text of a filling", () => {
  it("is that of the JSON string", () => {
    fc.assert(
      fc.property(text, fc.boolean(), (each, isAscii) => {
        const json = JSON.stringify(each).slice(1, -1);
        const written = isAscii ? json.replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`) : json;

        expect(textOfFilling(Buffer.from(written).toString("latin1"))).toBe(each);
      }),
    );
  });

  it.each(["\\x", "\\u12", "\\", "\\u00g0"])("is absent for the invalid escape %s", (filling) => {
    expect(textOfFilling(filling)).toBeNull();
    expect(textOfFilling(`${"long enough to be copied "}${filling}`)).toBeNull();
  });
});
