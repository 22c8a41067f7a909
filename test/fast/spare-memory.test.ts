/** Memory that is reused: a view that outlives its release is empty, and never shows the next owner's bytes. */
import { describe, expect, it } from "vitest";
import { releaseMemory, takeMemory } from "../../src/fast/spare-memory.js";

const BYTES = 300_000;

describe("memory for large bodies", () => {
  it("is reused after its release", () => {
    const first = takeMemory(BYTES).fill("a");
    releaseMemory(first);

    const second = takeMemory(BYTES + 1_000);

    expect(second.length).toBe(BYTES + 1_000);
    expect(second.subarray(0, BYTES).equals(Buffer.alloc(BYTES, "a"))).toBe(true);
  });

  it("leaves an earlier view empty", () => {
    const first = takeMemory(BYTES).fill("b");
    const view = first.subarray(10, 20);
    releaseMemory(view);
    takeMemory(BYTES).fill("c");

    expect([first.length, view.length]).toEqual([0, 0]);
  });

  it("has one owner at a time, even when it is released twice", () => {
    const first = takeMemory(BYTES);
    releaseMemory(first);
    releaseMemory(first);
    const [second, third] = [takeMemory(BYTES).fill("d"), takeMemory(BYTES).fill("e")];

    expect(second.equals(Buffer.alloc(BYTES, "d"))).toBe(true);
    expect(third.equals(Buffer.alloc(BYTES, "e"))).toBe(true);
  });

  it("stays its owner's when it was allocated elsewhere", () => {
    const owned = [Buffer.from("shared with other small ones"), Buffer.alloc(300_001, "f"), Buffer.alloc(32 * 1024 * 1024)];
    for (const bytes of owned) releaseMemory(bytes);

    expect(owned.map(({ length }) => length)).toEqual([28, 300_001, 32 * 1024 * 1024]);
  });
});
