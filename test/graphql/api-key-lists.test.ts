/** Keys sorted and searched by the server (docs/spec/keys.md#operations). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RANKED } from "../../src/lib/pagination.js";
import { type ApiKeyOrderField, OrderedApiKeysDocument, type OrderedApiKeysQueryVariables } from "../operations/generated/graphql.js";
import { createStranger } from "../rest/seed.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, ok } from "./client.js";

/** Some have the same value, and some were never used. */
const KEYS = [
  { name: "billing", spentNanocredits: 5n, lastUsedAt: new Date("2026-01-03T00:00:00Z"), createdAt: new Date("2026-01-01T00:00:00Z") },
  { name: "crawler", spentNanocredits: 9n, lastUsedAt: null, createdAt: new Date("2026-01-02T00:00:00Z") },
  { name: "100%_batch", spentNanocredits: 5n, lastUsedAt: new Date("2026-01-05T00:00:00Z"), createdAt: new Date("2026-01-03T00:00:00Z") },
  { name: "Weather", spentNanocredits: 0n, lastUsedAt: null, createdAt: new Date("2026-01-04T00:00:00Z") },
  { name: "billing 2", spentNanocredits: 1n, lastUsedAt: new Date("2026-01-05T00:00:00Z"), createdAt: new Date("2026-01-05T00:00:00Z") },
] as const;

let app: TestApp;
let key: string;
let keyId: string;

beforeAll(async () => {
  app = await createTestApp();
  ({ key, keyId } = await createStranger(app));
  const { prisma } = app.database;
  const { accountId } = await prisma.apiKey.findUniqueOrThrow({ where: { id: keyId } });
  await prisma.apiKey.update({ where: { id: keyId }, data: { createdAt: new Date("2025-01-01T00:00:00Z") } });
  await prisma.apiKey.createMany({
    data: KEYS.map((each, index) => ({
      ...{ id: `00000000-0000-4000-8000-00000000000${index}`, accountId, hash: new Uint8Array([index]), type: "secret" as const },
      ...{ start: `sk_start${index}`, ...each },
    })),
  });
});
afterAll(() => app.close());

const list = async (variables: OrderedApiKeysQueryVariables) =>
  ok(await execute({ ...app, key }, OrderedApiKeysDocument, variables)).me.apiKeys ?? expect.unreachable();
const namesOf = ({ nodes }: { readonly nodes: readonly { readonly name: string }[] }) => nodes.map(({ name }) => name);

describe("the keys of an account", () => {
  it.each<[ApiKeyOrderField, "ASC" | "DESC", string[]]>([
    ["CREATED_AT", "ASC", ["billing", "crawler", "100%_batch", "Weather", "billing 2"]],
    ["CREATED_AT", "DESC", ["billing 2", "Weather", "100%_batch", "crawler", "billing"]],
    ["SPENT", "DESC", ["crawler", "100%_batch", "billing", "billing 2", "Weather"]],
    ["SPENT", "ASC", ["Weather", "billing 2", "billing", "100%_batch", "crawler"]],
    ["LAST_USED_AT", "DESC", ["billing 2", "100%_batch", "billing", "Weather", "crawler"]],
    ["LAST_USED_AT", "ASC", ["billing", "100%_batch", "billing 2", "crawler", "Weather"]],
  ])("come in the order %s %s, page by page in both directions", async (field, direction, names) => {
    const query = { orderBy: { field, direction }, filter: { search: "sk_start" } } as const;

    expect(namesOf(await list(query))).toEqual(names);
    const pages: string[][] = [];
    let after: string | null = null;
    for (let page = 0; page < 3; page += 1) {
      const answer = await list({ ...query, first: 2, after });
      pages.push(namesOf(answer));
      after = answer.pageInfo.endCursor;
    }
    expect(pages).toEqual([names.slice(0, 2), names.slice(2, 4), names.slice(4)]);
    expect(namesOf(await list({ ...query, last: 3, before: after }))).toEqual(names.slice(1, 4));
    expect(namesOf(await list({ ...query, last: 2 }))).toEqual(names.slice(3));
  });

  it("sort by name as the database does", async () => {
    const names = namesOf(await list({ orderBy: { field: "NAME", direction: "ASC" } }));
    const first = await list({ orderBy: { field: "NAME", direction: "ASC" }, first: 2 });
    const rest = await list({ orderBy: { field: "NAME", direction: "ASC" }, after: first.pageInfo.endCursor });

    expect([...names].sort()).toEqual(["stranger", ...KEYS.map(({ name }) => name)].sort());
    expect([...namesOf(first), ...namesOf(rest)]).toEqual(names);
    expect(names.indexOf("billing")).toBeLessThan(names.indexOf("billing 2"));
  });

  it.each([
    ["BILL", ["billing 2", "billing"], 2],
    ["100%_", ["100%_batch"], 1],
    ["%", ["100%_batch"], 1],
    ["sk_start3", ["Weather"], 1],
    ["00000000-0000-4000-8000-000000000001", ["crawler"], 1],
    ["nothing like it", [], 0],
  ])("are found by %j", async (search, names, count) => {
    const answer = await list({ filter: { search } });

    expect([namesOf(answer), answer.totalCount]).toEqual([names, count]);
  });

  it("refuse blank and long searches, and cursors of another order or made up, naming the argument", async () => {
    const refusalOf = async (variables: OrderedApiKeysQueryVariables) => {
      const answer = await execute({ ...app, key }, OrderedApiKeysDocument, variables);
      return [codes(answer), answer.errors?.[0]?.extensions.param];
    };
    const orderBy = { field: "SPENT", direction: "DESC" } as const;
    const { pageInfo } = await list({ orderBy, first: 1 });
    const madeUp = (rank: string, id = keyId) => RANKED.encode({ rank, id }, "apiKeys.spent.desc");

    expect(await refusalOf({ filter: { search: " " } })).toEqual([["BAD_REQUEST"], "search"]);
    expect(await refusalOf({ filter: { search: "a".repeat(121) } })).toEqual([["BAD_REQUEST"], "search"]);
    expect(namesOf(await list({ filter: { search: "a".repeat(120) } }))).toEqual([]);
    expect(await refusalOf({ after: pageInfo.endCursor })).toEqual([["BAD_REQUEST"], "after"]);
    expect(await refusalOf({ orderBy: { ...orderBy, direction: "ASC" }, after: pageInfo.endCursor })).toEqual([["BAD_REQUEST"], "after"]);
    for (const cursor of [madeUp("-1"), madeUp("9".repeat(19)), madeUp("1", "x"), madeUp("\u0000")]) {
      expect(await refusalOf({ orderBy, after: cursor })).toEqual([["BAD_REQUEST"], "after"]);
    }
  });
});
