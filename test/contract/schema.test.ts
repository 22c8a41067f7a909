import { readFileSync } from "node:fs";
import { getIntrospectionQuery, isInputObjectType, isInterfaceType, isObjectType, parse, validate } from "graphql";
import { describe, expect, it } from "vitest";
import { printSdl, schema } from "../../src/graphql/schema.js";

const types = Object.values(schema.getTypeMap()).filter(({ name }) => !name.startsWith("__"));

describe("the GraphQL contract", () => {
  it("matches schema/schema.graphql (run `node scripts/print-schema.mjs --write` and look at the difference)", () => {
    const stored = readFileSync(new URL("../../schema/schema.graphql", import.meta.url), "utf8");

    expect(printSdl()).toBe(stored);
  });

  it("answers the introspection that tools send", () => {
    expect(validate(schema, parse(getIntrospectionQuery()))).toEqual([]);
  });

  it("shows a key's value in the answers of createApiKey and createRun and nowhere else", () => {
    const holders = types.filter((type) => (isObjectType(type) || isInterfaceType(type)) && "key" in type.getFields());

    expect(holders.map(({ name }) => name)).toEqual(["CreateApiKeyPayload", "CreateRunPayload"]);
  });

  it("shows a webhook's secret when it is made, and nowhere else", () => {
    const holders = types.filter((type) => (isObjectType(type) || isInterfaceType(type)) && "secret" in type.getFields());

    expect(holders.map(({ name }) => name)).toEqual(["CreateWebhookEndpointPayload", "RotateWebhookSecretPayload"]);
  });

  it("shows a password when an operator makes an account, and nowhere else", () => {
    const holders = types.filter((type) => (isObjectType(type) || isInterfaceType(type)) && "password" in type.getFields());

    expect(holders.map(({ name }) => name)).toEqual(["CreateAccountPayload"]);
  });

  it("answers nothing else that is secret, or of the database alone, and takes none of it but passwords and upstreams' credentials", () => {
    const onceShown = ["CreateWebhookEndpointPayload", "RotateWebhookSecretPayload", "CreateAccountPayload"];
    const shown = types.filter(({ name }) => !["Mutation", ...onceShown].includes(name));
    const fieldsOf = (all: readonly (typeof types)[number][]) =>
      all.flatMap((type) => (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type) ? Object.keys(type.getFields()) : []));
    const secrets = /hash|pepper|bearer|secret|nanocredits|picocredits/i;

    const answered = fieldsOf(shown.filter((type) => !isInputObjectType(type)));
    const taken = fieldsOf(shown.filter(isInputObjectType));

    expect(answered.filter((field) => secrets.test(field) || /password/i.test(field))).toEqual([]);
    expect([...new Set(taken.filter((field) => secrets.test(field)))]).toEqual(["bearerToken", "secret"]);
  });
});
