/** Documents, cache marks, citations and counts of tokens of chats, in typed fields: with an upstream of Anthropic's format. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../rest/client.js";
import { VENDOR_KEY } from "../support/ai-sdk.js";
import { anthropicMessage } from "../support/anthropic.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { refusalOf } from "../support/strict-anthropic.js";
import { json } from "../support/upstream-replies.js";

type Loose = Record<string, unknown>;

let app: TestApp;
let claude: FakeUpstream;

beforeAll(async () => {
  claude = await startFakeUpstream();
  app = await createTestApp({
    upstreams: [{ id: "claude", wireFormat: "anthropic", baseUrl: claude.baseUrl, apiKey: VENDOR_KEY }],
    models: [
      {
        id: "acme/claude",
        title: "Claude",
        modality: "text",
        upstream: "claude",
        upstreamModel: "claude-opus-5",
        prices: { promptTextPrice: "0.000003", completionTextPrice: "0.000015", promptCacheWriteHourPrice: "0.000006" },
      },
    ],
  });
});
afterAll(async () => {
  await app.close();
  await claude.close();
});

async function ask<Data>(query: string, input: Loose): Promise<{ data: Data; errors?: readonly Loose[] }> {
  const answer = await createClient(app.baseUrl, app.key).post("/graphql", { query, variables: { input } });
  return answer.json();
}

const CHAT = `mutation ($input: ChatCompletionInput!) {
  createChatCompletion(input: $input) {
    completion { choices { finishReason stopSequence message {
      content extraContent citations { url title citedText startIndex endIndex }
    } } }
  }
}`;

interface Chat {
  readonly createChatCompletion: { readonly completion: { readonly choices: readonly [{ readonly message: Loose } & Loose] } };
}

const PDF = "data:application/pdf;base64,JVBERi0=";

describe("a chat in the graph", () => {
  it("sends documents with citations and cache marks, and reads the citations of the answer", async () => {
    const citation = { type: "page_location", cited_text: "It rains.", document_index: 0, document_title: "May", start_page_number: 1 };
    const content = [
      { type: "text", text: "The report says: " },
      { type: "text", text: "rain.", citations: [citation] },
    ];
    claude.replyNext(json(anthropicMessage({ content, stop_reason: "stop_sequence", stop_sequence: "END" })), json(anthropicMessage()));
    const file = { filename: "May", data: PDF, context: "A report.", hasCitations: true };
    const user = { role: "USER", parts: [{ file }, { text: "What is the weather?" }], cache: "ONE_HOUR" };
    const tools = [{ function: { name: "weather" }, cache: "FIVE_MINUTES" }];
    const first = await ask<Chat>(CHAT, { model: "acme/claude", maxTokens: 500, messages: [user], tools });

    const [choice] = first.data.createChatCompletion.completion.choices;
    expect(choice).toMatchObject({ finishReason: "STOP", stopSequence: "END" });
    expect(choice.message).toMatchObject({
      content: "The report says: rain.",
      citations: [{ url: null, title: "May", citedText: "It rains.", startIndex: 17, endIndex: 22 }],
    });
    const sent = claude.requests.at(-1)?.json as Loose;
    expect(refusalOf(sent)).toBeNull();
    expect(sent.tools).toMatchObject([{ name: "weather", cache_control: { type: "ephemeral" } }]);
    expect((sent.messages as Loose[])[0]?.content).toEqual([
      {
        type: "document",
        source: { type: "base64", media_type: "application/pdf", data: "JVBERi0=" },
        title: "May",
        context: "A report.",
        citations: { enabled: true },
      },
      { type: "text", text: "What is the weather?", cache_control: { type: "ephemeral", ttl: "1h" } },
    ]);

    const { content: text, extraContent } = choice.message;
    const turn = { role: "ASSISTANT", content: text, extraContent };
    await ask<Chat>(CHAT, { model: "acme/claude", maxTokens: 500, messages: [user, turn, { role: "USER", content: "And now?" }] });
    const answered = [
      { type: "text", text: "The report says: " },
      { type: "text", text: "rain." },
    ];
    expect(claude.requests.at(-1)?.json).toMatchObject({ messages: [{}, { content: answered }, {}] });
  });

  it("counts tokens without a charge or a call", async () => {
    const before = claude.requests.length;
    const count = "query ($input: ChatCompletionInput!) { countTokens(input: $input) { inputTokens modelId } }";
    const counted = await ask<{ countTokens: { inputTokens: number } }>(count, {
      model: "acme/claude",
      messages: [{ role: "USER", content: "word ".repeat(1_000) }],
    });
    const refused = await ask(count, { model: "acme/none", messages: [{ role: "USER", content: "Hi" }] });

    expect(counted.data.countTokens).toMatchObject({ modelId: "acme/claude" });
    expect(counted.data.countTokens.inputTokens).toBeGreaterThan(1_000);
    expect(counted.data.countTokens.inputTokens).toBeLessThan(1_050);
    expect(claude.requests).toHaveLength(before);
    expect(refused.errors?.[0]).toMatchObject({ extensions: { code: "BAD_REQUEST", param: "model" } });
  });
});
