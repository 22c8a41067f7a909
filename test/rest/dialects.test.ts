/** Conversations of three turns with each bundled vendor of OpenAI's format, which refuses what its real server does. */
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { reasoningIn } from "../../src/formats/openai-chat/schema.js";
import { expectNothingHeld } from "../e2e/money.js";
import { executeText, ok } from "../graphql/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { type Problem, STRICT_VENDORS, type StrictVendor, strictReply, THOUGHT, thoughtsAt } from "../support/strict-vendors.js";
import { type Client, createClient } from "./client.js";

type Loose = Readonly<Record<string, unknown>>;

const PRICES = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
const PARAMETERS = { type: "object", properties: {} };
const NAMES = ["get_weather", "get_time"];
const TOOLS = NAMES.map((name) => ({ type: "function", function: { name, parameters: PARAMETERS } }));
const QUESTION = "Weather and time in Oslo?";

const STATED = {
  thoughts: "reasoning",
  outputCap: "max_completion_tokens",
  streamOptions: false,
  refuses: ["logit_bias"],
  developerRole: true,
};

let app: TestApp;
let client: Client;
const upstreams = new Map<string, FakeUpstream>();
const refusals: Problem[] = [];

beforeAll(async () => {
  for (const vendor of STRICT_VENDORS) {
    const upstream = await startFakeUpstream();
    upstream.replyAlways(strictReply(vendor, refusals));
    upstreams.set(vendor.id, upstream);
  }
  const settings = [...upstreams].map(([id, { baseUrl }]) => [id, { apiKey: "vendor-key-0123456789", baseUrl }]);
  app = await createTestApp({
    config: { vendors: Object.fromEntries(settings) as never },
    upstreams: [{ id: "stated", wireFormat: "openai", baseUrl: upstreams.get("openrouter")?.baseUrl, dialect: STATED }],
    models: [
      ...STRICT_VENDORS.map(({ id }) => ({
        ...{ id: `strict/${id}`, title: id, modality: "text", upstream: id, upstreamModel: `${id}-model`, prices: PRICES },
        capabilities: ["tools", "reasoning"],
      })),
      { id: "stated/upstream", title: "s", modality: "text", upstream: "stated", upstreamModel: "s1", prices: PRICES },
      {
        id: "stated/model",
        title: "s",
        modality: "text",
        upstream: "stated",
        upstreamModel: "s2",
        prices: PRICES,
        dialect: { thoughts: "none" },
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterEach(async () => {
  refusals.length = 0;
  await expectNothingHeld(app);
});
afterAll(async () => {
  await app.close();
  for (const upstream of upstreams.values()) await upstream.close();
});

const requestsTo = ({ id }: StrictVendor) => (upstreams.get(id)?.requests ?? []).map(({ json }) => json as Loose);

/** Thoughts of the first answer, as the vendor got them with the last request. */
function thoughtsSent(vendor: StrictVendor): string | null {
  const messages = requestsTo(vendor).at(-1)?.messages as readonly Loose[];
  const answer = messages.find(({ role }) => role === "assistant");
  return answer ? thoughtsAt(vendor, answer) : null;
}

const expectedThoughts = ({ answers }: StrictVendor) => (answers === null ? null : THOUGHT);

/** The message that a client keeps. */
function toHistory({ content = null, tool_calls: calls, ...message }: Loose): Loose {
  const thoughts = reasoningIn(message);
  return {
    role: "assistant",
    content,
    ...(calls !== undefined && { tool_calls: calls }),
    ...(thoughts && { reasoning_content: thoughts }),
  };
}

async function chatTurn(vendor: StrictVendor, messages: readonly Loose[], isStreamed: boolean): Promise<Loose> {
  const body = {
    model: `strict/${vendor.id}`,
    messages,
    tools: TOOLS,
    parallel_tool_calls: true,
    max_completion_tokens: 50,
    stream: isStreamed,
  };
  const answer = await client.post("/v1/chat/completions", body);
  expect(answer.status, answer.text).toBe(200);
  if (!isStreamed) return toHistory(answer.json<{ choices: { message: Loose }[] }>().choices[0]?.message ?? {});
  const chunks = answer.text.split("\n\n").filter((event) => event.startsWith("data: {"));
  const deltas = chunks.map((event) => (JSON.parse(event.slice(6)) as { choices: { delta?: Loose }[] }).choices[0]?.delta ?? {});
  const said = deltas.find(({ content, tool_calls: calls }) => (content ?? null) !== null || calls !== undefined) ?? {};
  const thoughts = deltas.map((delta) => reasoningIn(delta)).find((each) => each !== null);
  return toHistory({ ...said, ...(thoughts && { reasoning_content: thoughts }) });
}

describe.each(STRICT_VENDORS.map((vendor) => [vendor.id, vendor] as const))("a conversation with %s", (_id, vendor) => {
  it.each([false, true])("has three turns with thoughts and parallel tools on chat, streamed: %s", async (isStreamed) => {
    const messages: Loose[] = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: QUESTION },
    ];
    const calls = await chatTurn(vendor, messages, isStreamed);
    const called = calls.tool_calls as readonly { id: string; function: { name: string } }[];
    expect(called.map((call) => call.function.name)).toEqual(NAMES);
    messages.push(calls, ...called.map(({ id }) => ({ role: "tool", tool_call_id: id, content: "12" })));
    const told = await chatTurn(vendor, messages, isStreamed);
    expect(told.content).toBe("Turn 5.");
    messages.push(told, { role: "user", content: "And tomorrow?" });
    const last = await chatTurn(vendor, messages, isStreamed);

    expect(last.content).toBe("Turn 7.");
    expect(refusals).toEqual([]);
    expect(thoughtsSent(vendor)).toBe(expectedThoughts(vendor));
    const sent = requestsTo(vendor).slice(-3);
    for (const { messages: all } of sent) expect((all as readonly Loose[])[0]?.role).toBe("system");
    for (const body of sent) expect([body.max_tokens, body.max_completion_tokens]).toContain(50);
  });

  it("has three turns with thoughts and parallel tools on Responses", async () => {
    const input: Loose[] = [
      { role: "developer", content: "Be brief." },
      { role: "user", content: QUESTION },
    ];
    const tools = NAMES.map((name) => ({ type: "function", name, parameters: PARAMETERS }));
    const turn = async () => {
      const body = { model: `strict/${vendor.id}`, input, tools, max_output_tokens: 50, parallel_tool_calls: true };
      const answer = await client.post("/v1/responses", body);
      expect(answer.status, answer.text).toBe(200);
      return answer.json<{ output: Loose[] }>().output;
    };
    const output = await turn();
    const calls = output.filter(({ type }) => type === "function_call");
    expect(calls.map(({ name }) => name)).toEqual(NAMES);
    input.push(...output, ...calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: "12" })));
    input.push(...(await turn()), { role: "user", content: "And tomorrow?" });
    const last = await turn();

    expect(JSON.stringify(last)).toContain("Turn 7.");
    expect(refusals).toEqual([]);
    expect(thoughtsSent(vendor)).toBe(expectedThoughts(vendor));
  });

  it("has three turns with thoughts and parallel tools on GraphQL", async () => {
    const messages: Loose[] = [
      { role: "DEVELOPER", content: "Be brief." },
      { role: "USER", content: QUESTION },
    ];
    const turn = async () => {
      const tools = NAMES.map((name) => ({ function: { name, parameters: PARAMETERS } }));
      const input = { model: `strict/${vendor.id}`, messages, tools, maxCompletionTokens: 50 };
      const data = ok(await executeText(app, { query: CHAT, variables: { input } })) as unknown as ChatData;
      return data.createChatCompletion.completion.choices[0]?.message ?? {};
    };
    const calls = await turn();
    const called = calls.toolCalls as readonly { id: string; function: { name: string; arguments: string } }[];
    messages.push({ role: "ASSISTANT", reasoning: calls.reasoning, toolCalls: called });
    messages.push(...called.map(({ id }) => ({ role: "TOOL", toolCallId: id, content: "12" })));
    const told = await turn();
    expect(told.content).toBe("Turn 5.");
    messages.push({ role: "ASSISTANT", content: told.content }, { role: "USER", content: "And tomorrow?" });

    expect((await turn()).content).toBe("Turn 7.");
    expect(refusals).toEqual([]);
    expect(thoughtsSent(vendor)).toBe(expectedThoughts(vendor));
  });
});

describe("a dialect of the models file", () => {
  it.each([
    ["stated/upstream", { reasoning: "hm" }, ["logit_bias has no effect on this model."]],
    [
      "stated/model",
      {},
      ["messages.1.reasoning_content: left out, because this model takes no earlier thoughts.", "logit_bias has no effect on this model."],
    ],
  ])("is that of its upstream, and of the model above it: %s", async (model, thoughts, warnings) => {
    const messages = [
      { role: "developer", content: "Be brief." },
      { role: "assistant", content: "Yes.", reasoning_content: "hm" },
      { role: "user", content: "Sure?" },
    ];
    const answer = await client.post("/v1/chat/completions", { model, messages, max_tokens: 9, logit_bias: { 1: 1 }, stream: true });

    expect(answer.status, answer.text).toBe(200);
    const sent = upstreams.get("openrouter")?.requests.at(-1)?.json as Loose;
    expect({ ...sent, model }).toEqual({
      model,
      messages: [messages[0], { role: "assistant", content: "Yes.", ...thoughts }, messages[2]],
      max_completion_tokens: 9,
      stream: true,
    });
    for (const warning of warnings) expect(answer.headers.get("x-warnings")).toContain(warning);
  });
});

interface ChatData {
  readonly createChatCompletion: { readonly completion: { readonly choices: readonly { readonly message: Loose }[] } };
}

const CHAT = `mutation Chat($input: ChatCompletionInput!) {
  createChatCompletion(input: $input) {
    completion { choices { message { content reasoning toolCalls { id function { name arguments } } } } }
  }
}`;
