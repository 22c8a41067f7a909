/** Stored responses (docs/spec/chat.md#stored-responses), with the official client and by hand. */
import OpenAI, { NotFoundError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { booksWith, CREDIT, createPayer, type Payer } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { errorReply, json, sse, waitFor } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope } from "./client.js";

const MODEL = { model: "acme/chat", max_output_tokens: 100 } as const;

let app: TestApp;
let client: Client;
let openai: OpenAI;

beforeAll(async () => {
  const prices = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
  const thinker = { id: "acme/thinker", modality: "text", upstream: "acme", upstreamModel: "thinker", title: "Thinker", prices };
  app = await createTestApp({ config: { storedResponsesDays: 30 }, models: [{ ...thinker, capabilities: ["reasoning"] }] });
  client = createClient(app.baseUrl, app.key);
  openai = sdk(app.key);
});
afterAll(async () => {
  expect(await findBrokenInvariants(app.database.pool, { isIdle: true })).toEqual({});
  await app.close();
});

function sdk(apiKey: string): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
}

function lastBody(): unknown {
  return app.upstream.requests.at(-1)?.json;
}

/** A stream that stops in the middle until `finish`. */
function paused() {
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const [begin, half, ...rest] = chatChunks(["Half", " done."], { usage: wireUsage(10, 4) });
  return { reply: sse([begin as never, half as never, waitFor(finished), ...(rest as never[])]), finish };
}

async function itemsOf(id: string, order: "asc" | "desc" = "asc", api = openai) {
  const items: OpenAI.Responses.ResponseItem[] = [];
  for await (const item of api.responses.inputItems.list(id, { order, limit: 2 })) items.push(item);
  return items;
}

const tools = [{ type: "function" as const, name: "weather", parameters: { type: "object" }, strict: false }];
const called = { id: "call_1", name: "weather", arguments: '{"city":"Oslo"}' };

describe("stored responses", () => {
  it("are retrieved, listed with their input, and deleted with the official client", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    const made = await openai.responses.create({ ...MODEL, input: "Hello", instructions: "Be brief.", metadata: { topic: "mills" } });

    expect(made.output_text).toBe("Hi.");
    expect(await openai.responses.retrieve(made.id)).toEqual({ ...made, output_text: expect.anything() });
    expect(await itemsOf(made.id)).toEqual([
      {
        type: "message",
        id: expect.stringMatching(/^msg_/),
        role: "user",
        status: "completed",
        content: [{ type: "input_text", text: "Hello" }],
      },
    ]);

    await openai.responses.delete(made.id);
    await expect(openai.responses.retrieve(made.id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(openai.responses.delete(made.id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(itemsOf(made.id)).rejects.toBeInstanceOf(NotFoundError);
  });

  it("are continued for three turns with a tool call", async () => {
    app.upstream.replyNext(
      json(chatCompletion({ content: null, toolCalls: [called] })),
      sse(chatChunks(["Rain."])),
      json(chatCompletion({ content: "You are welcome." })),
    );
    const first = await openai.responses.create({ ...MODEL, tools, input: "Weather in Oslo?", instructions: "Be brief." });
    const output = [{ type: "function_call_output" as const, call_id: "call_1", output: "rain" }];
    const stream = openai.responses.stream({ ...MODEL, tools, input: output, previous_response_id: first.id });
    const second = await stream.finalResponse();
    const third = await openai.responses.create({ ...MODEL, input: "Thanks", previous_response_id: second.id });

    expect(second.previous_response_id).toBe(first.id);
    expect(third).toMatchObject({ previous_response_id: second.id, output_text: "You are welcome." });
    // Instructions are those of each request.
    expect(lastBody()).toHaveProperty("messages", [
      { role: "user", content: [{ type: "text", text: "Weather in Oslo?" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "call_1", type: "function", function: { name: "weather", arguments: called.arguments } }],
      },
      { role: "tool", tool_call_id: "call_1", content: "rain" },
      { role: "assistant", content: [{ type: "text", text: "Rain." }] },
      { role: "user", content: [{ type: "text", text: "Thanks" }] },
    ]);
    expect((await itemsOf(third.id)).map(({ type }) => type)).toEqual([
      ...["message", "function_call", "function_call_output", "message", "message"],
    ]);
  });

  it("cannot be continued once a response of the thread was deleted", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "One." })), json(chatCompletion({ content: "Two." })));
    const first = await openai.responses.create({ ...MODEL, input: "1" });
    const second = await openai.responses.create({ ...MODEL, input: "2", previous_response_id: first.id });
    await openai.responses.delete(first.id);

    const answer = await client.post("/v1/responses", { ...MODEL, input: "3", previous_response_id: second.id });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json()).toMatchObject({ error: { param: "previous_response_id", details: { reason: "previous_response_not_found" } } });
    expect((await openai.responses.retrieve(second.id)).output_text).toBeDefined();
  });

  it("belong to their account, and to the key of an app or a web page alone", async () => {
    const other = await createPayer(app, { pack: CREDIT });
    const publishable = await createKey(app, { type: "publishable" });
    const sameAccount = await createKey(app, { accountPermissions: ["usage"] });
    const weak = await createKey(app, { accountPermissions: [] });
    app.upstream.replyNext(json(chatCompletion({ content: "Mine." })), json(chatCompletion({ content: "Shared." })));
    const made = await openai.responses.create({ ...MODEL, input: "Hello" });
    const shared = await sdk(publishable.key).responses.create({ ...MODEL, input: "Hello" });

    for (const key of [other.key, publishable.key, weak.key]) {
      const stranger = createClient(app.baseUrl, key);
      for (const path of ["", "/input_items"]) expectEnvelope(await stranger.get(`/v1/responses/${made.id}${path}`), 404, "NOT_FOUND");
      expectEnvelope(await stranger.post(`/v1/responses/${made.id}/cancel`, {}), 404, "NOT_FOUND");
      expectEnvelope(await stranger.request("DELETE", `/v1/responses/${made.id}`), 404, "NOT_FOUND");
      const continued = await stranger.post("/v1/responses", { ...MODEL, input: "And?", previous_response_id: made.id });
      expectEnvelope(continued, 400, "BAD_REQUEST");
    }
    expect((await sdk(sameAccount.key).responses.retrieve(made.id)).id).toBe(made.id);
    expect((await sdk(publishable.key).responses.retrieve(shared.id)).id).toBe(shared.id);
    expect((await openai.responses.retrieve(shared.id)).id).toBe(shared.id);
  });

  it("are not made of a request with store: false", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    const made = await openai.responses.create({ ...MODEL, input: "Hello", store: false });

    expect((made as unknown as { store: boolean }).store).toBe(false);
    await expect(openai.responses.retrieve(made.id)).rejects.toBeInstanceOf(NotFoundError);
  });

  it("hold the delivered part of a stream that its reader left", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const { reply } = paused();
    app.upstream.replyNext(reply);
    const stream = await sdk(payer.key).responses.create({ ...MODEL, input: "Hello", stream: true });
    let id = "";
    for await (const event of stream) {
      if (event.type === "response.created") id = event.response.id;
      if (event.type === "response.output_text.delta") break;
    }
    stream.controller.abort();

    const stored = await eventually(() => sdk(payer.key).responses.retrieve(id));
    expect(stored).toMatchObject({ status: "cancelled", usage: { output_tokens: 1 } });
    expect(JSON.stringify(stored.output)).toContain("Half");
  });

  it("hold the redacted input", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Noted." })));
    const answer = await client.post("/v1/responses", {
      ...{ ...MODEL, safe: "privacy", input: "Write to jane.doe@example.com", instructions: "I am john@example.com" },
    });
    const { id } = answer.json<{ id: string }>();

    const stored = JSON.stringify([await openai.responses.retrieve(id), await itemsOf(id)]);
    expect(stored).toContain("[REDACTED_EMAIL]");
    expect(stored).not.toContain("example.com");
  });

  it("are sealed in the database", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "A secret answer." })));
    const { id } = await openai.responses.create({ ...MODEL, input: "A secret question", metadata: { a: "secret value" } });

    const { rows } = await app.database.pool.query(
      "SELECT encode(input, 'escape') || encode(answer, 'escape') AS text FROM stored_response",
    );
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toContain("secret");
    expect((await openai.responses.retrieve(id)).output_text).toBeDefined();
    expect(JSON.stringify(app.logs)).not.toContain("secret question");
  });
});

describe("responses in the background", () => {
  async function ended(id: string, api = openai) {
    return eventually(async () => {
      const response = await api.responses.retrieve(id);
      expect(["queued", "in_progress"]).not.toContain(response.status);
      return response;
    });
  }

  it("are polled until they are finished", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const api = sdk(payer.key);
    const { reply, finish } = paused();
    app.upstream.replyNext(reply);
    const begun = await api.responses.create({ ...MODEL, input: "Hello", background: true });

    expect(begun).toMatchObject({ status: "queued", background: true, output: [] });
    await eventually(async () => expect((await api.responses.retrieve(begun.id)).status).toBe("in_progress"));
    finish();
    const response = await ended(begun.id, api);
    expect(response).toMatchObject({ status: "completed", usage: { input_tokens: 10, output_tokens: 4 } });
    expect(JSON.stringify(response.output)).toContain("Half done.");
    expect(await itemsOf(begun.id, "asc", api)).toHaveLength(1);
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ status: "ok", inputTextTokens: 10, outputTextTokens: 4 }]);
  });

  it("that are cancelled are charged for their delivered part, once", async () => {
    const payer = await createPayer(app, { pack: CREDIT });
    const api = sdk(payer.key);
    const { reply } = paused();
    app.upstream.replyNext(reply);
    const begun = await api.responses.create({ ...MODEL, input: "Hello", background: true, stream: true });
    let id = "";
    for await (const event of begun) {
      if (event.type === "response.created") id = event.response.id;
      if (event.type === "response.output_text.delta") break;
    }

    const cancelled = await api.responses.cancel(id);
    const again = await api.responses.cancel(id);

    expect(cancelled).toMatchObject({ status: "cancelled", usage: { output_tokens: 1 } });
    expect(JSON.stringify(cancelled.output)).toContain("Half");
    expect(again).toEqual(cancelled);
    expect((await booksWith(app, payer, 1)).rows).toMatchObject([{ status: "cancelled", outputTextTokens: 1 }]);
  });

  it("of a model that thinks are charged by its report when they are cancelled", async () => {
    const { reply, finish } = paused();
    app.upstream.replyNext(reply);
    const begun = await openai.responses.create({ ...MODEL, model: "acme/thinker", input: "Hello", background: true, stream: true });
    let id = "";
    for await (const event of begun) {
      if (event.type === "response.created") id = event.response.id;
      if (event.type === "response.output_text.delta") break;
    }
    const cancelling = openai.responses.cancel(id);
    await eventually(async () => expect((await openai.responses.retrieve(id)).status).toBe("cancelled"));
    finish();

    expect(await cancelling).toMatchObject({ status: "cancelled", usage: { input_tokens: 10, output_tokens: 4 } });
    expect(JSON.stringify((await cancelling).output)).toContain("Half");
  });

  it("stream their events to readers that come back", async () => {
    const { reply, finish } = paused();
    app.upstream.replyNext(reply);
    const first = await openai.responses.create({ ...MODEL, input: "Hello", background: true, stream: true });
    const seen: number[] = [];
    let id = "";
    for await (const event of first) {
      if (event.type === "response.created") id = event.response.id;
      seen.push(event.sequence_number);
      if (event.type === "response.output_text.delta") break;
    }
    finish();
    let text = "";
    let last = "";
    for await (const event of await openai.responses.retrieve(id, { stream: true, starting_after: seen.at(-1) as number })) {
      seen.push(event.sequence_number);
      last = event.type;
      if (event.type === "response.output_text.delta") text += event.delta;
    }

    expect(seen).toEqual(seen.map((_, index) => index));
    expect([text, last]).toEqual([" done.", "response.completed"]);
    const whole: string[] = [];
    for await (const event of await openai.responses.retrieve(id, { stream: true })) whole.push(event.type);
    expect(whole.filter((type) => type === "response.output_text.delta")).toHaveLength(2);
  });

  it("that fail say why", async () => {
    app.upstream.replyNext(errorReply(400, "too odd"));
    const answer = await client.post("/v1/responses", { ...MODEL, input: "Hello", background: true });
    const { id } = answer.json<{ id: string }>();
    if (answer.status !== 200) return expectEnvelope(answer, 400, "BAD_REQUEST");

    expect(await ended(id)).toMatchObject({ status: "failed", error: { message: expect.stringContaining("too odd") } });
  });

  it("are refused at once without credits, and leave nothing", async () => {
    const poor = await createPayer(app);
    const before = await app.database.prisma.storedResponse.count();
    const answer = await createClient(app.baseUrl, poor.key).post("/v1/responses", { ...MODEL, input: "Hello", background: true });

    expectEnvelope(answer, 402, "INSUFFICIENT_BALANCE");
    expect(await app.database.prisma.storedResponse.count()).toBe(before);
  });

  it("need storage, and a response that is not in the background cannot be cancelled", async () => {
    const unstored = await client.post("/v1/responses", { ...MODEL, input: "Hello", background: true, store: false });
    expectEnvelope(unstored, 400, "BAD_REQUEST");
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    const { id } = await openai.responses.create({ ...MODEL, input: "Hello" });
    expectEnvelope(await client.post(`/v1/responses/${id}/cancel`, {}), 400, "BAD_REQUEST");
    expectEnvelope(await client.get(`/v1/responses/${id}?stream=true`), 400, "BAD_REQUEST");
  });
});

describe("conversations", () => {
  it("are made, extended by responses, changed and deleted with the official client", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hello Ann." })), sse(chatChunks(["Ann."])));
    const conversation = await openai.conversations.create({
      items: [{ type: "message", role: "user", content: "I am Ann." }],
      metadata: { topic: "names" },
    });
    const first = await openai.responses.create({ ...MODEL, input: "Greet me.", conversation: conversation.id });
    const second = await openai.responses.stream({ ...MODEL, input: "Who am I?", conversation: { id: conversation.id } }).finalResponse();

    expect(conversation).toMatchObject({ object: "conversation", metadata: { topic: "names" } });
    expect(first.conversation).toEqual({ id: conversation.id });
    expect(second.output_text).toBe("Ann.");
    expect(lastBody()).toHaveProperty("messages", [
      { role: "user", content: [{ type: "text", text: "I am Ann." }] },
      { role: "user", content: [{ type: "text", text: "Greet me." }] },
      { role: "assistant", content: [{ type: "text", text: "Hello Ann." }] },
      { role: "user", content: [{ type: "text", text: "Who am I?" }] },
    ]);
    const items: OpenAI.Conversations.ConversationItem[] = [];
    for await (const item of openai.conversations.items.list(conversation.id, { order: "asc", limit: 2 })) items.push(item);
    expect(items).toHaveLength(5);
    const one = items[0] as { readonly id: string };
    expect(await openai.conversations.items.retrieve(one.id, { conversation_id: conversation.id })).toEqual(one);
    await openai.conversations.items.delete(one.id, { conversation_id: conversation.id });
    const added = await openai.conversations.items.create(conversation.id, { items: [{ type: "message", role: "user", content: "Bye" }] });
    expect(added.data).toMatchObject([{ type: "message", content: [{ type: "input_text", text: "Bye" }] }]);
    expect(await openai.conversations.update(conversation.id, { metadata: { topic: "ends" } })).toMatchObject({
      metadata: { topic: "ends" },
    });
    expect(await openai.conversations.retrieve(conversation.id)).toMatchObject({ metadata: { topic: "ends" } });
    expect(await openai.conversations.delete(conversation.id)).toMatchObject({ deleted: true, object: "conversation.deleted" });
    await expect(openai.conversations.retrieve(conversation.id)).rejects.toBeInstanceOf(NotFoundError);
    await expect(openai.conversations.items.list(conversation.id)).rejects.toBeInstanceOf(NotFoundError);
    expect(await app.database.prisma.conversationItem.count()).toBe(0);
  });

  it("belong to their account", async () => {
    const other: Payer = await createPayer(app, { pack: CREDIT });
    const conversation = await openai.conversations.create({});
    const stranger = createClient(app.baseUrl, other.key);
    const path = `/v1/conversations/${conversation.id}`;

    expectEnvelope(await stranger.get(path), 404, "NOT_FOUND");
    expectEnvelope(await stranger.get(`${path}/items`), 404, "NOT_FOUND");
    expectEnvelope(await stranger.post(path, { metadata: {} }), 404, "NOT_FOUND");
    expectEnvelope(await stranger.request("DELETE", path), 404, "NOT_FOUND");
    expectEnvelope(await stranger.post("/v1/responses", { ...MODEL, input: "Hi", conversation: conversation.id }), 400, "BAD_REQUEST");
  });
});
