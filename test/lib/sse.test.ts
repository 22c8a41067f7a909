import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createSseScanner, formatSseEvent, type SseEvent, SseEventTooLargeError } from "../../src/lib/sse.js";

const EVENT_BYTES_MAX = 64 * 1024 * 1024;

interface Seen {
  data: string;
  event: string | null;
  bytes: string;
}

function scan(chunks: readonly (string | Uint8Array)[], eventBytesMax = EVENT_BYTES_MAX): Seen[] {
  const scanner = createSseScanner({ eventBytesMax });
  const events: SseEvent[] = [];
  for (const chunk of chunks) events.push(...scanner.push(Buffer.from(chunk)));
  events.push(...scanner.end());
  return events.map(({ data, event, bytes }) => ({ data, event, bytes: bytes.toString() }));
}

function dataOf(chunks: readonly (string | Uint8Array)[]): string[] {
  return scan(chunks).map(({ data }) => data);
}

describe("framing", () => {
  it.each([
    ["LF", "data: a\n\ndata: b\n\n"],
    ["CRLF", "data: a\r\n\r\ndata: b\r\n\r\n"],
    ["lone CR", "data: a\r\rdata: b\r\r"],
    ["mixed", "data: a\r\n\ndata: b\r\r\n"],
    ["no space after the colon", "data:a\n\ndata:b\n\n"],
    ["comments between", ": hi\n\ndata: a\n:x\n\n: y\r\rdata: b\n\n"],
    ["other fields", "id: 1\nretry: 5\nfoo: bar\ndata: a\n\nid\ndata: b\n\n"],
    ["a byte order mark", "\uFEFFdata: a\n\ndata: b\n\n"],
    ["no empty line at the end", "data: a\n\ndata: b\n"],
    ["no line end at the end", "data: a\n\ndata: b"],
    ["several empty lines", "\n\n\ndata: a\n\n\n\n\ndata: b\n\n"],
  ])("reads %s", (_name, text) => {
    expect(dataOf([text])).toEqual(["a", "b"]);
    expect(scan([text]).map(({ bytes }) => bytes)).toEqual(["data: a\n\n", "data: b\n\n"]);
  });

  it("takes a LF that follows a CR across two chunks as one line end", () => {
    expect(dataOf(["data: a\r", "\ndata: b\r", "\n\r", "\ndata: c\r\r"])).toEqual(["a\nb", "c"]);
  });

  it("does not wait for a LF after the CR that ends an event", () => {
    const scanner = createSseScanner({ eventBytesMax: 100 });

    expect(scanner.push(Buffer.from("data: a\r\r"))).toHaveLength(1);
    expect(scanner.push(Buffer.from("\ndata: b\r\n\r"))).toHaveLength(1);
    expect(scanner.push(Buffer.from("\n"))).toHaveLength(0);
  });

  it("joins data lines and writes them out one by one", () => {
    expect(scan(["data: a\r\ndata:  b\ndata\ndata:\n\n"])).toEqual([
      { data: "a\n b\n\n", event: null, bytes: "data: a\ndata:  b\ndata: \ndata: \n\n" },
    ]);
  });

  it("reports the event name, for its own event only", () => {
    expect(scan(["event: error\ndata: a\n\ndata: b\n\nevent: c\n\ndata: d\n\n"])).toEqual([
      { data: "a", event: "error", bytes: "data: a\n\n" },
      { data: "b", event: null, bytes: "data: b\n\n" },
      { data: "d", event: null, bytes: "data: d\n\n" },
    ]);
  });

  it("keeps a byte order mark that is not at the start", () => {
    expect(dataOf(["data: a\n\ndata: \uFEFFb\n\n\uFEFFdata: c\n\n"])).toEqual(["a", "\uFEFFb"]);
  });

  it("delivers an event without data for an empty data field and none without a data field", () => {
    expect(dataOf(["data\n\n", "event: x\n\n", "data:\n\n"])).toEqual(["", ""]);
  });

  it("does not mistake a longer field name for data", () => {
    expect(dataOf(["database: a\n\ndatax\n\ndata: b\n\n"])).toEqual(["b"]);
  });

  it("hands out a slice of the chunk when the event is already in normal form", () => {
    const scanner = createSseScanner({ eventBytesMax: 100 });
    scanner.push(Buffer.from("\n"));
    const chunk = Buffer.from('data: {"a":1}\n\n');

    const [event] = scanner.push(chunk);

    expect(event?.bytes.buffer).toBe(chunk.buffer);
    expect(event?.bytes.byteOffset).toBe(chunk.byteOffset);
  });
});

describe("any split of any framing", () => {
  const lineEnd = fc.constantFrom("\n", "\r\n", "\r");
  const text = fc.string({ unit: fc.constantFrom("a", "ä", "語", "🎉", " ", ":", "{", '"', "\uFEFF"), maxLength: 12 });
  const line = fc.oneof(
    text.map((value) => `data: ${value}`),
    text.map((value) => `data:${value}`),
    fc.constant("data"),
    text.map((value) => `: ${value}`),
    text.map((value) => `event: ${value}`),
    text.map((value) => `id: ${value}`),
    fc.constant(""),
    fc.constant(""),
  );
  const body = fc
    .tuple(fc.boolean(), fc.array(fc.tuple(line, lineEnd), { maxLength: 20 }), fc.option(line, { nil: "" }))
    .map(([mark, lines, last]) => (mark ? "\uFEFF" : "") + lines.map(([content, end]) => content + end).join("") + last);

  it("gives the same events as one push", () => {
    fc.assert(
      fc.property(body, fc.array(fc.nat(300), { maxLength: 40 }), (content, cuts) => {
        const whole = Buffer.from(content);
        const places = [0, ...cuts.map((cut) => Math.min(cut, whole.length)).sort((a, b) => a - b), whole.length];
        const chunks = places.slice(1).map((place, index) => whole.subarray(places[index], place));

        expect(scan(chunks)).toEqual(scan([whole]));
      }),
      { numRuns: 500 },
    );
  });

  it("gives the same events byte by byte", () => {
    fc.assert(
      fc.property(body, (content) => {
        const whole = Buffer.from(content);

        expect(scan([...whole].map((byte) => Uint8Array.of(byte)))).toEqual(scan([whole]));
      }),
    );
  });

  it("gives events with names the same at every split, also where a name ends the chunk", () => {
    const written = [
      "data: a\n\n",
      "event: ping\ndata: b\n\n",
      "event: \u00e9\ndata: c\n\n",
      "event: x\nid: 1\ndata: d\n\n",
      "data: e\n\n",
    ];
    const whole = Buffer.from(written.join("") + written.toReversed().join(""));
    const plain = (chunks: readonly Buffer[]) => scan(chunks).map(({ data, event, bytes }) => [data, event, bytes.toString()]);
    const all = [
      ["a", null],
      ["b", "ping"],
      ["c", "\u00e9"],
      ["d", "x"],
      ["e", null],
    ].map(([data, name]) => [data, name, `data: ${data}\n\n`]);

    for (let at = 0; at <= whole.length; at += 1) {
      expect(plain([whole.subarray(0, at), whole.subarray(at)])).toEqual([...all, ...all.toReversed()]);
    }
  });

  it("reads the written values in every framing", () => {
    const value = fc.string({ unit: "grapheme", maxLength: 30 }).filter((content) => !/[\r\n]/.test(content));
    fc.assert(
      fc.property(fc.array(value), lineEnd, (values, end) => {
        const content = values.map((item) => `data: ${item}${end}${end}`).join("");

        expect(dataOf([content])).toEqual(values);
      }),
    );
  });
});

describe("size", () => {
  it("reads one event of 20 MB that comes in 64 KB reads", () => {
    const content = "x".repeat(20 * 1024 * 1024);
    const wire = Buffer.from(`data: ${content}\n\n`);
    const scanner = createSseScanner({ eventBytesMax: EVENT_BYTES_MAX });
    const events: SseEvent[] = [];

    for (let at = 0; at < wire.length; at += 65_536) events.push(...scanner.push(wire.subarray(at, at + 65_536)));

    expect(events).toHaveLength(1);
    expect(events[0]?.data === content).toBe(true);
    expect(events[0]?.bytes.equals(wire)).toBe(true);
  });

  it("accepts an event at the cap and refuses one byte more", () => {
    expect(scan([`data: ${"x".repeat(94)}\n\n`], 100)).toHaveLength(1);
    expect(scan(["data: ", "x".repeat(94), "\n\n"], 100)).toHaveLength(1);
    expect(() => scan([`data: ${"x".repeat(95)}\n\n`], 100)).toThrow(SseEventTooLargeError);
    expect(() => scan(["data: ", "x".repeat(95), "\n\n"], 100)).toThrow(SseEventTooLargeError);
    expect(() => scan(["data: x\n".repeat(20)], 100)).toThrow(SseEventTooLargeError);
  });

  it("refuses a line without end and a comment without end", () => {
    const scanner = createSseScanner({ eventBytesMax: 1000 });
    scanner.push(Buffer.alloc(900, "x"));

    expect(() => scanner.push(Buffer.alloc(200, "x"))).toThrow(SseEventTooLargeError);
    expect(() => scanner.push(Buffer.from("\n\ndata: a\n\n"))).toThrow(SseEventTooLargeError);
    expect(() => scanner.end()).toThrow(SseEventTooLargeError);
    expect(() => scan([`:${"x".repeat(1000)}\n\n`], 1000)).toThrow(SseEventTooLargeError);
  });

  it("counts comments and other fields toward no event", () => {
    expect(dataOf([": keep-alive\n\n".repeat(50), "data: a\n\n"])).toEqual(["a"]);
    expect(scan([`${": keep-alive\n".repeat(50)}data: a\n\n`], 100)).toHaveLength(1);
  });

  it("hands out the events before the one that is too large", () => {
    const scanner = createSseScanner({ eventBytesMax: 20 });

    expect(scanner.push(Buffer.from(`data: a\n\ndata: ${"x".repeat(50)}`))).toHaveLength(1);
    expect(() => scanner.push(Buffer.from("x"))).toThrow(SseEventTooLargeError);
  });
});

describe("silence", () => {
  const silentBytes = (chunks: readonly string[]) => {
    const scanner = createSseScanner({ eventBytesMax: EVENT_BYTES_MAX });
    for (const chunk of chunks) scanner.push(Buffer.from(chunk));
    return scanner.takeSilentBytes();
  };

  it.each([
    ["comments", ": hi\n:\r\n:\r", 10],
    ["empty lines", "\n\r\r\n\n", 5],
    ["a comment that is not over", ": hi", 0],
    ["data", "data: a\n\ndata: b\n\n", 0],
    ["short fields, each for sixteen", "x\ne\nid\n", 48],
    ["comments within an event", "data: a\n: hi\ndata: b\n\n", 5],
  ])("counts %s", (_what, text, bytes) => {
    expect(silentBytes([text])).toBe(bytes);
  });

  it("is reported once", () => {
    const scanner = createSseScanner({ eventBytesMax: EVENT_BYTES_MAX });
    scanner.push(Buffer.from(":\n:\n"));

    expect([scanner.takeSilentBytes(), scanner.takeSilentBytes()]).toEqual([4, 0]);
  });

  it("changes no event, for every split into chunks", () => {
    const line = fc.constantFrom(":", ": hi", "data: a", "data:", "", "event: x", "x", "\uFEFF");
    const ending = fc.constantFrom("\n", "\r", "\r\n");
    const text = fc.array(fc.tuple(line, ending).map((parts) => parts.join(""))).map((lines) => lines.join(""));
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 7 }), (stream, size) => {
        const pieces = stream.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
        // Line ends alike, because a CR and an LF on both sides of a comment would become one end without it.
        const plain = stream.replace(/\r\n|\r/g, "\n").replace(/(^\uFEFF|^|\n)(?::[^\n]*\n)+/g, "$1");
        expect(dataOf(pieces)).toEqual(dataOf([stream]));
        expect(dataOf([stream])).toEqual(dataOf([plain]));
      }),
      { examples: [["data: a\r:\n\ndata: a\n", 1]] },
    );
  });
});

it("refuses an event of more lines than any has", () => {
  expect(() => scan(["data:\n".repeat(65_537)])).toThrow(SseEventTooLargeError);
  expect(scan(["data:\n".repeat(65_536)])).toHaveLength(1);
});

describe("formatSseEvent", () => {
  it("writes one line, several lines and a name", () => {
    expect(formatSseEvent("a").toString()).toBe("data: a\n\n");
    expect(formatSseEvent("a\nb\r\nc\rd").toString()).toBe("data: a\ndata: b\ndata: c\ndata: d\n\n");
    expect(formatSseEvent("a", "error").toString()).toBe("event: error\ndata: a\n\n");
  });

  it("is read back by the scanner", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (data) => {
        expect(dataOf([formatSseEvent(data)])).toEqual([data.replace(/\r\n|\r/g, "\n")]);
      }),
    );
  });
});

describe("the metadata of a stream", () => {
  it("is its last id and its retry time, for every split into chunks", () => {
    const text = "id: 1\nretry: 250\ndata: a\n\nid:2\nretry: soon\nretry: 99999999999\ndata: b\n\nid: \ndata: c\n\nid: 4";
    for (const size of [1, 7, text.length]) {
      const scanner = createSseScanner({ eventBytesMax: 1_000 });
      const seen: (string | null)[] = [];
      for (let at = 0; at < text.length; at += size) {
        for (const _event of scanner.push(Buffer.from(text.slice(at, at + size)))) seen.push(scanner.lastEventId);
      }
      scanner.end();

      expect([scanner.lastEventId, scanner.retryMs]).toEqual(["4", 250]);
      if (size === 1) expect(seen).toEqual(["1", "2", null]);
    }
  });
});
