/** From a JSON Schema and an input that it takes: inputs that differ from it in one place, at a bound, one past it, of another type, or without it. */

type Json = Record<string, unknown>;

export interface Change {
  /** Dotted, of the changed field. */
  readonly path: string;
  /** In words, for a test's message. */
  readonly what: string;
  readonly input: Json;
}

/** As deep as people look; deeper are the same schemas again. */
const DEPTH_MAX = 4;

/** Every change of the object. Whether a change is allowed is for the caller to judge: these are good and bad ones. */
export function changesOf(schema: Json, input: Json): Change[] {
  return variantsOf(schema, input)
    .flatMap((variant) => fieldChanges(variant, input, 0))
    .map(({ path, what, value }) => ({ path: path.join("."), what, input: value as Json }));
}

/** The variants whose required fields the input has. */
function variantsOf(schema: Json, input: Json): readonly Json[] {
  const variants = (schema.anyOf ?? schema.oneOf) as readonly Json[] | undefined;
  if (schema.properties !== undefined || variants === undefined) return [schema];
  return variants.filter(({ required }) => ((required ?? []) as readonly string[]).every((name) => Object.hasOwn(input, name)));
}

interface Difference {
  readonly path: readonly string[];
  readonly what: string;
  readonly value: unknown;
}

const MISSING = Symbol("missing");

function fieldChanges(schema: Json, holder: Json, depth: number): Difference[] {
  const properties = (schema.properties ?? {}) as Record<string, Json>;
  const required = (schema.required ?? []) as readonly string[];
  const put = (name: string, value: unknown): Json => {
    const { [name]: _, ...rest } = holder;
    return value === MISSING ? rest : { ...rest, [name]: value };
  };
  const missing = required.map((name) => ({ path: [name], what: "missing", value: put(name, MISSING) }));
  const unknown = schema.additionalProperties === false ? [{ path: ["nmae"], what: "unknown", value: put("nmae", 1) }] : [];
  const changed = Object.entries(properties).flatMap(([name, property]) =>
    valueChanges(property, holder[name], depth).map(({ path, what, value }) => ({ path: [name, ...path], what, value: put(name, value) })),
  );
  return [...missing, ...unknown, ...changed];
}

function valueChanges(schema: Json, present: unknown, depth: number): Difference[] {
  const variants = ((schema.anyOf ?? schema.oneOf ?? [schema]) as Json[]).filter(({ type }) => type !== "null");
  const types = [...new Set(variants.flatMap(({ type }) => type as string | string[]))];
  const wrong = [5, "x", true, [], {}]
    .filter((value) => !types.some((type) => isOf(value, type)))
    .map((value) => ({ path: [], what: `${JSON.stringify(value)} instead of ${types.join(" or ")}`, value }));
  const isOneOfSome = variants.filter(({ type }) => type === "object").length > 1;
  return [...wrong, ...variants.flatMap((variant) => boundChanges(variant, isOneOfSome ? undefined : present, depth))];
}

function isOf(value: unknown, type: string | undefined): boolean {
  if (type === undefined) return true;
  if (type === "integer" || type === "number") return typeof value === "number";
  if (type === "array") return Array.isArray(value);
  return typeof value === type && !Array.isArray(value);
}

function boundChanges(schema: Json, present: unknown, depth: number): Difference[] {
  const at = (what: string, value: unknown): Difference => ({ path: [], what, value });
  const { type, minimum, maximum, minLength, maxLength, minItems, maxItems, enum: choices, items } = schema as Record<string, never>;
  const differences: Difference[] = [];
  if (choices !== undefined) differences.push(at("no choice", "nonsense"), ...(choices as unknown[]).map((value) => at("a choice", value)));
  if (type === "integer") differences.push(at("a broken number", 1.5));
  if (isBound(minimum)) differences.push(at("at the minimum", minimum), at("below the minimum", minimum - 1));
  if (isBound(maximum)) differences.push(at("at the maximum", maximum), at("above the maximum", maximum + 1));
  if (type === "string") {
    if (isBound(minLength)) differences.push(at("too short", "a".repeat(minLength - 1)));
    if (isBound(maxLength)) differences.push(at("too long", "a".repeat(maxLength + 1)));
    if (schema.pattern !== undefined || schema.allOf !== undefined) differences.push(at("a NUL", "a\0"), at("blank", " "));
  }
  if (type === "array") {
    const sample = Array.isArray(present) ? present[0] : sampleOf((items ?? {}) as Json);
    if (isBound(minItems)) differences.push(at("too few", Array(minItems - 1).fill(sample)));
    if (isBound(maxItems) && maxItems < 600) differences.push(at("too many", Array(maxItems + 1).fill(sample)));
    if (schema.uniqueItems === true) differences.push(at("twice", [sample, sample]));
    if (items !== undefined && depth < DEPTH_MAX)
      for (const { path, what, value } of valueChanges(items as Json, sample, depth + 1))
        differences.push({ path: ["0", ...path], what, value: [value] });
  }
  if (type === "object" && depth < DEPTH_MAX) {
    const holder = isRecord(present) ? present : sampleOf(schema);
    if (isRecord(holder)) differences.push(...fieldChanges(schema, holder, depth + 1));
  }
  return differences;
}

/** The smallest thing that the schema takes, where that is plain to see. */
function sampleOf(schema: Json): unknown {
  const variants = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (variants?.[0]) return sampleOf(variants[0]);
  if (schema.const !== undefined) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if (schema.type === "object") {
    const properties = (schema.properties ?? {}) as Record<string, Json>;
    return Object.fromEntries(((schema.required ?? []) as string[]).map((name) => [name, sampleOf(properties[name] ?? {})]));
  }
  if (schema.type === "array")
    return typeof schema.minItems === "number" && schema.minItems > 0 ? [sampleOf((schema.items ?? {}) as Json)] : [];
  if (schema.type === "boolean") return true;
  if (schema.type === "integer" || schema.type === "number") return typeof schema.minimum === "number" ? schema.minimum : 1;
  return String(schema.pattern ?? "").includes("https?") ? "https://example.com/" : "a";
}

function isBound(bound: unknown): bound is number {
  return typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER;
}

function isRecord(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
