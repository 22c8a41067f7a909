/** Every operation that generates, by a key with a limit of requests: answered and failed ones count on every face (docs/spec/usage-limits.md). */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createOperationsApp, deadModelOf, goodReply, modelOf, type OperationsApp } from "../support/operation-upstreams.js";
import { OPERATIONS, type Operation } from "../support/operations.js";
import { type Client, createClient, createKey } from "./client.js";

let app: OperationsApp;
let owner: Client;

beforeAll(async () => {
  app = await createOperationsApp();
  owner = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const EACH = OPERATIONS.map((operation) => [operation.name, operation] as const);

/** Asks twice with a new key that may request once. */
async function askTwice(operation: Operation, model: string) {
  const { id: apiKeyId, key } = await createKey(app);
  const limit = { apiKeyId, metric: "requests", amount: 1, minutes: 60, rolling: true };
  expect((await owner.post("/account/usage-limits", limit)).status).toBe(200);
  const ask = () => operation.ask({ baseUrl: app.baseUrl, wsUrl: app.wsUrl, key }, { model }, {});
  return [await ask(), await ask()] as const;
}

describe("a request that is answered", () => {
  it.each(EACH)("counts, and the next is refused until there is room: %s", async (_name, operation) => {
    if (operation.delivery !== "session") app.upstream.replyAlways(goodReply(operation));

    const [first, second] = await askTwice(operation, modelOf(operation.kind));

    expect([first.code, second.code]).toEqual([null, "RATE_LIMITED"]);
    if (operation.face === "GraphQL" || operation.delivery === "session") return;
    expect(first.headers.get("x-ratelimit-limit-requests")).toBe("1");
    expect(second.status).toBe(429);
    expect(second.headers.get("x-ratelimit-remaining-requests")).toBe("0");
    expect(Number(second.headers.get("retry-after"))).toBeGreaterThan(3_000);
  });
});

describe("a request that fails", () => {
  it.each(EACH)("counts once an upstream was called: %s", async (_name, operation) => {
    const [first, second] = await askTwice(operation, deadModelOf(operation.kind));

    expect(first.code).not.toBe(null);
    expect(first.code).not.toBe("RATE_LIMITED");
    expect(second.code).toBe("RATE_LIMITED");
  });
});
