/** A JSON schema within the bounds of Anthropic's structured outputs: constraints that its decoder cannot enforce become descriptions. */
import { isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";

type Loose = Readonly<Record<string, unknown>>;

/** Optional properties of one schema, above which the compilation of its grammar fails. */
const OPTIONAL_MAX = 10;
const STRING_FORMATS: ReadonlySet<unknown> = new Set("date-time time date duration email hostname uri ipv4 ipv6 uuid".split(" "));
/** Kept as they are. */
const KEPT = ["$schema", "$id", "$ref", "title", "description", "default", "const", "enum", "type"] as const;
/** Lists of schemas, by name, and the names under which they are sent. */
const LISTS: ReadonlyMap<string, string> = new Map([
  ["anyOf", "anyOf"],
  ["oneOf", "anyOf"],
  ["allOf", "allOf"],
]);
const NAMED = ["definitions", "$defs", "properties"] as const;
const TOLD = [
  ...["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern"],
  ...["minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "not"],
];

/** Whether the decoder can hold the model to the schema: no open objects, few optional properties, no recursion. */
export function fitsDecoder(schema: Loose): boolean {
  const survey = new Survey();
  survey.visit(schema, "#");
  return !survey.isOpen && survey.optional <= OPTIONAL_MAX && !survey.isRecursive();
}

class Survey {
  isOpen = false;
  optional = 0;
  /** References by the definition that holds them; `#` is the root. */
  private readonly references = new Map<string, Set<string>>();

  visit(node: unknown, holder: string): void {
    if (Array.isArray(node)) for (const each of node) this.visit(each, holder);
    if (!isRecord(node)) return;
    if (typeof node.$ref === "string") this.refer(holder, node.$ref);
    this.note(node);
    for (const [name, value] of Object.entries(node)) {
      if (name === "properties") this.visitAll(value, () => holder);
      else if (name === "$defs" || name === "definitions") this.visitAll(value, (each) => `#/${name}/${each}`);
      else if (!UNVISITED.has(name)) this.visit(value, holder);
    }
  }

  isRecursive(): boolean {
    const done = new Set<string>();
    const open = new Set<string>();
    const reaches = (name: string): boolean => {
      if (open.has(name)) return true;
      if (done.has(name)) return false;
      open.add(name);
      const isFound = [...(this.references.get(name) ?? [])].some(reaches);
      open.delete(name);
      done.add(name);
      return isFound;
    };
    return [...this.references.keys()].some(reaches);
  }

  private visitAll(schemas: unknown, holderOf: (name: string) => string): void {
    if (isRecord(schemas)) for (const [name, each] of Object.entries(schemas)) this.visit(each, holderOf(name));
  }

  private refer(holder: string, target: string): void {
    const known = this.references.get(holder);
    if (known) known.add(target);
    else this.references.set(holder, new Set([target]));
  }

  private note({ type, properties, required, additionalProperties: more, patternProperties: patterns }: Loose): void {
    if (more === true || isRecord(more) || (isRecord(patterns) && Object.keys(patterns).length > 0)) this.isOpen = true;
    const isObject = type === "object" || (Array.isArray(type) && type.includes("object"));
    if (isObject && properties === undefined && more !== false) this.isOpen = true;
    if (!isRecord(properties)) return;
    const needed = new Set(Array.isArray(required) ? required : []);
    this.optional += Object.keys(properties).filter((name) => !needed.has(name)).length;
  }
}

/** Keywords whose values are no schemas. */
const UNVISITED: ReadonlySet<string> = new Set(["enum", "const", "default", "examples", "required"]);

export function toDecoderSchema(schema: Loose): Loose {
  const written: Record<string, unknown> = {};
  for (const name of KEPT) if (schema[name] != null) written[name] = schema[name];
  for (const [name, sentAs] of LISTS) {
    const list = ownValue(schema, name);
    if (Array.isArray(list)) setOwnValue(written, sentAs, list.map(toInner));
  }
  for (const name of NAMED) {
    const named = schema[name];
    if (isRecord(named)) written[name] = Object.fromEntries(Object.entries(named).map(([key, each]) => [key, toInner(each)]));
  }
  const { items, format, required } = schema;
  if (schema.type === "object" || isRecord(schema.properties)) {
    written.additionalProperties = false;
    if (required != null) written.required = required;
  }
  if (items != null) written.items = Array.isArray(items) ? items.map(toInner) : toInner(items);
  if (STRING_FORMATS.has(format)) written.format = format;
  const told = toldOf(schema);
  if (told !== "") written.description = typeof schema.description === "string" ? `${schema.description}\n${told}` : told;
  return written;
}

function toInner(schema: unknown): unknown {
  return isRecord(schema) ? toDecoderSchema(schema) : schema;
}

function toldOf(schema: Loose): string {
  const told = TOLD.flatMap((name) => {
    const value = ownValue(schema, name);
    return value == null || value === false ? [] : [`${wordsOf(name)}: ${typeof value === "string" ? value : JSON.stringify(value)}`];
  });
  const { format } = schema;
  if (typeof format === "string" && !STRING_FORMATS.has(format)) told.push(`format: ${format}`);
  return told.length === 0 ? "" : `${told.join("; ")}.`;
}

function wordsOf(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
