import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fingerprintOf } from "../../../src/services/idempotency/fingerprint.js";

const hex = async (value: unknown, isLarge = false) => Buffer.from(await fingerprintOf(value, isLarge)).toString("hex");

/** The digest's input: stored fingerprints have to stay as they are. */
function canonical(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value !== "object" || value === null) return value;
  if (value instanceof Uint8Array) return { sha256: createHash("sha256").update(value).digest("hex") };
  if (Array.isArray(value)) return value.map(canonical);
  const entries = Object.entries(value).filter(([, field]) => field !== undefined);
  return { fields: entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, field]) => [name, canonical(field)]) };
}

class File {
  readonly name = "a.png";

  get bytes(): Uint8Array {
    return new Uint8Array([1, 2, 3]);
  }
}

describe("the fingerprint of a request", () => {
  it("is that of its canonical text, at once and in turns", async () => {
    const value = fc.letrec((tie) => ({
      value: fc.oneof(
        fc.string(),
        fc.double(),
        fc.boolean(),
        fc.constantFrom(null, undefined),
        fc.bigInt(),
        fc.uint8Array({ maxLength: 5 }),
        fc.array(tie("value"), { maxLength: 5 }),
        fc.dictionary(fc.oneof(fc.string(), fc.constantFrom("__proto__", "10", "9")), tie("value"), { maxKeys: 5 }),
      ),
    })).value;
    await fc.assert(
      fc.asyncProperty(value, async (input) => {
        const expected = createHash("sha256")
          .update(JSON.stringify(canonical([input])))
          .digest("hex");
        expect(await hex([input])).toBe(expected);
        expect(await hex([input], true)).toBe(expected);
      }),
    );
  });

  it("does not depend on the order of fields, and does on that of a list", async () => {
    expect(await hex({ a: 1, b: [1, 2] })).toBe(await hex({ b: [1, 2], a: 1 }));
    expect(await hex({ a: 1, b: [1, 2] })).not.toBe(await hex({ a: 1, b: [2, 1] }));
  });

  it("counts the bytes of a file that are no property of its own", async () => {
    const expected = canonical({ bytes: new Uint8Array([1, 2, 3]), name: "a.png" });
    const digest = createHash("sha256").update(JSON.stringify(expected)).digest("hex");

    expect(await hex(new File())).toBe(digest);
  });

  it("is the same of a text that takes many turns", async () => {
    const value = { list: Array.from({ length: 100_000 }, (_, index) => ({ index })) };

    expect(await hex(value, true)).toBe(await hex(value));
  });
});
