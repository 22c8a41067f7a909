import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Client, createClient, expectEnvelope } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";

interface RestRoute {
  readonly path: string;
  readonly methods: readonly string[];
  /** Needs no key. */
  readonly isPublic?: true;
  /** Looks at no key at all. */
  readonly isOpen?: true;
}

/** Only a session may: the suite sends a key. */
const SESSION_PATHS: ReadonlySet<string> = new Set(["/account/profile", "/api/account/profile"]);

const ACCOUNT_ROUTES: readonly RestRoute[] = [
  { path: "/keys", methods: ["GET", "POST"] },
  { path: "/keys/00000000-0000-4000-8000-000000000000", methods: ["GET", "PATCH", "DELETE"] },
  { path: "/key", methods: ["GET"] },
  { path: "/key/usage", methods: ["GET"] },
  { path: "/balance", methods: ["GET"] },
  { path: "/profile", methods: ["GET", "PATCH"] },
  { path: "/sessions", methods: ["GET", "DELETE"] },
  { path: "/sessions/00000000-0000-4000-8000-000000000000", methods: ["DELETE"] },
  { path: "/usage", methods: ["GET"] },
  { path: "/usage/daily", methods: ["GET"] },
];

const ROUTES: readonly RestRoute[] = [
  { path: "/v1/chat/completions", methods: ["POST"] },
  { path: "/text", methods: ["POST"] },
  { path: "/text/hello", methods: ["GET"] },
  { path: "/v1/models", methods: ["GET"], isPublic: true },
  { path: "/v1/models/acme/chat", methods: ["GET"], isPublic: true },
  { path: "/models", methods: ["GET"], isPublic: true },
  { path: "/text/models", methods: ["GET"], isPublic: true },
  { path: "/image/models", methods: ["GET"], isPublic: true },
  { path: "/video/models", methods: ["GET"], isPublic: true },
  { path: "/audio/models", methods: ["GET"], isPublic: true },
  { path: "/embeddings/models", methods: ["GET"], isPublic: true },
  { path: "/api/device/userinfo", methods: ["GET"] },
  { path: "/", methods: ["GET"], isOpen: true },
  { path: "/healthz", methods: ["GET"], isOpen: true },
  { path: "/readyz", methods: ["GET"], isOpen: true },
  { path: "/metrics", methods: ["GET"], isOpen: true },
  ...["/account", "/api/account"].flatMap((prefix) => ACCOUNT_ROUTES.map((route) => ({ ...route, path: prefix + route.path }))),
];

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

for (const { path, methods, isPublic, isOpen } of ROUTES) {
  describe(path, () => {
    it("answers another method with 405 and Allow", async () => {
      const answer = await client.request("PUT", path);

      expectEnvelope(answer, 405, "METHOD_NOT_ALLOWED");
      const allowed = [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"];
      expect(new Set(answer.headers.get("allow")?.split(", "))).toEqual(new Set(allowed));
    });

    it("answers a browser's preflight", async () => {
      const answer = await client.request("OPTIONS", path, {
        key: null,
        headers: { Origin: "https://page.example", "Access-Control-Request-Method": "GET" },
      });

      expect(answer.status).toBe(204);
      expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      expect(answer.headers.get("access-control-allow-headers")).toContain("Authorization");
    });

    for (const method of methods) {
      if (isOpen) continue;

      it(`refuses a wrong key with 401: ${method}`, async () => {
        const answer = await client.request(method, path, { key: "sk_wrong" });

        expectEnvelope(answer, 401, "UNAUTHORIZED");
        expect(answer.headers.get("www-authenticate")).toMatch(
          /^Bearer error="invalid_token", error_description="The API key is not whole/,
        );
        expect(answer.headers.get("access-control-allow-origin")).toBe("*");
      });

      it(`${isPublic ? "serves" : "refuses"} a caller without a key: ${method}`, async () => {
        const answer = await client.request(method, path, { key: null });

        if (isPublic) expect(answer.status).toBe(200);
        else expectEnvelope(answer, 401, "UNAUTHORIZED");
      });

      if (method !== "POST" && method !== "PATCH") continue;

      it(`refuses a body that is no JSON object: ${method}`, async () => {
        if (SESSION_PATHS.has(path)) {
          // A caller without the permission gets that error, before the body is read.
          expectEnvelope(await client.request(method, path, { body: "[]" }), 403, "FORBIDDEN");
          return;
        }
        expectEnvelope(await client.request(method, path, { body: "[]" }), 400, "BAD_REQUEST");
        expectEnvelope(
          await client.request(method, path, { body: "{}", headers: { "Content-Type": "text/plain" } }),
          415,
          "UNSUPPORTED_MEDIA_TYPE",
        );
      });
    }
  });
}

describe("any other address", () => {
  it("answers 404, to every method", async () => {
    for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
      expectEnvelope(await client.request(method, "/nowhere"), 404, "NOT_FOUND");
    }
  });

  it("answers 400 when it cannot be decoded", async () => {
    for (const path of ["/%zz", "/text/%zz", "/v1/models/%E0%A4%A", "/account/keys/%00"]) {
      expectEnvelope(await client.get(path), 400, "BAD_REQUEST");
    }
  });
});
