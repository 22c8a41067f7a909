/** Fields of one name are merged or refused: as graphql-js judges, which compares every pair of them, and in work that grows with the document. */
import fc from "fast-check";
import {
  buildSchema,
  type GraphQLNamedType,
  type GraphQLObjectType,
  getNamedType,
  isAbstractType,
  isInterfaceType,
  isLeafType,
  isObjectType,
  OverlappingFieldsCanBeMergedRule,
  parse,
  specifiedRules,
  validate,
} from "graphql";
import { describe, expect, it } from "vitest";
import { mergingErrors } from "../../src/graphql/documents/merging.js";

const schema = buildSchema(`
  directive @stream(if: Boolean, initialCount: Int) on FIELD
  interface Pet { name: String friend: Pet toys(first: Int, tags: [String], by: By): [Toy!] }
  input By { name: String size: Int }
  type Dog implements Pet { name: String friend: Pet toys(first: Int, tags: [String], by: By): [Toy!] weight: Int! owner: Owner }
  type Cat implements Pet { name: String friend: Pet toys(first: Int, tags: [String], by: By): [Toy!] weight: Int owner: [Owner] }
  type Owner { name: String! pet: Pet thing: Thing }
  type Toy { name: String owner: Owner likedBy: Thing }
  union Thing = Dog | Cat | Toy
  type Query { pet: Pet dog: Dog cat: Cat thing: Thing owner: Owner }
`);

const OTHER_RULES = specifiedRules.filter((rule) => rule !== OverlappingFieldsCanBeMergedRule);

const conflictsOf = (text: string) => mergingErrors(schema, parse(text, { noLocation: true })).map(({ message }) => message);

const TYPES = ["Query", "Pet", "Dog", "Cat", "Owner", "Toy", "Thing"].map((name) => schema.getType(name) as GraphQLNamedType);
const TOY_ARGUMENTS = [
  "",
  "(first: 1)",
  '(tags: ["x"], first: 1)',
  '(first: 1, tags: ["x"])',
  '(by: { size: 1, name: "y" })',
  '(by: { name: "y", size: 1 })',
];

function objectsOf(type: GraphQLNamedType): readonly GraphQLNamedType[] {
  return isAbstractType(type) ? schema.getPossibleTypes(type) : [type];
}

function meet(one: GraphQLNamedType, other: GraphQLNamedType): boolean {
  return objectsOf(one).some((object) => objectsOf(other).includes(object));
}

/** A valid document but for its conflicts, with so few names that many of its fields meet. Each number is a choice; after the last each is the first. */
function toDocument(choices: readonly number[]): string {
  const left = [...choices];
  const pick = <Item>(items: readonly Item[]): Item => items[(left.shift() ?? 0) % items.length] as Item;
  const fragments = [pick(TYPES), pick(TYPES)].map((type) => ({ type, text: "" }));

  const toField = (type: GraphQLNamedType, levels: number, after: number): string => {
    const alias = pick(["", "", "a: ", "b: "]);
    const fields = isObjectType(type) || isInterfaceType(type) ? Object.values(type.getFields()) : [];
    const usable = fields.filter((field) => isLeafType(getNamedType(field.type)) || levels > 0);
    if (usable.length === 0) return `${alias}__typename`;
    const field = pick(usable);
    const args = field.name === "toys" ? pick(TOY_ARGUMENTS) : "";
    const inside = getNamedType(field.type);
    return `${alias}${field.name}${args}${isLeafType(inside) ? "" : ` ${toSelections(inside, levels - 1, after)}`}`;
  };
  /** `after`: only later fragments are spread, so that none is within itself. */
  const toSelections = (type: GraphQLNamedType, levels: number, after: number): string => {
    const selections = Array.from({ length: pick([1, 2, 3]) }, () => {
      const kind = pick(["field", "field", "field", "inline", "spread"]);
      const other = pick(TYPES.filter((one) => meet(one, type)));
      if (kind === "inline" && levels > 0) return `... on ${other.name} ${toSelections(other, levels - 1, after)}`;
      const index = fragments.findIndex((fragment, place) => place > after && meet(fragment.type, type));
      return kind === "spread" && index !== -1 ? `...F${index}` : toField(type, levels, after);
    });
    return `{ ${selections.join(" ")} }`;
  };

  const operation = toSelections(schema.getQueryType() as GraphQLObjectType, 4, -1);
  fragments.forEach((fragment, index) => {
    fragment.text = `fragment F${index} on ${fragment.type.name} ${toSelections(fragment.type, 2, index)}`;
  });
  const [first, second] = fragments.map(({ text }) => text);
  const isFirstUsed = operation.includes("...F0");
  const isSecondUsed = operation.includes("...F1") || (isFirstUsed && first?.includes("...F1"));
  return [operation, ...(isFirstUsed ? [first] : []), ...(isSecondUsed ? [second] : [])].join(" ");
}

const documents = fc.array(fc.nat({ max: 999 }), { minLength: 40, maxLength: 120, size: "max" }).map(toDocument);

describe("fields of one name", () => {
  it("are refused and merged as graphql-js refuses and merges them", () => {
    let refused = 0;
    fc.assert(
      fc.property(documents, (text) => {
        const document = parse(text);
        expect(validate(schema, document, OTHER_RULES), text).toEqual([]);

        const isRefused = validate(schema, document, [OverlappingFieldsCanBeMergedRule]).length > 0;

        if (isRefused) refused += 1;
        expect(conflictsOf(text).length > 0, text).toBe(isRefused);
      }),
      { numRuns: 500 },
    );
    expect(refused).toBeGreaterThan(50);
  });

  it.each([
    ["two fields", "{ dog { name name: weight } }", /^Fields "name" conflict because "name" and "weight" are different fields\./],
    [
      "other arguments",
      "{ dog { toys(first: 1) { name } toys(first: 2) { name } } }",
      /^Fields "toys" conflict because they have differing arguments\./,
    ],
    [
      "two fields below",
      "{ pet { friend { a: name } } pet { friend { a: __typename } } }",
      /^Fields "pet" conflict because subfields "friend" conflict because subfields "a" conflict because "name" and "__typename" are different/,
    ],
    [
      "types of other shapes",
      "{ thing { ... on Dog { weight } ... on Cat { weight } } }",
      /^Fields "weight" conflict because they return conflicting types "Int!" and "Int"\./,
    ],
    [
      "one streamed and one that is not",
      "{ dog { toys { name } toys @stream(initialCount: 1) { name } } }",
      /^Fields "toys" conflict because they have differing stream directives\./,
    ],
    [
      "streams of types that never meet",
      "{ thing { ... on Dog { toys @stream(initialCount: 1) { name } } ... on Cat { toys @stream(initialCount: 2) { name } } } }",
      /differing stream directives/,
    ],
  ])("conflict: %s", (_what, text, message) => {
    expect(conflictsOf(text)).toEqual([expect.stringMatching(message)]);
  });

  it.each([
    ["arguments in another order", '{ dog { toys(first: 1, tags: ["x"]) { name } toys(tags: ["x"], first: 1) { name } } }'],
    [
      "fields of an argument in another order",
      '{ dog { toys(by: { name: "x", size: 1 }) { name } toys(by: { size: 1, name: "x" }) { name } } }',
    ],
    ["types that never meet", "{ thing { ... on Dog { a: name } ... on Cat { a: __typename } } }"],
    ["the same stream", "{ dog { toys @stream(initialCount: 1) { name } toys @stream(initialCount: 1) { name } } }"],
  ])("are merged: %s", (_what, text) => {
    expect(conflictsOf(text)).toEqual([]);
  });

  it("are compared in at most 50,000 places", () => {
    // Fields of the interface are merged with those of each of its two types, level by level.
    const selections = Array.from({ length: 16 }).reduce<string>(
      (below) => `friend { ${below} } ... on Dog { friend { name } } ... on Cat { friend { name } }`,
      "name",
    );

    expect(conflictsOf(`{ pet { ${selections} } }`)).toEqual([expect.stringMatching(/merged in more than 50000 places/)]);
  });
});
