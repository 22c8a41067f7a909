import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RawSseSilence, SseSilence, SseSilenceError } from "../../src/lib/sse-silence.js";

const MAX = 1_000;

describe("silence between two pieces of content", () => {
  it("is bounded, and begins again with each piece", () => {
    const silence = new SseSilence(MAX);
    silence.add(MAX);
    silence.end();
    silence.add(MAX);

    expect(() => silence.add(1)).toThrow(SseSilenceError);
  });

  it("counts an event without content for 256 bytes at least, and for 64 KiB at most", () => {
    const short = new SseSilence(4 * 256);
    for (let event = 0; event < 4; event += 1) short.addEvent(0);
    const long = new SseSilence(2 * 64 * 1024);
    for (let event = 0; event < 2; event += 1) long.addEvent(32 * 1024 * 1024);

    expect(() => short.addEvent(0)).toThrow(SseSilenceError);
    expect(() => long.addEvent(0)).toThrow(SseSilenceError);
  });
});

/** Whether a stream in these pieces is refused. */
function isRefused(pieces: readonly string[], bytesMax = MAX): boolean {
  const silence = new RawSseSilence(bytesMax);
  try {
    for (const piece of pieces) silence.push(Buffer.from(piece));
    return false;
  } catch (error) {
    expect(error).toBeInstanceOf(SseSilenceError);
    return true;
  }
}

describe("the silence of a stream that is parsed elsewhere", () => {
  it.each([
    ["comments", ": hi\n"],
    ["empty lines", "\n"],
    ["lines that end in CR", ":\r"],
    ["fields without data", "event: ping\n"],
    ["data that says nothing", "data: \n\n"],
    ["a line that is longer than data", "database: x\n"],
    ["one line without end", "x"],
  ])("is of %s", (_what, unit) => {
    expect(isRefused([unit.repeat(Math.ceil(MAX / unit.length) + 1)])).toBe(true);
    expect(isRefused([unit.repeat(Math.floor(MAX / unit.length))])).toBe(false);
  });

  it("ends with content, however long that is", () => {
    const event = `${": hi\n".repeat(100)}data: ${"x".repeat(10 * MAX)}\n\n`;

    expect(isRefused(Array(100).fill(event))).toBe(false);
  });

  it("is the same for every split into chunks", () => {
    const line = fc.constantFrom(":", ": hi", "data: a", "data:", "data", "", "event: x", "dat");
    const text = fc.array(fc.tuple(line, fc.constantFrom("\n", "\r", "\r\n")).map((parts) => parts.join(""))).map((all) => all.join(""));
    fc.assert(
      fc.property(text, fc.integer({ min: 1, max: 7 }), fc.nat(40), (stream, size, bytesMax) => {
        const pieces = stream.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
        const longest = silences(stream);
        expect(isRefused(pieces, bytesMax)).toBe(longest > bytesMax);
      }),
    );
  });
});

/** The most bytes between two characters that `data` lines say. */
function silences(stream: string): number {
  const said = stream.replace(
    /(?<=^|[\r\n])data: ?([^\r\n ][^\r\n]*)/g,
    (line) => `${line.slice(0, line.length - line.slice(5).trimStart().length)}\0`,
  );
  return Math.max(...said.split("\0").map((silent) => silent.length));
}
