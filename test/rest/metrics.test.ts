/** GET /metrics: access, contents, and labels that no caller can write. */

import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { REFUSABLE } from "../../src/formats/openai-chat/refused-fields.js";
import { UNKNOWN_WORD_KINDS } from "../../src/lib/unknown-words.js";
import { toTemplate } from "../../src/rest/route.js";
import { recordRoutes } from "../../src/rest/router.js";
import { ATTEMPT_CODE_TEXTS } from "../../src/services/generation/routing/candidate.js";
import { connect, execute, executeText, ok, subscribeWith } from "../graphql/client.js";
import { ChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, registerModel } from "../support/community-models.js";
import { parseMetrics, type Scrape } from "../support/metrics.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { closeSocket, errorReply, json, type Reply, raw, sse, waitFor } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope } from "./client.js";
import { refuseRealtime } from "./realtime-client.js";

const TOKEN = "the-scraper's-own-token";
const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] };
const ROUTE = { route: "/v1/chat/completions", method: "POST" };

let app: TestApp;
let client: Client;
beforeAll(async () => {
  app = await createTestApp({ config: { metrics: { token: TOKEN, isOpen: false }, upstreamAllowHosts: ["127.0.0.1"] } });
  client = createClient(app.baseUrl, app.key);
});
beforeEach(() => app.upstream.replyAlways(null));
afterAll(() => app.close());

async function scrape(): Promise<Scrape> {
  const answer = await client.get("/metrics", { key: TOKEN });
  expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  return parseMetrics(answer.text);
}

/** Growth of a metric, read until it settles: the counters follow an answer by a moment. */
async function growth(
  name: string,
  labels: Readonly<Record<string, string>>,
  work: () => Promise<unknown>,
): Promise<(least: number) => Promise<number>> {
  const before = (await scrape()).sum(name, labels);
  await work();
  return async (least) => {
    const grown = async () => (await scrape()).sum(name, labels) - before;
    await expect.poll(grown).toBeGreaterThanOrEqual(least);
    return grown();
  };
}

describe("access to the metrics", () => {
  it("needs the token", async () => {
    expect((await scrape()).sum("sluice_database_available")).toBe(1);
  });

  it.each([
    ["nobody", null],
    ["a part of the token", TOKEN.slice(0, -1)],
    ["the token and more", `${TOKEN}x`],
  ])("is refused to %s", async (_who, key) => {
    const answer = await client.get("/metrics", { key });

    expectEnvelope(answer, 401, "UNAUTHORIZED");
    expect(answer.text).toContain("METRICS_TOKEN");
    expect(answer.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("is refused to the owner's API key, and to the token in the address", async () => {
    expectEnvelope(await client.get("/metrics"), 401, "UNAUTHORIZED");
    expectEnvelope(await client.get(`/metrics?key=${encodeURIComponent(TOKEN)}`, { key: null }), 401, "UNAUTHORIZED");
  });

  it("is refused to a page of another site", async () => {
    const { headers } = await client.get("/metrics", { key: TOKEN, headers: { Origin: "https://page.example" } });

    expect([headers.get("access-control-allow-origin"), headers.get("cache-control")]).toEqual([null, "private, no-store"]);
  });
});

describe("the metrics of a generation", () => {
  it("count the request, its tokens, its cost and its time, once", async () => {
    app.upstream.replyAlways(json(chatCompletion({ content: "Hi", usage: wireUsage(10, 4) })));
    const before = await scrape();

    for (let index = 0; index < 3; index += 1) expect((await client.post("/v1/chat/completions", CHAT)).status).toBe(200);

    const since = async () => {
      const now = await scrape();
      return (name: string, labels: Readonly<Record<string, string>>) => now.sum(name, labels) - before.sum(name, labels);
    };
    await expect.poll(async () => (await since())("sluice_http_requests_total", { ...ROUTE, status: "200" })).toBe(3);
    const grown = await since();
    const model = "acme/chat";
    expect(grown("sluice_http_request_duration_seconds_count", ROUTE)).toBe(3);
    expect(grown("sluice_http_request_duration_seconds_bucket", { ...ROUTE, le: "+Inf" })).toBe(3);
    expect(grown("sluice_generations_total", { model, status: "ok" })).toBe(3);
    expect(grown("sluice_usage_tokens_total", { model, kind: "input_text" })).toBe(30);
    expect(grown("sluice_usage_tokens_total", { model, kind: "output_text" })).toBe(12);
    expect(grown("sluice_cost_credits_total", { model })).toBeCloseTo(3 * 0.000018, 12);
    expect(grown("sluice_gateway_duration_seconds_count", {})).toBe(3);
    expect(grown("sluice_settler_flush_operations_sum", {})).toBeGreaterThanOrEqual(3);
  });

  it("contain the time of a stream's first token, over GraphQL as over REST", async () => {
    app.upstream.replyAlways(sse(chatChunks(["Hel", "lo"], { usage: wireUsage(10, 4) })));
    const firsts = await growth("sluice_time_to_first_token_seconds_count", { model: "acme/chat" }, async () => {
      await client.post("/v1/chat/completions", { ...CHAT, stream: true });
    });
    app.upstream.replyAlways(null);
    const asked = await growth("sluice_generations_total", { model: "acme/free" }, async () => {
      ok(await execute(app, ChatDocument, { input: { model: "acme/free", messages: [{ role: "USER", content: "Hi" }] } }));
    });

    expect([await firsts(1), await asked(1)]).toEqual([1, 1]);
  });

  it("name the failed upstream, and count refusals of the gateway's credential apart", async () => {
    const refusals = { model: "acme/with-fallback", status: "401" };
    app.upstream.replyNext(errorReply(401), errorReply(503), errorReply(429));
    const grown = await growth("sluice_upstream_credential_refusals_total", refusals, () =>
      client
        .post("/v1/chat/completions", { ...CHAT, model: "acme/with-fallback" })
        .then((answer) => expectEnvelope(answer, 502, "UPSTREAM_ERROR")),
    );
    await client.post("/v1/chat/completions", { ...CHAT, model: "acme/free" });

    expect(await grown(1)).toBe(1);
    const now = await scrape();
    expect(now.sum("sluice_upstream_errors_total", { model: "acme/with-fallback", reason: "4xx" })).toBe(1);
    expect(now.sum("sluice_upstream_errors_total", { model: "acme/chat-b", reason: "5xx" })).toBe(1);
    expect(now.sum("sluice_upstream_errors_total", { model: "acme/free", reason: "429" })).toBe(1);
    expect(now.sum("sluice_refusals_total", { code: "UPSTREAM_ERROR" })).toBeGreaterThanOrEqual(2);
  });

  it("sum up all models of accounts", async () => {
    const owner = await createMember(app);
    const { modelId } = await registerModel(app, owner, { upstreamModel: "theirs", url: `${app.upstream.baseUrl}/chat/completions` });

    const grown = await growth("sluice_generations_total", { model: "community" }, async () => {
      expect((await createClient(app.baseUrl, owner.key).post("/v1/chat/completions", { ...CHAT, model: modelId })).status).toBe(200);
    });

    expect(await grown(1)).toBe(1);
  });
});

/** Every value that a label of ours may have. */
function allowedLabels(): ReadonlyMap<string, (value: string) => boolean> {
  const routes = new Set([...recordRoutes().map(({ path }) => toTemplate(path)), "/mcp", "/graphql", "/v1/realtime", "unmatched"]);
  const oneOf =
    (...values: string[]) =>
    (value: string) =>
      values.includes(value);
  return new Map<string, (value: string) => boolean>([
    ["route", (value) => routes.has(value)],
    ["method", oneOf("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "WEBSOCKET", "OTHER")],
    ["status", (value) => /^(?:[1-5]\d\d|ok|cancelled)$/.test(value)],
    ["code", (value) => /^[A-Z_]{4,30}$/.test(value)],
    ["model", (value) => value === "community" || /^(?:acme|sandbox)\/[a-z-]+$/.test(value)],
    ["kind", (value) => /^(?:input|output)_[a-z_]{4,12}$/.test(value) || UNKNOWN_WORD_KINDS.some((kind) => kind === value)],
    ["result", (value) => value === "ok" || Object.hasOwn(ATTEMPT_CODE_TEXTS, value)],
    ["reason", oneOf("3xx", "4xx", "429", "5xx", "network", "closed", "timeout", "cut", "invalid-response")],
    ["le", (value) => value === "+Inf" || Number(value) > 0],
    ["pool", oneOf("money", "shared")],
    ["file", oneOf("settlements", "refused")],
    ["protocol", oneOf("graphql", "realtime", "responses")],
    ["upstream", oneOf("community", "acme", "sandbox")],
    ["field", oneOf(...REFUSABLE)],
    ["outcome", oneOf("written", "left_out", "dropped")],
  ]);
}

/** Fetch would not send such methods and paths. */
function sendRaw(method: string, path: string, headers: Record<string, string> = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const asked = httpRequest(`${app.baseUrl}/`, { method, path, headers, agent: false }, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    });
    asked.on("error", reject).end();
  });
}

describe("a text from a caller", () => {
  const HOSTILE = 'evil"}\\\n 1\nsluice_forged{a="b"} 1';

  it("becomes no label and no line", async () => {
    const evil = encodeURIComponent(HOSTILE);
    const methods = ["PROPFIND", "MKCOL", "PURGE", "TRACE"];
    const paths = [
      `/image/${evil}`,
      `/text/${evil}?model=${evil}`,
      `/v1/models/${evil}`,
      `/account/keys/${evil}`,
      `/media/${evil}`,
      `/${evil}`,
      "/%ff",
      "//x",
    ];
    for (const method of methods) expect(await sendRaw(method, "/v1/models")).toBe(405);
    for (const path of paths) {
      await sendRaw("GET", path, { authorization: `Bearer ${app.key}` });
      await sendRaw("DELETE", path, { "x-request-id": "evil" });
    }
    for (const name of [HOSTILE, "__proto__", "constructor", "other", "community", "acme/chat\u0000"]) {
      await client.post("/v1/chat/completions", { ...CHAT, model: name });
    }
    await executeText(app, { query: "query evil { me { id } }", operationName: HOSTILE });
    await executeText(app, { query: `query ${"e".repeat(500)} { me { id } }` });
    const socket = connect(app);
    await subscribeWith(socket, { query: "query evil { nothing }" }).rest();
    await socket.dispose();
    await refuseRealtime(app, `?model=${evil}`);

    const allowed = allowedLabels();
    await expect
      .poll(async () => (await scrape()).sum("sluice_http_requests_total", { method: "WEBSOCKET", status: "400" }))
      .toBeGreaterThanOrEqual(2);
    const { samples } = await scrape();

    const ours = samples.filter(({ name }) => name.startsWith("sluice_"));
    const strange = ours.flatMap(({ name, labels }) =>
      Object.entries(labels)
        .filter(([label, value]) => allowed.get(label)?.(value) !== true)
        .map(([label, value]) => `${name}{${label}=${JSON.stringify(value)}}`),
    );
    expect(strange).toEqual([]);
    expect(samples.some(({ name }) => name === "sluice_forged")).toBe(false);
    expect(ours.filter(({ name, labels }) => name === "sluice_http_requests_total" && labels.method === "OTHER").length).toBe(1);
  });
});

describe("a counter with known labels", () => {
  /** Those of the routes have as many statuses as requests are answered with. */
  const GROWS_WITH_REQUESTS = ["sluice_http_requests_total"];

  it("is 0 before anything has happened, so that the first event is seen to be one", async () => {
    const fresh = await createTestApp({ upstream: app.upstream });
    const { text } = await createClient(fresh.baseUrl, fresh.key).get("/metrics");
    await fresh.close();
    const { samples, helps } = parseMetrics(text);

    const counters = [...helps.keys()].filter(
      (name) => new RegExp(`^# TYPE ${name} counter$`, "m").test(text) && name.startsWith("sluice_"),
    );
    const ofModel = (model: string) => samples.filter(({ labels }) => labels.model === model).map(({ name }) => name);
    expect(counters.length).toBeGreaterThanOrEqual(10);
    expect(
      counters.filter((name) => !samples.some((sample) => sample.name === name)).filter((name) => !GROWS_WITH_REQUESTS.includes(name)),
    ).toEqual([]);
    expect(samples.filter(({ name, value }) => counters.includes(name) && value !== 0)).toEqual([]);
    // Of each of the operator's models, and of those of accounts together.
    const perModel = counters.filter((name) => samples.some((sample) => sample.name === name && sample.labels.model !== undefined));
    expect([...new Set(ofModel("acme/chat"))].sort()).toEqual(perModel.filter((name) => name !== "sluice_usage_seconds_total").sort());
    expect([...new Set(ofModel("community"))].sort()).toEqual(perModel.sort());
    const values = (name: string, label: string) => samples.filter((sample) => sample.name === name).map(({ labels }) => labels[label]);
    expect(values("sluice_refusals_total", "code")).toEqual(expect.arrayContaining(["INTERNAL_ERROR", "SERVICE_UNAVAILABLE"]));
    expect(new Set(values("sluice_upstream_credential_refusals_total", "status"))).toEqual(new Set(["401", "402", "403"]));
  });

  it("of the operator's models has no more series after every kind of event than before", async () => {
    const names = (scraped: Scrape) =>
      new Set(
        scraped.samples
          .filter(({ name, labels }) => name.endsWith("_total") && !GROWS_WITH_REQUESTS.includes(name) && labels.model === "acme/chat-b")
          .map(({ name, labels }) => `${name} ${JSON.stringify(labels)}`),
      );
    const before = names(await scrape());
    const usage = { ...wireUsage(10, 4), prompt_tokens_details: { cached_tokens: 2 }, completion_tokens_details: { reasoning_tokens: 1 } };
    const ask = async (reply: Reply) => {
      app.upstream.replyNext(reply);
      await client.post("/v1/chat/completions", { ...CHAT, model: "acme/chat-b" });
    };

    await ask(json(chatCompletion({ content: "Hi", usage })));
    for (const status of [301, 400, 401, 402, 403, 429, 500]) await ask(errorReply(status));
    for (const reply of [closeSocket(), raw("no", { headers: { "content-type": "text/plain" } })]) await ask(reply);

    const grown = async () => (await scrape()).sum("sluice_upstream_errors_total", { model: "acme/chat-b" });
    // One that was closed without an answer is called once more.
    await expect.poll(grown).toBeGreaterThanOrEqual(9);
    expect(names(await scrape())).toEqual(before);
  });
});

describe("the gauges", () => {
  it("count streams, holds, connections and the disk", async () => {
    let end = (): void => undefined;
    const until = new Promise<void>((resolve) => {
      end = resolve;
    });
    const [first = {}, ...rest] = chatChunks(["a", "b"]);
    app.upstream.replyNext(sse([first, waitFor(until), ...rest]));
    const streaming = client.post("/v1/chat/completions", { ...CHAT, stream: true });

    await expect.poll(async () => (await scrape()).sum("sluice_streams_running")).toBe(1);
    const during = await scrape();
    end();
    await streaming;

    expect(during.sum("sluice_open_holds")).toBe(1);
    expect(during.sum("sluice_generations_running")).toBe(1);
    expect(during.sum("sluice_http_requests_in_flight")).toBe(2);
    expect(during.sum("sluice_database_connections_open", { pool: "money" })).toBeGreaterThan(0);
    expect(during.sum("sluice_disk_free_bytes")).toBeGreaterThan(0);
    expect(during.sum("nodejs_eventloop_lag_seconds")).toBeGreaterThanOrEqual(0);
    expect(during.sum("process_resident_memory_bytes")).toBeGreaterThan(0);
    await expect.poll(async () => (await scrape()).sum("sluice_open_holds")).toBe(0);
  });

  it("have a description each, and are there at 0", async () => {
    const { samples, helps } = await scrape();

    const ours = [...helps].filter(([name]) => name.startsWith("sluice_"));
    expect(ours.length).toBeGreaterThanOrEqual(29);
    expect(ours.filter(([, help]) => help.length < 20)).toEqual([]);
    const zero = [
      "sluice_refused_settlements",
      "sluice_deferred_operations",
      "sluice_webhook_deliveries_pending",
      "sluice_written_off_credits_total",
    ];
    for (const name of zero) expect(samples).toContainEqual({ name, labels: {}, value: 0 });
    for (const file of ["settlements", "refused"])
      expect(samples).toContainEqual({ name: "sluice_spool_bytes", labels: { file }, value: 0 });
  });
});
