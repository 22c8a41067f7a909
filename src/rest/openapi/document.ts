/**
 * The OpenAPI 3.1 document of the REST face, from the contracts of the routes: what parses a request, types its answer and describes both
 * stands at the route.
 */
import * as z from "zod";
import { unitOf } from "../../lib/issue-words.js";
import { isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { REQUEST_ID_PATTERN } from "../../limits.js";
import { providerFields } from "../../services/catalog/wish-fields.js";
import { MAX_COST_FIELD } from "../../services/credits/max-cost.js";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../../services/requests/limits.js";
import { toTemplate } from "../route.js";
import { type Answer, EVENT_STREAM, type NamedSchema } from "./answer.js";
import {
  COMPONENTS,
  MAX_COST,
  MAX_COST_NAME,
  MAX_COST_PROPERTY,
  MAX_COST_QUERY,
  MAX_COST_SCHEMA,
  PROVIDER_NAME,
  QUOTE_QUERY,
  WISH_FORM_PROPERTIES,
  wishProperties,
  wishQuery,
} from "./bounds.js";
import { type Contract, type Example, isBounded, type Operation, TAGS } from "./contract.js";
import { GENERATION_HEADERS } from "./generation-headers.js";
import type { RecordedRoute } from "./record.js";
import { error, oauthError } from "./schemas.js";

type Json = Record<string, unknown>;

/** See docs/spec/README.md#versions. */
const API_VERSION = "0.3.0";
const ERROR_STATUSES = ["400", "401", "402", "403", "404", "409", "413", "415", "421", "429", "500", "502", "503", "504"];
/** Preflight requests and the HEAD twins of GET are not listed. */
const UNDOCUMENTED_METHODS = new Set(["HEAD", "OPTIONS"]);

export interface OpenApiDocument extends Json {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
  readonly components: Json & { readonly schemas: Json };
}

type Listed = Extract<Contract, Operation>;

export function createOpenApiDocument(routes: readonly RecordedRoute[]): OpenApiDocument {
  const paths: Record<string, Record<string, Json>> = {};
  const schemas = new NamedSchemas([error, oauthError]);
  for (const { method, path, contract } of operationsOf(routes)) {
    setOwnValue(paths, path, {
      ...ownValue(paths, path),
      [method.toLowerCase()]: toOperation(method, path, contract),
    });
    if (contract.answer.json) schemas.add(contract.answer.json);
  }
  return withNamedParts({
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: API_VERSION,
      description:
        "A gateway for generative AI: text, images, video, speech, music, transcriptions and embeddings, paid from prepaid credits. The routes under /v1 use OpenAI's wire format. All routes under /account are also available under /api/account.",
    },
    // Relative to the URL that the document was fetched from.
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }, { query: [] }],
    paths,
    components: {
      schemas: schemas.toJson(),
      headers: GENERATION_HEADERS,
      responses: { Error: jsonContent("The request failed.", error), OAuthError: jsonContent("The request failed.", oauthError) },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key, `sk_...` or `pk_...`." },
        query: { type: "apiKey", in: "query", name: "key", description: "An API key. The header takes precedence when both are sent." },
      },
    },
  });
}

/** Throws for two schemas of one name. */
class NamedSchemas {
  readonly #schemas = new Map<string, z.ZodType>();

  constructor(named: readonly NamedSchema[]) {
    for (const one of named) this.add(one);
  }

  add({ name, schema }: NamedSchema): void {
    const known = this.#schemas.get(name);
    if (known !== undefined && known !== schema) throw new Error(`Two answers are named ${name}.`);
    this.#schemas.set(name, schema);
  }

  toJson(): Json {
    return Object.fromEntries([...this.#schemas].map(([name, schema]) => [name, toSchema(schema, "output")]));
  }
}

/**
 * Moves parts with an `id` of their own, such as a union that inputs share, to the named schemas: generators of clients then make one type
 * of each. Throws for a name that an answer has.
 */
function withNamedParts(document: OpenApiDocument): OpenApiDocument {
  const taken = document.components.schemas;
  const parts: Json = {};
  const move = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(move);
    if (!isRecord(value)) return value;
    const { $defs = {}, ...own } = value;
    for (const [name, part] of Object.entries($defs as Json)) {
      if (Object.hasOwn(taken, name)) throw new Error(`An answer and a part of an input are named ${name}.`);
      setOwnValue(parts, name, move(part));
    }
    const moved = Object.entries(own).map(([name, each]) => [name, name === "$ref" ? toComponent(each) : move(each)]);
    return Object.fromEntries(moved);
  };
  const { components, ...moved } = move(document) as OpenApiDocument;
  return {
    ...moved,
    components: {
      ...components,
      schemas: { ...components.schemas, [MAX_COST_NAME]: MAX_COST_SCHEMA, [PROVIDER_NAME]: toSchema(providerFields, "input"), ...parts },
    },
  };
}

function toComponent(reference: unknown): unknown {
  return typeof reference === "string" ? reference.replace("#/$defs/", COMPONENTS) : reference;
}

interface ListedOperation {
  readonly method: string;
  /** OpenAPI's form: `/text/{prompt}`. */
  readonly path: string;
  readonly contract: Listed;
}

export function operationsOf(routes: readonly RecordedRoute[]): ListedOperation[] {
  return routes.flatMap(({ path: pattern, methods }) => {
    const path = toTemplate(pattern);
    return Object.entries(methods).flatMap(([method, contract]) => {
      if (UNDOCUMENTED_METHODS.has(method)) return [];
      return contract.id === null ? [] : [{ method, path, contract }];
    });
  });
}

function toOperation(method: string, path: string, contract: Listed): Json {
  const { id, tag, summary, description, answer, example = {}, errors = [], isPublic, readsKey, isPage, isOAuth } = contract;
  const parameters = [
    ...(contract.params ? toParameters("path", contract.params) : []),
    ...queryParameters(contract),
    ...(contract.isGeneration ? [IDEMPOTENCY_KEY] : contract.takesIdempotencyKey ? [APPROVAL_KEY] : []),
    ...(isOAuth ? [REQUEST_ID] : []),
    ...(isBounded(contract) ? [MAX_COST] : []),
  ].map((parameter) => withExample(parameter, example));
  const body = requestBody(contract, example);
  const failed = isOAuth ? OAUTH_ERROR : isPage ? ERROR_PAGE : ERROR;
  return {
    operationId: id,
    summary,
    ...(description !== undefined && { description }),
    tags: [tag],
    // Open without a key, but a key that is sent must be valid.
    ...(isPublic && answer.status !== 101 && { security: readsKey === false ? [{}] : [{}, { bearer: [] }, { query: [] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== null && { requestBody: body }),
    responses: {
      ...toSuccess(answer, isBounded(contract)),
      ...Object.fromEntries(
        ERROR_STATUSES.filter((status) => errors.includes(status) || mayAnswer(status, method, contract, path)).map((status) => [
          status,
          failed,
        ]),
      ),
    },
  };
}

const IDEMPOTENCY_KEY = {
  name: "Idempotency-Key",
  in: "header",
  required: false,
  description:
    "A request sent again with the same key within 24 hours returns the first answer and is not charged again. Answers larger than 1 MiB, and answers that do not fit into the account's storage quota, are not stored. Their repeats fail with 409, with the generation ID and cost of the first request in `details`.",
  schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_CHARS_MAX },
};

const APPROVAL_KEY = {
  ...IDEMPOTENCY_KEY,
  description: "A request sent again with the same key within 24 hours has no further effect.",
};

/** Every route takes it. openapi-python-client (0.29) makes code that cannot be imported from two bodies without an optional parameter. */
const REQUEST_ID = {
  name: "X-Request-Id",
  in: "header",
  required: false,
  description: "The client's ID of the request, which the answer repeats. Default: generated.",
  schema: { type: "string", pattern: REQUEST_ID_PATTERN.source },
};

/** The body schema with the field that the endpoint itself reads. */
/** Adds the fields of every generation to its own. */
function withBounds<Schema extends ObjectSchema>(endpoint: Contract, schema: Schema, wishes: Readonly<Record<string, object>>): Schema {
  if (!isBounded(endpoint)) return schema;
  return { ...schema, properties: { ...schema.properties, [MAX_COST_FIELD]: MAX_COST_PROPERTY, ...wishes } };
}

const ERROR = { $ref: "#/components/responses/Error" };
const ERROR_PAGE = { description: "A page with an error message.", content: { "text/html": { schema: { type: "string" } } } };
const OAUTH_ERROR = { $ref: "#/components/responses/OAuthError" };

function mayAnswer(status: string, method: string, contract: Contract, path: string): boolean {
  const hasBody = [contract.body, contract.form, contract.reads].some((taken) => taken !== undefined);
  if (status === "413" || status === "415") return hasBody;
  if (status === "404") return path.includes("{");
  if (contract.isOAuth && ["401", "403"].includes(status)) return false;
  if (["402", "409", "502", "504"].includes(status))
    return !contract.isPublic && !path.startsWith("/account") && (hasBody || method === "GET");
  return true;
}

function toSuccess({ json, types, status, redirect }: Answer, isGenerated: boolean): Json {
  if (status === 101) return { "101": { description: "The WebSocket is open." }, "426": ERROR };
  if (status === 204) return { "204": { description: "The request succeeded." } };
  const content: Record<string, Json> = {};
  if (json) content["application/json"] = { schema: reference(json) };
  for (const type of types) {
    const isText = type.startsWith("text/");
    // A stream's schema would be that of its events, which the answer beside it describes.
    const schema = type === EVENT_STREAM ? {} : isText ? { type: "string" } : { type: "string", contentMediaType: type, format: "binary" };
    setOwnValue(content, type, { schema });
  }
  const answered = {
    [status ?? 200]: { description: "The request succeeded.", ...(isGenerated && { headers: HEADER_REFERENCES }), content },
  };
  return { ...answered, ...(redirect && { [redirect.status]: { description: redirect.why } }) };
}

function queryParameters(contract: Contract): Json[] {
  const own = contract.query ? toParameters("query", contract.query) : [];
  if (!isBounded(contract)) return own;
  return contract.query ? [...own, MAX_COST_QUERY, QUOTE_QUERY, ...wishQuery(contract)] : [QUOTE_QUERY];
}

function toParameters(place: "path" | "query", schema: z.ZodType): Json[] {
  const { properties = {}, required = [] } = toSchema(schema, "input") as { properties?: Record<string, Json>; required?: string[] };
  return Object.entries(properties).map(([name, { description, ...stated }]) => ({
    name,
    in: place,
    required: required.includes(name),
    schema: place === "query" && isPlainText(stated) ? { ...stated, pattern: "^[^\\u0000]*$" } : stated,
    ...(description !== undefined && { description }),
  }));
}

/** Free text, without the character that query strings cannot contain. */
function isPlainText({ type, pattern, format, enum: choices, const: choice }: Json): boolean {
  return type === "string" && [pattern, format, choices, choice].every((stated) => stated === undefined);
}

/** Values are sent as they are. The parameter's schema states the allowed ones. */
function withExample(parameter: Json, { parameters }: Example): Json {
  const example = parameters && ownValue(parameters, String(parameter.name));
  return example === undefined ? parameter : { ...parameter, example };
}

function requestBody(endpoint: Contract, example: Example): Json | null {
  const { body: own, form: ownForm, isOAuth, isJsonOnly, reads } = endpoint;
  const body = own ?? reads?.body;
  const form = ownForm ?? reads?.form;
  if (!body && !form) return null;
  const content: Record<string, Json> = {};
  const sent = example.body !== undefined && { example: example.body };
  if (body) content["application/json"] = { schema: withBounds(endpoint, toSchema(body, "input"), wishProperties(endpoint)), ...sent };
  if (body && isOAuth && !isJsonOnly) content["application/x-www-form-urlencoded"] = { schema: ofTexts(toSchema(body, "input")), ...sent };
  if (form) content["multipart/form-data"] = { schema: toFormSchema(endpoint, form, example.form ?? {}), example: example.form ?? {} };
  if (reads?.isFile) content["application/octet-stream"] = { schema: { type: "string", format: "binary", minLength: 1 } };
  return { required: true, content };
}

function toFormSchema(endpoint: Contract, form: NonNullable<Contract["form"]>, example: Json): Json {
  const schema = ofTexts(withBounds(endpoint, toSchema(form.fields, "input"), WISH_FORM_PROPERTIES));
  const file = { type: "string", format: "binary" };
  const files = Object.entries(form.files).map(([name, rule]): [string, Json] => [
    name,
    rule.countMax > 1 ? { type: "array", items: file, maxItems: rule.countMax, ...(rule.isRequired && { minItems: 1 }) } : file,
  ]);
  // Swagger UI invents a value for each form field without an example, and omits empty ones.
  const texts = Object.entries(schema.properties ?? {}).map(([name, property]): [string, Json] => [
    name,
    { ...property, example: ownValue(example, name) ?? (property.type === "array" ? [] : "") },
  ]);
  const needed = Object.entries(form.files).flatMap(([name, { isRequired }]) => (isRequired ? [name] : []));
  return {
    type: "object",
    ...schema,
    properties: { ...Object.fromEntries(texts), ...Object.fromEntries(files) },
    required: [...new Set([...needed, ...(schema.required ?? [])])],
  };
}

interface ObjectSchema extends Json {
  readonly properties?: Readonly<Record<string, Json>>;
  readonly required?: readonly string[];
}

/** Form fields are text, and never null. */
function ofTexts({ properties = {}, ...schema }: ObjectSchema): ObjectSchema {
  const fields = Object.entries(properties).map(([name, { anyOf, ...nullable }]) => {
    const field = Array.isArray(nullable.type) ? { ...nullable, type: nullable.type.find((type) => type !== "null") } : nullable;
    if (!Array.isArray(anyOf)) return [name, anyOf === undefined ? field : { ...field, anyOf }];
    const stated = (anyOf as Json[]).filter(({ type }) => type !== "null");
    return [name, stated.length === 1 ? { ...field, ...stated[0] } : { ...field, anyOf: stated }];
  });
  return { ...schema, properties: Object.fromEntries(fields) };
}

function jsonContent(description: string, answer: NamedSchema): Json {
  return { description, content: { "application/json": { schema: reference(answer) } } };
}

function reference({ name }: NamedSchema): Json {
  return { $ref: COMPONENTS + name };
}

/**
 * Describes the sent form of an input and the received form of an output. Constraints that JSON Schema cannot express are omitted.
 */
function toSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline", override: describe }) as Json;
  return rest;
}

/** Dates are sent as text. Adds the unit of a number, which error messages also state (lib/issue-words.ts). */
function describe({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: Json }): void {
  if (zodSchema._zod.def.type === "date") Object.assign(jsonSchema, { type: "string", format: "date-time" });
  const unit = unitOf(zodSchema);
  if (unit !== undefined) jsonSchema.description ??= `In ${unit}.`;
  joinPatterns(jsonSchema);
  stateBound(jsonSchema);
}

/** Some generators (ogen) read one pattern of a text: one that wants some character is joined with one that excludes characters. */
function joinPatterns(schema: Json): void {
  const { pattern, allOf } = schema;
  if (typeof pattern !== "string" || !Array.isArray(allOf)) return;
  const [other] = allOf as Json[];
  const patterns = [pattern, String(other?.pattern)];
  const wanted = patterns.map((each) => (each === "\\S" ? "\\s" : WANTS.exec(each)?.[1])).find((found) => found !== undefined);
  const excluded = patterns.map((each) => EXCLUDES.exec(each)?.[1]).find((found) => found !== undefined);
  if (allOf.length !== 1 || wanted === undefined || excluded === undefined) throw new Error(`No one pattern for ${patterns.join(" and ")}`);
  schema.pattern = `^[${wanted}]*[^${excluded}${wanted}][^${excluded}]*$`;
  delete schema.allOf;
}

/** `[^...]`: a character that is not one of these. */
const WANTS = /^\[\^([^\]]{1,200})\]$/;
/** `^[^...]*$`: none of these. */
const EXCLUDES = /^\^\[\^([^\]]{1,200})\]\*\$$/;

/** The same generators take an excluded bound for the flag that it was in OpenAPI 3.0. */
function stateBound(schema: Json): void {
  const { exclusiveMinimum: bound } = schema;
  if (typeof bound !== "number") return;
  delete schema.exclusiveMinimum;
  Object.assign(schema, { minimum: bound, not: { enum: [bound] } });
}

/** For operations that generate. */
const HEADER_REFERENCES = Object.fromEntries(
  Object.keys(GENERATION_HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]),
);
