/** Refusals and failures in the format of each face, whole and streamed: the status, the format's own type, and how a stream that began ends. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { LIMITED, LIMITED_MODEL, useUpLimited } from "../support/limited-model.js";
import { chatChunk, errorBody } from "../support/openai-bodies.js";
import { errorReply, json, type Reply, sse } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, type RequestOptions } from "./client.js";

type Loose = Record<string, unknown>;

let app: TestApp;
let client: Client;
beforeAll(async () => {
  app = await createTestApp({ models: [LIMITED_MODEL] });
  client = createClient(app.baseUrl, app.key);
  await useUpLimited(app);
});
afterAll(() => app.close());

interface Face {
  readonly ask: (model: string, options?: RequestOptions & { readonly isInvalid?: boolean }) => Promise<Answer>;
  /** The format's own word in an error, and the gateway's code. */
  readonly read: (error: Loose) => readonly [word: unknown, code: unknown];
  readonly words: Readonly<Record<number, string>>;
}

const OPENAI_WORDS = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "insufficient_quota",
  404: "invalid_request_error",
  429: "rate_limit_error",
  502: "api_error",
};
const readOpenAi: Face["read"] = ({ type, code }) => [type, code];

const prompt = "Hi";
const asked = [{ role: "user", content: prompt }];

function openAi(path: string, body: object): Face {
  return {
    ask: (model, { isInvalid, ...options } = {}) => client.post(path, { model, ...body, ...(isInvalid && { temperature: 9 }) }, options),
    read: readOpenAi,
    words: OPENAI_WORDS,
  };
}

const MESSAGES: Omit<Face, "ask"> = {
  read: ({ type, code }) => [type, code],
  words: {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    404: "not_found_error",
    429: "rate_limit_error",
    502: "api_error",
  },
};

function messages(body: object): Face {
  return {
    ...MESSAGES,
    ask: (model, { isInvalid, ...options } = {}) =>
      client.post("/v1/messages", { model, max_tokens: isInvalid ? 0 : 50, messages: asked, ...body }, options),
  };
}

function gemini(method: string): Face {
  return {
    ask: (model, { isInvalid, ...options } = {}) =>
      client.post(
        `/v1beta/models/${model}:${method}`,
        { contents: [{ parts: [{ text: prompt }] }], generationConfig: { temperature: isInvalid ? 9 : 1 } },
        options,
      ),
    read: ({ status, reason }) => [status, reason],
    words: {
      400: "INVALID_ARGUMENT",
      401: "UNAUTHENTICATED",
      402: "FAILED_PRECONDITION",
      404: "NOT_FOUND",
      429: "RESOURCE_EXHAUSTED",
      502: "INTERNAL",
    },
  };
}

const FACES: readonly (readonly [string, Face])[] = [
  ["chat completions", openAi("/v1/chat/completions", { messages: asked })],
  ["chat completions, streamed", openAi("/v1/chat/completions", { messages: asked, stream: true })],
  ["completions", openAi("/v1/completions", { prompt })],
  ["completions, streamed", openAi("/v1/completions", { prompt, stream: true })],
  ["responses", openAi("/v1/responses", { input: prompt })],
  ["responses, streamed", openAi("/v1/responses", { input: prompt, stream: true })],
  ["messages", messages({})],
  ["messages, streamed", messages({ stream: true })],
  ["generateContent", gemini("generateContent")],
  ["streamGenerateContent", gemini("streamGenerateContent?alt=sse")],
];
const STREAMS = FACES.filter(([name]) => name.includes("stream"));

const FREE = "acme/free";
const REFUSED_429 = json(errorBody("Slow down."), { status: 429, headers: { "retry-after": "7" } });

interface Refusal {
  readonly name: string;
  readonly status: number;
  readonly code: string;
  readonly reply?: Reply;
  readonly model?: string;
  readonly options?: RequestOptions & { readonly isInvalid?: boolean };
  /** Seconds; absent: no such header. */
  readonly retryAfter?: unknown;
}

const REFUSALS: readonly Refusal[] = [
  { name: "a wrong key", status: 401, code: "UNAUTHORIZED", options: { key: "sk_wrong" } },
  {
    name: "too low a bound of its cost",
    status: 402,
    code: "MAX_COST_EXCEEDED",
    model: "acme/dear",
    options: { headers: { "x-max-cost": "0.000001" } },
  },
  { name: "an invalid field", status: 400, code: "BAD_REQUEST", options: { isInvalid: true } },
  {
    name: "the gateway's own rate limit",
    status: 429,
    code: "RATE_LIMITED",
    model: LIMITED,
    retryAfter: expect.stringMatching(/^[1-9]\d*$/),
  },
  { name: "an upstream's 400", status: 400, code: "BAD_REQUEST", reply: errorReply(400, "No such thing.") },
  { name: "an upstream's 429", status: 502, code: "UPSTREAM_ERROR", reply: REFUSED_429, retryAfter: "7" },
  { name: "an upstream's 401", status: 502, code: "UPSTREAM_ERROR", reply: errorReply(401) },
];

describe.each(FACES)("%s", (_, { ask, read, words }) => {
  it.each(REFUSALS.map((refusal) => [refusal.status, refusal.name, refusal] as const))(
    "answers %d to %s",
    async (status, _name, refusal) => {
      const { code, reply, model = FREE, options, retryAfter } = refusal;
      if (reply) app.upstream.replyNext(reply);

      const answer = await ask(model, options);
      const { error } = answer.json<{ error: Loose }>();

      expect([answer.status, ...read(error)]).toEqual([status, words[status], code]);
      expect(answer.headers.get("content-type")).toContain("application/json");
      expect(answer.headers.get("retry-after")).toEqual(retryAfter ?? null);
    },
  );

  it("answers an unknown model in the words of its format", async () => {
    const answer = await ask("acme/none");

    expect(answer.status).toBeOneOf([400, 404]);
    expect(read(answer.json<{ error: Loose }>().error)[0]).toBe(words[answer.status]);
  });
});

describe.each(STREAMS)("%s", (_, { ask, read, words }) => {
  it("ends with the format's error when its upstream fails after the first text", async () => {
    const failed = { error: { message: "Overloaded.", type: "server_error", code: null } };
    app.upstream.replyNext(sse([chatChunk({ content: "Hel" }), failed], { done: false }));

    const answer = await ask(FREE);
    // Responses have a last event of their own after it.
    const line = answer.text.split("\n").findLast((each) => each.startsWith("data: ") && each.includes('"requestId"')) ?? "";
    const { error } = JSON.parse(line.slice("data: ".length)) as { error: Loose };

    expect(answer.status).toBe(200);
    expect(answer.text).toContain("Hel");
    expect(read(error)).toEqual([words[502], "UPSTREAM_ERROR"]);
    expect(answer.text).not.toContain("[DONE]");
  });
});
