/** A Messages request to an upstream of the same format: nothing is lost on the way, and the price stays the model's. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VENDOR_KEY } from "../support/ai-sdk.js";
import { anthropicMessage, anthropicSse } from "../support/anthropic.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { refusalOf } from "../support/strict-anthropic.js";
import { json, type Reply } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";

type Loose = Record<string, unknown>;

let app: TestApp;
let claude: FakeUpstream;
let client: Client;

beforeAll(async () => {
  claude = await startFakeUpstream();
  const model = { modality: "text", upstream: "claude", capabilities: ["tools", "reasoning"] } as const;
  const prices = { promptTextPrice: "0.000003", promptCachedPrice: "0.0000003", completionTextPrice: "0.000015" };
  const cached = { promptCacheWritePrice: "0.00000375", promptCacheWriteHourPrice: "0.000006" };
  app = await createTestApp({
    upstreams: [{ id: "claude", wireFormat: "anthropic", baseUrl: claude.baseUrl, apiKey: VENDOR_KEY }],
    models: [
      { ...model, id: "acme/claude", title: "Claude", upstreamModel: "claude-opus-5", prices: { ...prices, ...cached } },
      { ...model, id: "acme/spare", title: "Spare", upstreamModel: "claude-opus-5", fallbacks: ["acme/chat"] },
      {
        ...model,
        id: "acme/searching",
        title: "Searching",
        upstreamModel: "claude-opus-5",
        pricedFields: { "tools.type": { web_search_20250305: { perRequest: "0.01" } } },
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  await app.close();
  await claude.close();
});

/** Answers requests alone that Anthropic would not refuse. */
function strict(answer: Reply): Reply {
  return {
    kind: "handler",
    handle: async ({ json: body }, response) => {
      const message = refusalOf(body as Loose);
      if (answer.kind !== "body") throw new Error("Only bodies are written here.");
      response.writeHead(
        message === null ? answer.status : 400,
        message === null ? answer.headers : { "content-type": "application/json" },
      );
      response.end(message === null ? answer.body : JSON.stringify({ type: "error", error: { type: "invalid_request_error", message } }));
    },
  };
}

const ask = (body: Loose, headers: Record<string, string> = {}) =>
  client.post(
    "/v1/messages",
    { model: "acme/claude", max_tokens: 9_000, messages: [{ role: "user", content: "Hi" }], ...body },
    { headers },
  );

const sent = (index = -1) => claude.requests.at(index) as { json: Loose; headers: Record<string, string> };

const PDF = { type: "base64", media_type: "application/pdf", data: "JVBERi0=" };

/** A turn with everything that the format has. */
const FULL: Loose = {
  system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }],
  messages: [
    {
      role: "user",
      content: [
        {
          type: "document",
          source: PDF,
          title: "Report",
          context: "Of May.",
          citations: { enabled: true },
          cache_control: { type: "ephemeral" },
        },
        {
          type: "document",
          source: { type: "text", media_type: "text/plain", data: "Rain." },
          title: "Note",
          citations: { enabled: true },
        },
        {
          type: "document",
          source: {
            type: "content",
            content: [
              { type: "text", text: "One." },
              { type: "text", text: "Two." },
            ],
          },
        },
        {
          type: "search_result",
          source: "https://x.example",
          title: "X",
          content: [{ type: "text", text: "Sun." }],
          citations: { enabled: true },
        },
        { type: "image", source: { type: "url", url: "https://93.184.216.34/a.png" } },
        { type: "text", text: "What do they say?" },
      ],
    },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "Hm.", signature: "c2ln" },
        { type: "text", text: "They say:" },
        { type: "redacted_thinking", data: "ZGF0YQ==" },
        { type: "text", text: "Rain.", citations: [{ type: "char_location", cited_text: "Rain.", document_index: 1 }] },
        { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Ulm" } },
        { type: "tool_use", id: "toolu_2", name: "weather", input: { city: "Bonn" } },
      ],
    },
    {
      role: "user",
      content: [
        { type: "tool_result", tool_use_id: "toolu_1", content: "No station.", is_error: true },
        {
          type: "tool_result",
          tool_use_id: "toolu_2",
          content: [
            { type: "text", text: "Sun." },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
          ],
          cache_control: { type: "ephemeral" },
        },
      ],
    },
    { role: "system", content: "Now answer in French." },
  ],
  tools: [
    { name: "weather", description: "Tells it.", input_schema: { type: "object", properties: {} }, cache_control: { type: "ephemeral" } },
    { type: "bash_20250124", name: "bash" },
  ],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  thinking: { type: "adaptive", display: "omitted" },
  output_config: { effort: "high" },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  metadata: { user_id: "u1" },
  stop_sequences: ["END"],
};

describe("a Messages request to Anthropic", () => {
  it("arrives as it was sent", async () => {
    claude.replyNext(json(anthropicMessage()));
    const betas = "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,context-1m-2025-08-07,odd";
    const answer = await ask(FULL, { "anthropic-beta": betas });

    expect(answer.status).toBe(200);
    const { system, messages, tools, ...fields } = sent().json;
    expect(messages).toEqual(FULL.messages && asSent(FULL.messages as Loose[]));
    expect({ system, tools }).toEqual({ system: FULL.system, tools: FULL.tools });
    const { messages: _, system: _system, tools: _tools, ...stated } = FULL;
    expect(fields).toEqual({ model: "claude-opus-5", max_tokens: 9_000, ...stated });
    expect(sent().headers["anthropic-beta"]).toBe("claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27");
    expect(answer.headers.get("x-warnings")).toContain("context-1m-2025-08-07");
    expect(answer.headers.get("request-id")).toBe(answer.headers.get("x-request-id"));
  });

  it("is answered with the blocks, signatures and reasons of the upstream, whole and streamed", async () => {
    const content = [
      { type: "thinking", thinking: "Hm.", signature: "c2ln" },
      { type: "text", text: "They say: " },
      {
        type: "text",
        text: "rain.",
        citations: [{ type: "char_location", cited_text: "Rain.", document_index: 1, document_title: "Note" }],
      },
      { type: "redacted_thinking", data: "ZGF0YQ==" },
      { type: "text", text: " END" },
      { type: "tool_use", id: "toolu_1", name: "weather", input: { city: "Ulm" } },
    ];
    const usage = {
      ...{ input_tokens: 20, cache_read_input_tokens: 100, cache_creation_input_tokens: 50, output_tokens: 30 },
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 40 },
    };
    const message = anthropicMessage({ content, usage, stop_reason: "stop_sequence", stop_sequence: "END" }) as Loose;
    const hour = { system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral", ttl: "1h" } }] };
    claude.replyNext(strict(json(message)), anthropicSse(eventsOf(message)));
    const whole = await ask(hour);
    const streamed = await ask({ ...hour, stream: true });

    const put = collect(streamed.text);
    const answer = whole.json<Loose>();
    expect(answer.content).toEqual(content);
    expect(put.content).toEqual(content);
    for (const each of [answer, put]) expect(each).toMatchObject({ stop_reason: "stop_sequence", stop_sequence: "END" });
    expect(put.usage).toEqual(answer.usage);
    // 20 at 3, 100 at 0.3, 10 at 3.75, 40 at 6 and 30 at 15 a million.
    expect(whole.headers.get("x-cost")).toBe("0.0008175");
    // Its answer can be sent back.
    claude.replyNext(strict(json(message)));
    const again = await ask({
      messages: [{ role: "user", content: "Hi" }, { role: "assistant", content: answer.content }, result("toolu_1")],
    });
    expect(again.status).toBe(200);
    expect((sent().json.messages as Loose[])[1]?.content).toEqual(content);
  });

  it.each(["pause_turn", "refusal", "model_context_window_exceeded", "max_tokens", "end_turn"])("ends for %s", async (reason) => {
    claude.replyNext(json(anthropicMessage({ content: [{ type: "text", text: "Hi" }], stop_reason: reason })));

    expect((await ask({})).json()).toMatchObject({ stop_reason: reason, stop_sequence: null });
  });

  it("is answered with what the upstream says of its end, whole and streamed", async () => {
    const details = { type: "refusal", category: "cyber", explanation: null };
    const container = { id: "container_1", expires_at: "2026-12-01T00:00:00Z" };
    const edits = { applied_edits: [{ type: "clear_thinking_20251015", cleared_thinking_turns: 1 }] };
    const usage = { input_tokens: 5, output_tokens: 2, server_tool_use: { web_search_requests: 1 } };
    const ended = { stop_reason: "refusal", stop_sequence: null, stop_details: details, container };
    claude.replyNext(json(anthropicMessage({ content: [{ type: "text", text: "No." }], ...ended, context_management: edits, usage })));
    const whole = (await ask({})).json();

    expect(whole).toMatchObject({ ...ended, context_management: edits, usage });

    const head = anthropicMessage({ content: [], stop_reason: null, usage: { input_tokens: 5, output_tokens: 1 } });
    claude.replyNext(
      anthropicSse([
        { type: "message_start", message: head },
        { type: "content_block_start", index: 0, content_block: { type: "text", text: "No." } },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: ended, context_management: edits, usage },
        { type: "message_stop" },
      ]),
    );
    const streamed = eventsIn((await ask({ stream: true })).text);

    expect(streamed.at(-2)).toMatchObject({ type: "message_delta", delta: ended, context_management: edits, usage });
  });

  it("sends a cache of an hour as one of five minutes to a model without its price", async () => {
    claude.replyNext(json(anthropicMessage()));
    const mark = { type: "ephemeral", ttl: "1h" };
    const result = { type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "42", cache_control: mark }] };
    const answer = await ask({
      model: "acme/spare",
      system: [{ type: "text", text: "Be brief.", cache_control: mark }],
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content: [{ type: "tool_use", id: "toolu_1", name: "alpha", input: { cache_control: mark } }] },
        { role: "user", content: [result] },
      ],
    });
    const text = JSON.stringify(sent().json);

    expect([answer.status, answer.headers.get("x-warnings")]).toEqual([200, expect.stringContaining("1h was sent as 5m")]);
    expect([text.split('"ttl":"5m"').length - 1, text.split('"ttl":"1h"').length - 1]).toEqual([2, 1]);
  });

  it("refuses tools that Anthropic runs without a price, and passes priced ones and their blocks", async () => {
    const tools = [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }];
    const refused = await ask({ tools });
    const content = [
      { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "rain" } },
      {
        type: "web_search_tool_result",
        tool_use_id: "srvtoolu_1",
        content: [{ type: "web_search_result", url: "https://x.example", title: "X" }],
      },
      { type: "text", text: "Rain." },
    ];
    claude.replyNext(json(anthropicMessage({ content, stop_reason: "end_turn" })), strict(json(anthropicMessage())));
    const answer = await ask({ model: "acme/searching", tools });
    await ask({
      model: "acme/searching",
      tools,
      messages: [
        { role: "user", content: "Hi" },
        { role: "assistant", content },
        { role: "user", content: "And?" },
      ],
    });

    expect(refused.json()).toMatchObject({ status: 400, error: { param: "tools.0.type" } });
    expect(answer.json()).toMatchObject({ content });
    expect(sent(-2).json.tools).toEqual(tools);
    expect((sent().json.messages as Loose[])[1]?.content).toEqual(content);
  });

  it("leaves out edits that are billed apart", async () => {
    claude.replyNext(json(anthropicMessage()));
    const edits = [{ type: "compact_20260112" }, { type: "clear_tool_uses_20250919" }];
    const answer = await ask({ context_management: { edits } });

    expect(sent().json.context_management).toEqual({ edits: [edits[1]] });
    expect(answer.headers.get("x-warnings")).toContain("compact_20260112");
  });

  it("asks again without thoughts whose signature is refused", async () => {
    const refusal = { type: "invalid_request_error", message: "messages.1.content.0: Invalid `signature` in `thinking` block" };
    claude.replyNext(json({ type: "error", error: refusal }, { status: 400 }), strict(json(anthropicMessage())));
    const history = [
      { role: "user", content: "Hi" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "eA==" },
          { type: "text", text: "Yes" },
        ],
      },
    ];
    const answer = await ask({ messages: [...history, { role: "user", content: "And?" }] });

    expect(answer.status).toBe(200);
    expect((sent().json.messages as Loose[])[1]?.content).toEqual([{ type: "text", text: "Yes" }]);
    expect(answer.headers.get("x-warnings")).toContain("refused the signature");
  });

  it("gives way to a fallback of another format, which gets none of the format's own fields that it refuses", async () => {
    const overloaded = json({ type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, { status: 529 });
    claude.replyNext(overloaded);
    const answer = await ask({ model: "acme/spare" });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-fallback")).toBe("acme/chat");
  });

  it.each([
    [429, "rate_limit_error", 502, "api_error"],
    [529, "overloaded_error", 502, "api_error"],
    [400, "invalid_request_error", 400, "invalid_request_error"],
  ])("reports %s %s in the format's own terms", async (status, type, ours, oursType) => {
    const message = "max_tokens: 9 > 8, which is the maximum";
    claude.replyNext(json({ type: "error", error: { type, message } }, { status, headers: { "retry-after": "7" } }));
    const answer = await ask({});

    expect(answer.json()).toMatchObject({ type: "error", status: ours, error: { type: oursType } });
    if (ours === 400) expect(answer.json()).toMatchObject({ error: { param: "max_tokens" } });
  });

  it("does not know an unknown model", async () => {
    expect((await ask({ model: "acme/none" })).json()).toMatchObject({ status: 404, error: { type: "not_found_error", param: "model" } });
  });
});

function result(id: string): Loose {
  return { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "Rain." }] };
}

/** Texts of messages are blocks upstream. */
function asSent(messages: readonly Loose[]): Loose[] {
  return messages.map(({ role, content }) => ({
    role,
    content: typeof content === "string" ? [{ type: "text", text: content }] : content,
  }));
}

/** A message as Anthropic streams it. */
function eventsOf({ content, usage, stop_reason: reason, stop_sequence: sequence, ...head }: Loose): Loose[] {
  const events: Loose[] = [{ type: "message_start", message: { ...head, content: [], usage } }];
  for (const [index, block] of (content as Loose[]).entries()) {
    const deltas: Loose[] = [];
    let empty = block;
    if (block.type === "text") {
      empty = { type: "text", text: "" };
      deltas.push({ type: "text_delta", text: block.text });
      for (const citation of (block.citations as Loose[] | undefined) ?? []) deltas.push({ type: "citations_delta", citation });
    } else if (block.type === "thinking") {
      empty = { type: "thinking", thinking: "", signature: "" };
      deltas.push({ type: "thinking_delta", thinking: block.thinking }, { type: "signature_delta", signature: block.signature });
    } else if (block.type === "tool_use") {
      empty = { ...block, input: {} };
      deltas.push({ type: "input_json_delta", partial_json: JSON.stringify(block.input) });
    }
    events.push({ type: "content_block_start", index, content_block: empty });
    for (const delta of deltas) events.push({ type: "content_block_delta", index, delta });
    events.push({ type: "content_block_stop", index });
  }
  return [...events, { type: "message_delta", delta: { stop_reason: reason, stop_sequence: sequence }, usage }, { type: "message_stop" }];
}

/** The message of a stream, as clients put it together. */
function collect(text: string): Loose {
  const events = eventsIn(text);
  const content: Loose[] = [];
  let end: Loose = {};
  for (const { type, index, content_block: begun, delta: piece, usage } of events) {
    const delta = (piece ?? {}) as Loose;
    const block = content[Number(index)] ?? {};
    if (type === "content_block_start") content.push({ ...(begun as Loose) });
    else if (delta.type === "text_delta") block.text = `${String(block.text)}${String(delta.text)}`;
    else if (delta.type === "thinking_delta") block.thinking = `${String(block.thinking)}${String(delta.thinking)}`;
    else if (delta.type === "signature_delta") block.signature = delta.signature;
    else if (delta.type === "citations_delta") block.citations = [...((block.citations as Loose[] | undefined) ?? []), delta.citation];
    else if (delta.type === "input_json_delta") block.input = JSON.parse(String(delta.partial_json));
    else if (type === "message_delta") end = { ...delta, usage };
  }
  return { content, ...end };
}

function eventsIn(text: string): Loose[] {
  return text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as Loose] : []));
}
