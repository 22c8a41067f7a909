import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { ProviderError } from "../../../src/formats/upstream-error.js";
import { samplePattern } from "../../../src/providers/sandbox/pattern-sample.js";
import { sampleSchema } from "../../../src/providers/sandbox/schema-sample.js";

const ajv = new Ajv2020({ strict: false });
// The package is CommonJS: its function is the module itself or that module's default, as the loader sees it.
(typeof addFormats === "function" ? addFormats : addFormats.default)(ajv);

const SCHEMAS: [string, Record<string, unknown>][] = [
  [
    "a strict object",
    { type: "object", properties: { a: { type: "string" }, b: { type: "integer" } }, required: ["a", "b"], additionalProperties: false },
  ],
  [
    "lists of objects",
    { type: "array", minItems: 3, items: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] } },
  ],
  ["enums and constants", { type: "object", properties: { a: { enum: ["x", "y"] }, b: { const: 7 } }, required: ["a", "b"] }],
  ["several types", { type: ["string", "null"] }],
  [
    "anyOf",
    {
      anyOf: [
        { type: "object", properties: { a: false }, required: ["a"] },
        { type: "number", minimum: 3 },
      ],
    },
  ],
  ["oneOf", { oneOf: [{ type: "null" }, { type: "string" }] }],
  [
    "allOf",
    {
      allOf: [
        { type: "object", properties: { a: { type: "string" } }, required: ["a"] },
        { properties: { b: { type: "null" } }, required: ["b"] },
      ],
    },
  ],
  [
    "bounds",
    {
      type: "object",
      properties: { a: { type: "integer", minimum: 5, maximum: 7 }, b: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1 } },
      required: ["a", "b"],
    },
  ],
  ["negative bounds", { type: "integer", maximum: -3, multipleOf: 4 }],
  ["fractions", { type: "number", minimum: 0.25, multipleOf: 0.1 }],
  ["an exclusive integer bound", { type: "integer", exclusiveMinimum: 10 }],
  [
    "lengths",
    { type: "object", properties: { a: { type: "string", minLength: 20 }, b: { type: "string", maxLength: 3 } }, required: ["a", "b"] },
  ],
  ["a unique list", { type: "array", items: { type: "string" }, minItems: 4, uniqueItems: true }],
  ["a unique list of numbers", { type: "array", items: { type: "integer", minimum: 0, maximum: 10 }, minItems: 5, uniqueItems: true }],
  ["an empty list", { type: "array", items: { type: "string" }, maxItems: 0 }],
  ["a tuple", { type: "array", prefixItems: [{ type: "string" }, { type: "number" }], items: false, minItems: 2 }],
  ["a map", { type: "object", additionalProperties: { type: "number" }, minProperties: 2 }],
  ["a required name without a schema", { type: "object", required: ["x"] }],
  [
    "a recursive list",
    {
      type: "object",
      properties: { value: { type: "string" }, next: { anyOf: [{ $ref: "#" }, { type: "null" }] } },
      required: ["value", "next"],
      additionalProperties: false,
    },
  ],
  [
    "a recursive tree",
    {
      $defs: {
        node: {
          type: "object",
          properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/$defs/node" } } },
          required: ["name", "children"],
        },
      },
      $ref: "#/$defs/node",
    },
  ],
  [
    "a name that is dear to JavaScript",
    JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"number"}},"required":["__proto__","constructor"]}',
    ),
  ],
  ...["date-time", "date", "time", "duration", "email", "hostname", "ipv4", "ipv6", "uri", "uuid"].map(
    (format): [string, Record<string, unknown>] => [`the format ${format}`, { type: "string", format, pattern: "(?=x)unused" }],
  ),
  ["a pattern", { type: "string", pattern: "^[A-Z]{3}-\\d{4}(?:/(?:a|b)+)?$" }],
  ["no schema at all", {}],
];

describe("sampleSchema", () => {
  it.each(SCHEMAS)("answers %s with a value that it accepts, every time the same", (_name, schema) => {
    const validate = ajv.compile(withoutUnusedPattern(schema));

    const value = sampleSchema(schema);

    expect(validate(value), JSON.stringify({ value, errors: validate.errors })).toBe(true);
    expect(sampleSchema(schema)).toEqual(value);
  });

  it.each([
    ["nothing", { not: {}, type: "object", properties: { a: false }, required: ["a"] }],
    ["a number between 1 and 0", { type: "integer", minimum: 1, maximum: 0 }],
    ["endless recursion", { type: "object", properties: { a: { $ref: "#" } }, required: ["a"] }],
    ["a circle of references", { $ref: "#" }],
    ["a circle of allOf", { allOf: [{ $ref: "#" }] }],
    ["a schema elsewhere", { $ref: "https://example.com/schema.json" }],
    ["a reference to nothing", { $ref: "#/$defs/missing" }],
    ["a billion items", { type: "array", items: {}, minItems: 1_000_000_000 }],
    ["a billion characters", { type: "string", minLength: 1_000_000_000 }],
    ["a hundred thousand long texts", { type: "array", items: { type: "string", minLength: 9_000 }, minItems: 1_000 }],
    ["branches that double at each level", doubling(30)],
    ["an empty enum", { enum: [] }],
  ])("refuses %s as a bad request", (_name, schema) => {
    expect(() => sampleSchema(schema)).toThrow(ProviderError);
  });
});

describe("samplePattern", () => {
  it.each([
    "^abc$",
    "^\\d{3}-\\d{4}$",
    "^[a-f0-9]{8}$",
    "^(foo|bar)+[^a-z]$",
    "^(?<year>\\d{4})-(?:0[1-9]|1[0-2])$",
    "^\\S+@\\S+\\.\\S+$",
    "^[\\w.-]+\\/[\\]x]{2,}$",
    "^.*\\u0041\\x42\\t?$",
    "^[^\\d\\s-]{2}$",
    "x{0}|never",
    "",
  ])("answers %s", (pattern) => {
    expect(samplePattern(pattern)).toMatch(new RegExp(pattern, "u"));
  });

  it.each([
    "(?=a)b",
    "(?<!a)b",
    "(a)\\1",
    "a{999999}",
    "((a{999}){999}){999}",
    "(",
    "a)",
    "[a",
    "*a",
    "\\",
    `${"(".repeat(1_000)}${")".repeat(1_000)}`,
  ])("refuses %s", (pattern) => {
    expect(() => samplePattern(pattern)).toThrow(ProviderError);
  });
});

/** The formats' samples are not asked to match the pattern that stands beside them, as libraries write it. */
function withoutUnusedPattern(schema: Record<string, unknown>): Record<string, unknown> {
  const { pattern, ...rest } = schema;
  return schema.format === undefined && pattern !== undefined ? schema : rest;
}

function doubling(levels: number): Record<string, unknown> {
  const impossible = { type: "integer", minimum: 1, maximum: 0 };
  let schema: Record<string, unknown> = impossible;
  for (let level = 0; level < levels; level += 1) schema = { anyOf: [schema, schema] };
  return schema;
}
