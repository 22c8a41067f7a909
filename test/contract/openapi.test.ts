/** The OpenAPI document: complete, well-formed, true of real answers, and good enough to make a client from. */
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as z from "zod";
import { json } from "../../src/rest/openapi/answer.js";
import { createOpenApiDocument, type OpenApiDocument, operationsOf } from "../../src/rest/openapi/document.js";
import type { RecordedRoute } from "../../src/rest/openapi/record.js";
import { recordRoutes } from "../../src/rest/router.js";
import { createClient } from "../rest/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createExampleClient } from "../support/openapi-examples.js";
import { startVendor, type Vendor } from "../support/vendor.js";

const routes = recordRoutes();
const document: OpenApiDocument = createOpenApiDocument(routes);

describe("The OpenAPI document", () => {
  const operations = operationsOf(routes);

  it("names every operation once", () => {
    const ids = operations.map(({ contract }) => contract.id);

    expect(ids.length).toBeGreaterThan(80);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("leaves out only pages, HEAD twins, second addresses, files of pages and signed URLs", () => {
    const unlisted = routes.flatMap(({ path, methods }) =>
      Object.entries(methods).flatMap(([method, { id, isPage }]) => (id === null && !isPage ? [`${method} ${path}`] : [])),
    );

    expect(unlisted.sort()).toEqual([
      "GET /docs",
      "GET /docs/:asset",
      "GET /docs/spec/:page",
      "GET /llms.txt",
      "GET /media/blobs/:folder/:name",
      "HEAD /text/*prompt",
      ...["batchEmbedContents", "countTokens", "embedContent", "generateContent", "streamGenerateContent"].map(
        (operation) => `POST /v1/models/*model\\:${operation}`,
      ),
      "PUT /media/blobs/:folder/:name",
    ]);
  });

  it("has the parameters of every path", () => {
    const differences = operations.flatMap(({ path, contract }) => {
      const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const parsed = Object.keys(contract.params?.shape ?? {});
      return named.join() === parsed.join() ? [] : [`${path}: ${parsed.join()}`];
    });

    expect(differences).toEqual([]);
  });

  it("refuses two schemas of one name", () => {
    const routeOf = (id: string, path: string): RecordedRoute => ({
      path,
      methods: { GET: { id, tag: "Service", summary: "A route.", answer: json("Thing", z.object({ id: z.string() })) } },
    });

    expect(() => createOpenApiDocument([routeOf("getThing", "/things/one"), routeOf("getOther", "/things/two")])).toThrow(
      "Two answers are named Thing.",
    );
  });

  it("describes every parameter", () => {
    const parameters = Object.entries(document.paths).flatMap(([path, operations]) =>
      Object.values(operations).flatMap(({ parameters: own = [] }) =>
        (own as { name: string; description?: string }[]).map((one) => ({ path, ...one })),
      ),
    );

    expect(parameters.filter(({ description }) => description === undefined).map(({ path, name }) => `${path} ${name}`)).toEqual([]);
  });

  it("refers to nothing that it does not hold", () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]*)"/g)].map(([, path = ""]) => path);
    const dangling = references.filter((path) => resolve(document, path) === undefined);

    expect(references.length).toBeGreaterThan(0);
    expect(dangling).toEqual([]);
  });
});

describe("The served answers", () => {
  let app: TestApp;
  let ask: ReturnType<typeof createExampleClient>;
  let vendor: Vendor;
  beforeAll(async () => {
    // Addresses of the examples are not looked up here.
    vendor = await startVendor(["sk-..."]);
    app = await createTestApp({
      config: { upstreamAllowHosts: ["example.com", "127.0.0.1"], storedResponsesDays: 1 },
      upstreams: [{ id: "openai", wireFormat: "openai", baseUrl: vendor.baseUrl, apiKey: "operators-own-key-0001" }],
      models: [{ id: "openai/small", title: "Small", modality: "text", upstream: "openai", upstreamModel: "small" }],
    });
    ask = createExampleClient(app, document);
  });
  afterAll(async () => {
    await app.close();
    await vendor.close();
  });

  const hello = [{ role: "user", content: "Hello" }];
  it.each<[string, string, object?]>([
    ["POST", "/v1/chat/completions", { model: "sandbox/text", messages: hello }],
    ["POST", "/v1/responses", { model: "sandbox/text", input: "Hello" }],
    ["POST", "/v1/images/generations", { model: "sandbox/image", prompt: "A mill", size: "64x64" }],
    ["POST", "/v1/embeddings", { model: "sandbox/embedding", input: ["a mill", "a river"] }],
    ["POST", "/v1/moderations", { model: "sandbox/moderation", input: "a mill" }],
    ["GET", "/v1/models"],
    ["GET", "/models"],
    ["GET", "/account/profile"],
    ["GET", "/account/balance"],
    ["GET", "/account/usage"],
    ["GET", "/account/usage/daily"],
    ["GET", "/account/keys"],
    ["GET", "/account/webhooks"],
    ["GET", "/account/integrations"],
    ["GET", "/account/integrations/toolkits"],
    ["POST", "/account/integrations", { toolkit: "notes" }],
    ["GET", "/account/balance/threshold"],
    ["POST", "/account/keys", { name: "described" }],
    ["GET", "/account/key"],
    ["GET", "/media/media"],
    ["POST", "/media/upload", { contentType: "image/png", size: 1 }],
    ["GET", "/healthz"],
    ["GET", "/"],
    ["GET", "/openapi.json"],
  ])("%s %s is as described", async (method, path, body) => {
    const client = createClient(app.baseUrl, app.key);
    const answer = await (method === "GET" ? client.get(path) : client.post(path, body ?? {}));

    expect(answer.status).toBe(200);
    expect(
      differencesOf(`/paths/${escapePointer(path)}/${method.toLowerCase()}/responses/200/content/application~1json/schema`, answer.json()),
    ).toEqual([]);
  });

  /**
   * The status of an example that does not succeed: it stands for values that only a person, or a code repository, can
   * supply.
   */
  const REFUSED: Readonly<Record<string, number>> = {
    "GET /v1/realtime": 426,
    "GET /v1/responses": 426,
    // Only Stripe can sign an event, and only for a gateway that has its secret.
    "POST /webhooks/stripe": 404,
    "POST /webhooks/credits": 404,
    // The development checkout has no portal.
    "POST /account/billing-portal": 409,
    "POST /api/oauth/token": 400,
    "POST /api/device/token": 400,
    "POST /account/agents/{agent}/sync": 404,
  };
  const operations = Object.entries(document.paths).flatMap(([path, own]) =>
    Object.entries(own).map(([method, operation]) => ({ name: `${method.toUpperCase()} ${path}`, method, path, operation })),
  );

  it.each(operations.map((one) => [one.name, one] as const))("%s answers its example", async (name, { path, method, operation }) => {
    const answers = await ask(method, path);

    expect(answers.length).toBeGreaterThan(0);
    for (const { status, contentType, text } of answers) {
      expect(status, text.slice(0, 500)).toSatisfy((answered: number) => answered === REFUSED[name] || (answered >= 200 && answered < 400));
      const described = (operation.responses as Record<string, { content?: Record<string, unknown> }>)[status];
      expect(described, `${status}`).toBeDefined();
      if (contentType !== null && status === 200)
        expect(Object.keys(described?.content ?? {})).toContainEqual(expect.toBeOneOf([contentType, "*/*"]));
      if (contentType !== "application/json" || status !== 200) continue;
      const pointer = `/paths/${escapePointer(path)}/${method}/responses/200/content/application~1json/schema`;
      expect(differencesOf(pointer, JSON.parse(text))).toEqual([]);
    }
  });

  it.each(operations.filter(({ operation }) => operation.requestBody !== undefined).map((one) => [one.name, one] as const))(
    "%s names the missing field of its body",
    async (_name, { path, method, operation }) => {
      const { content } = operation.requestBody as { content: Record<string, { schema: { required?: string[] } } | undefined> };
      const [field] = content["application/json"]?.schema.required ?? [];
      if (field === undefined) return;

      const answer = await createClient(app.baseUrl, app.key).request(method.toUpperCase(), path.replace(/\{\w+\}/g, "x"), { body: {} });

      // Sessions only: a caller without access does not learn which field is wrong.
      if (answer.status === 403) return;
      const { error, error_description = error.message } = answer.json<{ error: { message: string }; error_description?: string }>();
      expect(answer.status).toBe(400);
      expect(error_description).toContain(`${field}: is required`);
    },
  );

  it("an error is as described", async () => {
    const answer = await createClient(app.baseUrl, null).get("/account/balance");

    expect(differencesOf("/components/schemas/Error", answer.json())).toEqual([]);
  });

  it("the reference page loads everything from the gateway", async () => {
    const page = await fetch(`${app.baseUrl}/docs`);
    const html = await page.text();
    const assets = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, address = ""]) => address);

    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(assets.length).toBeGreaterThan(3);
    for (const asset of assets) expect((await fetch(new URL(asset, app.baseUrl))).status, asset).toBe(200);
    expect((await fetch(`${app.baseUrl}/docs/package.json`)).status).toBe(404);
    expect((await fetch(`${app.baseUrl}/docs/..%2fpackage.json`)).status).toBe(404);
  });
});

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ $id: "https://sluice.test/openapi", ...document });

function differencesOf(pointer: string, value: unknown): unknown[] {
  const reference = `https://sluice.test/openapi#${pointer}`;
  const validate = ajv.getSchema(reference) ?? ajv.compile({ $ref: reference });
  return validate(value) ? [] : (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}

function escapePointer(path: string): string {
  return encodeURIComponent(path.replaceAll("~", "~0").replaceAll("/", "~1"));
}

function resolve(root: unknown, path: string): unknown {
  return path.split("/").reduce<unknown>((value, name) => (value as Record<string, unknown> | undefined)?.[name], root);
}
