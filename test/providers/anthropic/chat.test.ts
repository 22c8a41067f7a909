import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { NO_USAGE } from "../../../src/lib/usage.js";
import { CHAT_FILES_BYTES_MAX } from "../../../src/limits.js";
import type { FetchFile } from "../../../src/providers/openai/client.js";
import type { ChatProvider } from "../../../src/providers/provider.js";
import { VENDOR_KEY } from "../../support/ai-sdk.js";
import { type AnthropicOptions, anthropicEvents, anthropicMessage, anthropicSse, connectAnthropic } from "../../support/anthropic.js";
import { type FakeUpstream, startFakeUpstream } from "../../support/fake-upstream.js";
import { CHAT_BODY as BODY, chatCall as call, failureOf, readAll, WEATHER } from "../../support/provider-calls.js";
import { bytes, closeSocket, hang, json, raw, sse } from "../../support/upstream-replies.js";

let upstream: FakeUpstream;
let open: { close(): Promise<void> }[] = [];
beforeEach(async () => {
  upstream = await startFakeUpstream();
});
afterEach(async () => {
  await upstream.close();
  await Promise.all(open.map((provider) => provider.close()));
  open = [];
});

function chatOf(options: AnthropicOptions = {}): ChatProvider {
  const provider = connectAnthropic(upstream, options);
  open.push(provider);
  return provider.chat;
}

describe("Anthropic", () => {
  const MODEL = "claude-haiku-4-5";

  it("gets everything that a chat can hold in the Messages format", async () => {
    upstream.replyNext(json(anthropicMessage()));
    await chatOf().complete(
      call(
        {
          ...BODY,
          messages: [
            { role: "system", content: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }] },
            {
              role: "user",
              content: [
                { type: "text", text: "What is this?" },
                { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw0KGgo=" } },
                { type: "image_url", image_url: { url: "https://pictures.example/a.webp" } },
                { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,JVBERi0=" } },
              ],
            },
            {
              role: "assistant",
              content: "I look.",
              reasoning_content: "Hm.",
              reasoning_details: [{ type: "reasoning.text", text: "Hm.", extra_content: { anthropic: { signature: "c2ln" } } }],
              tool_calls: [{ id: "toolu_00", type: "function", function: { name: "weather", arguments: '{"city":"Bonn"}' } }],
            },
            { role: "tool", tool_call_id: "toolu_00", content: "Rain." },
            { role: "user", content: "And in Ulm?" },
          ],
          stop: ["END"],
          top_p: 0.9,
          tools: [WEATHER],
          tool_choice: "required",
          parallel_tool_calls: false,
          user: "u1",
        },
        MODEL,
      ),
    );
    const request = await upstream.nextRequest();

    expect(request).toMatchObject({ method: "POST", path: "/v1/messages" });
    expect(request.headers).toMatchObject({ "x-api-key": VENDOR_KEY, "anthropic-version": "2023-06-01", "user-agent": "sluice" });
    expect(request.json).toEqual({
      model: MODEL,
      max_tokens: 100,
      top_p: 0.9,
      metadata: { user_id: "u1" },
      stop_sequences: ["END"],
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What is this?" },
            { type: "image", source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgo=" } },
            { type: "image", source: { type: "url", url: "https://pictures.example/a.webp" } },
            { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "a.pdf" },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "Hm.", signature: "c2ln" },
            { type: "text", text: "I look." },
            { type: "tool_use", id: "toolu_00", name: "weather", input: { city: "Bonn" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "toolu_00", content: "Rain." },
            { type: "text", text: "And in Ulm?" },
          ],
        },
      ],
      tools: [{ name: "weather", description: "Tells it.", input_schema: WEATHER.function.parameters }],
      tool_choice: { type: "any", disable_parallel_tool_use: true },
    });
  });

  it("answers as a chat.completion, with its usage in our kinds", async () => {
    upstream.replyNext(json(anthropicMessage()));
    const answer = await chatOf().complete(call({ ...BODY, tools: [WEATHER] }, MODEL));

    expect(JSON.parse(Buffer.from(answer.bytes).toString())).toEqual(answer.completion);
    expect(answer.completion).toEqual({
      id: "msg_01",
      object: "chat.completion",
      created: expect.any(Number),
      model: "claude-test-1",
      choices: [
        {
          index: 0,
          message: {
            role: "assistant",
            content: "Let me look.",
            refusal: null,
            reasoning_content: "They want the weather.",
            reasoning_details: [
              {
                type: "reasoning.text",
                index: 0,
                text: "They want the weather.",
                extra_content: { anthropic: { signature: "c2lnbmF0dXJl" } },
              },
            ],
            tool_calls: [{ id: "toolu_01", type: "function", function: { name: "weather", arguments: '{"city":"Ulm"}' } }],
          },
          logprobs: null,
          finish_reason: "tool_calls",
        },
      ],
      usage: {
        prompt_tokens: 170,
        completion_tokens: 30,
        total_tokens: 200,
        prompt_tokens_details: { cached_tokens: 100, cache_write_tokens: 50 },
        completion_tokens_details: { reasoning_tokens: 12 },
      },
    });
    expect(answer.usage).toEqual({
      ...NO_USAGE,
      inputTextTokens: 20,
      inputCachedTokens: 100,
      inputCacheWriteTokens: 50,
      outputTextTokens: 18,
      outputReasoningTokens: 12,
    });
    expect(answer.warnings).toEqual([]);
  });

  it("streams as chat.completion.chunks, usage last", async () => {
    upstream.replyNext(anthropicSse(anthropicEvents(), { writeBytes: 7 }));
    const chunks = await readAll(await chatOf().stream(call({ ...BODY, tools: [WEATHER], stream: true }, MODEL)));

    for (const { object, bytes } of chunks) expect(Buffer.from(bytes).toString()).toBe(`data: ${JSON.stringify(object)}\n\n`);
    expect(chunks.map(({ object }) => object.choices?.[0]?.delta)).toEqual([
      { role: "assistant", reasoning_content: "They want " },
      { reasoning_content: "the weather." },
      {
        reasoning_details: [
          { type: "reasoning.text", index: 0, text: "They want the weather.", extra_content: { anthropic: { signature: "c2lnbmF0dXJl" } } },
        ],
      },
      { content: "Let me " },
      { content: "look." },
      { tool_calls: [{ index: 0, id: "toolu_01", type: "function", function: { name: "weather", arguments: "" } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"city":' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '"Ulm"}' } }] },
      {},
      undefined,
    ]);
    expect(chunks.at(-2)?.object.choices?.[0]?.finish_reason).toBe("tool_calls");
    expect(chunks.at(-1)?.object).toMatchObject({
      id: "msg_01",
      model: "claude-test-1",
      choices: [],
      usage: { prompt_tokens: 170, completion_tokens: 30 },
    });
    expect(chunks.at(-1)?.usage).toMatchObject({
      inputTextTokens: 20,
      inputCachedTokens: 100,
      inputCacheWriteTokens: 50,
      outputReasoningTokens: 12,
    });
    expect((await upstream.nextRequest()).json).toMatchObject({ stream: true });
  });

  it("thinks as hard as reasoning_effort asks", async () => {
    upstream.replyAlways(json(anthropicMessage()));
    const chat = chatOf();
    await chat.complete(call({ ...BODY, max_tokens: 5_000, reasoning_effort: "low" }, MODEL));
    await chat.complete(call({ ...BODY, reasoning_effort: "high" }, "claude-opus-5"));

    expect((await upstream.nextRequest()).json).toMatchObject({ thinking: { type: "enabled", budget_tokens: 2_048 }, max_tokens: 5_000 });
    expect((await upstream.nextRequest()).json).toMatchObject({ thinking: { type: "adaptive" }, output_config: { effort: "high" } });
  });

  it.each([
    [2_048, { thinking: { type: "enabled", budget_tokens: 1_024 }, max_tokens: 2_048 }],
    [2_047, { thinking: { type: "disabled" }, max_tokens: 2_047 }],
  ])("thinks and answers within its limit: %i tokens", async (tokens, sent) => {
    upstream.replyAlways(json(anthropicMessage()));

    await chatOf().complete(call({ ...BODY, max_tokens: tokens, reasoning_effort: "high" }, MODEL));

    expect((await upstream.nextRequest()).json).toMatchObject(sent);
  });

  it("forces JSON without a schema in words, and takes options of its own", async () => {
    upstream.replyAlways(json(anthropicMessage()));
    const body = {
      ...BODY,
      max_tokens: 3_000,
      response_format: { type: "json_object" },
      provider_options: { anthropic: { thinking: { type: "enabled", budgetTokens: 1_024 } } },
    };
    const { warnings } = await chatOf().complete(call(body, MODEL));

    expect((await upstream.nextRequest()).json).toMatchObject({
      system: [{ type: "text", text: "Answer with one JSON object and with nothing else." }],
      thinking: { type: "enabled", budget_tokens: 1_024 },
    });
    expect(warnings).toEqual([]);
  });

  it("names every option that has no effect", async () => {
    upstream.replyAlways(json(anthropicMessage()));
    const body = { ...BODY, n: 2, seed: 7, frequency_penalty: 1, logit_bias: { "1": 2 }, logprobs: false, tools: [{ type: "web_search" }] };
    const answer = await chatOf().complete(call(body, MODEL));

    const warnings = answer.warnings ?? [];
    for (const name of ["n", "seed", "frequency_penalty", "logit_bias", "tools"])
      expect(warnings.filter((text) => text.startsWith(`${name}:`))).toHaveLength(1);
    expect(warnings).toHaveLength(5);
    expect(answer.completion.warnings).toEqual(warnings);
  });

  it.each([
    [400, "invalid_request_error", "max_tokens: too large"],
    [429, "rate_limit_error", "Slow down."],
    [529, "overloaded_error", "Overloaded"],
  ])("fails with the upstream's status %s and words, once", async (status, type, message) => {
    upstream.replyAlways(json({ type: "error", error: { type, message: `${message} ${VENDOR_KEY}` } }, { status }));
    const failure = await failureOf(chatOf().complete(call(BODY, MODEL)));

    expect(failure).toMatchObject({ kind: "status", status, upstreamMessage: `${message} [redacted]` });
    expect(upstream.requests).toHaveLength(1);
  });

  it("fetches the files of one chat up to a bound for all of them, and nothing that only looks like one", async () => {
    const asked: [string, number][] = [];
    const fetchFile: FetchFile = async (url, { bytesMax }) => {
      asked.push([url, bytesMax]);
      if (bytesMax < CHAT_FILES_BYTES_MAX) throw new Error(`The URL gives more than ${bytesMax} bytes.`);
      return { bytes: Buffer.alloc(CHAT_FILES_BYTES_MAX - 5, "a"), contentType: "text/plain" };
    };
    const file = (name: string) => ({ type: "file", file: { file_data: `http://files.example/${name}.txt`, filename: name } });
    const blocks = [{ type: "web_fetch_tool_result", tool_use_id: "a", source: { type: "url", url: "no address" } }];
    const answer = { role: "assistant", content: "So.", extra_content: { anthropic: { order: ["server", "text"], blocks } } };
    const messages = [{ role: "user", content: "Hi" }, answer, { role: "user", content: [file("a"), file("b")] }];

    const error = await failureOf(chatOf({ fetchFile }).complete(call({ ...BODY, messages }, MODEL)));

    expect(error).toMatchObject({ status: 400, upstreamParam: "messages" });
    expect(error.upstreamMessage).toBe(
      `The URL gives more than 5 bytes. The files of a chat have at most ${CHAT_FILES_BYTES_MAX} bytes together.`,
    );
    expect(asked).toEqual([
      ["http://files.example/a.txt", CHAT_FILES_BYTES_MAX],
      ["http://files.example/b.txt", 5],
    ]);
  });

  it("refuses a data URL that is not well-formed", async () => {
    const content = [{ type: "image_url", image_url: { url: "data:text/plain,100%" } }];

    const error = await failureOf(chatOf().complete(call({ ...BODY, messages: [{ role: "user", content }] }, MODEL)));

    expect(error).toMatchObject({ status: 400, upstreamParam: "messages.0.content.0.image_url" });
  });

  it("fails in the terms of every provider when the connection, the bytes or the time fail it", async () => {
    const chat = chatOf();
    const hasty = chatOf({ timeouts: { totalMs: 300, idleMs: 150 } });
    upstream.replyNext(closeSocket(), raw("<html>", { headers: { "content-type": "text/html" } }), json({ odd: true }), hang(), hang());

    expect(await failureOf(chat.complete(call(BODY, MODEL)))).toMatchObject({ kind: "closed" });
    expect(await failureOf(chat.complete(call(BODY, MODEL)))).toMatchObject({ kind: "invalid-response" });
    expect(await failureOf(chat.complete(call(BODY, MODEL)))).toMatchObject({ kind: "invalid-response" });
    expect(await failureOf(hasty.complete(call(BODY, MODEL)))).toMatchObject({ kind: "timeout" });
    expect(await failureOf(hasty.stream(call(BODY, MODEL)))).toMatchObject({ kind: "timeout" });
  });

  it("reports a stream that carries nothing but comments", async () => {
    const silence = bytes(":\n".repeat(32_768));
    upstream.replyNext(sse([...Array(64).fill(silence)], { done: false, end: "hang" }));

    const failure = await failureOf(chatOf().stream(call(BODY, MODEL)).then(readAll));

    expect(failure).toMatchObject({ kind: "invalid-response", message: expect.stringContaining("1048576 bytes without content") });
  });

  it("reports a stream that breaks, falls silent or is refused on its way", async () => {
    const chat = chatOf();
    const hasty = chatOf({ timeouts: { idleMs: 1_000 } });
    const begun = anthropicEvents().slice(0, 10);
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    upstream.replyNext(
      anthropicSse(begun),
      anthropicSse(begun, { end: "cut" }),
      anthropicSse(begun, { end: "hang" }),
      anthropicSse([...begun, overloaded]),
    );

    const failures = [];
    for (const asked of [chat, chat, hasty, chat]) failures.push(await failureOf(readAll(await asked.stream(call(BODY, MODEL)))));
    expect(failures.map(({ kind, status }) => [kind, status])).toEqual([
      ["cut", undefined],
      ["cut", undefined],
      ["timeout", undefined],
      ["status", 503],
    ]);
  });

  it("closes the connection at once when the reader leaves or the call is aborted", async () => {
    upstream.replyAlways(anthropicSse(anthropicEvents().slice(0, 10), { end: "hang" }));
    const chat = chatOf();
    const left = (await chat.stream(call(BODY, MODEL)))[Symbol.asyncIterator]();
    await left.next();
    await left.return?.();
    await (await upstream.nextRequest()).closedByClient;

    const reason = new Error("gone");
    const controller = new AbortController();
    const aborted = (await chat.stream(call(BODY, MODEL, controller.signal)))[Symbol.asyncIterator]();
    await aborted.next();
    const pull = aborted.next();
    controller.abort(reason);
    await expect(pull).rejects.toBe(reason);
    await (await upstream.nextRequest()).closedByClient;

    upstream.replyAlways(hang());
    const waiting = new AbortController();
    const whole = chat.complete(call(BODY, MODEL, waiting.signal));
    const request = await upstream.nextRequest();
    waiting.abort(reason);
    await expect(whole).rejects.toBe(reason);
    await request.closedByClient;
  });

  it("uses a connection again after a whole answer and after a stream", async () => {
    const chat = chatOf();
    upstream.replyNext(
      json(anthropicMessage()),
      anthropicSse(anthropicEvents()),
      json(anthropicMessage()),
      anthropicSse(anthropicEvents()),
    );
    for (let turn = 0; turn < 2; turn += 1) {
      await chat.complete(call(BODY, MODEL));
      await readAll(await chat.stream(call(BODY, MODEL)));
      await new Promise((resolve) => setImmediate(resolve));
    }
    // One for whole answers, one for streams.
    expect(upstream.connectionsSeen()).toBe(2);
  });
});
