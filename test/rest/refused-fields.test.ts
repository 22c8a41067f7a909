/** Fields that an upstream refuses: the request is sent once more without them, and the upstream is not sent them again. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { expectNothingHeld } from "../e2e/money.js";
import { executeText, ok } from "../graphql/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { errorBody } from "../support/openai-bodies.js";
import { picture } from "../support/pictures.js";
import { errorReply, handler, json, type Reply } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";

type Loose = Readonly<Record<string, unknown>>;

const PRICES = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
const HI = [{ role: "user", content: "Hi" }];
/** A model for each test, because a learned field lasts. */
const MODELS = 24;

let app: TestApp;
let client: Client;
let used = 0;

beforeAll(async () => {
  const entry = (index: number) => ({
    ...{ id: `strict/m${index}`, title: "m", modality: "text", upstream: "acme", upstreamModel: `m${index}`, prices: PRICES },
    // So that no request needs a cap of the gateway.
    maxOutputTokens: 100,
    ...(index === 0 && { fallbacks: ["acme/chat"] }),
  });
  const image = { id: "strict/image", title: "i", modality: "image", upstream: "acme", upstreamModel: "deployment-7" };
  app = await createTestApp({
    models: [...Array.from({ length: MODELS }, (_, index) => entry(index)), { ...image, prices: { completionImagePrice: "0.04" } }],
  });
  client = createClient(app.baseUrl, app.key);
});
afterEach(async () => {
  app.upstream.replyAlways(null);
  await expectNothingHeld(app);
});
afterAll(() => app.close());

function nextModel(): string {
  used += 1;
  return `strict/m${used}`;
}
const sentTo = (model: string) =>
  app.upstream.requests.map((request) => request.json as Loose).filter((body) => body.model === model.slice("strict/".length));
const chat = (body: Loose) => client.post("/v1/chat/completions", { messages: HI, ...body });

/** Refuses each request for which `refusal` is not null. */
function refusing(
  refusal: (body: Loose) => { readonly status: number; readonly body: unknown } | null,
  otherwise: (body: Loose) => string,
): Reply {
  return handler((request, response) => {
    const body = request.json as Loose;
    const refused = refusal(body);
    if (refused) return void response.writeHead(refused.status, { "content-type": "application/json" }).end(JSON.stringify(refused.body));
    const type = body.stream === true ? "text/event-stream" : "application/json";
    return void response.writeHead(200, { "content-type": type }).end(otherwise(body));
  });
}

const USAGE = { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 };
function answerTo(body: Loose): string {
  if (body.stream !== true)
    return JSON.stringify({
      id: "c",
      choices: [{ index: 0, message: { role: "assistant", content: "Yes." }, finish_reason: "stop" }],
      usage: USAGE,
    });
  const choice = (delta: Loose, reason: string | null) => ({ id: "c", choices: [{ index: 0, delta, finish_reason: reason }] });
  const chunks = [choice({ role: "assistant", content: "Yes." }, null), choice({}, "stop"), { id: "c", choices: [], usage: USAGE }];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
}

const openAi = (message: string, param: string | null = null) => ({ status: 400, body: errorBody(message, { param }) });
const pydantic = (...loc: (string | number)[]) => ({
  status: 422,
  body: { detail: [{ type: "extra_forbidden", loc: ["body", ...loc], msg: "Extra inputs are not permitted", input: 1 }] },
});
const hasMessageField = ({ messages }: Loose, name: string) =>
  (messages as readonly Loose[]).some((message) => Object.hasOwn(message, name));
const CALLED = [
  ...HI,
  {
    role: "assistant",
    content: null,
    reasoning_content: "hm",
    tool_calls: [{ id: "c1", type: "function", function: { name: "f", arguments: "{}" } }],
  },
  { role: "tool", tool_call_id: "c1", content: "1" },
];
const UNTHINKING = CALLED.map(({ reasoning_content: _, ...message }: Loose) => message);

interface Case {
  readonly what: string;
  readonly request: Loose;
  readonly refusal: (body: Loose) => { readonly status: number; readonly body: unknown } | null;
  /** The fields that come instead, of the request that is taken. */
  readonly taken: Loose;
  readonly field: string;
  readonly warnings?: string;
}

const CASES: readonly Case[] = [
  {
    what: "stream options, by the name in OpenAI's error",
    request: { stream: true },
    refusal: ({ stream_options: options }) => (options ? openAi("Unknown parameter: 'stream_options'", "stream_options") : null),
    taken: { stream: true },
    field: "stream_options",
  },
  {
    what: "stream options, by the words of Azure's error",
    request: { stream: true },
    refusal: ({ stream_options: options }) => (options ? openAi("Unrecognized request argument supplied: stream_options") : null),
    taken: { stream: true },
    field: "stream_options",
  },
  {
    what: "an option within the stream options, by pydantic's place",
    request: { stream: true },
    refusal: ({ stream_options: options }) => (options ? pydantic("stream_options", "include_usage") : null),
    taken: { stream: true },
    field: "stream_options",
  },
  {
    what: "the newer name of the cap, in pydantic's list within a message",
    request: { max_completion_tokens: 50 },
    refusal: ({ max_completion_tokens: cap }) =>
      cap
        ? { status: 422, body: { object: "error", message: pydantic("max_completion_tokens").body, type: "invalid_request_error" } }
        : null,
    taken: { max_tokens: 50 },
    field: "max_completion_tokens",
  },
  {
    what: "the newer name of the cap, in pydantic's list within a text",
    request: { max_completion_tokens: 50 },
    refusal: ({ max_completion_tokens: cap }) =>
      cap ? { status: 422, body: { message: JSON.stringify(pydantic("max_completion_tokens").body) } } : null,
    taken: { max_tokens: 50 },
    field: "max_completion_tokens",
  },
  {
    what: "the older name of the cap, though the error names both",
    request: { max_tokens: 50 },
    refusal: ({ max_tokens: cap }) =>
      cap
        ? openAi("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", "max_tokens")
        : null,
    taken: { max_completion_tokens: 50 },
    field: "max_tokens",
  },
  {
    what: "thoughts, by Cerebras's words",
    request: { messages: CALLED },
    refusal: (body) =>
      hasMessageField(body, "reasoning_content")
        ? {
            status: 400,
            body: {
              message: "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported",
              type: "invalid_request_error",
              param: "validation_error",
              code: "wrong_api_format",
            },
          }
        : null,
    taken: { messages: UNTHINKING },
    field: "reasoning_content",
    warnings: "messages.1.reasoning_content: left out, because this model takes no earlier thoughts.",
  },
  {
    what: "thoughts, by pydantic's place",
    request: { messages: CALLED, stream: true },
    refusal: (body) => (hasMessageField(body, "reasoning_content") ? pydantic("messages", 1, "assistant", "reasoning_content") : null),
    taken: { messages: UNTHINKING, stream_options: { include_usage: true } },
    field: "reasoning_content",
    warnings: "messages.1.reasoning_content: left out, because this model takes no earlier thoughts.",
  },
  {
    what: "missing thoughts",
    request: { messages: UNTHINKING },
    refusal: (body) =>
      hasMessageField(body, "reasoning_content")
        ? null
        : openAi("The `reasoning_content` in the thinking mode must be passed back to the API."),
    taken: { messages: CALLED.map((message) => ("reasoning_content" in message ? { ...message, reasoning_content: " " } : message)) },
    field: "missing reasoning_content",
    warnings: "messages.reasoning_content: this model gets its earlier tool calls without their thoughts, because none were sent.",
  },
  {
    what: "parallel tool calls, which are the default",
    request: { tools: [{ type: "function", function: { name: "f" } }], parallel_tool_calls: true },
    refusal: ({ parallel_tool_calls: parallel }) =>
      parallel === undefined ? null : openAi("property 'parallel_tool_calls' is unsupported"),
    taken: { tools: [{ type: "function", function: { name: "f" } }] },
    field: "parallel_tool_calls",
    warnings: "parallel_tool_calls has no effect on this model.",
  },
  {
    what: "a field about storage",
    request: { store: false, user: "u1" },
    refusal: ({ store }) => (store === undefined ? null : openAi("Extra fields: 'store' is not allowed", "store")),
    taken: { user: "u1" },
    field: "store",
    warnings: "store has no effect on this model.",
  },
];

describe("a refusal of a field", () => {
  it.each(CASES)("is asked again once without it and remembered: $what", async ({ request, refusal, taken, field, warnings }) => {
    const model = nextModel();
    app.upstream.replyAlways(refusing(refusal, answerTo));

    const first = await chat({ model, ...request });
    const second = await chat({ model, ...request });

    for (const answer of [first, second]) {
      expect(answer.status, answer.text).toBe(200);
      expect(answer.text).toContain("Yes.");
      expect(answer.headers.get("x-warnings")).toBe(warnings ?? null);
    }
    const sent = sentTo(model);
    expect(sent).toHaveLength(3);
    const upstreamModel = model.slice("strict/".length);
    const expected = { messages: HI, stream: false, ...request, ...taken, model: upstreamModel };
    const names = Object.keys(request).filter((name) => !Object.hasOwn(taken, name) && name !== "user");
    for (const body of sent.slice(1)) expect(body).toEqual(without(expected, ...names.filter((name) => name !== "stream")));
    expect(await refusedFields(upstreamModel)).toEqual([{ upstreamId: "acme", upstreamModel, field }]);
    expect(app.logs).toContainEqual(
      expect.objectContaining({ event: "upstream-field-refused", upstream: "acme", model: upstreamModel, field }),
    );
  });

  it("charges the answer alone, and no other model of the upstream is affected", async () => {
    const [model, other] = [nextModel(), nextModel()];
    app.upstream.replyAlways(
      refusing(({ stream_options: options }) => (options ? openAi("Unknown parameter: 'stream_options'") : null), answerTo),
    );
    const before = await app.database.prisma.usageRecord.count();

    const answer = await chat({ model, stream: true });
    await expectNothingHeld(app);

    expect(answer.text).toContain('"cost":0.000018');
    await expect.poll(() => app.database.prisma.usageRecord.count()).toBe(before + 1);
    await chat({ model: other, stream: true });
    expect(sentTo(other).map((body) => body.stream_options !== undefined)).toEqual([true, false]);
  });

  it("is passed on when it comes a second time, remembers nothing and charges nothing", async () => {
    const model = nextModel();
    app.upstream.replyAlways(errorReply(400, "Unknown parameter: 'stream_options'", "stream_options"));
    const before = await app.database.prisma.usageRecord.count();

    const answer = await chat({ model, stream: true });

    expect(answer.status).toBe(400);
    expect(answer.json()).toMatchObject({ error: { message: expect.stringContaining("stream_options"), param: "stream_options" } });
    expect(sentTo(model)).toHaveLength(2);
    expect(await refusedFields(model.slice(7))).toEqual([]);
    await expectNothingHeld(app);
    expect(await app.database.prisma.usageRecord.count()).toBe(before);
  });

  it("is passed on when another field follows, and each request comes one field further", async () => {
    const model = nextModel();
    const refuseOne = (body: Loose) => {
      if (body.stream_options !== undefined) return openAi("Unknown parameter: 'stream_options'", "stream_options");
      return body.store === undefined ? null : openAi("Unknown parameter: 'store'", "store");
    };
    app.upstream.replyAlways(refusing(refuseOne, answerTo));

    expect((await chat({ model, stream: true, store: false })).status).toBe(400);
    expect((await chat({ model, stream: true, store: false })).status).toBe(200);
    expect((await chat({ model, stream: true, store: false })).status).toBe(200);
    expect(sentTo(model)).toHaveLength(5);
  });

  it.each([
    ["a value", { max_tokens: 50 }, openAi("max_tokens is too large: 50. This model takes at most 40.", "max_tokens")],
    ["a field whose loss changes the answer", { logit_bias: { 1: 1 } }, openAi("Unknown parameter: 'logit_bias'", "logit_bias")],
    [
      "parallel calls that the caller forbids",
      { tools: [{ type: "function", function: { name: "f" } }], parallel_tool_calls: false },
      openAi("property 'parallel_tool_calls' is unsupported", "parallel_tool_calls"),
    ],
    ["a field that was not sent", {}, openAi("Unknown parameter: 'store'", "store")],
    ["a word that is no field", { user: "u1" }, openAi("The user role must alternate with others: not supported.")],
  ])("is passed on at once for %s", async (_what, request, refusal) => {
    const model = nextModel();
    app.upstream.replyAlways(json(refusal.body, { status: refusal.status }));

    const answer = await chat({ model, ...request });

    expect(answer.status).toBe(400);
    expect(sentTo(model)).toHaveLength(1);
  });

  it("leaves the fallback to failures", async () => {
    app.upstream.replyNext(json(openAi("Unknown parameter: 'store'", "store").body, { status: 400 }), errorReply(503));

    const answer = await chat({ model: "strict/m0", store: false });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-model-used")).toBe("acme/chat");
  });

  it("is counted in the metrics by upstream and field", async () => {
    const text = await app.infrastructure.metrics.read();

    expect(text).toMatch(/^sluice_upstream_refused_fields_total\{upstream="acme",field="stream_options"\} [1-9]/m);
  });
});

async function refusedFields(upstreamModel: string): Promise<readonly Loose[]> {
  const query = "{ gateway { refusedFields { upstreamId upstreamModel field learnedAt expiresAt } } }";
  const { gateway } = ok(await executeText(app, { query })) as unknown as { gateway: { refusedFields: readonly Loose[] } };
  const fields = gateway.refusedFields.filter((each) => each.upstreamModel === upstreamModel);
  for (const { learnedAt, expiresAt } of fields) {
    expect(Date.parse(String(expiresAt)) - Date.parse(String(learnedAt))).toBe(24 * 60 * 60 * 1_000);
  }
  return fields.map(({ learnedAt: _, expiresAt: __, ...field }) => field);
}

function without(body: Loose, ...names: readonly string[]): Loose {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !names.includes(name)));
}

describe("an image", () => {
  it("is asked for again without the form of the answer that the gateway adds", async () => {
    const image = { data: [{ b64_json: (await picture()).toString("base64") }] };
    app.upstream.replyAlways(
      refusing(
        ({ response_format: format }) => (format ? openAi("Unknown parameter: 'response_format'.", "response_format") : null),
        () => JSON.stringify(image),
      ),
    );

    const ask = () => client.post("/v1/images/generations", { model: "strict/image", prompt: "A cat" });
    for (const answer of [await ask(), await ask()]) expect(answer.status, answer.text).toBe(200);

    const sent = app.upstream.requests.map((request) => request.json as Loose).filter(({ model }) => model === "deployment-7");
    expect(sent.map((body) => body.response_format !== undefined)).toEqual([true, false, false]);
    expect(await refusedFields("deployment-7")).toEqual([{ upstreamId: "acme", upstreamModel: "deployment-7", field: "response_format" }]);
  });
});
