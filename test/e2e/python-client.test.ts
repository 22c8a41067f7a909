/** The OpenAI client for Python against a gateway: one process of it makes every call once. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { findOpenAiPython, OPENAI_PYTHON_ABSENT, OPENAI_PYTHON_PROGRAM } from "../support/python-clients.js";

const python = await findOpenAiPython();

describe.skipIf(python === null)(`the OpenAI client for Python (left out where it is absent: ${OPENAI_PYTHON_ABSENT})`, () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp();
  });
  afterAll(() => app.close());

  it("chats, whole and streamed, makes responses, vectors, pictures and speech, hears it, and reads refusals", async () => {
    const env = { ...process.env, SLUICE_URL: `${app.baseUrl}/v1`, SLUICE_KEY: app.key };
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
      wrong_base_url: expect.stringContaining("Did you mean POST /v1/chat/completions?"),
    });
  });
});
