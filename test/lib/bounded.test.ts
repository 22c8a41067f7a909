import { LRUCache } from "lru-cache";
import { expect, it } from "vitest";
import { entriesMax } from "../../src/lib/bounded.js";

it("bounds a cache by its entries: the least recently used goes", () => {
  const cache = new LRUCache<string, number>(entriesMax(3));
  for (const [value, name] of ["a", "b", "c"].entries()) cache.set(name, value);
  cache.get("a");
  cache.set("a", 4);

  cache.set("d", 5);

  expect([...cache.keys()].sort()).toEqual(["a", "c", "d"]);
});
