/**
 * The input of the REST routes, by their own schemas: the description takes and refuses the same as the routes, and a
 * wrong input is refused in plain words, with the field named once.
 */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import type * as z from "zod";
import type { RequestContext } from "../../src/context.js";
import { AppError } from "../../src/errors.js";
import { type Contract, isBounded } from "../../src/rest/openapi/contract.js";
import { createOpenApiDocument, operationsOf } from "../../src/rest/openapi/document.js";
import { recordRoutes } from "../../src/rest/router.js";
import { takeMaxCost } from "../../src/services/credits/max-cost.js";
import { WishReader } from "../../src/services/generation/routing/wish-reader.js";
import { parseInput } from "../../src/services/requests/input.js";
import { inlineSchemas } from "../support/inlined-schemas.js";
import { changesOf } from "../support/wrong-inputs.js";

type Json = Record<string, unknown>;

interface Taken {
  readonly name: string;
  /** Throws BAD_REQUEST. */
  readonly parse: (input: Json) => void;
  /** The schema in the OpenAPI document. */
  readonly described: Json;
  readonly example: Json;
  /** The parser takes every value as text. */
  readonly isText: boolean;
}

const routes = recordRoutes();
const document = inlineSchemas(createOpenApiDocument(routes));
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);

const taken: readonly Taken[] = operationsOf(routes)
  .filter(({ contract }) => !contract.isOAuth)
  .flatMap(({ method, path, contract }): Taken[] => {
    const { body, form, query, example = {} } = contract;
    const name = `${method} ${path}`;
    const operation = document.paths[path]?.[method.toLowerCase()] as Json;
    const content = ((operation.requestBody as Json | undefined)?.content ?? {}) as Record<string, { schema: Json }>;
    const parameters = ((operation.parameters ?? []) as { in: string; name: string; schema: Json }[]).filter((one) => one.in === "query");
    const asked = Object.fromEntries(
      Object.entries(example.parameters ?? {}).filter(([key]) => parameters.some((one) => one.name === key)),
    );
    const queried = { type: "object", properties: Object.fromEntries(parameters.map((one) => [one.name, one.schema])) };
    const parserOf = (schema: z.ZodType) => (input: Json) =>
      void parseInput(schema, isBounded(contract) ? withoutWishes(takeMaxCost(input)?.rest ?? input, contract) : input);
    return [
      ...(body
        ? [
            {
              name,
              parse: parserOf(body),
              described: content["application/json"]?.schema ?? {},
              example: example.body ?? {},
              isText: false,
            },
          ]
        : []),
      ...(form && content["multipart/form-data"]
        ? [
            {
              name: `${name}, as a form`,
              parse: parserOf(form.fields),
              described: withoutFiles(content["multipart/form-data"].schema, form.files),
              example: example.form ?? {},
              isText: true,
            },
          ]
        : []),
      ...(query && method === "GET"
        ? [{ name: `${name}, its query`, parse: parserOf(query), described: queried, example: asked, isText: true }]
        : []),
    ];
  });

const wishes = new WishReader({ findFor: () => null }, { find: () => Promise.reject(new Error("No preset is read.")) });
const ctx = { caller: { kind: "anonymous" } } as unknown as RequestContext;

/** As the routes take them out. A preset is read later, by its name. */
function withoutWishes(input: Json, { presetFormat }: Contract): Json {
  const { preset, ...rest } = input;
  const stated = presetFormat && typeof preset === "string" && preset !== "" ? rest : input;
  const taken = wishes.take(ctx, stated);
  return taken instanceof Promise || taken === null ? stated : taken.rest;
}

/** JSON in a text, which is read later. */
const WISHES_AS_TEXT: ReadonlySet<string> = new Set(["provider", "models"]);

function withoutFiles(schema: Json, files: object): Json {
  const properties = Object.fromEntries(Object.entries(schema.properties as Json).filter(([name]) => !Object.hasOwn(files, name)));
  return { ...schema, properties, required: (schema.required as string[]).filter((name) => !Object.hasOwn(files, name)) };
}

/** Text cannot be of a wrong type, and lists and objects are written in ways of their own. */
function asText(input: Json): Json | null {
  if (Object.values(input).some((value) => typeof value === "object")) return null;
  return Object.fromEntries(Object.entries(input).map(([name, value]) => [name, String(value)]));
}

const OF_TWO_FIELDS = new Set<string>([
  // It is one of two names of the same parameter, of which a request gives one.
  "GET /authorize, its query redirect_uri",
]);

describe("the input of a route", () => {
  it.each(taken.map((one) => [one.name, one] as const))(
    "is described as it is parsed: %s",
    (_name, { parse, described, example, isText, name }) => {
      const validate = ajv.compile(described);
      const differences: string[] = [];
      for (const { path, what, input } of changesOf(described, example)) {
        const sent = isText ? asText(input) : input;
        if (sent === null || OF_TWO_FIELDS.has(`${name} ${path}`) || (isText && what.includes("instead of"))) continue;
        if (isText && WISHES_AS_TEXT.has(path)) continue;
        const isTaken = refusalOf(parse, sent) === null;
        // What a text may say is often a later rule's to judge, and described all the same.
        const isLeftOpen = isTaken && (what === "a NUL" || what === "blank");
        if (validate(input) !== isTaken && !isLeftOpen)
          differences.push(`${path} ${what}: ${isTaken ? "taken" : "refused"}, not so described`);
      }

      if (Object.keys(example).length > 0) expect(refusalOf(parse, (isText ? asText(example) : example) ?? {})).toBe(null);
      expect(differences).toEqual([]);
    },
  );
});

const FIELDS_ARE_WRONG = /^\d+ fields are wrong: /;
const VALIDATORS_WORDS =
  /Invalid input|Invalid option|received|Expected|ZodError|Unrecognized|Too (?:small|big)|undefined|NaN|another type|is not allowed|right form/;

describe("the error for a wrong input", () => {
  it.each(taken.map((one) => [one.name, one] as const))(
    "is in plain words, with the field named once: %s",
    (_name, { parse, described, example, isText }) => {
      let refusals = 0;
      for (const { path, what, input } of changesOf(described, example)) {
        const sent = isText ? asText(input) : input;
        const refusal = sent === null ? null : refusalOf(parse, sent);
        if (refusal === null) continue;
        refusals += 1;
        const { message, param, details } = refusal;
        const { fieldErrors } = details as { fieldErrors: Record<string, readonly string[]> };
        const told = `${path} ${what}: ${message} (${JSON.stringify(input).slice(0, 300)})`;

        expect(told).not.toMatch(VALIDATORS_WORDS);
        expect(message.includes("\n"), told).toBe(false);
        expect(fieldErrors[param ?? ""], told).toBeDefined();
        expect(message.replace(FIELDS_ARE_WRONG, "").startsWith(`${param}: `), told).toBe(true);
        for (const [field, problems] of Object.entries(fieldErrors)) {
          expect(`; ${message.replace(FIELDS_ARE_WRONG, "")}`.split(`; ${field}: `).length - 1, told).toBeLessThanOrEqual(1);
          expect(problems.join(), told).not.toContain(`${field} is`);
          for (const problem of problems) expect(problem, told).toMatch(/^(?:is|must|may|expected|needs|differs|does|holds|has) /);
        }
        // Without its type it is taken for another kind of item, of which something else is missing.
        if (what === "missing" && !path.endsWith(".type")) expect(fieldErrors[path], told).toEqual([expect.stringMatching(/^is required/)]);
        if (what === "unknown") expect(fieldErrors[path]?.[0], told).toMatch(/^is not known here; the closest that are: \w+/);
        if (what === "below the minimum" || what === "above the maximum" || what === "too long" || what === "too many")
          expect(message, told).toMatch(/: .*(?:\d|https)/);
      }

      if (!isText) expect(refusals).toBeGreaterThan(0);
    },
  );
});

function refusalOf(parse: Taken["parse"], input: Json): AppError | null {
  try {
    parse(input);
    return null;
  } catch (error) {
    if (error instanceof AppError) return error;
    throw error;
  }
}
