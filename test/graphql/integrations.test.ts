/** Connected apps over GraphQL. */

import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { toGlobalId } from "../../src/graphql/global-ids.js";
import { TOOLKIT_CHARS_MAX, TOOLKIT_SEARCH_CHARS_MAX } from "../../src/services/integrations/limits.js";
import { createPayer, databaseOf, type Payer } from "../e2e/money.js";
import {
  ConnectIntegrationDocument,
  DeleteIntegrationDocument,
  IntegrationNodesDocument,
  IntegrationsOfAccountDocument,
  IntegrationToolkitsDocument,
  type IntegrationToolkitsQueryVariables,
  MyIntegrationsDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { visit } from "../support/visitor.js";
import { codes, execute, executeText, ok } from "./client.js";

let app: TestApp;
let payer: Payer;

beforeAll(async () => {
  app = await createTestApp();
});
beforeEach(async () => {
  payer = await createPayer(app, { pack: 1n });
  await databaseOf(app).prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: ["keys"] } });
});
afterAll(() => app.close());

const connect = (toolkit: string) => execute({ ...app, key: payer.key }, ConnectIntegrationDocument, { toolkit });
const remove = (id: string, key = payer.key) => execute({ ...app, key }, DeleteIntegrationDocument, { id });
const find = (variables: IntegrationToolkitsQueryVariables) => execute({ ...app, key: payer.key }, IntegrationToolkitsDocument, variables);

async function listed() {
  return ok(await execute({ ...app, key: payer.key }, MyIntegrationsDocument)).me.integrations;
}

describe("connected apps", () => {
  it("are begun, approved on the page, listed and ended", async () => {
    const { integration, integrationId, url } = ok(await connect("calendar")).connectIntegration;
    const id = integration?.id ?? "";
    const { pathname, search } = new URL(url);
    const person = visit(app.baseUrl, { cookie: "sluice_form=AAAAAAAAAAAAAAAAAAAAAA" });
    await person.send(await person.open(pathname + search), pathname, { decision: "approve", alias: "Home" });
    const shown = await listed();
    const removed = await remove(id);

    expect(integration).toMatchObject({ restId: integrationId, toolkit: "calendar", alias: null, status: "INITIATED" });
    expect(shown).toEqual([
      {
        ...{
          id: toGlobalId("Integration", integrationId),
          restId: integrationId,
          toolkit: "calendar",
          name: "Calendar",
          description: expect.stringMatching(/\S/),
        },
        ...{ logo: null, alias: "Home", status: "ACTIVE" },
      },
    ]);
    expect(ok(removed).deleteIntegration).toEqual({ integration: { id, restId: integrationId, alias: "Home" } });
    expect(await listed()).toEqual([]);
    expect(codes(await remove(id))).toEqual(["NOT_FOUND"]);
    expect(codes(await remove(integrationId))).toEqual(["NOT_FOUND"]);
    expect(codes(await remove(toGlobalId("ApiKey", integrationId)))).toEqual(["BAD_REQUEST"]);
  });

  it("are hidden from other accounts", async () => {
    const { integrationId } = ok(await connect("notes")).connectIntegration;
    const ids = [toGlobalId("Integration", integrationId), toGlobalId("Integration", "no-id")];
    const find = async (key: string) => ok(await execute({ ...app, key }, IntegrationNodesDocument, { ids })).nodes;

    expect(codes(await remove(integrationId, app.key))).toEqual(["NOT_FOUND"]);
    expect(await listed()).toHaveLength(1);
    expect(await find(payer.key)).toEqual([expect.objectContaining({ restId: integrationId }), null]);
    expect(await find(app.key)).toEqual([null, null]);
  });

  it("are hidden from operators", async () => {
    const answer = await execute(app, IntegrationsOfAccountDocument, { id: payer.accountId });

    expect(codes(answer)).toEqual(["FORBIDDEN"]);
    expect(answer.data?.account).toEqual({ restId: payer.accountId, integrations: null });
  });

  it.each<[string, string]>([
    ["no letters", ""],
    ["capitals and blanks", "A b"],
    ["101 characters", "a".repeat(TOOLKIT_CHARS_MAX + 1)],
    ["100 characters that name none", "a".repeat(TOOLKIT_CHARS_MAX)],
    ["one that there is not", "fax"],
  ])("are not begun with %s", async (_name, toolkit) => {
    const answer = await connect(toolkit);

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param).toBe("toolkit");
    expect(await listed()).toEqual([]);
  });

  it("are not begun with another field, nor twice in one document", async () => {
    const askText = (query: string) => executeText({ ...app, key: payer.key }, { query });
    const more = await askText('mutation { connectIntegration(input: { toolkit: "notes", callbackUrl: "https://evil.example" }) { url } }');
    const two = await askText(
      'mutation { a: connectIntegration(input: { toolkit: "notes" }) { url } b: connectIntegration(input: { toolkit: "mail" }) { url } }',
    );

    expect(codes(more)).toEqual(["BAD_REQUEST"]);
    expect(codes(two)).toEqual(["BAD_REQUEST"]);
    expect(await listed()).toEqual([]);
  });
});

describe("toolkits", () => {
  it.each<[IntegrationToolkitsQueryVariables, string[]]>([
    [{}, ["notes", "mail", "calendar"]],
    [{ search: null }, ["notes", "mail", "calendar"]],
    [{ search: "Mail" }, ["mail"]],
    [{ search: "a".repeat(TOOLKIT_SEARCH_CHARS_MAX) }, []],
  ])("are found with %o", async (variables, slugs) => {
    const { integrationToolkits } = ok(await find(variables));

    expect(integrationToolkits.map(({ slug }) => slug)).toEqual(slugs);
  });

  it("are not searched with 101 characters", async () => {
    const answer = await find({ search: "a".repeat(TOOLKIT_SEARCH_CHARS_MAX + 1) });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.param).toBe("search");
  });
});
