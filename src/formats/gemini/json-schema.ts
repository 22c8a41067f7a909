/** Google's schemas (a subset of OpenAPI 3.0, types in capitals) as JSON Schema. */
import { isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { toCamel } from "./field-names.js";

type Loose = Readonly<Record<string, unknown>>;

/** Counts in the format, which are texts there. */
const COUNTS: ReadonlySet<string> = new Set([...["minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties"]]);
/** Only the order in which Google's models write properties. */
const LEFT_OUT: ReadonlySet<string> = new Set(["propertyOrdering"]);

/** A schema that is JSON Schema already keeps its form. */
export function toJsonSchema(schema: Loose): Loose {
  const made: Record<string, unknown> = {};
  for (const name of Object.keys(schema)) {
    const value = ownValue(schema, name);
    const camel = toCamel(name);
    if (value === null || LEFT_OUT.has(camel)) continue;
    setOwnValue(made, camel, toMember(camel, value));
  }
  return schema.nullable === true ? asNullable(made) : made;
}

function toMember(name: string, value: unknown): unknown {
  switch (name) {
    case "type":
      return Array.isArray(value) ? value.map(toType) : toType(value);
    case "properties":
    case "$defs":
    case "defs":
    case "definitions":
    case "patternProperties":
      return isRecord(value) ? mapped(value) : value;
    case "items":
    case "additionalProperties":
    case "not":
      return isRecord(value) ? toJsonSchema(value) : value;
    case "anyOf":
    case "oneOf":
    case "allOf":
    case "prefixItems":
      return Array.isArray(value) ? value.map((one) => (isRecord(one) ? toJsonSchema(one) : one)) : value;
    default:
      return COUNTS.has(name) && typeof value === "string" ? Number(value) : value;
  }
}

function mapped(schemas: Loose): Loose {
  const made: Record<string, unknown> = {};
  for (const name of Object.keys(schemas)) {
    const schema = ownValue(schemas, name);
    setOwnValue(made, name, isRecord(schema) ? toJsonSchema(schema) : schema);
  }
  return made;
}

function toType(type: unknown): unknown {
  return typeof type === "string" ? type.toLowerCase() : type;
}

function asNullable({ nullable: _, ...schema }: Record<string, unknown>): Loose {
  const { type, enum: values } = schema;
  if (Array.isArray(schema.anyOf)) return { ...schema, anyOf: [...schema.anyOf, { type: "null" }] };
  return {
    ...schema,
    ...(typeof type === "string" && { type: [type, "null"] }),
    ...(Array.isArray(values) && !values.includes(null) && { enum: [...values, null] }),
  };
}
