/** Keys that only manage keys, and external ids for provisioning tools (docs/spec/keys.md#management-keys). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { databaseOf } from "../e2e/money.js";
import { execute } from "../graphql/client.js";
import { CreateApiKeyDocument, MyApiKeysDocument, RevokeApiKeyDocument, UpdateApiKeyDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { OPERATIONS } from "../support/operations.js";
import { signedIn, signUp } from "../support/sign-in.js";
import { type Answer, type Client, type CreatedKey, createClient, expectEnvelope } from "./client.js";

type Fields = Readonly<Record<string, unknown>>;
type Request = Client["request"];

let app: TestApp;
let person: Request;
let stranger: Request;
let managerOfAll: CreatedKey;

beforeAll(async () => {
  app = await createTestApp();
  person = requestsOf(await signUp(app, { credits: 100 }));
  stranger = requestsOf(await signUp(app));
  managerOfAll = await createManager();
});
afterAll(() => app.close());

function requestsOf(signed: Awaited<ReturnType<typeof signUp>>): Request {
  const { request } = createClient(app.baseUrl, null);
  return (method, path, options = {}) => request(method, path, { ...options, headers: signedIn(signed) });
}

const as = (key: CreatedKey) => createClient(app.baseUrl, key.key);

async function create(by: Request, body: Fields): Promise<CreatedKey> {
  const answer = await by("POST", "/account/keys", { body: { name: "key", ...body } });
  expect(answer.status, answer.text).toBe(200);
  return answer.json();
}

const createManager = (more: Fields = {}) => create(person, { isManagement: true, ...more });
const listed = async (by: Request, query = "") => (await by("GET", `/account/keys${query}`)).json<{ data: Fields[] }>().data;
const errorOf = (answer: Answer) => answer.json<{ error: { code: string; param: unknown; details?: Fields } }>().error;

describe("a management key", () => {
  it("creates, lists, reads, changes and revokes keys below it, and sees no others", async () => {
    const manager = await createManager({ creditBudget: 10 });
    const { request } = as(manager);
    const child = await create(request, { name: "child", creditBudget: 1 });

    expect(manager).toMatchObject({ isManagement: true, permissions: ["keys"] });
    expect(await listed(request)).toMatchObject([{ id: child.id, parentId: manager.id, isManagement: false }]);
    expect((await request("GET", `/account/keys/${child.id}`)).json()).toMatchObject({ id: child.id, name: "child" });
    expect((await request("PATCH", `/account/keys/${child.id}`, { body: { creditBudget: 2 } })).json()).toMatchObject({ creditBudget: 2 });
    const chat = { model: "acme/chat", messages: [{ role: "user", content: "Hi" }] };
    expect((await as(child).post("/v1/chat/completions", chat)).status).toBe(200);
    expect((await request("DELETE", `/account/keys/${child.id}`)).json()).toEqual({ id: child.id, revoked: true });
    expectEnvelope(await as(child).post("/v1/chat/completions", chat), 401, "UNAUTHORIZED");
    expectEnvelope(await request("GET", `/account/keys/${child.id}`), 404, "NOT_FOUND");
  });

  it("gives no child more than it has", async () => {
    const { request } = as(
      await createManager({ creditBudget: 1, allowedModels: ["acme/chat"], expiresIn: 3600, accountPermissions: ["usage"] }),
    );
    const beyond: Fields = {
      ...{ creditBudget: 2, allowedModels: ["acme/free"], expiresIn: 7200 },
      ...{ accountPermissions: ["balance"], isManagement: true },
    };
    for (const [field, value] of Object.entries(beyond)) {
      const refused = await request("POST", "/account/keys", { body: { name: "child", [field]: value } });
      expectEnvelope(refused, 403, "FORBIDDEN");
      expect(errorOf(refused).param).toBe(field);
    }
    const child = await create(request, { accountPermissions: ["keys", "usage"] });

    expect(child).toMatchObject({ permissions: ["usage"], creditBudget: 1, isManagement: false });
  });

  it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))("generates nothing: %s", async (_name, operation) => {
    const before = app.upstream.requests.length;
    const outcome = await operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: managerOfAll.key }, { model: "acme/chat" });

    expect([outcome.code, outcome.text]).toEqual(["FORBIDDEN", expect.stringContaining("management key")]);
    expect(app.upstream.requests).toHaveLength(before);
  });

  it.each([
    ["POST", "/account/webhooks", { url: "https://example.com/", events: ["credits.low"] }],
    ["POST", "/account/agents", {}],
    ["POST", "/account/vendor-keys", {}],
    ["POST", "/account/top-ups", {}],
    ["POST", "/account/integrations", {}],
    ["POST", "/v1/runs", { max_cost: 1 }],
    ["GET", "/account/balance", undefined],
    ["GET", "/account/webhooks", undefined],
  ] as const)("does nothing else: %s %s", async (method, path, body) => {
    const { request } = as(managerOfAll);

    expectEnvelope(await request(method, path, { body }), 403, "FORBIDDEN");
  });

  it("is a secret key that a session has created", async () => {
    const wide = await create(person, { accountPermissions: ["keys"] });
    for (const [by, body, status, code] of [
      [as(wide).request, { isManagement: true }, 403, "FORBIDDEN"],
      [person, { isManagement: true, type: "publishable" }, 400, "BAD_REQUEST"],
    ] as const) {
      const refused = await by("POST", "/account/keys", { body: { name: "manager", ...body } });
      expectEnvelope(refused, status, code);
      expect(errorOf(refused).param).toBe("isManagement");
    }
  });
});

describe("every operation on keys", () => {
  it.each(["REST", "GraphQL"])(
    "is refused to a plain key, and other keys are not there for a manager and for another account, in %s",
    async (face) => {
      const manager = await createManager();
      const plain = await create(person, {});
      const strange = await create(stranger, { accountPermissions: ["keys"] });
      const target = await create(person, { name: "target" });
      const callers = { manager, plain, strange };
      const outcomes: Record<string, unknown> = {};
      for (const [name, caller] of Object.entries(callers))
        outcomes[name] = await (face === "REST" ? overRest : overGraphQL)(caller, target.id);

      expect(outcomes).toEqual({
        manager: { create: "done", update: "NOT_FOUND", revoke: "NOT_FOUND", lists: false },
        plain: { create: "FORBIDDEN", update: "FORBIDDEN", revoke: "FORBIDDEN", lists: "FORBIDDEN" },
        strange: { create: "done", update: "NOT_FOUND", revoke: "NOT_FOUND", lists: false },
      });
      expect((await as(target).get("/account/key")).json()).toMatchObject({ name: "target" });
    },
  );
});

async function overRest(caller: CreatedKey, target: string) {
  const { request } = as(caller);
  const told = (answer: Answer) => (answer.status === 200 ? "done" : errorOf(answer).code);
  const list = await request("GET", "/account/keys");
  return {
    create: told(await request("POST", "/account/keys", { body: { name: "made" } })),
    update: told(await request("PATCH", `/account/keys/${target}`, { body: { name: "changed" } })),
    revoke: told(await request("DELETE", `/account/keys/${target}`)),
    lists: list.status === 200 ? list.text.includes(target) : errorOf(list).code,
  };
}

async function overGraphQL(caller: CreatedKey, target: string) {
  const by = { ...app, key: caller.key };
  const told = ({ data, errors }: { data?: unknown; errors?: readonly { readonly extensions?: Fields }[] | undefined }) =>
    errors ? errors[0]?.extensions?.code : data && "done";
  const list = await execute(by, MyApiKeysDocument);
  const { id } = await databaseOf(app).prisma.apiKey.findUniqueOrThrow({ where: { id: target } });
  return {
    create: told(await execute(by, CreateApiKeyDocument, { input: { name: "made" } })),
    update: told(await execute(by, UpdateApiKeyDocument, { input: { id, name: "changed" } })),
    revoke: told(await execute(by, RevokeApiKeyDocument, { id })),
    lists: list.errors ? list.errors[0]?.extensions?.code : JSON.stringify(list.data).includes("target"),
  };
}

describe("an external id", () => {
  const TERMS = { name: "app", creditBudget: 5, allowedModels: ["chat", "acme/free"], expiresIn: 3600, externalId: "app-1" };

  it("creates one key, however often and however much at once it is requested", async () => {
    const { request } = as(await createManager());
    const terms = { ...TERMS, externalId: "often" };
    const keys = await Promise.all([1, 2, 3, 4].map(() => create(request, terms)));
    const again = await create(request, { ...terms, allowedModels: ["acme/free", "acme/chat"], accountPermissions: [] });

    expect(new Set([...keys, again].map(({ id }) => id)).size).toBe(1);
    expect(keys.filter(({ key }) => key !== null)).toHaveLength(1);
    expect(again).toMatchObject({ key: null, externalId: "often" });
    expect(await listed(request, "?externalId=often")).toHaveLength(1);
    expect(await listed(request, "?externalId=none")).toEqual([]);
  });

  it("is refused for another definition, which names the fields and the key", async () => {
    const { request } = as(await createManager());
    const { id } = await create(request, TERMS);
    const others = {
      name: "other",
      creditBudget: 6,
      allowedModels: ["chat"],
      expiresIn: null,
      type: "publishable",
      accountPermissions: ["keys"],
    };
    for (const [field, value] of Object.entries(others)) {
      const answer = await request("POST", "/account/keys", { body: { ...TERMS, [field]: value } });
      // A key gives no `keys`, so that this is the same definition.
      if (field === "accountPermissions") expect(answer.status).toBe(200);
      else {
        expectEnvelope(answer, 409, "CONFLICT");
        expect(errorOf(answer)).toMatchObject({ param: "externalId", details: { apiKeyId: id, differing: [field] } });
      }
    }
    expect((await request("PATCH", `/account/keys/${id}`, { body: { creditBudget: 6 } })).status).toBe(200);
    expectEnvelope(await request("POST", "/account/keys", { body: TERMS }), 409, "CONFLICT");
    expect(await create(request, { ...TERMS, creditBudget: 6 })).toMatchObject({ id, key: null });
  });

  it("is free again after the key was revoked, is of one account, and hides a key of another maker", async () => {
    const externalId = "free-again";
    const [one, two] = [as(await createManager()).request, as(await createManager()).request];
    const first = await create(one, { externalId });
    expect((await create(stranger, { externalId })).key).not.toBeNull();

    const taken = await two("POST", "/account/keys", { body: { name: "key", externalId } });
    expectEnvelope(taken, 409, "CONFLICT");
    expect(taken.text).not.toContain(first.id);
    expect((await one("DELETE", `/account/keys/${first.id}`)).status).toBe(200);

    expect((await create(two, { externalId })).id).not.toBe(first.id);
  });

  it("of an expired key is refused, which says how to go on", async () => {
    const { request } = as(await createManager());
    const terms = { externalId: "expired", expiresIn: 60 };
    const { id } = await create(request, terms);
    await databaseOf(app).prisma.apiKey.update({ where: { id }, data: { expiresAt: new Date(Date.now() - 1_000) } });
    const refused = await request("POST", "/account/keys", { body: { name: "key", ...terms } });

    expectEnvelope(refused, 409, "CONFLICT");
    expect(errorOf(refused).details).toMatchObject({ apiKeyId: id });
  });
});
