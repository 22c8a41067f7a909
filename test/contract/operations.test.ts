/** The table of operations (`test/support/operations.ts`) holds every route and every field that generates: what holds for it holds for all. */
import { readFileSync } from "node:fs";
import { type GraphQLObjectType, getNamedType, isInterfaceType, isObjectType } from "graphql";
import { describe, expect, it } from "vitest";
import { GENERATION_MUTATIONS } from "../../src/graphql/plugins/use-idempotency.js";
import { GENERATION_SUBSCRIPTIONS } from "../../src/graphql/plugins/use-request-note.js";
import { schema } from "../../src/graphql/schema.js";
import { toTemplate } from "../../src/rest/route.js";
import { recordRoutes } from "../../src/rest/router.js";
import { KINDS, OPERATIONS } from "../support/operations.js";

/** They tell of a generation that another operation has started. */
const LOOKING = new Set(["Mutation.cancelGeneration", "Subscription.generationProgress", "Subscription.usageRecorded"]);

const contractsOf = (face: "REST" | "GraphQL") =>
  [...new Set(OPERATIONS.filter((one) => one.face === face).map(({ contract }) => contract))].sort();

interface OpenApi {
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, { readonly responses?: Readonly<Record<string, { readonly headers?: object }>> }>>>
  >;
}

describe("the table of operations", () => {
  it("holds every route that generates: those that the contract gives the headers of a generation, and the sessions", () => {
    const { paths } = JSON.parse(readFileSync(new URL("../../schema/openapi.json", import.meta.url), "utf8")) as OpenApi;
    const generating = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { responses = {} }]) => Object.values(responses).some(({ headers = {} }) => "X-Cost" in headers))
        .map(([method]) => `${method.toUpperCase()} ${path}`),
    );

    expect(contractsOf("REST")).toEqual([...generating, "GET /v1/realtime"].sort());
  });

  it("holds every route that takes an Idempotency-Key, and says so of no other", () => {
    const keyed = recordRoutes().flatMap(({ path, methods }) =>
      Object.entries(methods).flatMap(([method, { id, isGeneration }]) =>
        // A route that the contract does not list is a second address of one that it lists.
        isGeneration && id !== null ? [`${method} ${toTemplate(path)}`] : [],
      ),
    );
    const repeatable = OPERATIONS.filter(({ face, isRepeatable }) => face === "REST" && isRepeatable).map(({ contract }) => contract);

    expect([...new Set(repeatable)].sort()).toEqual(keyed.sort());
  });

  it("holds every field that answers a receipt", () => {
    const fieldsOf = (root: GraphQLObjectType | null | undefined) =>
      Object.values(root?.getFields() ?? {}).flatMap(({ name, type }) => {
        const payload = getNamedType(type);
        const types = isInterfaceType(payload) ? schema.getPossibleTypes(payload) : [payload];
        const jobs = types.flatMap((one) => (isObjectType(one) && one.getFields().job ? [getNamedType(one.getFields().job?.type)] : []));
        return [...types, ...jobs].some((one) => isObjectType(one) && "receipt" in one.getFields()) ? [`${root?.name}.${name}`] : [];
      });
    const generating = [...fieldsOf(schema.getMutationType()), ...fieldsOf(schema.getSubscriptionType())];

    expect(contractsOf("GraphQL")).toEqual(generating.filter((field) => !LOOKING.has(field)).sort());
  });

  it("holds every subscription that the request log takes for a generation, and no other", () => {
    const streamed = contractsOf("GraphQL").filter((name) => name.startsWith("Subscription."));

    expect(streamed).toEqual([...GENERATION_SUBSCRIPTIONS].map((name) => `Subscription.${name}`).sort());
  });

  it("holds every mutation that takes an Idempotency-Key, and says so of no other", () => {
    const repeatable = OPERATIONS.filter(({ face, isRepeatable }) => face === "GraphQL" && isRepeatable).map(({ contract }) => contract);

    expect(repeatable.sort()).toEqual([...GENERATION_MUTATIONS].map((name) => `Mutation.${name}`).sort());
  });

  it("holds every kind, and no operation twice", () => {
    expect(KINDS.filter((kind) => !OPERATIONS.some((operation) => operation.kind === kind))).toEqual([]);
    expect(new Set(OPERATIONS.map(({ name }) => name)).size).toBe(OPERATIONS.length);
  });
});
