/** Google's client for Gemini in Python against a gateway: one process of it makes every call once. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { findGenaiPython, GENAI_PYTHON_ABSENT, GENAI_PYTHON_PROGRAM } from "../support/python-clients.js";

const python = await findGenaiPython();

describe.skipIf(python === null)(`Google's client for Python (left out where it is absent: ${GENAI_PYTHON_ABSENT})`, () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp();
  });
  afterAll(() => app.close());

  it("generates, whole and streamed, calls functions, sees pictures, counts, embeds, lists models and reads refusals", async () => {
    const env = { ...process.env, SLUICE_URL: app.baseUrl, SLUICE_KEY: app.key };
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
      refusals: [
        [401, "UNAUTHENTICATED"],
        [404, "NOT_FOUND"],
        [400, "INVALID_ARGUMENT"],
        [502, "INTERNAL"],
      ],
    });
  });
});
