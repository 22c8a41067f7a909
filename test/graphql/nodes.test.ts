import { isNonNullType, isObjectType } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseGlobalId, toGlobalId } from "../../src/graphql/global-ids.js";
import { schema } from "../../src/graphql/schema.js";
import {
  ChatReceiptDocument,
  CreateApiKeyDocument,
  MyApiKeysFromEndDocument,
  MyIdDocument,
  NodeByIdDocument,
  NodesByIdsDocument,
  RevokeApiKeyDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { codes, execute, executeText, ok } from "./client.js";

const NOBODY = "00000000-0000-4000-8000-000000000000";

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp();
});

afterAll(async () => {
  await app.close();
});

/** Every list with pages, below me and at the root, but that of keys. */
function pagedFields() {
  return ["Account", "Query"].flatMap((typeName) => {
    const type = schema.getType(typeName);
    const fields = isObjectType(type) ? Object.values(type.getFields()) : [];
    const paged = fields.filter(({ name, args }) => name !== "apiKeys" && args.some((arg) => arg.name === "last"));
    return paged.map(({ name, args }) => ({ name, args, isMine: typeName === "Account" }));
  });
}

async function createKey(name: string) {
  return ok(await execute(app, CreateApiKeyDocument, { input: { name } })).createApiKey;
}

describe("node", () => {
  it("finds every kind of object by its id", async () => {
    const { me } = ok(await execute(app, MyIdDocument));
    const { apiKey } = await createKey("found again");
    const { generationId } = ok(await execute(app, ChatReceiptDocument)).createChatCompletion.receipt;
    const wanted = [
      [me.id, { __typename: "Account", restId: me.restId, handle: expect.any(String) }],
      [apiKey.id, { __typename: "ApiKey", restId: apiKey.restId, name: "found again" }],
      [toGlobalId("UsageRecord", generationId), { __typename: "UsageRecord", restId: generationId, model: { title: expect.any(String) } }],
      [toGlobalId("Model", "acme/chat"), { __typename: "Model", restId: "acme/chat", title: expect.any(String) }],
    ] as const;

    for (const [id, thing] of wanted) {
      expect(ok(await execute(app, NodeByIdDocument, { id })).node).toMatchObject({ id, ...thing });
    }
    const { nodes } = ok(await execute(app, NodesByIdsDocument, { ids: wanted.map(([id]) => id) }));
    expect(nodes.map((node) => node?.id)).toEqual(wanted.map(([id]) => id));
  });

  it("is null for a missing object and for another account's", async () => {
    const nobodys = "00000000-0000-4000-8000-000000000000";
    const ids = ["ApiKey", "UsageRecord", "Account", "Model"].map((type) => toGlobalId(type, nobodys));

    expect(ok(await execute(app, NodesByIdsDocument, { ids })).nodes).toEqual([null, null, null, null]);
  });

  it("needs the permission that the object needs elsewhere", async () => {
    const { apiKey, key } = await createKey("bare");
    const other = await createKey("other");
    const bare = { ...app, key };

    expect(ok(await execute(bare, NodeByIdDocument, { id: apiKey.id })).node).toMatchObject({ restId: apiKey.restId });
    expect(codes(await execute(bare, NodeByIdDocument, { id: other.apiKey.id }))).toEqual(["FORBIDDEN"]);
    expect(codes(await execute({ ...app, key: null }, NodeByIdDocument, { id: other.apiKey.id }))).toEqual(["UNAUTHORIZED"]);
  });

  it.each([
    ["a REST id", "00000000-0000-4000-8000-000000000000"],
    ["a type that there is not", toGlobalId("Nothing", "1")],
    ["a type that is no node", toGlobalId("PageInfo", "1")],
    ["a name of objects", toGlobalId("Constructor", "1")],
    ["nothing", ""],
  ])("refuses %s, and says which of the ids it is", async (_what, id) => {
    const [one, many] = [await execute(app, NodeByIdDocument, { id }), await execute(app, NodesByIdsDocument, { ids: [id] })];

    expect([one, many].flatMap(({ errors = [] }) => errors.map(({ extensions }) => [extensions.code, extensions.param]))).toEqual([
      ["BAD_REQUEST", "id"],
      ["BAD_REQUEST", "ids.0"],
    ]);
  });

  it("takes 100 ids and not 101", async () => {
    const ids = Array.from({ length: 101 }, () => toGlobalId("Model", "acme/chat"));

    expect(ok(await execute(app, NodesByIdsDocument, { ids: ids.slice(1) })).nodes).toHaveLength(100);
    expect((await execute(app, NodesByIdsDocument, { ids })).errors?.[0]?.extensions).toMatchObject({ code: "BAD_REQUEST", param: "ids" });
  });
});

describe("an argument that is an id", () => {
  it("takes the id that REST shows and the global one, and refuses that of another type by name", async () => {
    const [first, second] = [await createKey("by REST's id"), await createKey("by the global id")];
    const { me } = ok(await execute(app, MyIdDocument));

    const revoked = [first.apiKey.restId, second.apiKey.id].map((id) => execute(app, RevokeApiKeyDocument, { id }));
    const refused = await execute(app, RevokeApiKeyDocument, { id: me.id });

    expect((await Promise.all(revoked)).flatMap(codes)).toEqual([]);
    expect(refused.errors).toMatchObject([
      { message: expect.stringContaining("ApiKey"), extensions: { code: "BAD_REQUEST", param: "id" } },
    ]);
  });
});

describe("a connection", () => {
  it("pages from its end, and counts its rows", async () => {
    for (const name of ["one", "two", "three"]) await createKey(name);
    const whole = ok(await execute(app, MyApiKeysFromEndDocument, { last: 100 })).me.apiKeys;
    const ids = whole?.nodes.map(({ restId }) => restId) ?? [];

    const end = ok(await execute(app, MyApiKeysFromEndDocument, { last: 2 })).me.apiKeys;
    const before = ok(await execute(app, MyApiKeysFromEndDocument, { last: 2, before: end?.pageInfo.startCursor ?? null })).me.apiKeys;

    expect(whole).toMatchObject({ totalCount: ids.length, pageInfo: { hasNextPage: false, hasPreviousPage: false } });
    expect(end?.nodes.map(({ restId }) => restId)).toEqual(ids.slice(-2));
    expect(end).toMatchObject({ totalCount: ids.length, pageInfo: { hasNextPage: false, hasPreviousPage: true } });
    expect(before?.nodes.map(({ restId }) => restId)).toEqual(ids.slice(-4, -2));
    expect(before?.pageInfo.hasNextPage).toBe(true);
  });

  it("refuses a cursor of another list, wherever there are pages", async () => {
    await createKey("of the list of keys");
    const [keys, others] = [ok(await execute(app, MyApiKeysFromEndDocument, { last: 1 })).me.apiKeys?.pageInfo.startCursor, pagedFields()];
    const given: Readonly<Record<string, string>> = { endpointId: NOBODY, tag: "any" };
    const askedFor = others.map(({ name, args }) => {
      const required = args.flatMap((arg) => (isNonNullType(arg.type) && given[arg.name] ? [`${arg.name}: "${given[arg.name]}"`] : []));
      return `${name}(${[...required, `after: "${keys}"`].join(", ")}) { totalCount }`;
    });
    const answers = await Promise.all(
      askedFor.map((text, index) => executeText(app, { query: others[index]?.isMine ? `{ me { ${text} } }` : `{ ${text} }` })),
    );

    expect(others.length).toBeGreaterThan(8);
    expect(answers.map(({ errors }) => [errors?.[0]?.path?.at(-1), errors?.[0]?.extensions.code, errors?.[0]?.extensions.param])).toEqual(
      others.map(({ name }) => [name, "BAD_REQUEST", "after"]),
    );
  });

  it("refuses a cursor of another list, and both ends at once", async () => {
    const cursor = Buffer.from("usage.1700000000000.00000000-0000-4000-8000-000000000000").toString("base64url");

    const answers = [
      await execute(app, MyApiKeysFromEndDocument, { last: 2, before: cursor }),
      await executeText(app, { query: "{ me { apiKeys(first: 1, last: 1) { totalCount } } }" }),
    ];

    expect(answers.map(({ errors }) => errors?.[0]?.extensions)).toMatchObject([
      { code: "BAD_REQUEST", param: "before" },
      { code: "BAD_REQUEST", param: "last" },
    ]);
  });
});

describe("global ids", () => {
  it("are decoded as they were made, for any id", () => {
    for (const id of ["a", "community/a/b:c", "ü ñ", "x".repeat(512)]) {
      expect(parseGlobalId(toGlobalId("Model", id))).toEqual({ typeName: "Model", id });
    }
    for (const text of ["", "TW9kZWw6", `${toGlobalId("Model", "a")}=`, "x".repeat(5_000), toGlobalId("Model", "x".repeat(513))]) {
      expect(parseGlobalId(text)).toBeNull();
    }
  });
});
