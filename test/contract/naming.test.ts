import { getNamedType, isEnumType, isInputObjectType, isInterfaceType, isNonNullType, isObjectType, isScalarType } from "graphql";
import { describe, expect, it } from "vitest";
import { schema } from "../../src/graphql/schema.js";

const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));
const outputTypes = types.filter((type) => isObjectType(type) || isInterfaceType(type));
const inputTypes = types.filter(isInputObjectType);
const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});

const PASCAL_CASE = /^(?:[A-Z][a-z0-9]*)+$/;
const CAMEL_CASE = /^[a-z][a-z0-9]*(?:[A-Z][a-z0-9]*)*$/;
const UPPER_SNAKE = /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/;

interface Described {
  readonly name: string;
  readonly description?: string | null | undefined;
}

/** The names that break a rule: a test shows them all at once. */
function offenders(names: readonly string[], rule: RegExp): string[] {
  return names.filter((name) => !rule.test(name));
}

describe("names of the GraphQL schema", () => {
  it("writes types in PascalCase", () => {
    const names = types.filter((type) => !isScalarType(type)).map(({ name }) => name);

    expect(offenders(names, PASCAL_CASE)).toEqual([]);
  });

  it("writes fields and arguments in camelCase", () => {
    const fields = [...outputTypes, ...inputTypes].flatMap((type) => Object.values(type.getFields()));
    const args = outputTypes.flatMap((type) => Object.values(type.getFields()).flatMap((field) => field.args));

    expect(
      offenders(
        [...fields, ...args].map(({ name }) => name),
        CAMEL_CASE,
      ),
    ).toEqual([]);
  });

  it("writes enum values in UPPER_SNAKE", () => {
    const values = types.filter(isEnumType).flatMap((type) => type.getValues());

    expect(
      offenders(
        values.map(({ name }) => name),
        UPPER_SNAKE,
      ),
    ).toEqual([]);
  });

  it("gives every mutation one argument, a required input that bears its name or is shared", () => {
    const subscriptions = Object.values(schema.getSubscriptionType()?.getFields() ?? {});
    const taken = [...mutations, ...subscriptions].flatMap(({ args }) => args.map(({ type }) => getNamedType(type).name));
    const odd = mutations.filter(({ name, args: [input, ...others] }) => {
      if (others.length > 0 || input?.name !== "input" || !isNonNullType(input.type)) return true;
      const { name: given } = getNamedType(input.type);
      const isShared = taken.filter((one) => one === given).length > 1;
      return given !== `${name.charAt(0).toUpperCase()}${name.slice(1)}Input` && !isShared;
    });

    expect(odd.map(({ name }) => name)).toEqual([]);
  });

  it("lets a mutation fail without taking its neighbours with it", () => {
    expect(mutations.filter(({ type }) => isNonNullType(type)).map(({ name }) => name)).toEqual([]);
  });

  it("pages every connection with first and after", () => {
    const connections = outputTypes.flatMap((type) =>
      Object.values(type.getFields()).filter((field) => getNamedType(field.type).name.endsWith("Connection")),
    );

    expect(connections.length).toBeGreaterThan(0);
    for (const { args } of connections) expect(args.map(({ name }) => name).slice(0, 2)).toEqual(["first", "after"]);
  });

  it("names an identifier id, of type ID", () => {
    const ids = outputTypes.flatMap((type) => Object.values(type.getFields()).filter(({ name }) => name === "id" || name.endsWith("Id")));
    // Ids that upstreams make up are text like any other.
    const foreign = new Set(["ChatToolCall", "ChatCompletion"]);
    const own = ids.filter((field) => !outputTypes.some((type) => foreign.has(type.name) && type.getFields()[field.name] === field));

    expect(own.filter(({ type }) => getNamedType(type).name !== "ID").map(({ name }) => name)).toEqual([]);
  });

  it("describes every type, field, argument and value", () => {
    const fieldsOf = (type: (typeof types)[number]): Described[] => {
      if (isEnumType(type)) return [...type.getValues()];
      if (isInputObjectType(type)) return Object.values(type.getFields());
      if (!isObjectType(type) && !isInterfaceType(type)) return [];
      return Object.values(type.getFields()).flatMap((field) => [field, ...field.args]);
    };
    const bare = types.flatMap((type) =>
      [type, ...fieldsOf(type)].filter(({ description }) => !description).map(({ name }) => `${type.name} ${name}`),
    );

    expect(bare).toEqual([]);
  });
});
