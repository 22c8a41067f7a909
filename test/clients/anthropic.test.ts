/** Anthropic's client, unmodified: each method of the table against an upstream of its own format and one of OpenAI's chat format. */
import Anthropic, { APIError } from "@anthropic-ai/sdk";
import type { MessageCreateParamsNonStreaming, MessageParam, Tool } from "@anthropic-ai/sdk/resources/messages";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VENDOR_KEY } from "../support/ai-sdk.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { LIMITED, LIMITED_MODEL, useUpLimited } from "../support/limited-model.js";
import { claudeReply, openAiReply } from "../support/message-sides.js";
import { errorBody } from "../support/openai-bodies.js";
import { refusalOf } from "../support/strict-anthropic.js";
import { errorReply, json, type Reply } from "../support/upstream-replies.js";

type Loose = Record<string, unknown>;

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const TOOLS: Tool[] = ["alpha", "beta"].map((name) => ({ name, input_schema: { type: "object", properties: { n: { type: "integer" } } } }));

let app: TestApp;
let claude: FakeUpstream;
beforeAll(async () => {
  claude = await startFakeUpstream();
  const prices = { promptTextPrice: "0.000003", completionTextPrice: "0.000015" };
  app = await createTestApp({
    upstreams: [{ id: "claude", wireFormat: "anthropic", baseUrl: claude.baseUrl, apiKey: VENDOR_KEY }],
    models: [
      {
        ...{ id: "acme/claude", title: "Claude", modality: "text", upstream: "claude", upstreamModel: "claude-opus-5", prices },
        capabilities: ["tools", "reasoning"],
      },
      LIMITED_MODEL,
    ],
  });
  await useUpLimited(app);
});
afterAll(async () => {
  await app.close();
  await claude.close();
});

const clientOf = (apiKey = app.key) => new Anthropic({ apiKey, baseURL: app.baseUrl, maxRetries: 0 });

/** An upstream, its model here, and its answers. */
interface Side {
  readonly model: string;
  readonly upstream: () => FakeUpstream;
  readonly reply: typeof claudeReply;
}

const CLAUDE: Side = { model: "acme/claude", upstream: () => claude, reply: claudeReply };
const OPENAI: Side = { model: "acme/chat", upstream: () => app.upstream, reply: openAiReply };

const bodyOf = ({ model }: Side, content: MessageParam["content"] = "Hi"): MessageCreateParamsNonStreaming => ({
  model,
  max_tokens: 4_000,
  messages: [{ role: "user", content }],
});

interface Refused {
  readonly key?: string;
  readonly body?: Partial<MessageCreateParamsNonStreaming>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly reply?: Reply;
}

/** Each method, and a summary of its result. */
const METHODS: Readonly<Record<string, (side: Side) => Promise<unknown>>> = {
  "messages.create": async (side) => {
    side.upstream().replyNext(side.reply("Hello.", {}));
    const { content, stop_reason: reason, usage, _request_id: id } = await clientOf().messages.create(bodyOf(side));
    return [content, reason, usage.output_tokens > 0, typeof id];
  },
  "messages.stream": async (side) => {
    side.upstream().replyNext(side.reply("Hello.", { isStreamed: true }));
    const stream = clientOf().messages.stream(bodyOf(side));
    const events: string[] = [];
    for await (const { type } of stream) events.push(type);
    const { content, stop_reason: reason } = await stream.finalMessage();
    return [events.at(0), events.at(-1), content.map((block) => (block.type === "text" ? block.text : block.type)), reason];
  },
  "messages.create with tools in parallel": async (side) => {
    side.upstream().replyNext(side.reply("", { calls: ["alpha", "beta"] }));
    const { content } = await clientOf().messages.create({ ...bodyOf(side), tools: TOOLS });
    return content.map((block) => (block.type === "tool_use" ? [block.name, block.input] : block.type));
  },
  "messages.stream with tools in parallel": async (side) => {
    side.upstream().replyNext(side.reply("", { isStreamed: true, calls: ["alpha", "beta"] }));
    const { content } = await clientOf()
      .messages.stream({ ...bodyOf(side), tools: TOOLS })
      .finalMessage();
    return content.map((block) => (block.type === "tool_use" ? [block.name, block.input] : block.type));
  },
  "messages.create with a picture and a PDF": async (side) => {
    side.upstream().replyNext(side.reply("Seen.", {}));
    const { content } = await clientOf().messages.create(
      bodyOf(side, [
        { type: "image", source: { type: "base64", media_type: "image/png", data: PNG } },
        { type: "document", source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" }, title: "A" },
      ]),
    );
    return content.map((block) => (block.type === "text" ? block.text : block.type));
  },
  "messages.create with thoughts over three turns": async (side) => {
    const messages: MessageParam[] = [{ role: "user", content: "Hi" }];
    const types: string[][] = [];
    for (const calls of [["alpha"], ["beta"], []]) {
      side.upstream().replyNext(side.reply("So.", { calls, thought: "Hm." }));
      const thinking = { type: "enabled", budget_tokens: 2_000 } as const;
      const { content } = await clientOf().messages.create({ ...bodyOf(side), messages, tools: TOOLS, thinking });
      types.push(content.map(({ type }) => type));
      messages.push({ role: "assistant", content: content as MessageParam["content"] });
      const results = calls.map((name) => ({ type: "tool_result" as const, tool_use_id: `call_${name}`, content: "42" }));
      if (results.length > 0) messages.push({ role: "user", content: results });
    }
    return types;
  },
  "messages.countTokens": async (side) => {
    const { messages, model } = bodyOf(side, "word ".repeat(100));
    return (await clientOf().messages.countTokens({ model, messages })).input_tokens > 100;
  },
  "models.list": async ({ model }) => {
    const ids: string[] = [];
    for await (const { id } of clientOf().models.list({ limit: 2 })) ids.push(id);
    return [ids.length > 2, new Set(ids).size === ids.length, ids.includes(model)];
  },
  "models.retrieve": async ({ model }) => (await clientOf().models.retrieve(model)).id === model,
};

const CALLED = [
  ["alpha", { n: 0 }],
  ["beta", { n: 1 }],
];
const THOUGHTS = [
  ["thinking", "text", "tool_use"],
  ["thinking", "text", "tool_use"],
  ["thinking", "text"],
];

describe.each([
  ["Anthropic", CLAUDE],
  ["OpenAI", OPENAI],
])("@anthropic-ai/sdk with an upstream of the format of %s", (_, side) => {
  it.each<[string, unknown]>([
    ["messages.create", [[{ type: "text", text: "Hello." }], "end_turn", true, "string"]],
    ["messages.stream", ["message_start", "message_stop", ["Hello."], "end_turn"]],
    ["messages.create with tools in parallel", CALLED],
    ["messages.stream with tools in parallel", CALLED],
    ["messages.create with a picture and a PDF", ["Seen."]],
    ["messages.create with thoughts over three turns", THOUGHTS],
    ["messages.countTokens", true],
    ["models.list", [true, true, true]],
    ["models.retrieve", true],
  ])("%s", async (name, expected) => {
    const before = claude.requests.length;

    expect(await METHODS[name]?.(side)).toEqual(expected);
    for (const { json: sent } of claude.requests.slice(before)) expect(refusalOf(sent as Loose)).toBeNull();
  });

  it("ends a stream that is cancelled", async () => {
    side.upstream().replyNext(side.reply("Hello.", { isStreamed: true }));
    const stream = clientOf().messages.stream(bodyOf(side));

    await expect(
      (async () => {
        for await (const _ of stream) stream.abort();
      })(),
    ).rejects.toThrow("aborted");
  });

  describe.each([
    ["whole", (client: Anthropic, body: MessageCreateParamsNonStreaming, options: object) => client.messages.create(body, options)],
    [
      "streamed",
      (client: Anthropic, body: MessageCreateParamsNonStreaming, options: object) => client.messages.stream(body, options).finalMessage(),
    ],
  ])("%s", (_form, send) => {
    it.each<[number, string, Refused]>([
      [401, "authentication_error", { key: "sk-ant-none" }],
      [400, "invalid_request_error", { body: { max_tokens: 0 } }],
      [404, "not_found_error", { body: { model: "claude-none" } }],
      [402, "billing_error", { headers: { "x-max-cost": "0.000000001" } }],
      [429, "rate_limit_error", { body: { model: LIMITED } }],
      [400, "invalid_request_error", { reply: errorReply(400, "max_tokens: too many") }],
      [502, "api_error", { reply: json(errorBody("Slow down."), { status: 429, headers: { "retry-after": "7" } }) }],
    ])("reports %d %s", async (status, type, { key, body = {}, headers, reply }) => {
      if (reply) side.upstream().replyNext(reply);
      const error = (await send(clientOf(key), { ...bodyOf(side), ...body }, { headers }).catch((thrown: unknown) => thrown)) as APIError;

      expect(error).toBeInstanceOf(APIError);
      expect([error.status, (error.error as { error: Loose }).error.type, typeof error.requestID]).toEqual([status, type, "string"]);
      if (status === 429 || status === 502) expect(error.headers?.get("retry-after")).toMatch(/^[1-9]/);
    });
  });
});
