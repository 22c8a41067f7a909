import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatChunkObject } from "../../../src/formats/openai-chat/schema.js";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { ChatChunkEvents } from "../../../src/formats/openai-chat/stream.js";
import { createSseScanner } from "../../../src/lib/sse.js";
import { ChatMeter } from "../../../src/services/generation/chat/meter.js";
import { ChatTail } from "../../../src/services/generation/chat/stream-tail.js";

interface Passed {
  /** What goes on to the caller, event by event. */
  readonly written: readonly ChatChunkObject[];
  readonly objects: readonly ChatChunkObject[];
  readonly delivered: unknown;
  readonly framed: number;
}

/** A stream as it goes through the gateway, all of it in pieces of so many bytes. */
function pass(wire: Buffer, pieceBytes = wire.length): Passed {
  const scanner = createSseScanner({ eventBytesMax: 1_000_000 });
  const events = new ChatChunkEvents([]);
  const tail = new ChatTail("acme/named", false);
  const meter = new ChatMeter(1);
  const pieces: Uint8Array[] = [];
  const objects: ChatChunkObject[] = [];
  let framed = 0;
  for (let at = 0; at < wire.length; at += pieceBytes) {
    const batch: ChatChunk[] = [];
    for (const event of scanner.push(wire.subarray(at, at + pieceBytes))) events.take(event, batch);
    for (const chunk of batch) meter.read(chunk);
    framed += batch.filter((chunk) => chunk.framed).length;
    const passed = tail.pass(batch);
    if (!passed) continue;
    pieces.push(passed.bytes);
    objects.push(...passed.chunks);
  }
  const written = createSseScanner({ eventBytesMax: 1_000_000 }).push(Buffer.concat([Buffer.from("\n"), ...pieces]));
  return { written: written.map(({ data }) => JSON.parse(data)), objects, delivered: meter.delivered(), framed };
}

function toWire(documents: readonly string[], lineEnd = "\n"): Buffer {
  return Buffer.from(documents.map((document) => `data: ${document}${lineEnd}${lineEnd}`).join(""));
}

/** Events that end in CR LF are read one by one. */
function expectAlike(documents: readonly string[], pieceBytes?: number): Passed {
  const oneByOne = pass(toWire(documents, "\r\n"));
  const passed = pass(toWire(documents), pieceBytes);
  expect(oneByOne.framed).toBe(0);
  expect({ ...passed, framed: 0 }).toEqual(oneByOne);
  return passed;
}

function chunk(content: string, fields: object = {}): string {
  const choices = [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }];
  return JSON.stringify({ id: "c1", object: "chat.completion.chunk", model: "secret", choices, ...fields });
}

describe("chunks that differ in their text alone", () => {
  it("are parsed as one frame, with the results of single parsing", () => {
    const texts = ["The", " sluice", ' "opens"', "\n", "für", " 水車", "🎉", "a\\u0041", "", "x".repeat(5_000)];

    expect(expectAlike(texts.map((text) => chunk(text))).framed).toBe(texts.length - 2);
  });

  it("may end in padding of random length", () => {
    const documents = ["a", "b", "c", "d"].map((text) => chunk(text, { usage: null, obfuscation: text.repeat(7) }));

    expect(expectAlike(documents).framed).toBe(2);
  });

  it("may contain spaces", () => {
    const document = (text: string) => `{"model": "secret", "choices": [{"index": 0, "delta": {"content": ${JSON.stringify(text)}}}]}`;

    expect(expectAlike(["a", "b", "c"].map(document)).framed).toBe(1);
  });

  it("are parsed singly where the text field is ambiguous", () => {
    const odd = [
      '{"model":"secret","x":{"content":"a"},"choices":[{"delta":{"\\u0063ontent":"b"}}]}',
      '{"model":"secret","choices":[{"delta":{"content":"a","content":"b"}}]}',
      '{"model":"secret","choices":[{"delta":{"x\\"content":"a","content":"b"}}]}',
      '{"model":"secret","choices":[{"delta":{"content":"a","reasoning_content":"b"}}]}',
      '{"model":"secret","choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}',
      '{"model":"secret","choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}',
      '{"model":"secret","choices":[{"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}',
    ];
    for (const document of odd) expect(expectAlike([document, document, document, document]).framed).toBe(0);
  });

  it("end the stream with an error when one is not JSON", () => {
    const broken = chunk("a").replace('"a"', '"\\x"');

    expect(() => pass(toWire([chunk("a"), chunk("b"), chunk("c"), broken]))).toThrow("not a JSON object");
  });

  it("start a new frame when any other field changes", () => {
    const documents = [
      chunk("a"),
      chunk("b"),
      chunk("c"),
      chunk("d", { model: "other" }),
      chunk("e"),
      chunk("f", { system_fingerprint: "f" }),
    ];

    expect(expectAlike([...documents, ...documents]).written.every(({ model }) => model === "acme/named")).toBe(true);
  });

  it("give the same results however the stream is written and cut", () => {
    const text = fc.string({ unit: fc.constantFrom("a", "ä", "語", "🎉", '"', "\\", "\n", ":", '"content":"'), maxLength: 20 });
    const ascii = (json: string) => json.replace(/[^ -~]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
    const fields = fc.record(
      {
        model: fc.constantFrom("secret", "s\\u0065cret"),
        provider: fc.constant("secret"),
        usage: fc.constant(null),
        obfuscation: text,
        z: text,
      },
      { requiredKeys: [] },
    );
    const frame = fc.record({ before: fields, after: fields, index: fc.nat(1), isAscii: fc.boolean(), padded: fc.boolean() });
    const documents = fc.tuple(fc.array(frame, { minLength: 1, maxLength: 3 }), fc.array(fc.tuple(text, fc.nat(2)), { maxLength: 12 }));
    fc.assert(
      fc.property(documents, fc.integer({ min: 1, max: 300 }), ([frames, said], pieceBytes) => {
        const written = said.map(([content, which]) => {
          const used = frames[which % frames.length];
          const json = JSON.stringify({ ...used?.before, choices: [{ index: used?.index, delta: { content } }], ...used?.after });
          return used?.isAscii ? ascii(json) : json;
        });
        expectAlike(written, pieceBytes);
      }),
      { numRuns: 300 },
    );
  });
});
