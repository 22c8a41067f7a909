import { randomBytes } from "node:crypto";
import { describe, expect, it } from "vitest";
import { SecretBox } from "../../../src/services/secrets/secret-box.js";

const PLACE = { table: "webhook_endpoint", rowId: "0199f000-0000-7000-8000-000000000001", column: "secret" };
const [KEY, OTHER_KEY] = [randomBytes(32), randomBytes(32)];
const box = new SecretBox(() => [KEY]);

describe("a secret box", () => {
  it.each(["whsec_abc", "", "ünïcode ✓", "x".repeat(100_000)])("opens its own boxes (%#)", (text) => {
    expect(box.open(PLACE, box.seal(PLACE, text))).toBe(text);
  });

  it("seals the same text differently each time, and shows nothing of it", () => {
    const [first, second] = [box.seal(PLACE, "the same secret"), box.seal(PLACE, "the same secret")];

    expect(Buffer.from(first).equals(Buffer.from(second))).toBe(false);
    expect(Buffer.from(first).includes("secret")).toBe(false);
  });

  it.each([
    ["row", { rowId: "0199f000-0000-7000-8000-000000000002" }],
    ["column", { column: "previous_secret" }],
    ["table", { table: "community_model" }],
  ])("does not open a box that was sealed for another %s", (_name, other) => {
    const sealed = box.seal({ ...PLACE, ...other }, "secret");

    expect(() => box.open(PLACE, sealed)).toThrow("sealed for another place");
  });

  it("does not open a box with any byte changed", () => {
    const sealed = box.seal(PLACE, "secret");

    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Uint8Array.from(sealed);
      changed[index] = (changed[index] ?? 0) ^ 1;
      expect(() => box.open(PLACE, changed), `byte ${index}`).toThrow();
    }
  });

  it("does not open a box that was cut short, down to nothing", () => {
    const sealed = box.seal(PLACE, "secret");

    for (let length = 0; length < sealed.length; length += 1) {
      expect(() => box.open(PLACE, sealed.subarray(0, length)), `${length} bytes`).toThrow();
    }
  });

  it("opens the box of an earlier key, and names the current key in its own", () => {
    const [earlier, current] = [randomBytes(32), randomBytes(32)];
    const sealed = new SecretBox(() => [earlier]).seal(PLACE, "secret");
    const rotated = new SecretBox(() => [current, earlier]);

    expect(rotated.open(PLACE, sealed)).toBe("secret");
    const isCurrent = (box: Uint8Array) => Buffer.from(box.subarray(1, 5)).equals(rotated.keyId);
    expect([isCurrent(sealed), isCurrent(rotated.seal(PLACE, "secret"))]).toEqual([false, true]);
  });

  it("does not open the box of an unknown key", () => {
    const sealed = new SecretBox(() => [OTHER_KEY]).seal(PLACE, "secret");

    expect(() => box.open(PLACE, sealed)).toThrow("a key that is not known");
  });

  it("takes keys of 32 bytes only", () => {
    expect(() => new SecretBox(() => [randomBytes(31)])).toThrow(TypeError);
    expect(() => new SecretBox(() => [randomBytes(32), randomBytes(16)])).toThrow(TypeError);
  });
});
