/**
 * Coerces the variables of an operation once (GraphQL, 6.1.2 Coercing Variable Values). graphql-js prints the whole value into each
 * error, which grows with the square of the value. Here an error shows only the invalid part, shortened, and only the first errors
 * are reported.
 */
import { distance } from "fastest-levenshtein";
import {
  type GraphQLEnumType,
  GraphQLError,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLScalarType,
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInputType,
  isListType,
  isNonNullType,
  isSpecifiedScalarType,
  type OperationDefinitionNode,
  typeFromAST,
  type VariableDefinitionNode,
  valueFromAST,
} from "graphql";
import { ownValue, setOwnValue } from "../lib/own-values.js";
import { GRAPHQL_ERRORS_MAX, GRAPHQL_SUGGESTIONS_MAX } from "./limits.js";

export type Values = Readonly<Record<string, unknown>>;

/** The values by variable name, or the errors. A variable without a value is left out. */
export type Coerced = { readonly values: Values; readonly errors?: never } | { readonly errors: readonly GraphQLError[] };

const NONE: Coerced = { values: {} };

export function coerceVariables(schema: GraphQLSchema, { variableDefinitions = [] }: OperationDefinitionNode, inputs: Values): Coerced {
  if (variableDefinitions.length === 0) return NONE;
  const errors: GraphQLError[] = [];
  const values: Record<string, unknown> = {};
  for (const definition of variableDefinitions) {
    const type = typeFromAST(schema, definition.type);
    // Validation has refused other types.
    if (!isInputType(type)) continue;
    const value = coerceVariable(definition, type, inputs, errors);
    if (value !== undefined) setOwnValue(values, definition.variable.name.value, value);
    if (errors.length >= GRAPHQL_ERRORS_MAX) break;
  }
  return errors.length === 0 ? { values } : { errors };
}

function coerceVariable(definition: VariableDefinitionNode, type: GraphQLInputType, inputs: Values, errors: GraphQLError[]): unknown {
  const { variable, defaultValue } = definition;
  const place = new Place(definition, errors);
  const value = ownValue(inputs, variable.name.value);
  if (value === undefined) {
    if (defaultValue) return valueFromAST(defaultValue, type);
    if (isNonNullType(type)) place.add(`Variable "$${variable.name.value}" of required type "${type}" was not provided.`);
    return undefined;
  }
  if (value === null && isNonNullType(type)) {
    place.add(`Variable "$${variable.name.value}" of non-null type "${type}" must not be null.`);
    return undefined;
  }
  return coercerOf(type)(value, place);
}

/** Returns undefined for an invalid value. */
type Coercer = (value: unknown, place: Place) => unknown;

/** Cached by type, because a list may have hundreds of thousands of values. */
const COERCERS = new WeakMap<GraphQLInputType, Coercer>();

function coercerOf(type: GraphQLInputType): Coercer {
  const known = COERCERS.get(type);
  if (known) return known;
  const made = makeCoercer(type);
  COERCERS.set(type, made);
  return made;
}

function makeCoercer(type: GraphQLInputType): Coercer {
  if (isNonNullType(type)) {
    const coerce = coercerOf(type.ofType);
    return (value, place) =>
      value === null || value === undefined
        ? place.refuse(value, `Expected non-nullable type "${type}" not to be null.`)
        : coerce(value, place);
  }
  const coerce = makeCoercerOfNonNull(type);
  return (value, place) => (value === null || value === undefined ? null : coerce(value, place));
}

function makeCoercerOfNonNull(type: GraphQLInputType): Coercer {
  if (isListType(type)) return listCoercer(coercerOf(type.ofType));
  if (isInputObjectType(type)) return objectCoercer(type);
  return isEnumType(type) ? enumCoercer(type) : scalarCoercer(type as GraphQLScalarType);
}

function listCoercer(coerceItem: Coercer): Coercer {
  return (value, place) => {
    if (!Array.isArray(value)) return [coerceItem(value, place)];
    const items: unknown[] = [];
    for (let index = 0; index < value.length && !place.isFull; index += 1) {
      place.path.push(index);
      items.push(coerceItem(value[index], place));
      place.path.pop();
    }
    return items;
  };
}

function objectCoercer(type: GraphQLInputObjectType): Coercer {
  const fields = type.getFields();
  const list = Object.values(fields);
  return (value, place) => {
    if (typeof value !== "object" || Array.isArray(value)) return place.refuse(value, `Expected type "${type}" to be an object.`);
    const sent = value as Values;
    const coerced: Record<string, unknown> = {};
    for (const { name, type: fieldType, defaultValue } of list) {
      const fieldValue = ownValue(sent, name);
      if (fieldValue === undefined) {
        if (defaultValue !== undefined) setOwnValue(coerced, name, defaultValue);
        else if (isNonNullType(fieldType)) place.refuse(value, `Field "${name}" of required type "${fieldType}" was not provided.`);
        continue;
      }
      place.path.push(name);
      setOwnValue(coerced, name, coercerOf(fieldType)(fieldValue, place));
      place.path.pop();
    }
    for (const name in sent) {
      if (place.isFull) break;
      if (Object.hasOwn(fields, name)) continue;
      const meant = place.didYouMean(Object.keys(fields), name);
      place.refuse(value, `Field ${shown(name)} is not defined by type "${type}".${meant}`);
    }
    if (type.isOneOf) checkOneOf(type, coerced, place);
    return coerced;
  };
}

function checkOneOf(type: GraphQLInputObjectType, coerced: Values, place: Place): void {
  const [only, ...others] = Object.entries(coerced);
  if (!only || others.length > 0) place.refuse(coerced, `Exactly one key must be specified for OneOf type "${type}".`);
  else if (only[1] === null) place.refuse(null, `Field "${only[0]}" must be non-null.`);
}

function enumCoercer(type: GraphQLEnumType): Coercer {
  return (value, place) => {
    if (typeof value !== "string") return place.refuse(value, `Enum "${type}" cannot represent non-string value: ${shown(value)}.`);
    const known = type.getValue(value);
    if (known) return known.value;
    const names = type.getValues().map(({ name }) => name);
    return place.refuse(value, `Value ${shown(value)} does not exist in "${type}" enum.${place.didYouMean(names, value)}`);
  };
}

function scalarCoercer(type: GraphQLScalarType): Coercer {
  const takesText = type.name === "String" || type.name === "ID";
  const printsValues = isSpecifiedScalarType(type);
  return (value, place) => {
    if (printsValues && (typeof value === "object" || (typeof value === "string" && !takesText))) {
      return place.refuse(value, `${type} cannot represent ${shown(value)}.`);
    }
    try {
      const parsed: unknown = type.parseValue(value);
      return parsed === undefined ? place.refuse(value, `Expected type "${type}".`) : parsed;
    } catch (error) {
      return place.refuse(value, error instanceof GraphQLError ? error.message : `Expected type "${type}".`);
    }
  };
}

/** Longer than any name of the schema. */
const NAME_CHARS_MAX = 100;
/** The highest share of a name that a suggestion may change. */
const SIMILAR_PART = 0.4;
const SHOWN_CHARS_MAX = 60;

/** The place of a value in its variable, and the errors so far. */
class Place {
  readonly path: (string | number)[] = [];

  constructor(
    private readonly definition: VariableDefinitionNode,
    private readonly errors: GraphQLError[],
  ) {}

  get isFull(): boolean {
    return this.errors.length >= GRAPHQL_ERRORS_MAX;
  }

  refuse(value: unknown, reason: string): undefined {
    const { value: name } = this.definition.variable.name;
    const place = this.path.length === 0 ? "" : ` at "${name}${printPath(this.path)}"`;
    this.add(`Variable "$${name}" got invalid value ${shown(value)}${place}; ${reason}`);
    return undefined;
  }

  add(message: string): void {
    if (this.isFull) return;
    // As in the executor's own errors: 400 where the answer's type has a status for it.
    this.errors.push(new GraphQLError(message, { nodes: this.definition, extensions: { http: { status: 400 } } }));
  }

  /** A misspelt name is compared with every possible name, so only the first ones are. */
  didYouMean(names: readonly string[], wanted: string): string {
    if (this.errors.length >= GRAPHQL_SUGGESTIONS_MAX || wanted.length > NAME_CHARS_MAX) return "";
    const text = wanted.toLowerCase();
    let nearest = { name: "", edits: Number.POSITIVE_INFINITY };
    for (const name of names) {
      const edits = distance(name.toLowerCase(), text);
      if (edits < nearest.edits) nearest = { name, edits };
    }
    return nearest.edits <= wanted.length * SIMILAR_PART ? ` Did you mean "${nearest.name}"?` : "";
  }
}

function shown(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? "[]" : "[...]";
  if (typeof value === "object" && value !== null) return "{...}";
  if (typeof value !== "string") return String(value);
  return JSON.stringify(value.length <= SHOWN_CHARS_MAX ? value : `${value.slice(0, SHOWN_CHARS_MAX)}...`);
}

function printPath(path: readonly (string | number)[]): string {
  return path.map((key) => (typeof key === "number" ? `[${key}]` : `.${key}`)).join("");
}
