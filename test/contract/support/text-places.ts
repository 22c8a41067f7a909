/** Where an input takes text: every place of a JSON Schema, and of the arguments of a GraphQL field. */
import {
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
  isScalarType,
} from "graphql";

type Json = Record<string, unknown>;

export interface TextPlace {
  /** Dotted, as an error names it. */
  readonly path: string;
  /** The input with this text there. */
  readonly put: (text: string) => Json;
}

/** As deep as schemas go before they repeat themselves. */
const DEPTH_MAX = 3;

/** Of the objects that the schema describes, each place that may hold text; the rest is as in `example`. */
export function placesOfSchema(schema: Json, example: Json, depth = 0): TextPlace[] {
  return variantsOf(schema)
    .flatMap(({ properties = {} }) => Object.entries(properties as Record<string, Json>))
    .flatMap(([name, property]) => {
      const put = (value: unknown): Json => ({ ...example, [name]: value });
      return placesOfValue(property, example[name], depth).map((place) => ({
        path: [name, ...place.path].join("."),
        put: (text: string) => put(place.put(text)),
      }));
    });
}

interface ValuePlace {
  readonly path: readonly string[];
  readonly put: (text: string) => unknown;
}

function placesOfValue(schema: Json, example: unknown, depth: number): ValuePlace[] {
  return variantsOf(schema).flatMap((variant): ValuePlace[] => {
    const { type, items } = variant;
    // A field of any type may be text as well.
    if (type === "string" || type === undefined) return [{ path: [], put: (text) => text }];
    if (depth >= DEPTH_MAX) return [];
    if (type === "array" && items !== undefined) {
      const [first] = Array.isArray(example) ? example : [undefined];
      return placesOfValue(items as Json, first, depth + 1).map(({ path, put }) => ({ path: ["0", ...path], put: (text) => [put(text)] }));
    }
    if (type !== "object") return [];
    const holder = typeof example === "object" && example !== null && !Array.isArray(example) ? (example as Json) : {};
    return placesOfSchema(variant, holder, depth + 1).map(({ path, put }) => ({ path: [path], put }));
  });
}

function variantsOf(schema: Json): readonly Json[] {
  const variants = (schema.anyOf ?? schema.oneOf) as readonly Json[] | undefined;
  return variants ? variants.flatMap(variantsOf) : [schema];
}

export interface ArgumentPlace {
  /** Dotted, as an error names it: fields of an `input` without that. */
  readonly path: string;
  /** All arguments, with this text there. */
  readonly put: (text: string) => Json;
}

/** In a document it has no quotes. */
export class EnumName {
  constructor(readonly name: string) {}

  toJSON(): string {
    return this.name;
  }
}

/** A file: to be sent beside the variables. */
export const FILE = Symbol("file");
const TEXT_SCALARS: ReadonlySet<string> = new Set(["String", "ID", "JSON"]);

interface Argument {
  readonly name: string;
  readonly type: GraphQLInputType;
}

export function placesOfArguments(args: readonly Argument[]): ArgumentPlace[] {
  const needed = Object.fromEntries(args.filter(({ type }) => isNonNullType(type)).map(({ name, type }) => [name, sampleOf(type)]));
  return args.flatMap(({ name, type }) =>
    placesOfType(type, 0).map(({ path, put }) => ({
      path: (name === "input" && path.length > 0 ? path : [name, ...path]).join("."),
      put: (text: string) => ({ ...needed, [name]: put(text) }),
    })),
  );
}

function placesOfType(type: GraphQLInputType, depth: number): ValuePlace[] {
  const inner = getNullableType(type);
  if (isListType(inner)) {
    return placesOfType(inner.ofType, depth).map(({ path, put }) => ({ path: ["0", ...path], put: (text) => [put(text)] }));
  }
  if (isScalarType(inner)) return TEXT_SCALARS.has(inner.name) ? [{ path: [], put: (text) => text }] : [];
  if (!isInputObjectType(inner) || depth > DEPTH_MAX) return [];
  const needed = inner.isOneOf ? {} : (sampleOf(inner) as Json);
  return Object.values(inner.getFields()).flatMap((field) =>
    placesOfType(field.type, depth + 1).map(({ path, put }) => ({
      path: [field.name, ...path],
      put: (text: string) => ({ ...needed, [field.name]: put(text) }),
    })),
  );
}

/** The least that the type takes. */
function sampleOf(type: GraphQLInputType): unknown {
  const inner = getNullableType(type);
  if (isListType(inner)) return [sampleOf(inner.ofType)];
  if (isEnumType(inner)) return new EnumName(inner.getValues()[0]?.name ?? "");
  if (isInputObjectType(inner)) {
    const fields = Object.values(inner.getFields());
    const wanted = inner.isOneOf
      ? fields.slice(0, 1)
      : fields.filter((field) => isNonNullType(field.type) && field.defaultValue === undefined);
    return Object.fromEntries(wanted.map((field) => [field.name, sampleOf(field.type)]));
  }
  switch (getNamedType(inner).name) {
    case "Int":
    case "Float":
      return 1;
    case "Boolean":
      return true;
    case "DateTime":
      return "2026-01-01T00:00:00Z";
    case "File":
      return FILE;
    case "JSON":
      return {};
    default:
      return "1";
  }
}
