import { expect, it } from "vitest";
import { createId } from "../../src/lib/ids.js";

it("makes UUIDs of version 7 that do not repeat, also beyond one fill of the pool", () => {
  const ids = Array.from({ length: 5_000 }, createId);

  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
});

it("makes ids that carry the time at which they were made", () => {
  const before = Date.now();
  const milliseconds = Number.parseInt(createId().replaceAll("-", "").slice(0, 12), 16);

  expect(milliseconds).toBeGreaterThanOrEqual(before);
  expect(milliseconds).toBeLessThanOrEqual(Date.now());
});
