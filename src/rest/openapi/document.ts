/**
 * The OpenAPI 3.1 description of the REST face: paths, parameters and bodies from the routes themselves, what they answer from
 * `answers.ts`, and the words from `operations.ts`. A route without words, or words without a route, is a defect that the
 * contract test finds.
 */
import * as z from "zod";
import { unitOf } from "../../lib/issue-words.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import { CREDITS_MAX } from "../../limits.js";
import { MAX_COST_DESCRIPTION, MAX_COST_FIELD, MAX_COST_HEADER } from "../../services/credits/max-cost.js";
import { IDEMPOTENCY_KEY_CHARS_MAX } from "../../services/idempotency/limits.js";
import { toTemplate } from "../route.js";
import { ANSWERS, type AnswerName } from "./answers.js";
import { EXAMPLES, type Example } from "./examples.js";
import { type Operation, TAGS } from "./operation.js";
import { OPERATIONS } from "./operations.js";
import { PARAMETERS } from "./parameters.js";
import type { RecordedEndpoint, RecordedRoute } from "./record.js";

type Json = Record<string, unknown>;

/** See docs/spec/README.md#versions. */
const API_VERSION = "0.3.0";
const EVENT_STREAM = "text/event-stream";
/** Of the most credits that there may be. */
const CREDITS_DIGITS_MAX = String(CREDITS_MAX).length - 1;
const ERROR_STATUSES = ["400", "401", "402", "403", "404", "409", "413", "415", "421", "429", "500", "502", "503", "504"];
/** Preflight requests and the twins of GET are not operations of their own. */
const UNDOCUMENTED_METHODS = new Set(["HEAD", "OPTIONS"]);

export interface OpenApiDocument extends Json {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Json>>>>;
}

export function createOpenApiDocument(routes: readonly RecordedRoute[]): OpenApiDocument {
  const paths: Record<string, Record<string, Json>> = {};
  for (const { path, methods } of routes) {
    for (const [method, endpoint] of Object.entries(methods)) {
      if (UNDOCUMENTED_METHODS.has(method)) continue;
      const shown = toTemplate(path);
      const operation = ownValue(OPERATIONS, `${method} ${shown}`);
      if (!operation || operation.isHidden) continue;
      setOwnValue(paths, shown, {
        ...ownValue(paths, shown),
        [method.toLowerCase()]: toOperation(method, shown, endpoint, operation),
      });
    }
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Sluice",
      version: API_VERSION,
      description:
        "A generative-AI gateway: text, images, video, speech, music, transcriptions and embeddings, paid from prepaid credits. The routes under /v1 speak OpenAI's wire format. Every route under /account answers under /api/account too.",
    },
    // Wherever this document was fetched from.
    servers: [{ url: "/" }],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ bearer: [] }, { query: [] }],
    paths,
    components: {
      schemas: Object.fromEntries(Object.entries(ANSWERS).map(([name, schema]) => [name, toSchema(schema, "output")])),
      headers: GENERATION_HEADERS,
      responses: { Error: jsonContent("What went wrong.", "Error"), OAuthError: jsonContent("What went wrong.", "OAuthError") },
      securitySchemes: {
        bearer: { type: "http", scheme: "bearer", description: "An API key, `sk_...` or `pk_...`." },
        query: { type: "apiKey", in: "query", name: "key", description: "An API key. The header wins when both are given." },
      },
    },
  };
}

/** What must be described: `GET /text/{prompt}` for each operation of the routes. */
export function operationsOf(routes: readonly RecordedRoute[]): string[] {
  return routes.flatMap(({ path, methods }) =>
    Object.keys(methods)
      .filter((method) => !UNDOCUMENTED_METHODS.has(method))
      .map((method) => `${method} ${toTemplate(path)}`),
  );
}

function toOperation(method: string, path: string, endpoint: RecordedEndpoint, operation: Operation): Json {
  const example = ownValue(EXAMPLES, `${method} ${path}`) ?? {};
  const parameters = [
    ...pathParameters(path),
    ...queryParameters(endpoint),
    ...(endpoint.isGeneration ? [IDEMPOTENCY_KEY] : []),
    ...(isBounded(endpoint) ? [MAX_COST] : []),
  ].map((parameter) => withExample(parameter, example));
  const body = requestBody(endpoint, example);
  return {
    operationId: operation.id,
    summary: operation.summary,
    ...(operation.description !== undefined && { description: operation.description }),
    tags: [operation.tag],
    // Anybody may call it, but a key that is sent must be good.
    ...(endpoint.isPublic &&
      !operation.isUpgrade && { security: endpoint.isOAuth || endpoint.isPage ? [{}] : [{}, { bearer: [] }, { query: [] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body !== null && { requestBody: body }),
    responses: {
      ...toSuccess(operation, generationHeadersOf(endpoint.isGeneration, path)),
      ...Object.fromEntries(
        ERROR_STATUSES.filter((status) => operation.errors?.includes(status) || mayAnswer(status, method, endpoint, path)).map((status) => [
          status,
          endpoint.isOAuth ? OAUTH_ERROR : endpoint.isPage ? ERROR_PAGE : ERROR,
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
    "A request that is sent again with the same key within 24 hours is answered as the first was, and not charged again. Answers of more than 1 MiB, and those that the account's storage quota has no room for, are not kept: then it is 409, with the first one's generation id and cost in `details`.",
  schema: { type: "string", minLength: 1, maxLength: IDEMPOTENCY_KEY_CHARS_MAX },
};

const MAX_COST_PATTERN = `^\\d{1,${CREDITS_DIGITS_MAX}}(?:\\.\\d{1,9})?$`;
const MAX_COST = {
  name: MAX_COST_HEADER,
  in: "header",
  required: false,
  description: MAX_COST_DESCRIPTION,
  schema: { type: "string", pattern: MAX_COST_PATTERN },
};
/** Of a body. */
const MAX_COST_PROPERTY = {
  description: MAX_COST_DESCRIPTION,
  anyOf: [{ type: "number", minimum: 0, maximum: CREDITS_MAX }, { type: "string", pattern: MAX_COST_PATTERN }, { type: "null" }],
};

/** What it generates may be bounded. */
function isBounded({ isGeneration, isBounded: isStated }: RecordedEndpoint): boolean {
  return isStated ?? isGeneration ?? false;
}

/** The schema of a body, with the field that the endpoint itself takes out of it. */
function withMaxCost<Schema extends ObjectSchema>(endpoint: RecordedEndpoint, schema: Schema): Schema {
  return isBounded(endpoint) ? { ...schema, properties: { ...schema.properties, [MAX_COST_FIELD]: MAX_COST_PROPERTY } } : schema;
}

const ERROR = { $ref: "#/components/responses/Error" };
const ERROR_PAGE = { description: "A page that says what went wrong.", content: { "text/html": { schema: { type: "string" } } } };
const OAUTH_ERROR = { $ref: "#/components/responses/OAuthError" };

function mayAnswer(status: string, method: string, endpoint: RecordedEndpoint, path: string): boolean {
  const hasBody = [endpoint.body, endpoint.form, endpoint.reads].some((taken) => taken !== undefined);
  if (status === "413" || status === "415") return hasBody;
  if (status === "404") return path.includes("{");
  if (endpoint.isOAuth && ["401", "403"].includes(status)) return false;
  if (["402", "409", "502", "504"].includes(status))
    return !endpoint.isPublic && !path.startsWith("/account") && (hasBody || method === "GET");
  return true;
}

function toSuccess({ answer, contentTypes, hasNoContent, isUpgrade, redirect }: Operation, headers: Json): Json {
  if (isUpgrade) return { "101": { description: "The WebSocket is open." }, "426": ERROR };
  if (hasNoContent) return { "204": { description: "Done." } };
  const content: Record<string, Json> = {};
  if (answer) content["application/json"] = { schema: reference(answer) };
  for (const type of contentTypes ?? []) {
    const isText = type.startsWith("text/");
    // Of a stream the schema would be that of its events, which the answer beside it describes.
    const schema = type === EVENT_STREAM ? {} : isText ? { type: "string" } : { type: "string", contentMediaType: type, format: "binary" };
    setOwnValue(content, type, { schema });
  }
  const answered = { "200": { description: "The answer.", ...headers, content } };
  return { ...answered, ...(redirect && { [redirect.status]: { description: redirect.why } }) };
}

/** What is only blank is refused. */
const PROMPTS = new Set(["prompt", "text"]);

function pathParameters(path: string): Json[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => ({
    name,
    in: "path",
    required: true,
    schema: PROMPTS.has(name) ? { type: "string", pattern: "\\S" } : { type: "string", minLength: 1 },
    ...(Object.hasOwn(PARAMETERS, name) && { description: ownValue(PARAMETERS, name) }),
  }));
}

function queryParameters(endpoint: RecordedEndpoint): Json[] {
  const { query } = endpoint;
  if (!query) return [];
  const { properties = {}, required = [] } = toSchema(query, "input") as { properties?: Record<string, Json>; required?: string[] };
  const bound = isBounded(endpoint) ? { [MAX_COST_FIELD]: { type: "string", pattern: MAX_COST_PATTERN } } : {};
  return Object.entries<Json>({ ...properties, ...bound }).map(([name, schema]) => ({
    name,
    in: "query",
    required: required.includes(name),
    schema: isPlainText(schema) ? { ...schema, pattern: "^[^\\u0000]*$" } : schema,
    ...(Object.hasOwn(PARAMETERS, name) && { description: ownValue(PARAMETERS, name) }),
  }));
}

/** A text that may say anything, but for the character that no query string may hold. */
function isPlainText({ type, pattern, format, enum: choices, const: choice }: Json): boolean {
  return type === "string" && [pattern, format, choices, choice].every((stated) => stated === undefined);
}

/** Whatever is filled in is sent as it stands; what a parameter may be is its schema's to say. */
function withExample(parameter: Json, { parameters }: Example): Json {
  const example = parameters && ownValue(parameters, String(parameter.name));
  return example === undefined ? parameter : { ...parameter, example };
}

function requestBody(endpoint: RecordedEndpoint, example: Example): Json | null {
  const { body: own, form: ownForm, isOAuth, reads } = endpoint;
  const body = own ?? reads?.body;
  const form = ownForm ?? reads?.form;
  if (!body && !form) return null;
  const content: Record<string, Json> = {};
  const sent = example.body !== undefined && { example: example.body };
  if (body) content["application/json"] = { schema: withMaxCost(endpoint, toSchema(body, "input")), ...sent };
  if (body && isOAuth) content["application/x-www-form-urlencoded"] = { schema: ofTexts(toSchema(body, "input")), ...sent };
  if (form) content["multipart/form-data"] = { schema: toFormSchema(endpoint, form, example.form ?? {}), example: example.form ?? {} };
  if (reads?.isFile) content["application/octet-stream"] = { schema: { type: "string", format: "binary", minLength: 1 } };
  return { required: true, content };
}

function toFormSchema(endpoint: RecordedEndpoint, form: NonNullable<RecordedEndpoint["form"]>, example: Json): Json {
  const schema = ofTexts(withMaxCost(endpoint, toSchema(form.fields, "input")));
  const file = { type: "string", format: "binary" };
  const files = Object.entries(form.files).map(([name, rule]): [string, Json] => [
    name,
    rule.countMax > 1 ? { type: "array", items: file, maxItems: rule.countMax, ...(rule.isRequired && { minItems: 1 }) } : file,
  ]);
  // Swagger UI makes something up for every field of a form without an example of its own, and leaves out what is empty.
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

/** The fields of a form are texts, of which none is null. */
function ofTexts({ properties = {}, ...schema }: ObjectSchema): ObjectSchema {
  const fields = Object.entries(properties).map(([name, { anyOf, ...nullable }]) => {
    const field = Array.isArray(nullable.type) ? { ...nullable, type: nullable.type.find((type) => type !== "null") } : nullable;
    if (!Array.isArray(anyOf)) return [name, anyOf === undefined ? field : { ...field, anyOf }];
    const stated = (anyOf as Json[]).filter(({ type }) => type !== "null");
    return [name, stated.length === 1 ? { ...field, ...stated[0] } : { ...field, anyOf: stated }];
  });
  return { ...schema, properties: Object.fromEntries(fields) };
}

function jsonContent(description: string, answer: AnswerName): Json {
  return { description, content: { "application/json": { schema: reference(answer) } } };
}

function reference(answer: AnswerName): Json {
  return { $ref: `#/components/schemas/${answer}` };
}

/** Of what is sent when it is an input, of what comes when it is an output. What JSON Schema cannot say is left open. */
function toSchema(schema: z.ZodType, io: "input" | "output"): Json {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any", reused: "inline", override: describeUnit }) as Json;
  return rest;
}

/** What a number counts is said with its bounds when they are broken (lib/issue-words.ts), and here. */
function describeUnit({ zodSchema, jsonSchema }: { zodSchema: z.core.$ZodType; jsonSchema: Json }): void {
  const unit = unitOf(zodSchema);
  if (unit !== undefined) jsonSchema.description ??= `In ${unit}.`;
}

// The headers of generations. `headers.ts` of the REST face makes them.

const text = (description: string) => ({ description, schema: { type: "string" } });

const GENERATION_HEADERS = {
  "X-Generation-Id": text("The generation's own id, which is `request_id` in usage."),
  "X-Model-Used": text(
    "The id of the model that served. Missing of a stream that nobody had begun to answer when its head left (5 s), and of what is answered by a job.",
  ),
  "X-Fallback": text("The same, when it was a fallback of the model that was called."),
  "X-Cost": text("What was charged, in credits. A stream tells it as `usage.cost` of its last chunk."),
  "X-Cache": text(
    "`HIT` or `MISS`, of the content cache, from which only GETs are answered. The replay of an `Idempotency-Key` says what the first answer said, and has `X-Idempotent-Replay`.",
  ),
  "Server-Timing": text(
    "Milliseconds: `gateway`, the gateway's own, and `upstream`. At the head of a stream, until then; its `receipt` has the rest.",
  ),
} as const;

const REFERENCES = Object.fromEntries(Object.keys(GENERATION_HEADERS).map((name) => [name, { $ref: `#/components/headers/${name}` }]));

/** Of the operations that generate: those that take an `Idempotency-Key`, and the GETs that the content cache answers. */
function generationHeadersOf(isGeneration: boolean | undefined, path: string): { readonly headers?: typeof REFERENCES } {
  return isGeneration || /^\/(?:text|image|video|audio)\/\{/.test(path) ? { headers: REFERENCES } : {};
}
