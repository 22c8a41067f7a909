import { expect, it } from "vitest";
import { type Pulled, type PulledIterator, pullFrom } from "../../src/fast/pull.js";

const ITEM: Pulled<string> = { done: false, value: "a" };

it("pulls synchronously, as a method of its iterator, where an iterator can", () => {
  class Items implements PulledIterator<string> {
    private readonly item = ITEM;
    pull() {
      return this.item;
    }
    next(): Promise<Pulled<string>> {
      throw new Error("The promise was not needed.");
    }
  }

  expect(pullFrom(new Items())).toBe(ITEM);
});

it("asks every other iterator for a promise", async () => {
  async function* items() {
    yield "a";
  }
  const iterator = items();

  expect(await pullFrom(iterator)).toEqual(ITEM);
  expect(await pullFrom(iterator)).toEqual({ done: true, value: undefined });
});
