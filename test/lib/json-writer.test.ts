import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { writeJson } from "../../src/lib/json-writer.js";

const LONG = 700_000;

async function written(value: object): Promise<string> {
  return (await writeJson(value)).toString();
}

describe("writeJson", () => {
  it("writes a small value at once", () => {
    expect(writeJson({ a: [1, "é", null, undefined], b: undefined })).toBe('{"a":[1,"é",null,null]}');
  });

  it.each<[string, object]>([
    ["a long text", { a: "x".repeat(LONG), b: 1 }],
    ["a long text of escapes", ['"\\\n\u0001'.repeat(LONG)]],
    ["a long text of pairs after one character", [`a${"😀".repeat(LONG)}`]],
    ["halves of pairs", [`${"x".repeat(LONG)}\ud83d`, "\ude00".repeat(LONG)]],
    ["a long key", { ["k".repeat(LONG)]: 1 }],
    ["absent members", { a: undefined, b: "x".repeat(LONG), c: undefined, d: [undefined, "é".repeat(LONG)] }],
    ["numbers", { input: Array.from({ length: LONG }, (_, index) => index / 2) }],
    ["short texts", Array.from({ length: 100_000 }, (_, index) => ({ role: "user", content: `message ${index}` }))],
    ["nesting", [[{ a: [[{ b: "x".repeat(LONG), c: [] }, {}], 1] }, [true]]]],
    ["a key that is named like a prototype", JSON.parse(`{"__proto__":"${"x".repeat(LONG)}"}`) as object],
  ])("writes %s as JSON.stringify does", async (_name, value) => {
    expect((await written(value)) === JSON.stringify(value)).toBe(true);
  });

  it("writes any JSON beside a long text as JSON.stringify does", async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), async (value) => {
        const whole = { before: value, text: "x".repeat(LONG), list: [value, "y".repeat(LONG), value] };
        return (await written(whole)) === JSON.stringify(whole);
      }),
      { numRuns: 30 },
    );
  });

  it("lets the event loop turn between its pieces", async () => {
    let turns = 0;
    let isOver = false;
    const count = () => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    await writeJson({ text: "x".repeat(20 * LONG) });
    isOver = true;

    // 27 pieces of half a megabyte.
    expect(turns).toBeGreaterThanOrEqual(27);
  });
});
