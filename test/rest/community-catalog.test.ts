/** Registered models as callers meet them: called, billed, listed and hidden (Spec 2.8, 2.9, 3). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { type Client, createClient } from "./client.js";

let app: TestApp;
let owner: Member;
let other: Member;
let client: Client;

const chat = (model: string) => ({ model, messages: [{ role: "user", content: "Hello" }] });

beforeAll(async () => {
  app = await createTestApp({ config: { upstreamAllowHosts: ["127.0.0.1"] } });
  client = createClient(app.baseUrl, null);
  [owner, other] = await Promise.all([createMember(app, { handle: "owner-of-models" }), createMember(app)]);
});
afterAll(() => app.close());

describe("a call", () => {
  it("reaches the upstream that its owner named, with its owner's credential", async () => {
    const { modelId } = await registerModel(app, owner, { visibility: "public", bearerToken: "token-of-the-owner" });

    const answer = await client.post("/v1/chat/completions", chat(modelId), { key: other.key });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-model-used")).toBe(modelId);
    const request = await app.upstream.nextRequest();
    expect(request.headers.authorization).toBe("Bearer token-of-the-owner");
    expect(request.path).toBe("/v1/chat/completions");
  });
});
