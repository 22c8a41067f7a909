/** Anthropic's client for Python: one process of it makes every call once, against an upstream of its own format and one of OpenAI's chat format. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { VENDOR_KEY } from "../support/ai-sdk.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { LIMITED, LIMITED_MODEL, useUpLimited } from "../support/limited-model.js";
import { claudeReply, openAiReply } from "../support/message-sides.js";
import { errorBody } from "../support/openai-bodies.js";
import { ANTHROPIC_PYTHON_ABSENT, ANTHROPIC_PYTHON_PROGRAM, findAnthropicPython } from "../support/python-clients.js";
import { refusalOf } from "../support/strict-anthropic.js";
import { errorReply, json, type Reply } from "../support/upstream-replies.js";

const python = await findAnthropicPython();

/** Answers in the order of the program's calls. */
function repliesOf(reply: typeof claudeReply): Reply[] {
  const isStreamed = true;
  const called = { calls: ["alpha", "beta"] };
  const refused = [
    errorReply(400, "max_tokens: too many"),
    json(errorBody("Slow down."), { status: 429, headers: { "retry-after": "7" } }),
  ];
  return [
    reply("Hello."),
    reply("Hello.", { isStreamed }),
    reply("Hello.", { isStreamed }),
    reply("", called),
    reply("", { ...called, isStreamed }),
    reply("Seen."),
    ...[["alpha"], ["beta"], []].map((calls) => reply("So.", { calls, thought: "Hm.", isStreamed })),
    reply("Hello.", { isStreamed }),
    ...refused,
    ...refused,
  ];
}

const CALLS = [
  ["alpha", { n: 0 }],
  ["beta", { n: 1 }],
];
const REFUSED = [
  [401, "authentication_error", "AuthenticationError", false],
  [402, "billing_error", "PaymentRequiredError", false],
  [404, "not_found_error", "NotFoundError", false],
  [429, "rate_limit_error", "RateLimitError", true],
  [400, "invalid_request_error", "BadRequestError", false],
  [400, "invalid_request_error", "BadRequestError", false],
  [502, "api_error", "InternalServerError", true],
];

describe.skipIf(python === null)(`Anthropic's client for Python (left out where it is absent: ${ANTHROPIC_PYTHON_ABSENT})`, () => {
  let app: TestApp;
  let claude: FakeUpstream;
  beforeAll(async () => {
    claude = await startFakeUpstream();
    const text = { modality: "text", title: "Text", prices: { promptTextPrice: "0.000003", completionTextPrice: "0.000015" } };
    app = await createTestApp({
      upstreams: [{ id: "claude", wireFormat: "anthropic", baseUrl: claude.baseUrl, apiKey: VENDOR_KEY }],
      models: [
        { ...text, id: "acme/claude", upstream: "claude", upstreamModel: "claude-opus-5", capabilities: ["tools", "reasoning"] },
        LIMITED_MODEL,
      ],
    });
    await useUpLimited(app);
  });
  afterAll(async () => {
    await app.close();
    await claude.close();
  });

  it.each<[string, string, typeof claudeReply]>([
    ["Anthropic", "acme/claude", claudeReply],
    ["OpenAI", "acme/chat", openAiReply],
  ])("makes every call with an upstream of the format of %s", async (_, model, reply) => {
    const upstream = model === "acme/claude" ? claude : app.upstream;
    const replies = repliesOf(reply);
    const before = upstream.requests.length;
    upstream.replyNext(...replies);
    const env = { ...process.env, SLUICE_URL: app.baseUrl, SLUICE_KEY: app.key, SLUICE_MODEL: model, SLUICE_LIMITED: LIMITED };
    const { stdout } = await promisify(execFile)(python ?? "", [ANTHROPIC_PYTHON_PROGRAM], { env });

    expect(JSON.parse(stdout)).toEqual({
      create: [["Hello."], "end_turn", true, true],
      stream: ["Hello.", "end_turn"],
      events: expect.toSatisfy((types: string[]) => types.at(0) === "message_start" && types.at(-1) === "message_stop"),
      tools: CALLS,
      tools_streamed: CALLS,
      files: ["Seen."],
      turns: [
        ["thinking", "text", "tool_use"],
        ["thinking", "text", "tool_use"],
        ["thinking", "text"],
      ],
      count: true,
      list: true,
      retrieve: model,
      cancelled: "message_start",
      refused: REFUSED,
      refused_streamed: REFUSED,
    });
    const sent = upstream.requests.slice(before);
    expect(sent).toHaveLength(replies.length);
    if (upstream === claude) for (const { json: body } of sent) expect(refusalOf(body as Record<string, unknown>)).toBeNull();
  });
});
