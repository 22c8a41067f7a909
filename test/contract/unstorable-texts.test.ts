/**
 * Texts that the database cannot store and UTF-8 cannot write (a NUL, half of a surrogate pair) are BAD_REQUEST wherever a contract takes
 * text: each field of each body, form and query of REST, and each argument of GraphQL.
 */
import {
  type GraphQLField,
  type GraphQLObjectType,
  getNamedType,
  getNullableType,
  isCompositeType,
  isListType,
  isNonNullType,
  isObjectType,
} from "graphql";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { schema } from "../../src/graphql/schema.js";
import { createOpenApiDocument, operationsOf } from "../../src/rest/openapi/document.js";
import { toTemplate } from "../../src/rest/route.js";
import { recordRoutes } from "../../src/rest/router.js";
import { type Client, createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { inlineSchemas } from "../support/inlined-schemas.js";
import { type Person, signedIn, signUp } from "../support/sign-in.js";
import { type ArgumentPlace, EnumName, FILE, placesOfArguments, placesOfSchema } from "./support/text-places.js";

const NUL = "a\0b";
const HALF = "a\ud83d";
const UNSTORABLE = [NUL, HALF];
/** Who asks may not, or is asked for something that is not there: that is said first. */
const SAID_BEFORE = [401, 403, 404];

type Json = Record<string, unknown>;

let app: TestApp;
let client: Client;
let person: Person;

beforeAll(async () => {
  const rateLimits = {
    anonymousRequestsPer10Seconds: 1_000_000,
    publishableRequestsPerMinute: 1_000_000,
    publishableCreditsPerHour: 10n ** 9n,
  };
  app = await createTestApp({ config: { rateLimits } });
  client = createClient(app.baseUrl, app.key);
  person = await signUp(app);
});
afterAll(() => app.close());

/** Unexpected failures, in the log. */
const failures = () => app.logs.filter(({ level }) => Number(level) >= 50);
afterEach(() => expect(failures()).toEqual([]));

interface Described {
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly schema: Json }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: Json }>> };
}

const routes = recordRoutes();
const document = inlineSchemas(createOpenApiDocument(routes));
const operations = operationsOf(routes).map(({ method, path, contract: { example = {} } }) => {
  const { parameters = [], requestBody } = (document.paths[path]?.[method.toLowerCase()] ?? {}) as Described;
  return {
    name: `${method} ${path}`,
    method,
    path: path.replace(/\{\w+\}/g, "x"),
    content: requestBody?.content ?? {},
    query: parameters.filter((one) => one.in === "query" && one.name !== "key"),
    example,
  };
});

/** Describes the error of an answer; null for a refusal that names the field. */
async function refusalOf(
  method: string,
  path: string,
  body: unknown,
  headers: Record<string, string>,
  param: string,
): Promise<string | null> {
  const response = await fetch(app.baseUrl + path, {
    method,
    headers: { Authorization: `Bearer ${app.key}`, ...headers },
    ...(body !== undefined && { body: body as BodyInit }),
  });
  const text = await response.text();
  if (SAID_BEFORE.includes(response.status)) return null;
  const told = `${method} ${path} ${param}: ${response.status} ${text.slice(0, 300)}`;
  if (response.status !== 400) return told;
  if (!response.headers.get("content-type")?.startsWith("application/json")) return null;
  const { error, error_description: description } = JSON.parse(text) as { error: { param?: string } | string; error_description?: string };
  const named = typeof error === "string" ? description : error.param;
  return named?.includes(param) ? null : told;
}

describe("REST", () => {
  const withJson = operations.filter(({ content }) => content["application/json"]);

  it.each(withJson.map((one) => [one.name, one] as const))("%s refuses them in its JSON body", async (_name, operation) => {
    const { method, path, content, example } = operation;
    const body = (example.body ?? {}) as Json;
    const places = placesOfSchema(content["application/json"]?.schema ?? {}, body);
    const others = [
      { path: "unknown.0.deep", put: (text: string) => ({ ...body, unknown: [{ deep: text }] }) },
      { path: "nam", put: (text: string) => ({ ...body, [`nam${text}`]: 1 }) },
    ];
    const wrong: unknown[] = [];
    for (const place of [...places, ...others]) {
      for (const text of UNSTORABLE) {
        const sent = JSON.stringify(place.put(text));
        wrong.push(await refusalOf(method, path, sent, { "content-type": "application/json" }, place.path));
      }
    }

    expect(wrong.filter((each) => each !== null)).toEqual([]);
  });

  const withForm = operations.filter(({ content }) => content["multipart/form-data"]);

  it.each(withForm.map((one) => [one.name, one] as const))(
    "%s refuses them in its form",
    async (_name, { method, path, content, example }) => {
      const { properties = {} } = (content["multipart/form-data"]?.schema ?? {}) as { properties?: Record<string, Json> };
      const wrong: unknown[] = [];
      for (const name of [...Object.keys(properties), "unknown"]) {
        const form = new FormData();
        for (const [field, value] of Object.entries(example.form ?? {})) if (field !== name) form.append(field, String(value));
        form.append(name, NUL);
        wrong.push(await refusalOf(method, path, form, {}, name));
      }

      expect(wrong.filter((each) => each !== null)).toEqual([]);
    },
  );

  const withFields = operations.filter(({ content }) => content["application/x-www-form-urlencoded"]);

  it.each(withFields.map((one) => [one.name, one] as const))("%s refuses them in its fields", async (_name, { method, path, content }) => {
    const { properties = {} } = (content["application/x-www-form-urlencoded"]?.schema ?? {}) as { properties?: Record<string, Json> };
    const wrong: unknown[] = [];
    for (const name of Object.keys(properties)) {
      const fields = new URLSearchParams({ [name]: NUL });
      wrong.push(await refusalOf(method, path, fields, {}, name));
    }

    expect(wrong.filter((each) => each !== null)).toEqual([]);
  });

  const withQuery = operations.filter(({ query }) => query.length > 0);

  it.each(withQuery.map((one) => [one.name, one] as const))("%s refuses them in its query", async (_name, { method, path, query }) => {
    const wrong: unknown[] = [];
    for (const { name } of query) wrong.push(await refusalOf(method, `${path}?${name}=a%00b`, undefined, {}, name));

    expect(wrong.filter((each) => each !== null)).toEqual([]);
  });

  const withPath = operations.filter(({ name }) => name.includes("{"));

  it.each(withPath.map(({ name, method }) => [name, method] as const))("%s refuses them in its path", async (name, method) => {
    const path = name.slice(name.indexOf(" ") + 1).replace(/\{\w+\}/g, "a%00b");
    const answer = await client.request(method, path, method === "GET" || method === "DELETE" ? {} : { body: {} });

    expect(answer.status).toBe(400);
  });

  const pages = recordRoutes().filter(({ methods }) => methods.POST?.isPage);

  it.each(pages.map(({ path }) => [path] as const))("POST %s, a page, refuses them in its form", async (path) => {
    const fields = new URLSearchParams({ name: NUL });
    const headers = signedIn(person);
    const answer = await fetch(app.baseUrl + toTemplate(path).replace(/\{\w+\}/g, "x"), {
      method: "POST",
      headers,
      body: fields,
      redirect: "manual",
    });

    expect(answer.status).toBe(400);
  });
});

interface Asked {
  readonly name: string;
  readonly places: readonly ArgumentPlace[];
  /** The document around the field, which takes its arguments as variables, or as they are written. */
  readonly write: (args: string, variables: string) => string;
  readonly field: GraphQLField<unknown, unknown>;
}

function selectionOf({ type }: GraphQLField<unknown, unknown>): string {
  return isCompositeType(getNamedType(type)) ? " { __typename }" : "";
}

/** Fields without required arguments, as deep as such objects go. */
function nestedFields(
  type: GraphQLObjectType,
  path: readonly string[],
  seen: ReadonlySet<string>,
): readonly (Asked & { readonly isNested: true })[] {
  return Object.values(type.getFields()).flatMap((field) => {
    const named = getNamedType(field.type);
    const isNeedy = field.args.some((arg) => isNonNullType(arg.type));
    const here = [...path, field.name];
    const own =
      path.length > 0 && field.args.length > 0
        ? [
            {
              name: here.join("."),
              isNested: true as const,
              places: placesOfArguments(field.args),
              write: (args: string, variables: string) =>
                `query${variables} { ${path.join(" { ")} { ${field.name}${args}${selectionOf(field)} }${" }".repeat(path.length)}`,
              field,
            },
          ]
        : [];
    const isLeaf = isNeedy || isListType(getNullableType(field.type)) || !isObjectType(named) || seen.has(named.name) || path.length > 2;
    return [...own, ...(isLeaf ? [] : nestedFields(named, here, new Set([...seen, named.name])))];
  });
}

const roots = [
  ["query", schema.getQueryType()],
  ["mutation", schema.getMutationType()],
  ["subscription", schema.getSubscriptionType()],
] as const;
const rootFields = roots.flatMap(([operation, root]) =>
  Object.values(root?.getFields() ?? {})
    .filter(({ args }) => placesOfArguments(args).length > 0)
    .map(
      (field): Asked => ({
        name: `${operation} ${field.name}`,
        places: placesOfArguments(field.args),
        write: (args, variables) => `${operation}${variables} { ${field.name}${args}${selectionOf(field)} }`,
        field,
      }),
    ),
);

/** As it is written in a document; null where a file would have to be. */
function toLiteral(value: unknown): string | null {
  if (value === FILE) return null;
  if (value instanceof EnumName) return value.name;
  if (Array.isArray(value)) {
    const items = value.map(toLiteral);
    return items.includes(null) ? null : `[${items.join(", ")}]`;
  }
  if (typeof value === "object" && value !== null) {
    const fields = Object.entries(value).map(([name, inner]) => [name, toLiteral(inner)] as const);
    return fields.some(([, inner]) => inner === null) ? null : `{ ${fields.map(([name, inner]) => `${name}: ${inner}`).join(", ")} }`;
  }
  return JSON.stringify(value);
}

async function ask(query: string, variables: Json): Promise<string> {
  const files: string[] = [];
  const operations = JSON.stringify({ query, variables });
  const withNulls = JSON.stringify({ query, variables: withoutFiles(variables, "variables", files) });
  const headers = { Authorization: `Bearer ${app.key}`, Accept: "application/json, text/event-stream", "x-graphql-yoga-csrf": "1" };
  if (files.length === 0) {
    const response = await fetch(`${app.baseUrl}/graphql`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: operations,
    });
    return response.text();
  }
  const form = new FormData();
  form.append("operations", withNulls);
  form.append("map", JSON.stringify(Object.fromEntries(files.map((path, index) => [`file${index}`, [path]]))));
  for (const index of files.keys()) form.append(`file${index}`, new Blob(["x"]), "a.txt");
  return (await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers, body: form })).text();
}

function withoutFiles(value: unknown, path: string, files: string[]): unknown {
  if (value === FILE) {
    files.push(path);
    return null;
  }
  if (Array.isArray(value)) return value.map((item, index) => withoutFiles(item, `${path}.${index}`, files));
  if (typeof value !== "object" || value === null || value instanceof EnumName) return value;
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, withoutFiles(inner, `${path}.${name}`, files)]));
}

/** Null when it is refused and named; `isNested`: or not reached, because its parent is missing. */
function refusalIn(text: string, path: string, isNested: boolean): string | null {
  const codes = [...text.matchAll(/"code":"([A-Z_]+)"/g)].map(([, code]) => code);
  if (isNested && codes.length === 0) return null;
  const isRefused = codes.length > 0 && codes.every((code) => code === "BAD_REQUEST");
  return isRefused && text.includes(`"param":"${path}"`) ? null : `${path}: ${text.slice(0, 300)}`;
}

describe("GraphQL", () => {
  const nested = nestedFields(schema.getQueryType() as GraphQLObjectType, [], new Set());
  const all = [...rootFields.map((one) => ({ ...one, isNested: false })), ...nested].filter(({ places }) => places.length > 0);

  it.each(all.map((one) => [one.name, one] as const))(
    "%s refuses them in its arguments",
    async (_name, { places, write, field, isNested }) => {
      const types = new Map(field.args.map(({ name, type }) => [name, String(type)]));
      const wrong: unknown[] = [];
      for (const place of places) {
        for (const text of UNSTORABLE) {
          const args = place.put(text);
          const names = Object.keys(args);
          const query = write(
            `(${names.map((name) => `${name}: $${name}`).join(", ")})`,
            `(${names.map((name) => `$${name}: ${types.get(name)}`).join(", ")})`,
          );
          wrong.push(refusalIn(await ask(query, args), place.path, isNested));
        }
        const literals = Object.entries(place.put(NUL)).map(([name, value]) => `${name}: ${toLiteral(value)}`);
        if (!literals.some((literal) => literal.endsWith("null")))
          wrong.push(refusalIn(await ask(write(`(${literals.join(", ")})`, ""), {}), place.path, isNested));
      }

      expect(wrong.filter((each) => each !== null)).toEqual([]);
    },
  );

  it.each(["ApiKey", "Account", "UsageRecord", "Model", "MediaFile"])("refuses a %s's global id that holds one", async (typeName) => {
    const id = Buffer.from(`${typeName}:${NUL}`).toString("base64url");

    expect(refusalIn(await ask("query ($id: ID!) { node(id: $id) { __typename } }", { id }), "id", false)).toBeNull();
  });

  it("refuses a cursor with an invalid id", async () => {
    const after = Buffer.from(`apiKeys.123.${"-".repeat(36)}`).toString("base64url");

    expect(
      refusalIn(await ask("query ($after: String) { me { apiKeys(after: $after) { __typename } } }", { after }), "after", false),
    ).toBeNull();
  });

  it("walks most fields with arguments", () => {
    expect(rootFields.length).toBeGreaterThan(60);
    expect(nested.length).toBeGreaterThan(10);
  });
});
