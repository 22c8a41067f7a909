/**
 * Makes a value that a JSON schema accepts, always the same one, for structured output and tool arguments. Supports types, properties,
 * required, items, enum, const, anyOf, oneOf (its first branch that works), allOf, $ref within the schema, lengths, bounds, formats and
 * plain patterns.
 */
import { ownValue } from "../../lib/own-values.js";
import { samplePattern } from "./pattern-sample.js";
import { refuse } from "./refusal.js";

type Schema = Readonly<Record<string, unknown>>;

const NODES_MAX = 5_000;
const STRING_CHARS_MAX = 10_000;
const ALL_CHARS_MAX = 100_000;
/** Down to this depth optional properties and list items are included; below only required ones, so that recursion ends. */
const GENEROUS_DEPTH = 4;
const DEPTH_MAX = 40;
const WORD = "sandbox";
/** Binary fractions miss some multiples of 0.1: the next ones are tried. */
const STEPS_TRIED = 5;
const FORMATS: Readonly<Record<string, string>> = {
  "date-time": "2024-01-01T00:00:00Z",
  date: "2024-01-01",
  time: "00:00:00Z",
  duration: "P1D",
  email: "sandbox@example.com",
  hostname: "example.com",
  ipv4: "192.0.2.1",
  ipv6: "2001:db8::1",
  uri: "https://example.com/",
  url: "https://example.com/",
  uuid: "00000000-0000-4000-8000-000000000000",
};

export function sampleSchema(schema: unknown): unknown {
  return new Sampler(isSchema(schema) ? schema : {}).sample(schema, 0, 0);
}

class Sampler {
  private nodes = 0;
  private chars = 0;

  constructor(private readonly root: Schema) {}

  /** `position` is the index in a list: values at different positions differ. */
  sample(given: unknown, depth: number, position: number): unknown {
    this.nodes += 1;
    if (given === false || this.nodes > NODES_MAX || depth > DEPTH_MAX) throw refused("it allows no value of a reasonable size");
    if (!isSchema(given)) return WORD;
    const schema = this.resolve(given);
    if (schema.const !== undefined) return schema.const;
    if (Array.isArray(schema.enum)) {
      if (schema.enum.length === 0) throw refused("an enum is empty");
      return schema.enum[position % schema.enum.length];
    }
    const branches = schema.anyOf ?? schema.oneOf;
    if (Array.isArray(branches)) return this.sampleBranch(schema, branches, depth, position);
    return this.sampleType(schema, typeOf(schema, depth), depth, position);
  }

  private sampleType(schema: Schema, type: unknown, depth: number, position: number): unknown {
    switch (type) {
      case "object":
        return this.sampleObject(schema, depth);
      case "array":
        return this.sampleArray(schema, depth);
      case "integer":
      case "number":
        return sampleNumber(schema, type, position);
      case "boolean":
        return position % 2 === 0;
      case "null":
        return null;
      default:
        return this.count(sampleString(schema, position));
    }
  }

  private count(text: string): string {
    this.chars += text.length;
    if (this.chars > ALL_CHARS_MAX) throw refused("its texts have too many characters");
    return text;
  }

  /** Follows references and joins `allOf`. */
  private resolve(given: Schema, nesting = 0): Schema {
    let schema = given;
    for (let steps = 0; typeof schema.$ref === "string"; steps += 1) {
      if (steps + nesting > DEPTH_MAX) throw refused("its references go in a circle");
      const { $ref, ...beside } = schema;
      schema = { ...this.find(String($ref)), ...beside };
    }
    if (!Array.isArray(schema.allOf)) return schema;
    const { allOf, ...own } = schema;
    this.nodes += allOf.length;
    if (this.nodes > NODES_MAX || nesting > DEPTH_MAX) throw refused("it is too large");
    return allOf.filter(isSchema).reduce<Schema>((joined, part) => join(joined, this.resolve(part, nesting + 1)), own);
  }

  private find(reference: string): Schema {
    if (!reference.startsWith("#")) throw refused(`"${reference.slice(0, 100)}" is outside it`);
    let place: unknown = this.root;
    for (const step of reference.slice(1).split("/").slice(1)) {
      const name = step.replaceAll("~1", "/").replaceAll("~0", "~");
      if (Array.isArray(place)) place = place[Number(name)];
      else place = isSchema(place) ? ownValue(place, name) : undefined;
    }
    if (!isSchema(place)) throw refused(`"${reference.slice(0, 100)}" leads nowhere`);
    return place;
  }

  /** The first branch that works; at depth, those that end soonest are tried first. */
  private sampleBranch(schema: Schema, branches: readonly unknown[], depth: number, position: number): unknown {
    const { anyOf: _any, oneOf: _one, ...common } = schema;
    const ordered = depth < GENEROUS_DEPTH ? branches : [...branches].sort((a, b) => weight(a) - weight(b));
    let failure: unknown = refused("it has no branch");
    for (const branch of ordered) {
      try {
        return this.sample(isSchema(branch) ? join(common, this.resolve(branch)) : branch, depth + 1, position);
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  private sampleObject(schema: Schema, depth: number): Record<string, unknown> {
    const properties = isSchema(schema.properties) ? schema.properties : {};
    const required = Array.isArray(schema.required) ? schema.required.filter((name) => typeof name === "string") : [];
    const names = depth < GENEROUS_DEPTH ? new Set([...Object.keys(properties), ...required]) : new Set(required);
    const object: Record<string, unknown> = {};
    const put = (name: string, value: unknown) => Object.defineProperty(object, name, { value, enumerable: true, configurable: true });
    for (const name of names) {
      const property = ownValue(properties, name) ?? schema.additionalProperties ?? {};
      put(name, this.sample(property, depth + 1, 0));
    }
    const missing = toCount(schema.minProperties) - names.size;
    for (let extra = 1; extra <= missing; extra += 1) {
      put(`${WORD}${extra}`, this.sample(schema.additionalProperties ?? {}, depth + 1, extra));
    }
    return object;
  }

  private sampleArray(schema: Schema, depth: number): unknown[] {
    const first = Array.isArray(schema.prefixItems) ? schema.prefixItems : [];
    const wanted = depth < GENEROUS_DEPTH && schema.items !== false ? Math.max(1, first.length) : first.length;
    const max = typeof schema.maxItems === "number" ? schema.maxItems : Number.POSITIVE_INFINITY;
    const length = Math.max(toCount(schema.minItems), Math.min(wanted, max));
    if (length > NODES_MAX) throw refused("a list has too many items");
    return Array.from({ length }, (_, index) => this.sample(first[index] ?? schema.items ?? {}, depth + 1, index));
  }
}

function typeOf(schema: Schema, depth: number): unknown {
  const { type } = schema;
  if (Array.isArray(type)) return depth >= GENEROUS_DEPTH && type.includes("null") ? "null" : type[0];
  if (type !== undefined) return type;
  if (schema.properties !== undefined || schema.required !== undefined) return "object";
  if (schema.items !== undefined || schema.prefixItems !== undefined) return "array";
  if (schema.minimum !== undefined || schema.maximum !== undefined || schema.multipleOf !== undefined) return "number";
  return "string";
}

function weight(branch: unknown): number {
  if (!isSchema(branch) || branch.$ref !== undefined || branch.allOf !== undefined) return 3;
  if (branch.type === "null") return 0;
  return branch.type === "object" || branch.type === "array" ? 2 : 1;
}

function join(left: Schema, right: Schema): Schema {
  const joined: Record<string, unknown> = { ...left, ...right };
  if (isSchema(left.properties) && isSchema(right.properties)) joined.properties = { ...left.properties, ...right.properties };
  if (Array.isArray(left.required) && Array.isArray(right.required)) joined.required = [...left.required, ...right.required];
  return joined;
}

function sampleString(schema: Schema, position: number): string {
  const format = typeof schema.format === "string" ? ownValue(FORMATS, schema.format) : undefined;
  if (format !== undefined) return format;
  if (typeof schema.pattern === "string") return samplePattern(schema.pattern);
  const min = toCount(schema.minLength);
  const max = typeof schema.maxLength === "number" ? schema.maxLength : STRING_CHARS_MAX;
  if (min > STRING_CHARS_MAX) throw refused("a text has too many characters");
  const text = position === 0 ? WORD : `${WORD}${position}`;
  return text.length > max ? text.slice(text.length - Math.max(0, max)) : text.padEnd(min, ".");
}

/** The first of some obvious numbers that the schema accepts. */
function sampleNumber(schema: Schema, type: "integer" | "number", position: number): number {
  const step = typeof schema.multipleOf === "number" && schema.multipleOf > 0 ? schema.multipleOf : 1;
  const low = toNumber(schema.minimum) ?? toNumber(schema.exclusiveMinimum);
  const high = toNumber(schema.maximum) ?? toNumber(schema.exclusiveMaximum);
  const starts = [position + 1, Math.ceil((low ?? 0) / step) + position, Math.floor((high ?? 0) / step) - position - STEPS_TRIED];
  const steps = starts.flatMap((start) => Array.from({ length: STEPS_TRIED + 1 }, (_, index) => start + index));
  // Twelve digits suffice for any schema, and hide errors of binary fractions.
  const numbers = steps.map((count) => Number((count * step).toPrecision(12)));
  if (low !== null && high !== null) numbers.push((low + high) / 2);
  const found = numbers.find((number) => accepts(schema, type, number));
  if (found === undefined) throw refused("no number fits its bounds");
  return found;
}

function accepts(schema: Schema, type: "integer" | "number", number: number): boolean {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = schema;
  if (type === "integer" && !Number.isSafeInteger(number)) return false;
  if (typeof minimum === "number" && number < minimum) return false;
  if (typeof maximum === "number" && number > maximum) return false;
  if (typeof exclusiveMinimum === "number" && number <= exclusiveMinimum) return false;
  if (typeof exclusiveMaximum === "number" && number >= exclusiveMaximum) return false;
  return typeof multipleOf !== "number" || Number.isInteger(number / multipleOf);
}

function toNumber(value: unknown): number | null {
  return typeof value === "number" ? value : null;
}

function toCount(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.ceil(value) : 0;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refused(why: string): Error {
  return refuse(`The sandbox cannot answer this schema: ${why}.`);
}
