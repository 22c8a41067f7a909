/** Claude with thinking and tools: its signatures travel out and back on each face, and thinking is left off where it is lost. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anthropicEvents, anthropicMessage, anthropicSse } from "../support/anthropic.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { json, type Reply } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";

type Loose = Record<string, unknown>;

let app: TestApp;
let claude: FakeUpstream;
let client: Client;

beforeAll(async () => {
  claude = await startFakeUpstream();
  app = await createTestApp({
    upstreams: [{ id: "claude", wireFormat: "ai-sdk:anthropic", baseUrl: claude.baseUrl, apiKey: "claude-key" }],
    models: [
      {
        id: "acme/claude",
        title: "Claude",
        modality: "text",
        upstream: "claude",
        upstreamModel: "claude-haiku-4-5",
        capabilities: ["tools", "reasoning"],
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  await app.close();
  await claude.close();
});

/** Refuses what Anthropic refuses: with thinking, the last assistant's message with calls begins with a signed thought. */
function strict(answer: Reply): Reply {
  return {
    kind: "handler",
    handle: async ({ json: body }, response) => {
      const { thinking, messages } = body as { thinking?: { type: string }; messages: { role: string; content: Loose[] }[] };
      const last = messages.findLast(({ role }) => role === "assistant")?.content ?? [];
      const isThinking = thinking !== undefined && thinking.type !== "disabled";
      const isSigned = last[0]?.type === "thinking" && last[0].signature === "c2lnbmF0dXJl";
      if (isThinking && last.some(({ type }) => type === "tool_use") && !isSigned) {
        response.writeHead(400, { "content-type": "application/json" });
        response.end(
          JSON.stringify({
            type: "error",
            error: { type: "invalid_request_error", message: "Expected `thinking` or `redacted_thinking`, but found `tool_use`." },
          }),
        );
        return;
      }
      if (answer.kind !== "body") throw new Error("Only bodies are written here.");
      response.writeHead(answer.status, answer.headers);
      response.end(answer.body);
    },
  };
}

const weather = { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } };

function thinkingOf(index: number): string | undefined {
  const { thinking } = (claude.requests.at(index)?.json ?? {}) as { thinking?: { type: string } };
  return thinking?.type;
}

/** The first answer is `first`, later ones are given to those alone that keep to the rule. */
function answerWith(first: Reply = json(anthropicMessage()), laterCount = 1): void {
  claude.replyNext(first, ...Array.from({ length: laterCount }, () => strict(json(anthropicMessage()))));
}

describe("over Responses", () => {
  const ask = (input: unknown, more: Loose = {}) =>
    client.post("/v1/responses", {
      model: "acme/claude",
      reasoning: { effort: "low" },
      tools: [{ type: "function", ...weather }],
      input,
      max_output_tokens: 8_000,
      ...more,
    });
  const begin = { role: "user", content: "hi" };
  const result = { type: "function_call_output", call_id: "toolu_01", output: "Rain." };

  it("travels in the reasoning item, whole", async () => {
    answerWith();
    const { output } = (await ask([begin])).json<{ output: Loose[] }>();
    const answer = await ask([begin, ...output, result]);

    expect(output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"]);
    expect(answer.status).toBe(200);
    expect(thinkingOf(-1)).toBe("enabled");
    expect(answer.headers.get("x-warnings")).toBeNull();
  });

  it("travels in the reasoning item of a stream", async () => {
    answerWith(anthropicSse(anthropicEvents()));
    const streamed = await ask([begin], { stream: true });
    const { response } = JSON.parse(streamed.text.split("event: response.completed\ndata: ")[1] ?? "") as { response: { output: Loose[] } };
    const answer = await ask([begin, ...response.output, result]);

    expect(response.output.map(({ type }) => type)).toEqual(["reasoning", "message", "function_call"]);
    expect(answer.status).toBe(200);
    expect(thinkingOf(-1)).toBe("enabled");
  });

  it("is lost when a client drops it: thinking is left off, with a warning", async () => {
    answerWith();
    const { output } = (await ask([begin])).json<{ output: Loose[] }>();
    const answer = await ask([begin, ...output.filter(({ type }) => type !== "reasoning"), result]);

    expect(answer.status).toBe(200);
    expect(thinkingOf(-1)).not.toBe("enabled");
    expect(answer.headers.get("x-warnings")).toContain("reasoning: left off for this request");
  });
});

describe("over Messages", () => {
  const ask = (messages: unknown, more: Loose = {}) =>
    client.post("/v1/messages", {
      model: "acme/claude",
      thinking: { type: "enabled", budget_tokens: 2_000 },
      tools: [{ name: "weather", input_schema: weather.parameters }],
      messages,
      max_tokens: 8_000,
      ...more,
    });
  const begin = { role: "user", content: "hi" };
  const result = { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_01", content: "Rain." }] };

  it("travels in the thinking block, whole", async () => {
    answerWith();
    const { content } = (await ask([begin])).json<{ content: Loose[] }>();
    const answer = await ask([begin, { role: "assistant", content }, result]);

    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    expect(answer.status).toBe(200);
    expect(thinkingOf(-1)).toBe("enabled");
    expect(answer.headers.get("x-warnings")).toBeNull();
  });

  it("travels in the thinking block of a stream", async () => {
    answerWith(anthropicSse(anthropicEvents()));
    const streamed = await ask([begin], { stream: true });
    const content = blocksOf(streamed.text);
    const answer = await ask([begin, { role: "assistant", content }, result]);

    expect(content.map(({ type }) => type)).toEqual(["thinking", "text", "tool_use"]);
    expect(answer.status).toBe(200);
    expect(thinkingOf(-1)).toBe("enabled");
  });

  it("is lost when a client drops it: thinking is left off, with a warning", async () => {
    answerWith();
    const { content } = (await ask([begin])).json<{ content: Loose[] }>();
    const answer = await ask([begin, { role: "assistant", content: content.filter(({ type }) => type !== "thinking") }, result]);

    expect(answer.status).toBe(200);
    expect(thinkingOf(-1)).not.toBe("enabled");
    expect(answer.headers.get("x-warnings")).toContain("reasoning: left off for this request");
  });
});

/** The blocks of a streamed message, as clients put them together. */
function blocksOf(text: string): Loose[] {
  const events = text.split("\n").flatMap((line) => (line.startsWith("data: ") ? [JSON.parse(line.slice(6)) as Loose] : []));
  const blocks: Loose[] = [];
  const inputs: string[] = [];
  for (const { type, content_block: block, delta: piece } of events) {
    const last = blocks.at(-1) ?? {};
    const delta = (piece ?? {}) as Loose;
    if (type === "content_block_start") {
      blocks.push({ ...(block as Loose) });
      inputs.push("");
    } else if (type === "content_block_delta" && delta.type === "input_json_delta") {
      inputs[inputs.length - 1] += String(delta.partial_json);
      last.input = JSON.parse(inputs.at(-1)?.endsWith("}") ? (inputs.at(-1) ?? "{}") : "{}");
    } else if (type === "content_block_delta") {
      const [field = "text"] = Object.keys(delta).filter((name) => name !== "type");
      last[field] = `${String(last[field] ?? "")}${String(delta[field])}`;
    }
  }
  return blocks;
}

describe("over chat", () => {
  const ask = (messages: unknown) =>
    client.post("/v1/chat/completions", {
      model: "acme/claude",
      reasoning_effort: "low",
      tools: [{ type: "function", function: weather }],
      messages,
      max_tokens: 8_000,
    });
  const begin = { role: "user", content: "hi" };
  const result = { role: "tool", tool_call_id: "toolu_01", content: "Rain." };

  it("travels in the message, and is missed by clients that keep less of it", async () => {
    answerWith(json(anthropicMessage()), 2);
    const { choices } = (await ask([begin])).json<{ choices: { message: Loose }[] }>();
    const { message } = choices[0] ?? { message: {} };
    const whole = await ask([begin, message, result]);
    const less = await ask([begin, { role: message.role, content: message.content, tool_calls: message.tool_calls }, result]);

    expect([whole.status, less.status]).toEqual([200, 200]);
    expect([thinkingOf(-2), thinkingOf(-1)]).toEqual(["enabled", expect.not.stringMatching("enabled")]);
    expect(less.headers.get("x-warnings")).toContain("reasoning: left off for this request");
  });

  it("keeps a history with an output that belongs to no call", async () => {
    answerWith(json(anthropicMessage()), 0);
    const answer = await ask([begin, result, begin]);

    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-warnings")).toContain("1 of the outputs belong to no call");
  });
});

describe("over GraphQL", () => {
  it("travels in typed fields", async () => {
    const document = `mutation Ask($input: ChatCompletionInput!) {
      createChatCompletion(input: $input) {
        completion { choices { message { content reasoning reasoningDetails toolCalls { id extraContent function { name arguments } } } } }
      }
    }`;
    const ask = async (messages: unknown) => {
      const input = { model: "acme/claude", reasoningEffort: "LOW", maxTokens: 8_000, tools: [{ function: weather }], messages };
      const answer = await client.post("/graphql", { query: document, variables: { input } });
      return answer.json<{ data: { createChatCompletion: { completion: { choices: { message: Loose }[] } } }; errors?: unknown }>();
    };
    answerWith();
    const first = await ask([{ role: "USER", content: "hi" }]);
    const { reasoningDetails, toolCalls } = first.data.createChatCompletion.completion.choices[0]?.message ?? {};
    const turn = {
      role: "ASSISTANT",
      reasoning: "They want the weather.",
      reasoningDetails,
      toolCalls: (toolCalls as Loose[]).map(asInput),
    };

    const second = await ask([{ role: "USER", content: "hi" }, turn, { role: "TOOL", toolCallId: "toolu_01", content: "Rain." }]);

    expect(reasoningDetails).toHaveLength(1);
    expect(second.errors).toBeUndefined();
    expect(thinkingOf(-1)).toBe("enabled");
  });
});

function asInput({ id, function: called }: Loose): Loose {
  return { id, function: called };
}
