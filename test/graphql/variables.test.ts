/** Variables are coerced as graphql-js coerces them. The text of their errors does not grow with the request. */
import fc from "fast-check";
import { buildSchema, getVariableValues, type OperationDefinitionNode, parse } from "graphql";
import { describe, expect, it } from "vitest";
import { coerceVariables, type Values } from "../../src/graphql/variables.js";

const schema = buildSchema(`
  enum Size { SMALL LARGE }
  input Part { text: String! size: Size = LARGE count: Int parts: [Part!] }
  input Choice @oneOf { number: Int text: String }
  input Order { part: Part parts: [Part!]! sizes: [[Size]] choice: Choice price: Float id: ID isNew: Boolean = true }
  type Query { order(order: Order, orders: [Order!], count: Int!, size: Size, ids: [ID!]): Int }
`);
const operation = parse(
  "query ($order: Order, $orders: [Order!], $count: Int! = 7, $size: Size, $ids: [ID!]) { order(order: $order, orders: $orders, count: $count, size: $size, ids: $ids) }",
).definitions[0] as OperationDefinitionNode;

const coerce = (inputs: Values) => coerceVariables(schema, operation, inputs);
const messagesOf = (inputs: Values) => coerce(inputs).errors?.map(({ message }) => message) ?? [];

/** Mostly right. */
const often = (right: fc.Arbitrary<unknown>, ...wrong: readonly unknown[]) =>
  fc.oneof({ weight: 19, arbitrary: right }, { weight: 1, arbitrary: fc.constantFrom(...wrong) });
const { order } = fc.letrec<{ order: unknown; part: unknown }>((tie) => ({
  part: fc.record(
    {
      text: often(fc.string(), 1, null),
      size: often(fc.constantFrom("SMALL", "LARGE", null), "HUGE", 1),
      count: often(fc.integer(), 0.5, "1"),
      parts: fc.oneof({ maxDepth: 2 }, fc.constant([]), fc.array(tie("part"), { maxLength: 2 }), tie("part")),
    },
    { requiredKeys: ["text"] },
  ),
  order: often(
    fc.record(
      {
        part: often(tie("part"), [], "part", { text: "a", other: 1 }),
        parts: often(fc.oneof(fc.array(tie("part"), { maxLength: 3 }), tie("part")), [null], null),
        sizes: often(fc.constantFrom("SMALL", [["SMALL", null], null, "LARGE"], []), "BIG", [["BIG"]]),
        choice: often(fc.constantFrom({ number: 1 }, { text: "a" }), {}, { number: null }, { number: 1, text: "a" }),
        price: often(fc.double({ noNaN: true, noDefaultInfinity: true }), "1.5"),
        id: often(fc.oneof(fc.string(), fc.integer()), 0.5, true),
        isNew: often(fc.constantFrom(true, false, null), "true"),
      },
      { requiredKeys: ["parts"] },
    ),
    { parts: [], other: 1 },
    {},
  ),
}));

const inputs = fc.record(
  {
    order,
    orders: fc.array(order, { maxLength: 2 }),
    count: often(fc.nat(), null),
    size: often(fc.constantFrom("SMALL", "LARGE"), 1),
    ids: often(fc.oneof(fc.array(fc.string()), fc.string()), [null]),
  },
  { requiredKeys: [] },
);

describe("variables", () => {
  it("are coerced and refused as graphql-js coerces and refuses them", () => {
    let right = 0;
    fc.assert(
      fc.property(inputs, (sent) => {
        const known = getVariableValues(schema, operation.variableDefinitions ?? [], sent);

        const coerced = coerce(sent);

        if (known.coerced) right += 1;
        if (known.coerced) expect(coerced).toEqual({ values: known.coerced });
        else expect(coerced.errors).not.toEqual([]);
      }),
      { numRuns: 500 },
    );
    expect(right).toBeGreaterThan(100);
  });

  it.each<readonly [string, Values, readonly string[]]>([
    [
      "a leaf",
      { size: "SMAL" },
      ['Variable "$size" got invalid value "SMAL"; Value "SMAL" does not exist in "Size" enum. Did you mean "SMALL"?'],
    ],
    ["a number", { count: "ten" }, ['Variable "$count" got invalid value "ten"; Int cannot represent "ten".']],
    ["a null", { count: null }, ['Variable "$count" of non-null type "Int!" must not be null.']],
    [
      "a field in a list",
      { orders: [{ parts: [] }, { parts: [{ text: "a" }, { text: "b", siz: "SMALL" }] }] },
      [
        'Variable "$orders" got invalid value {...} at "orders[1].parts[1]"; Field "siz" is not defined by type "Part". Did you mean "size"?',
      ],
    ],
    [
      "a missing field",
      { order: {} },
      [
        'Variable "$order" got invalid value {...} at "order"; Field "parts" of required type "[Part!]!" was not provided.'.replace(
          ' at "order"',
          "",
        ),
      ],
    ],
    [
      "two choices",
      { order: { parts: [], choice: { number: 1, text: "a" } } },
      ['Variable "$order" got invalid value {...} at "order.choice"; Exactly one key must be specified for OneOf type "Choice".'],
    ],
  ])("are refused by where they are wrong: %s", (_what, sent, messages) => {
    expect(messagesOf(sent)).toEqual(messages);
  });

  it.each<readonly [string, (count: number) => Values]>([
    [
      "unknown fields",
      (count) => ({ order: { parts: [], ...Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1])) } }),
    ],
    ["wrong items", (count) => ({ ids: Array.from({ length: count }, () => true) })],
    ["items without a field", (count) => ({ orders: [{ parts: Array.from({ length: count }, () => ({})) }] })],
    ["a wrong enum as long", (count) => ({ size: "x".repeat(count) })],
    ["a wrong number as long", (count) => ({ count: "1".repeat(count) })],
    ["an unknown field as long", (count) => ({ order: { parts: [], ["k".repeat(count)]: 1 } })],
    [
      "an object in place of a text",
      (count) => ({ ids: [Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]))] }),
    ],
  ])("are refused in a text that does not grow: %s", (_what, toInputs) => {
    const few = messagesOf(toInputs(100));
    const many = messagesOf(toInputs(20_000));

    expect(few).not.toEqual([]);
    expect(many.length).toBeLessThanOrEqual(20);
    // Numbers of more digits.
    expect(many.join("").length).toBeLessThanOrEqual(few.join("").length + many.length * 5);
  });
});
