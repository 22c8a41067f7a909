/** Google's client for Gemini in Python against a gateway: one process of it makes every call once. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { LIMITED, LIMITED_MODEL, useUpLimited } from "../support/limited-model.js";
import { errorBody } from "../support/openai-bodies.js";
import { findGenaiPython, GENAI_PYTHON_ABSENT, GENAI_PYTHON_PROGRAM } from "../support/python-clients.js";
import { errorReply, json } from "../support/upstream-replies.js";

const python = await findGenaiPython();

/** An upstream's. */
const REFUSALS = [errorReply(400, "No such thing."), json(errorBody("Slow down."), { status: 429 })];
const REFUSED = [
  [401, "UNAUTHENTICATED"],
  [402, "FAILED_PRECONDITION"],
  [404, "NOT_FOUND"],
  [429, "RESOURCE_EXHAUSTED"],
  [400, "INVALID_ARGUMENT"],
  [400, "INVALID_ARGUMENT"],
  [502, "INTERNAL"],
];

describe.skipIf(python === null)(`Google's client for Python (left out where it is absent: ${GENAI_PYTHON_ABSENT})`, () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ models: [LIMITED_MODEL] });
    await useUpLimited(app);
  });
  afterAll(() => app.close());

  it("generates, whole and streamed, calls functions, sees pictures, counts, embeds, lists models and reads refusals", async () => {
    app.upstream.replyNext(...REFUSALS, ...REFUSALS);
    const env = { ...process.env, SLUICE_URL: app.baseUrl, SLUICE_KEY: app.key, SLUICE_LIMITED: LIMITED };
    const { stdout } = await promisify(execFile)(python ?? "", [GENAI_PYTHON_PROGRAM], { env });

    expect(JSON.parse(stdout)).toEqual({
      generate: ["Hello", "STOP", true],
      stream: "one two",
      calls: [
        ["alpha", { count: 1 }],
        ["beta", { count: 1 }],
      ],
      functions: true,
      picture: "picture",
      count: true,
      embed: [4, 4],
      get: "models/sandbox/text",
      list: true,
      refusals: REFUSED,
      refusals_streamed: REFUSED,
      broken: [502, "INTERNAL"],
      cancelled: "one",
    });
  });
});
