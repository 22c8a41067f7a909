/** The OpenAI client for Python against a gateway: one process of it makes every call once. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { LIMITED, LIMITED_MODEL, useUpLimited } from "../support/limited-model.js";
import { errorBody } from "../support/openai-bodies.js";
import { findOpenAiPython, OPENAI_PYTHON_ABSENT, OPENAI_PYTHON_PROGRAM } from "../support/python-clients.js";
import { errorReply, json } from "../support/upstream-replies.js";

const python = await findOpenAiPython();

const FORMS = ["chat", "chat_streamed", "completions", "completions_streamed", "responses", "responses_streamed"];
const REFUSED = [
  [401, "UNAUTHORIZED", "AuthenticationError", false],
  [402, "MAX_COST_EXCEEDED", "APIStatusError", false],
  [429, "RATE_LIMITED", "RateLimitError", true],
  [400, "BAD_REQUEST", "BadRequestError", false],
  // The upstream's own.
  [400, "BAD_REQUEST", "BadRequestError", false],
  [502, "UPSTREAM_ERROR", "InternalServerError", true],
];

describe.skipIf(python === null)(`the OpenAI client for Python (left out where it is absent: ${OPENAI_PYTHON_ABSENT})`, () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ models: [LIMITED_MODEL] });
    await useUpLimited(app);
  });
  afterAll(() => app.close());

  it("chats, whole and streamed, makes responses, vectors, pictures and speech, hears it, and reads refusals", async () => {
    const refusals = [errorReply(400, "No such thing."), json(errorBody("Slow down."), { status: 429, headers: { "retry-after": "7" } })];
    app.upstream.replyNext(...FORMS.flatMap(() => refusals));
    const env = { ...process.env, SLUICE_URL: `${app.baseUrl}/v1`, SLUICE_KEY: app.key, SLUICE_LIMITED: LIMITED };
    const { stdout } = await promisify(execFile)(python ?? "", [OPENAI_PYTHON_PROGRAM], { env });

    const hello = "Hello from Python";
    expect(JSON.parse(stdout)).toEqual({
      version: expect.any(String),
      models: expect.arrayContaining(["sandbox/text", "acme/chat"]),
      chat: [hello, true],
      chat_stream: [hello, true],
      responses: [hello, expect.stringContaining("hm"), ["shell"], expect.stringMatching(/^tools: web_search left out/)],
      responses_stream: [hello, hello],
      embeddings: [2, true],
      image: true,
      speech: "RIFF",
      transcription: expect.stringMatching(/hello/i),
      refusal: [400, "previous_response_id", "BAD_REQUEST"],
      refusals: Object.fromEntries(FORMS.map((form) => [form, REFUSED])),
      cancelled: ["chat", "completions", "responses"],
      wrong_base_url: expect.stringContaining("Did you mean POST /v1/chat/completions?"),
    });
  });
});
