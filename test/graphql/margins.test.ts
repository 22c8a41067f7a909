/** Margins for operators (docs/spec/usage.md#margins), on both faces. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { MarginsDocument, type MarginsQueryVariables } from "../operations/generated/graphql.js";
import { createClient, createKey } from "../rest/client.js";
import { createStranger, createUsage } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, ok } from "./client.js";

const at = (day: number) => new Date(Date.UTC(2026, 2, day, 12));
const MARCH = { from: "2026-03-01T00:00:00Z", to: "2026-04-01T00:00:00Z" };

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
  const { id } = await createKey(app);
  const { keyId } = await createStranger(app);
  const cost = (charged: bigint, upstreamCostNanocredits: bigint | null, upstream: string | null) => ({
    ...{ costNanocredits: charged, upstreamCostNanocredits, upstream },
  });
  await createUsage(app, id, 2, at(2), cost(10n, 4n, "acme"));
  await createUsage(app, keyId, 1, at(3), cost(10n, 25n, "acme"));
  await createUsage(app, keyId, 1, at(3), { ...cost(100n, null, "other"), model: "acme/image", modelUsed: "acme/image" });
  await createUsage(app, id, 1, new Date("2026-04-01T00:00:00Z"), cost(1_000n, 1n, "acme"));
});
afterAll(() => app.close());

const read = async (variables: MarginsQueryVariables) => ok(await execute(app, MarginsDocument, variables)).margins;

it("add up charges and known costs by model, upstream and day", async () => {
  const rows = await read({ by: ["MODEL", "UPSTREAM", "DAY"], ...MARCH });

  const group = (modelId: string, upstream: string, day: string) => ({ modelId, upstream, day });
  const other = { requests: 1, unknownRequests: 1, cost: "0.0000001", upstreamCost: "0", margin: "0" };
  const gain = { requests: 2, unknownRequests: 0, cost: "0.00000002", upstreamCost: "0.000000008", margin: "0.000000012" };
  const loss = { requests: 1, unknownRequests: 0, cost: "0.00000001", upstreamCost: "0.000000025", margin: "-0.000000015" };
  expect(rows).toEqual([
    { ...group("acme/image", "other", "2026-03-03"), ...other },
    { ...group("acme/chat", "acme", "2026-03-02"), ...gain },
    { ...group("acme/chat", "acme", "2026-03-03"), ...loss },
  ]);
  const nothing = { modelId: null, upstream: null, day: null };
  const all = { requests: 4, unknownRequests: 1, cost: "0.00000013", upstreamCost: "0.000000033", margin: "-0.000000003" };
  expect(await read({ by: [], ...MARCH })).toEqual([{ ...nothing, ...all }]);
  expect(await read({ by: ["MODEL"], ...MARCH, first: 1 })).toHaveLength(1);
});

it("are the same on REST, as JSON and CSV", async () => {
  const { get } = createClient(app.baseUrl, app.key);
  const query = `from=${MARCH.from}&to=${MARCH.to}`;

  const { margins } = (await get(`/account/operator/margins?by=upstream&${query}`)).json<{ margins: object[] }>();
  const csv = (await get(`/account/operator/margins?format=csv&${query}`)).text.split("\r\n");

  expect(margins).toMatchObject([
    { upstream: "other", requests: 1, unknown_requests: 1, margin_usd: 0 },
    { model: null, upstream: "acme", requests: 3, cost_usd: 3e-8, upstream_cost_usd: 3.3e-8, margin_usd: -3e-9 },
  ]);
  expect(csv[0]).toBe("model,upstream,day,requests,unknown_requests,cost_usd,upstream_cost_usd,margin_usd");
  expect(csv[3]).toBe("acme/chat,acme,2026-03-03,1,0,0.00000001,0.000000025,-0.000000015");
});

it("refuse ranges that are too long or turned round, and strangers", async () => {
  const refused = async (variables: MarginsQueryVariables) => codes(await execute(app, MarginsDocument, variables));

  expect(await refused({ by: [], from: "2026-01-01T00:00:00Z", to: "2026-04-04T00:00:00Z" })).toEqual(["BAD_REQUEST"]);
  expect(await refused({ by: [], from: MARCH.to, to: MARCH.from })).toEqual(["BAD_REQUEST"]);
  expect(await refused({ by: ["DAY", "DAY"], ...MARCH })).toEqual(["BAD_REQUEST"]);
  const stranger = { ...app, key: (await createStranger(app)).key };
  expect(codes(await execute(stranger, MarginsDocument, { by: [] }))).toEqual(["FORBIDDEN"]);
});
