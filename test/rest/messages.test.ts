/** POST /v1/messages, by hand: charges, refusals and streams of Anthropic's format on any model. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, waitForUsage } from "./client.js";

type Loose = Record<string, unknown>;

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

const ask = (more: Loose = {}) =>
  client.post("/v1/messages", { model: "acme/chat", max_tokens: 50, messages: [{ role: "user", content: "Hello" }], ...more });

function eventsOf(text: string): { type: string; [field: string]: unknown }[] {
  return text
    .split("\n\n")
    .filter((event) => event !== "")
    .map((event) => {
      const [name, data] = event.split("\n");
      const parsed = JSON.parse(data?.slice("data: ".length) ?? "");
      expect(name).toBe(`event: ${parsed.type}`);
      return parsed;
    });
}

const USAGE = wireUsage(1000, 50, {
  prompt_tokens_details: { cached_tokens: 400 },
  completion_tokens_details: { reasoning_tokens: 48 },
});

describe("POST /v1/messages", () => {
  it("answers with the text, the charged usage and the cost", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi.", usage: USAGE })));

    const answer = await ask({ system: "Be brief." });

    const id = answer.headers.get("x-generation-id");
    expect(answer.json()).toEqual({
      id: `msg_${id?.replaceAll("-", "")}`,
      type: "message",
      role: "assistant",
      model: "acme/chat",
      content: [{ type: "text", text: "Hi." }],
      stop_reason: "end_turn",
      stop_sequence: null,
      usage: { input_tokens: 600, cache_creation_input_tokens: 0, cache_read_input_tokens: 400, output_tokens: 50, cost: 0.000996 },
    });
    expect(answer.headers.get("x-cost")).toBe("0.000996");
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({
      model: "upstream-chat",
      max_completion_tokens: 50,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
    });
    const row = await waitForUsage(client, ({ request_id }) => request_id === id);
    expect(row).toMatchObject({ type: "generate.text", cost_usd: 0.000996 });
  });

  it("streams the same, with the usage and the receipt after the charge", async () => {
    app.upstream.replyNext(sse(chatChunks(["Hi", "."], { usage: USAGE })));

    const answer = await ask({ stream: true });

    const events = eventsOf(answer.text);
    expect(events.map(({ type }) => type)).toEqual([
      ...["message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["message_delta", "message_stop"],
    ]);
    expect(events.at(-2)).toMatchObject({
      delta: { stop_reason: "end_turn", stop_sequence: null },
      usage: { input_tokens: 600, cache_read_input_tokens: 400, output_tokens: 50, cost: 0.000996 },
      receipt: { model_used: "acme/chat" },
    });
    const id = answer.headers.get("x-generation-id");
    expect(await waitForUsage(client, ({ request_id }) => request_id === id)).toMatchObject({ cost_usd: 0.000996 });
  });

  it.each([true, false])("takes the key as x-api-key; a wrong one is refused; Authorization counts first: stream %s", async (stream) => {
    const send = (headers: Record<string, string>) =>
      fetch(`${app.baseUrl}/v1/messages`, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ model: "acme/chat", max_tokens: 5, stream, messages: [{ role: "user", content: "Hello" }] }),
      }).then(async (answer) => ({ status: answer.status, text: await answer.text() }));

    const wrong = await send({ "x-api-key": "sk-ant-api03-nothing" });
    expect((await send({ "x-api-key": app.key })).status).toBe(200);
    expect((await send({ authorization: `Bearer ${app.key}`, "x-api-key": "another" })).status).toBe(200);
    expect((await send({ "x-api-key": `${app.key} ${app.key}` })).status).toBe(401);
    expect(wrong.status).toBe(401);
    expect(JSON.parse(wrong.text)).toMatchObject({ type: "error", error: { type: "authentication_error", code: "UNAUTHORIZED" } });
  });

  it.each([
    [{ max_tokens: undefined }, 400, "invalid_request_error", "max_tokens"],
    [{ model: "acme/none" }, 404, "not_found_error", "model"],
    [{ max_cost: "0.000000001" }, 402, "billing_error", null],
    [{ messages: [] }, 400, "invalid_request_error", "messages"],
    [{ tools: [{ type: "bash_20250124", name: "bash" }] }, 400, "invalid_request_error", "tools.0.type"],
    [
      { messages: [{ role: "user", content: [{ type: "image", source: { type: "file", file_id: "f" } }] }] },
      400,
      "invalid_request_error",
      "messages.0.content.0.source.file_id",
    ],
  ])("refuses %j in both envelopes, whole and streamed", async (body, status, type, param) => {
    for (const stream of [false, true]) {
      const answer = await ask({ ...body, stream });
      const failure = answer.json<{ type: string; success: boolean; error: Loose; request_id: string }>();

      expect([answer.status, failure.type, failure.success, failure.error.type]).toEqual([status, "error", false, type]);
      if (param !== null) expect(failure.error.param).toBe(param);
      expect(failure.request_id).toBe(answer.headers.get("x-request-id"));
    }
  });

  it("answers a coding agent, whose beta features are left out with a warning", async () => {
    const answer = await ask({
      context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
      thinking: { type: "adaptive", display: "omitted" },
      output_config: { effort: "high" },
      metadata: { user_id: "{}" },
    });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-warnings")).toContain("context_management");
    expect(app.upstream.requests.at(-1)?.json).not.toHaveProperty("context_management");
  });

  it.each([{ stop_reason: "END" }, { matched_stop: "END" }])("names the stop sequence where the upstream does: %j", async (reported) => {
    const completion = chatCompletion({ content: "Hi." });
    app.upstream.replyNext(json({ ...completion, choices: (completion.choices as Loose[]).map((choice) => ({ ...choice, ...reported })) }));

    expect((await ask({ stop_sequences: ["END"] })).json()).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
  });

  it("leaves features of Anthropic out with a warning, and repeats the request's id as its clients read it", async () => {
    const body = { model: "acme/chat", max_tokens: 5, messages: [{ role: "user", content: "Hello" }] };
    const answer = await client.post("/v1/messages", body, { headers: { "anthropic-beta": "effort-2025-11-24, odd" } });
    const refused = await ask({ messages: [] });

    expect(answer.headers.get("x-warnings")).toContain("anthropic-beta: effort-2025-11-24, odd");
    for (const { headers } of [answer, refused]) expect(headers.get("request-id")).toBe(headers.get("x-request-id"));
  });

  it("ends a stream that breaks with an error event, charged for the delivered part", async () => {
    app.upstream.replyNext(sse(chatChunks(["Hi", " there"], { finishReason: null, usage: null }).slice(0, 2), { end: "cut" }));

    const answer = await ask({ stream: true });

    const events = eventsOf(answer.text);
    expect(events.at(-1)).toMatchObject({ type: "error", error: { type: "api_error", code: "UPSTREAM_ERROR" } });
    const id = answer.headers.get("x-generation-id");
    expect(Number((await waitForUsage(client, ({ request_id }) => request_id === id)).cost_usd)).toBeGreaterThan(0);
  });

  it("passes an upstream's refusal on with its status", async () => {
    app.upstream.replyNext(errorReply(400, "context too long"));

    expect((await ask()).json()).toMatchObject({ type: "error", status: 400, error: { type: "invalid_request_error" } });
  });

  it("repeats a request with an Idempotency-Key once", async () => {
    const send = () =>
      client.post(
        "/v1/messages",
        { model: "acme/chat", max_tokens: 5, messages: [{ role: "user", content: "Once" }] },
        { headers: { "idempotency-key": "messages-1" } },
      );
    const [first, second] = [await send(), await send()];

    expect(second.text).toBe(first.text);
    expect(second.headers.get("x-idempotent-replay")).toBe("true");
  });
});

describe("POST /v1/messages/count_tokens", () => {
  it("counts what a generation is charged for at least nearly, without a charge or a call", async () => {
    const before = app.upstream.requests.length;
    const answer = await client.post("/v1/messages/count_tokens", {
      model: "acme/chat",
      system: "Be brief.",
      messages: [{ role: "user", content: "word ".repeat(1_000) }],
    });

    const { input_tokens: count } = answer.json<{ input_tokens: number }>();
    expect(count).toBeGreaterThan(1_000);
    expect(count).toBeLessThan(1_050);
    expect(app.upstream.requests).toHaveLength(before);
    expect(answer.headers.get("x-cost")).toBeNull();
  });

  it("refuses an unknown model", async () => {
    const body = { model: "acme/none", messages: [{ role: "user", content: "Hi" }] };

    expect((await client.post("/v1/messages/count_tokens", body)).json()).toMatchObject({ type: "error", error: { param: "model" } });
  });
});

describe("GET /v1/models with anthropic-version", () => {
  const list = async (query = "") => {
    const answer = await fetch(`${app.baseUrl}/v1/models${query}`, {
      headers: { "anthropic-version": "2023-06-01", "x-api-key": app.key },
    });
    return (await answer.json()) as { data: { id: string; type: string }[]; has_more: boolean; first_id: string; last_id: string };
  };

  it("lists models in pages of Anthropic's format", async () => {
    const all = await list("?limit=1000");
    const ids = all.data.map(({ id }) => id);
    const first = await list("?limit=2");
    const next = await list(`?limit=2&after_id=${encodeURIComponent(first.last_id)}`);
    const back = await list(`?limit=2&before_id=${encodeURIComponent(ids[3] ?? "")}`);

    expect(all).toMatchObject({ has_more: false, first_id: ids[0], last_id: ids.at(-1) });
    expect(all.data[0]).toEqual({
      type: "model",
      id: expect.any(String),
      display_name: expect.any(String),
      created_at: expect.any(String),
    });
    expect([first, next, back].map(({ data, has_more: more }) => [data.map(({ id }) => id), more])).toEqual([
      [ids.slice(0, 2), true],
      [ids.slice(2, 4), ids.length > 4],
      [ids.slice(1, 3), true],
    ]);
  });

  it("returns one model, and OpenAI's format without the header", async () => {
    const one = await fetch(`${app.baseUrl}/v1/models/acme/chat`, { headers: { "anthropic-version": "2023-06-01" } });

    expect(await one.json()).toMatchObject({ type: "model", id: "acme/chat" });
    expect((await client.get("/v1/models/acme/chat")).json()).toMatchObject({ object: "model", id: "acme/chat" });
  });
});
