import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { type Client, createClient, createKey, expectEnvelope } from "./client.js";
import { createStranger } from "./seed.js";

interface KeyList {
  readonly data: readonly Record<string, unknown>[];
}

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

async function listed(id: string): Promise<Record<string, unknown> | undefined> {
  return (await client.get("/account/keys")).json<KeyList>().data.find((key) => key.id === id);
}

for (const prefix of ["/account", "/api/account"]) {
  describe(`keys under ${prefix}`, () => {
    it("are created, and their value is shown once", async () => {
      const answer = await client.post(`${prefix}/keys`, {
        name: "CI",
        expiresIn: 3600,
        allowedModels: ["acme/chat"],
        creditBudget: 1.5,
        accountPermissions: ["balance", "usage"],
      });

      expect(answer.status).toBe(200);
      expect(answer.headers.get("cache-control")).toBe("no-store");
      const created = answer.json<{ id: string; key: string }>();
      expect(created).toEqual({
        id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        key: expect.stringMatching(/^sk_[0-9A-Za-z]{43}$/),
        name: "CI",
        type: "secret",
        prefix: "sk",
        start: created.key.slice(0, 10),
        expiresAt: expect.stringMatching(/Z$/),
        permissions: ["balance", "usage"],
        creditBudget: 1.5,
        externalId: null,
        isManagement: false,
      });
      expect((await client.get("/account/keys")).text).not.toContain(created.key);
    });

    it("are listed", async () => {
      const { id, key } = await createKey(app, { type: "publishable" });

      const answer = await client.get(`${prefix}/keys`);

      expect(answer.status).toBe(200);
      expect(answer.json<KeyList>().data.find((listedKey) => listedKey.id === id)).toEqual({
        id,
        name: "test",
        type: "publishable",
        prefix: "pk",
        start: key.slice(0, 10),
        expiresAt: null,
        permissions: [],
        creditBudget: null,
        allowedModels: null,
        createdAt: expect.stringMatching(/Z$/),
        lastUsedAt: null,
        parentId: expect.stringMatching(/^[0-9a-f-]{36}$/),
        origin: "created",
        app: null,
        resource: null,
        redirectUrls: [],
        marginPercent: 0,
        externalId: null,
        isManagement: false,
      });
    });

    it("change in the fields that are sent", async () => {
      const { id } = await createKey(app, { creditBudget: 1, allowedModels: ["acme/chat"] });

      const answer = await client.request("PATCH", `${prefix}/keys/${id}`, { body: { name: "renamed", creditBudget: 2 } });

      expect(answer.status).toBe(200);
      expect(answer.json()).toMatchObject({ id, name: "renamed", creditBudget: 2, allowedModels: ["acme/chat"] });
      expect(await listed(id)).toEqual(answer.json());
    });

    it("of apps register the redirect addresses of their consent flow", async () => {
      const urls = ["https://app.example/cb", "http://localhost/cb"];
      const { id } = await createKey(app, { type: "publishable", redirectUrls: urls });
      expect(await listed(id)).toMatchObject({ redirectUrls: urls });

      const changed = await client.request("PATCH", `${prefix}/keys/${id}`, { body: { redirectUrls: ["https://app.example/new"] } });
      const renamed = await client.request("PATCH", `${prefix}/keys/${id}`, { body: { name: "renamed" } });
      const none = await client.request("PATCH", `${prefix}/keys/${id}`, { body: { redirectUrls: null } });

      expect(changed.json()).toMatchObject({ redirectUrls: ["https://app.example/new"] });
      expect(renamed.json()).toMatchObject({ redirectUrls: ["https://app.example/new"] });
      expect(none.json()).toMatchObject({ redirectUrls: [] });
    });

    it("register only safe addresses, at most ten, and none on a secret key", async () => {
      const many = Array.from({ length: 11 }, (_, index) => `https://app.example/${index}`);
      const { id } = await createKey(app, { type: "publishable" });
      const secret = await createKey(app);
      const refusals = [
        ["javascript:alert(1)"],
        ["http://app.example/"],
        ["https://good@evil.example/"],
        ["myapp://cb"],
        many,
        "https://app.example/",
      ];

      for (const redirectUrls of refusals) {
        expectEnvelope(await client.post(`${prefix}/keys`, { name: "x", type: "publishable", redirectUrls }), 400, "BAD_REQUEST");
        expectEnvelope(await client.request("PATCH", `${prefix}/keys/${id}`, { body: { redirectUrls } }), 400, "BAD_REQUEST");
      }
      const urls = { redirectUrls: ["https://app.example/"] };
      expectEnvelope(await client.post(`${prefix}/keys`, { name: "x", ...urls }), 400, "BAD_REQUEST");
      expectEnvelope(await client.request("PATCH", `${prefix}/keys/${secret.id}`, { body: urls }), 400, "BAD_REQUEST");
      expect((await client.request("PATCH", `${prefix}/keys/${id}`, { body: { redirectUrls: many.slice(1) } })).status).toBe(200);
    });

    it("are revoked, and refused from then on", async () => {
      const { id, key } = await createKey(app);
      expect((await client.get("/account/key", { key })).status).toBe(200);

      const answer = await client.request("DELETE", `${prefix}/keys/${id}`);

      expect(answer).toMatchObject({ status: 200 });
      expect(answer.json()).toEqual({ id, revoked: true });
      expectEnvelope(await client.get("/account/key", { key }), 401, "UNAUTHORIZED");
      expectEnvelope(await client.request("DELETE", `${prefix}/keys/${id}`), 404, "NOT_FOUND");
      expect(await listed(id)).toBeUndefined();
    });

    it("describe themselves, for every type", async () => {
      const secret = await createKey(app, { expiresIn: 60 });
      const publishable = await createKey(app, { type: "publishable", name: "web", creditBudget: 3 });

      const own = await client.get(`${prefix}/key`, { key: secret.key });
      const web = await client.get(`${prefix}/key`, { key: publishable.key });

      expect(own.json()).toEqual({
        valid: true,
        type: "secret",
        name: "test",
        expiresAt: expect.stringMatching(/Z$/),
        expiresIn: expect.toSatisfy((seconds: number) => Number.isInteger(seconds) && seconds > 0 && seconds <= 60),
        permissions: [],
        creditBudget: null,
        rateLimitEnabled: false,
      });
      expect(web.json()).toEqual({
        valid: true,
        type: "publishable",
        name: "web",
        expiresAt: null,
        expiresIn: null,
        permissions: [],
        creditBudget: 3,
        rateLimitEnabled: true,
      });
    });

    it("are managed only with the permission", async () => {
      const plain = await createKey(app, { accountPermissions: ["profile", "balance", "usage"] });
      const publishable = await createKey(app, { type: "publishable" });
      const target = await createKey(app);
      const requests = [
        ["GET", `${prefix}/keys`, undefined],
        ["POST", `${prefix}/keys`, { name: "x" }],
        ["PATCH", `${prefix}/keys/${target.id}`, { name: "x" }],
        ["DELETE", `${prefix}/keys/${target.id}`, undefined],
      ] as const;
      for (const [method, path, body] of requests) {
        expectEnvelope(await client.request(method, path, { key: null, body }), 401, "UNAUTHORIZED");
        expectEnvelope(await client.request(method, path, { key: plain.key, body }), 403, "FORBIDDEN");
        expectEnvelope(await client.request(method, path, { key: publishable.key, body }), 403, "FORBIDDEN");
      }
      expect(await listed(target.id)).toMatchObject({ name: "test" });
    });

    it("of another account do not exist", async () => {
      const stranger = await createStranger(app);

      for (const id of [stranger.keyId, "00000000-0000-4000-8000-000000000000", "not-an-id"]) {
        expectEnvelope(await client.request("DELETE", `${prefix}/keys/${id}`), 404, "NOT_FOUND");
        expectEnvelope(await client.request("PATCH", `${prefix}/keys/${id}`, { body: { name: "mine" } }), 404, "NOT_FOUND");
      }
      expect((await client.get("/account/key", { key: stranger.key })).json()).toMatchObject({ name: "stranger" });
    });
  });

  describe(`the account under ${prefix}`, () => {
    it("has a profile, for keys of that permission", async () => {
      const allowed = await createKey(app, { accountPermissions: ["profile"] });
      const other = await createKey(app, { accountPermissions: ["balance", "usage"] });

      const answer = await client.get(`${prefix}/profile`, { key: allowed.key });

      expect(answer.status).toBe(200);
      const text = expect.toBeOneOf([null, expect.any(String)]);
      expect(answer.json()).toEqual({
        name: text,
        email: text,
        githubUsername: text,
        image: text,
        tier: null,
        createdAt: expect.stringMatching(/Z$/),
        nextResetAt: null,
      });
      expectEnvelope(await client.get(`${prefix}/profile`, { key: other.key }), 403, "FORBIDDEN");
      expectEnvelope(await client.get(`${prefix}/profile`, { key: null }), 401, "UNAUTHORIZED");
    });

    it("has a balance, which is the key's budget for a key that has one", async () => {
      const plain = await createKey(app, { accountPermissions: ["balance"] });
      const budgeted = await createKey(app, { accountPermissions: ["balance"], creditBudget: 0.25 });
      const other = await createKey(app, { accountPermissions: ["profile", "usage"] });

      expect((await client.get(`${prefix}/balance`, { key: plain.key })).json()).toEqual({ balance: 100 });
      expect((await client.get(`${prefix}/balance`, { key: budgeted.key })).json()).toEqual({ balance: 0.25 });
      expectEnvelope(await client.get(`${prefix}/balance`, { key: other.key }), 403, "FORBIDDEN");
    });
  });
}
