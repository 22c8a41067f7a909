import { describe, expect, it } from "vitest";
import * as z from "zod";
import { closest, inUnit, sayChoices, sayIssue, UNKNOWN_FIELDS_SEPARATOR, unitOf } from "../../src/lib/issue-words.js";

/** The messages for an input, each behind its field. */
function messagesFor(schema: z.ZodType, input: unknown): string[] {
  const { error } = schema.safeParse(input, { error: sayIssue });
  return (error?.issues ?? []).map(({ path, message }) => [...path, message].join(": "));
}

describe("the message for a wrong type", () => {
  it.each<[string, z.ZodType, unknown, string]>([
    ["string", z.string(), 1, "expected a string"],
    ["number", z.number(), "1", "expected a number"],
    ["number that is not finite", z.number(), Number.NaN, "expected a number"],
    ["whole number", z.int(), 1.5, "expected a whole number"],
    ["boolean", z.boolean(), "true", "expected true or false"],
    ["array", z.array(z.string()), {}, "expected an array"],
    ["tuple", z.tuple([z.string()]), {}, "expected an array"],
    ["object", z.object({}), [], "expected an object"],
    ["record", z.record(z.string(), z.string()), 1, "expected an object"],
    ["null", z.null(), 1, "expected null"],
    ["type that JSON lacks", z.date(), "x", "expected another type"],
  ])("names the expected %s", (_what, schema, input, message) => {
    expect(messagesFor(schema, input)).toEqual([message]);
  });

  it("says of a missing value that it is required", () => {
    const schema = z.object({ a: z.string(), b: z.enum(["x", "y"]), c: z.union([z.string(), z.number()]), d: z.literal(1) });

    expect(messagesFor(schema, {})).toEqual(["a: is required", "b: is required", "c: is required", "d: is required"]);
    expect(messagesFor(schema, { a: null, b: "x", c: 1, d: 1 })).toEqual(["a: expected a string"]);
  });
});

describe("the message for a wrong choice", () => {
  it("lists the allowed ones", () => {
    expect(messagesFor(z.enum(["a", "b", "c"]), "d")).toEqual(["must be one of a, b or c"]);
    expect(messagesFor(z.enum(["a", "b"]), 1)).toEqual(["must be one of a or b"]);
    expect(messagesFor(z.literal(5), 6)).toEqual(["must be 5"]);
    expect(messagesFor(z.enum(["", "a"]), "b")).toEqual(["must be one of empty or a"]);
    expect([sayChoices(["a"]), sayChoices(["a", "b", "c", "d"])]).toEqual(["must be a", "must be one of a, b, c or d"]);
  });

  it("lists types and values of a union, each once", () => {
    expect(messagesFor(z.union([z.string(), z.number()]), true)).toEqual(["expected a string or a number"]);
    expect(messagesFor(z.union([z.string(), z.array(z.string()), z.array(z.number())]), 1)).toEqual(["expected a string or an array"]);
    expect(messagesFor(z.union([z.literal("auto"), z.number()]), true)).toEqual(["expected auto or a number"]);
    expect(messagesFor(z.union([z.literal("auto"), z.literal("none")]), true)).toEqual(["must be one of auto or none"]);
  });

  it("states the fault of a value of one of the types", () => {
    expect(messagesFor(z.union([z.string().min(2), z.number()]), "a")).toEqual(["must have at least 2 characters"]);
    expect(messagesFor(z.union([z.literal("auto"), z.number().min(1)]), 0)).toEqual(["must be at least 1"]);
  });

  it("lists the kinds of a discriminated union", () => {
    const schema = z.discriminatedUnion("type", [z.object({ type: z.literal("text") }), z.object({ type: z.literal("image") })]);

    expect(messagesFor(schema, { type: "video" })).toEqual(["type: must be one of text or image"]);
  });
});

describe("the message for a value out of bounds", () => {
  it.each<[string, z.ZodType, unknown, string]>([
    ["a whole range below it", z.number().min(1).max(5), 0, "must be from 1 to 5"],
    ["a whole range above it", z.number().min(1).max(5), 6, "must be from 1 to 5"],
    ["a range of whole numbers", z.int().min(1).max(5), 6, "must be from 1 to 5"],
    ["a least number", z.number().min(1), 0, "must be at least 1"],
    ["a greatest number", z.number().max(5), 6, "must be at most 5"],
    ["an exclusive least number", z.number().gt(0), 0, "must be more than 0"],
    ["an exclusive greatest number", z.number().lt(5), 5, "must be less than 5"],
    ["a half-open range", z.number().gt(0).max(5), 0, "must be more than 0"],
    ["a unit", inUnit(z.number().min(1).max(60), "seconds"), 61, "must be from 1 to 60 seconds"],
    ["a unit of one bound", inUnit(z.number().min(1), "seconds"), 0, "must be at least 1 seconds"],
    ["a step", z.number().multipleOf(8), 9, "must be a multiple of 8"],
    ["a text that is empty", z.string().min(1), "", "must not be empty"],
    ["a text that is too short", z.string().min(3), "ab", "must have at least 3 characters"],
    ["a text that is too long", z.string().max(1), "ab", "must have at most 1 character"],
    ["both bounds of a text", z.string().min(1).max(3), "abcd", "must have 1 to 3 characters"],
    ["an exact length", z.string().min(2).max(2), "abc", "must have 2 characters"],
    ["a list that is too long", z.array(z.int()).max(2), [1, 2, 3], "must have at most 2 items"],
    ["an empty list", z.array(z.int()).min(1).max(1), [], "must have 1 item"],
    ["a text that is trimmed first", z.string().trim().min(1), "  ", "must not be empty"],
  ])("states %s", (_what, schema, input, message) => {
    expect(messagesFor(schema, input)).toEqual([message]);
  });

  it("keeps the unit of a number that may be absent", () => {
    const seconds = inUnit(z.number().max(60), "seconds");

    expect(messagesFor(z.object({ a: seconds.nullish() }), { a: 61 })).toEqual(["a: must be at most 60 seconds"]);
    expect([unitOf(seconds), unitOf(z.number())]).toEqual(["seconds", undefined]);
  });
});

describe("the message for a text of the wrong form", () => {
  it.each<[z.ZodType, string]>([
    [z.url(), "must be a URL"],
    [z.email(), "must be an e-mail address"],
    [z.uuid(), "must be a UUID"],
    [z.iso.datetime(), "must be an ISO 8601 time such as 2026-01-31T12:00:00.000Z"],
    [z.base64(), "must be base64"],
    [z.string().regex(/^a$/), "does not have the right form"],
  ])("%# says which one it must have", (schema, message) => {
    expect(messagesFor(schema, "?")).toEqual([message]);
  });

  it("is that of the schema, where it has one", () => {
    expect(messagesFor(z.string().regex(/^\d+x\d+$/, "must be WIDTHxHEIGHT"), "?")).toEqual(["must be WIDTHxHEIGHT"]);
    expect(
      messagesFor(
        z.string().refine(() => false),
        "?",
      ),
    ).toEqual(["is not allowed"]);
  });
});

describe("the message for unknown fields", () => {
  const schema = z.strictObject({ temperature: z.number().optional(), top_p: z.number().optional(), seed: z.int().optional() });

  it("suggests the closest fields, the nearest first", () => {
    const [message] = messagesFor(schema, { temprature: 1 });

    expect(message).toMatch(/^is not known here; the closest that are: temperature, /);
  });

  it("has a line for each field, and for twenty at most", () => {
    const fields = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`x${index}`, 1]));

    expect(messagesFor(schema, { x: 1, y: 1 })[0]?.split(UNKNOWN_FIELDS_SEPARATOR)).toHaveLength(2);
    expect(messagesFor(schema, fields)[0]?.split(UNKNOWN_FIELDS_SEPARATOR)).toHaveLength(20);
  });

  it("suggests nothing where no field is known", () => {
    expect(messagesFor(z.strictObject({}), { a: 1 })).toEqual(["is not known here"]);
  });
});

describe("the closest names", () => {
  const options = { namesOf: (name: string) => [name], count: 2, charsMax: 8 };

  it("are those with the fewest edits, without regard to case", () => {
    expect(closest(["large", "LARGO", "small"], "Largo", options)).toEqual(["LARGO", "large"]);
    expect(closest(["b", "a"], "c", options)).toEqual(["b", "a"]);
    expect(closest([], "a", options)).toEqual([]);
  });

  it("compare the closest of an item's names", () => {
    const items = [{ names: ["alpha", "zzz"] }, { names: ["beta"] }, { names: [] }];

    expect(closest(items, "zzz", { namesOf: ({ names }) => names, count: 3, charsMax: 8 })).toEqual(items);
  });

  it("compare only the beginning of a long text", () => {
    expect(closest(["aaaaaaaa", "b".repeat(100)], `aaaaaaaa${"b".repeat(1_000_000)}`, { ...options, count: 1 })).toEqual(["aaaaaaaa"]);
  });
});
