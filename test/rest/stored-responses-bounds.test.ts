/** Bounds of stored responses: quota, days, switched off; and their other faces (docs/spec/chat.md#stored-responses). */
import { randomUUID } from "node:crypto";
import { createOpenAI } from "@ai-sdk/openai";
import OpenAI, { APIError } from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ConversationRows } from "../../src/services/generation/stored/conversation-rows.js";
import { StoredResponseRows } from "../../src/services/generation/stored/rows.js";
import { CREDIT, createPayer, databaseOf } from "../e2e/money.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMovableClock } from "../support/clock.js";
import { eventually } from "../support/eventually.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { secretBoxOf } from "../support/secrets.js";
import { signedIn, signUp } from "../support/sign-in.js";
import { json, sse } from "../support/upstream-replies.js";
import { createClient, createKey, expectEnvelope } from "./client.js";
import { connectRealtime } from "./realtime-client.js";

const MODEL = { model: "acme/chat", max_output_tokens: 100 } as const;

function sdk(app: TestApp, apiKey = app.key): OpenAI {
  return new OpenAI({ apiKey, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
}

function lastBody(app: TestApp): unknown {
  return app.upstream.requests.at(-1)?.json;
}

describe("without storage", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp();
  });
  afterAll(() => app.close());

  it("accepts store: true, stores nothing, and says what to do instead", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    const client = createClient(app.baseUrl, app.key);
    const answer = await client.post("/v1/responses", { ...MODEL, input: "Hello", store: true });
    const { id, store } = answer.json<{ id: string; store: boolean }>();

    expect([answer.status, store]).toEqual([200, false]);
    const found = await client.get(`/v1/responses/${id}`);
    expectEnvelope(found, 404, "NOT_FOUND");
    expect(found.text).toContain("Send the whole conversation in input");
    for (const [field, value] of [
      ["previous_response_id", id],
      ["conversation", "conv_1"],
      ["background", true],
    ] as const) {
      const refused = await client.post("/v1/responses", { ...MODEL, input: "Hello", [field]: value });
      expectEnvelope(refused, 400, "BAD_REQUEST");
      expect(refused.json()).toMatchObject({ error: { param: field } });
    }
    expectEnvelope(await client.post("/v1/conversations", {}), 400, "BAD_REQUEST");
    expectEnvelope(await client.get("/v1/conversations/conv_1"), 404, "NOT_FOUND");
    expect(await app.database.prisma.storedResponse.count()).toBe(0);
  });
});

describe("a full quota", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ config: { storedResponsesDays: 1, mediaQuota: { bytesMax: 4_000, filesMax: 10, freeBytesMin: 0 } } });
  });
  afterAll(() => app.close());

  it("leaves an answer unstored with a warning, whole and streamed, and refuses a background response before its hold", async () => {
    const { key, accountId } = await createPayer(app, { pack: CREDIT });
    const client = createClient(app.baseUrl, key);
    const input = "Hello ".repeat(700);
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })), sse(chatChunks(["Hi."])));

    const whole = await client.post("/v1/responses", { ...MODEL, input });
    const streamed = await sdk(app, key)
      .responses.stream({ ...MODEL, input })
      .finalResponse();
    const refused = await client.post("/v1/responses", { ...MODEL, input, background: true });

    expect(whole.status).toBe(200);
    expect(whole.json()).toMatchObject({ store: false, output: [{ content: [{ text: "Hi." }] }] });
    expect(whole.headers.get("x-warnings")).toContain("storage of the account is full");
    expect(streamed).toMatchObject({ store: false, receipt: { warnings: [expect.stringContaining("storage of the account is full")] } });
    expectEnvelope(refused, 413, "PAYLOAD_TOO_LARGE");
    expect(refused.json()).toMatchObject({ error: { param: "background" } });
    expect(await app.database.prisma.usageRecord.count({ where: { accountId } })).toBe(2);
    expect(await app.database.prisma.storedResponse.count()).toBe(0);
    expectEnvelope(
      await client.post("/v1/conversations", { items: [{ type: "message", role: "user", content: input }] }),
      413,
      "PAYLOAD_TOO_LARGE",
    );
  });

  it("counts stored responses", async () => {
    const { key } = await createPayer(app, { pack: CREDIT });
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    const used = async () => {
      const answer = await createClient(app.baseUrl, key).post("/graphql", { query: "{ me { mediaQuota { usedBytes files } } }" });
      return answer.json<{ data: { me: { mediaQuota: object } } }>().data.me.mediaQuota;
    };
    expect(await used()).toEqual({ usedBytes: 0, files: 0 });
    const { id } = await sdk(app, key).responses.create({ ...MODEL, input: "Hello" });
    expect(await used()).toEqual({ usedBytes: expect.toSatisfy((bytes: number) => bytes > 500), files: 0 });
    const input = "Hello ".repeat(200);
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })), json(chatCompletion({ content: "Hi." })));
    expect(await sdk(app, key).responses.create({ ...MODEL, input })).toMatchObject({ store: false });
    await sdk(app, key).responses.delete(id);
    expect(await used()).toEqual({ usedBytes: 0, files: 0 });
    expect(await sdk(app, key).responses.create({ ...MODEL, input })).toMatchObject({ store: true });
  });
});

describe("a response in the background", () => {
  let app: TestApp;
  beforeAll(async () => {
    app = await createTestApp({ config: { storedResponsesDays: 1 } });
  });
  afterAll(() => app.close());

  it("counts its input once", async () => {
    app.upstream.replyNext(sse(chatChunks(["Hi."])));
    const input = "Hello ".repeat(2_000);
    const { id } = await sdk(app).responses.create({ ...MODEL, input, background: true });
    await eventually(async () => expect((await sdk(app).responses.retrieve(id)).status).toBe("completed"));

    const { sizeBytes, threadBytes } = await databaseOf(app).prisma.storedResponse.findFirstOrThrow();
    expect([sizeBytes, threadBytes]).toEqual([expect.toSatisfy(isOnce), expect.toSatisfy(isOnce)]);
    function isOnce(bytes: number): boolean {
      return bytes > input.length && bytes < 1.5 * input.length;
    }
  });

  it("is cancelled at no cost while its run asks for credits", async () => {
    const owner = createClient(app.baseUrl, app.key);
    const run = (await owner.post("/v1/runs", { max_cost: 0.000000001, on_limit: "ask" })).json<{ id: string; key: string }>();
    const shown = async () => (await owner.get(`/v1/runs/${run.id}`)).json();
    const creating = sdk(app, run.key).responses.create({ ...MODEL, input: "Hello", background: true });
    await eventually(async () => expect(await shown()).toMatchObject({ asked: expect.any(Number) }));
    const { id } = await databaseOf(app).prisma.storedResponse.findFirstOrThrow({ where: { status: "queued" } });

    const cancelled = await sdk(app).responses.cancel(`resp_${id.replaceAll("-", "")}`);

    expect(await creating).toMatchObject({ id: cancelled.id, status: "cancelled" });
    expect(cancelled).toMatchObject({ status: "cancelled", output: [] });
    await eventually(async () => expect(await shown()).toMatchObject({ asked: null, held: 0, spent: 0 }));
  });
});

describe("with storage for a day", () => {
  const clock = createMovableClock();
  let app: TestApp;
  let openai: OpenAI;
  beforeAll(async () => {
    app = await createTestApp({ clock, config: { storedResponsesDays: 1 } });
    openai = sdk(app);
  });
  afterAll(() => app.close());

  it("answers the second turn of the AI SDK, which refers to stored items", async () => {
    const model = createOpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1` }).responses("acme/chat");
    const user = (text: string) => ({ role: "user" as const, content: [{ type: "text" as const, text }] });
    app.upstream.replyNext(json(chatCompletion({ content: "Hello Ann." })), json(chatCompletion({ content: "Ann." })));
    const first = await model.doGenerate({ prompt: [user("I am Ann.")] });
    const said = first.content.flatMap((part) =>
      part.type === "text"
        ? [{ type: part.type, text: part.text, ...(part.providerMetadata && { providerOptions: part.providerMetadata }) }]
        : [],
    );

    const second = await model.doGenerate({ prompt: [user("I am Ann."), { role: "assistant", content: said }, user("Who am I?")] });

    expect(JSON.stringify(second.request?.body)).toContain("item_reference");
    expect(second.content).toMatchObject([{ type: "text", text: "Ann." }]);
    expect(JSON.stringify(lastBody(app))).toContain("Hello Ann.");
  });

  it("resolves references to items of stored responses, and no others", async () => {
    const calls = [{ id: "call_1", name: "weather", arguments: "{}" }];
    app.upstream.replyNext(json(chatCompletion({ content: null, toolCalls: calls })), json(chatCompletion({ content: "Rain." })));
    const tools = [{ type: "function" as const, name: "weather", parameters: { type: "object" }, strict: false }];
    const first = await openai.responses.create({ ...MODEL, tools, input: "Weather?" });
    const item = { id: String(first.output[0]?.id) };
    const reference = { type: "item_reference" as const, id: item.id };
    const output = { type: "function_call_output" as const, call_id: "call_1", output: "rain" };

    await openai.responses.create({ ...MODEL, tools, input: [{ role: "user", content: "Weather?" }, reference, output] });

    expect(lastBody(app)).toMatchObject({
      messages: [{ role: "user" }, { role: "assistant", tool_calls: [{ id: "call_1" }] }, { role: "tool", content: "rain" }],
    });
    const stranger = await createPayer(app, { pack: CREDIT });
    for (const [api, id] of [
      [sdk(app, stranger.key), item.id] as const,
      [openai, "msg_1"] as const,
      [openai, `msg_${"0".repeat(36)}`] as const,
    ]) {
      const refused = api.responses.create({ ...MODEL, input: [{ type: "item_reference", id }] });
      await expect(refused).rejects.toMatchObject({ status: 400, param: "input.0.id" });
    }
  });

  it("continues stored responses over a WebSocket, and those that are not stored within the connection", async () => {
    app.upstream.replyNext(
      ...["One.", "Two.", "Three.", "Four."].map((text, index) =>
        index === 0 ? json(chatCompletion({ content: text })) : sse(chatChunks([text])),
      ),
    );
    const first = await openai.responses.create({ ...MODEL, input: "1" });
    const socket = await connectRealtime(app, "", { path: "/v1/responses" });
    const ask = async (fields: object) => {
      socket.send({ type: "response.create", ...MODEL, ...fields });
      return (await socket.next("response.completed")).response as { id: string; store: boolean };
    };
    const second = await ask({ input: "2", previous_response_id: first.id });
    const third = await ask({ input: "3", previous_response_id: second.id, store: false });
    const unstored = await ask({ input: "4", store: false });

    expect([second.store, third.store, unstored.store]).toEqual([true, false, false]);
    expect(app.upstream.requests.at(-2)?.json).toHaveProperty("messages.length", 5);
    expect((await openai.responses.retrieve(second.id)).previous_response_id).toBe(first.id);
    app.upstream.replyNext(sse(chatChunks(["Five."])));
    await ask({ input: "5", previous_response_id: unstored.id });
    expect(lastBody(app)).toHaveProperty("messages.length", 3);
    socket.send({ type: "response.create", ...MODEL, input: "6", previous_response_id: third.id });
    expect(await socket.next("error")).toMatchObject({ error: { code: "previous_response_not_found" } });
    socket.socket.close();
    await socket.closed;
  });

  it("answers a repeated request for a background response with the same one", async () => {
    const { key, accountId } = await createPayer(app, { pack: CREDIT });
    const body = { ...MODEL, input: "Hello", background: true };
    const ask = () => createClient(app.baseUrl, key).post("/v1/responses", body, { headers: { "Idempotency-Key": "once" } });
    app.upstream.replyNext(sse(chatChunks(["Hi."])));

    const [first, again] = [await ask(), await ask()];

    const { id } = first.json<{ id: string }>();
    expect(again.json()).toEqual(first.json());
    await eventually(async () => expect((await sdk(app, key).responses.retrieve(id)).status).toBe("completed"));
    expect(await app.database.prisma.usageRecord.count({ where: { accountId } })).toBe(1);
  });

  it("is there over GraphQL, for keys that may list", async () => {
    const { key } = await createPayer(app, { pack: CREDIT });
    const publishable = await createKey(app, { type: "publishable", accountPermissions: ["usage"] });
    const ask = async <Data>(query: string, as = key) => {
      const answer = (await createClient(app.baseUrl, as).post("/graphql", { query })).json<{
        data: Data;
        errors?: { extensions: { code: string } }[];
      }>();
      return { data: answer.data, codes: answer.errors?.map(({ extensions }) => extensions.code) ?? [] };
    };
    app.upstream.replyNext(json(chatCompletion({ content: "One." })), sse(chatChunks(["Two."])));
    const { data: made } = await ask<{ createResponse: { response: { id: string } } }>(
      `mutation { createResponse(input: { model: "acme/chat", input: { text: "1" }, isStored: true }) { response { id } } }`,
    );
    const { id } = made.createResponse.response;
    const { data: started } = await ask<{ startResponse: { storedResponse: { restId: string } } }>(
      `mutation { startResponse(input: { model: "acme/chat", input: { text: "2" }, previousResponse: "${id}" }) { storedResponse { restId isBackground previousResponseId } } }`,
    );
    const later = started.startResponse.storedResponse;
    expect(later).toMatchObject({ isBackground: true, previousResponseId: id });
    await eventually(async () => {
      const { data } = await ask<{ storedResponse: unknown }>(
        `{ storedResponse(id: "${later.restId}") { status response { outputText } } }`,
      );
      expect(data.storedResponse).toEqual({ status: "COMPLETED", response: { outputText: "Two." } });
    });
    const list = "{ me { storedResponses(first: 5) { totalCount nodes { restId response { outputText } } } } }";
    const { data: listed } = await ask<{ me: { storedResponses: object } }>(list);
    expect(listed.me.storedResponses).toMatchObject({
      totalCount: 2,
      nodes: [{ restId: later.restId }, { restId: id, response: { outputText: "One." } }],
    });
    expect((await ask(list, publishable.key)).codes).toEqual(["FORBIDDEN"]);
    await ask(`mutation { cancelStoredResponse(input: { id: "${later.restId}" }) { storedResponse { status } } }`);
    await ask(`mutation { deleteStoredResponse(input: { id: "${id}" }) { deletedId } }`);
    expect((await ask(`{ storedResponse(id: "${id}") { status } }`)).codes).toEqual(["NOT_FOUND"]);
  });

  it("is exported and deleted with the account", async () => {
    const person = await signUp(app);
    const graphql = async (query: string) => {
      const headers = { ...signedIn(person), "content-type": "application/json" };
      const response = await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers, body: JSON.stringify({ query }) });
      return (await response.json()) as { data: { me: { export: { nodes?: unknown[] } } } };
    };
    const rows = new StoredResponseRows(app.database, secretBoxOf(app), clock, randomUUID(), 1);
    const conversations = new ConversationRows(app.database, secretBoxOf(app), clock, 1);
    const owner = { accountId: person.accountId, apiKeyId: null, runId: null };
    const content = { input: '[{"id":"msg_1","type":"message"}]', answer: '{"id":"resp_1","output":[]}' };
    const place = { previousId: null, conversationId: null, isBackground: false, hasEvents: false, thread: { bytes: 0, length: 0 } };
    await rows.add({ id: randomUUID(), ...owner, ...place, model: "acme/chat", content }, "completed");
    await conversations.create(owner, { topic: "mine" }, [{ id: "msg_2", type: "message", content: "A question" }]);

    const exported = JSON.stringify([
      await graphql("{ me { export(section: STORED_RESPONSES) { items } } }"),
      await graphql("{ me { export(section: CONVERSATIONS) { items } } }"),
    ]);
    expect(exported).toContain("msg_1");
    expect(exported).toContain("A question");
    const { handle } = await app.database.prisma.account.findUniqueOrThrow({ where: { id: person.accountId } });
    const fields = `confirmHandle: "${handle}", password: "${person.password}"`;
    const deleted = await graphql(`mutation { deleteAccount(input: { ${fields} }) { deletedAt } }`);
    expect(deleted).not.toHaveProperty("errors");
    const where = { accountId: person.accountId };
    expect([await app.database.prisma.storedResponse.count({ where }), await app.database.prisma.conversation.count({ where })]).toEqual([
      0, 0,
    ]);
  });

  it("ends after the day, also by a shorter setting", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    const { id } = await openai.responses.create({ ...MODEL, input: "Hello" });
    const conversation = await openai.conversations.create({ items: [{ type: "message", role: "user", content: "Hello" }] });
    const days = (count: number) => new StoredResponseRows(app.database, secretBoxOf(app), clock, randomUUID(), count);
    expect(await days(1).sweep()).toBe(0);

    clock.advance(25 * 60 * 60);

    await expect(openai.responses.retrieve(id)).rejects.toMatchObject({ status: 404 });
    await expect(openai.conversations.retrieve(conversation.id)).rejects.toMatchObject({ status: 404 });
    await expect(openai.responses.create({ ...MODEL, input: "2", previous_response_id: id })).rejects.toBeInstanceOf(APIError);
    expect(await days(1).sweep()).toBeGreaterThan(0);
    expect(await new ConversationRows(app.database, secretBoxOf(app), clock, 1).sweep()).toBeGreaterThan(0);
    expect([await app.database.prisma.storedResponse.count(), await app.database.prisma.conversationItem.count()]).toEqual([0, 0]);
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));
    await openai.responses.create({ ...MODEL, input: "Hello" });
    expect(await days(0).sweep()).toBe(1);
  });
});
