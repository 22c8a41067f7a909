/** GET /v1/responses: responses over a WebSocket, with the official client and by hand. */
import OpenAI from "openai";
import { ResponsesWS } from "openai/resources/responses/ws";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { SOCKETS_PER_KEY_MAX } from "../../src/rest/response-limits.js";
import { booksWith, CREDIT, createPayer } from "../e2e/money.js";
import { execute, executeText, ok } from "../graphql/client.js";
import { SuspendAccountDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { eventually } from "../support/eventually.js";
import type { RealtimeEvent } from "../support/fake-realtime.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunk, chatChunks, usageChunk, wireUsage } from "../support/openai-bodies.js";
import { errorReply, sse, waitFor } from "../support/upstream-replies.js";
import { type Client, createClient, createKey, expectEnvelope, waitForUsage } from "./client.js";
import { type ConnectOptions, connectRealtime, type RealtimeClient, refuseRealtime } from "./realtime-client.js";

const PATH = "/v1/responses";

/** Of the connections that are opened from now on. */
const times: { totalMs?: number; idleMs?: number } = {};
const opened: RealtimeClient[] = [];

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp({ config: { responsesTimes: times } });
  client = createClient(app.baseUrl, app.key);
});
// Their number is bounded.
afterEach(async () => {
  for (const { socket } of opened) socket.close();
  await Promise.all(opened.splice(0).map(({ closed }) => closed));
});
afterAll(async () => {
  expect(await findBrokenInvariants(app.database.pool, { isIdle: true })).toEqual({});
  // A gateway that stops closes idle connections at once, and others after their response.
  const { reply, finish } = paused();
  app.upstream.replyNext(reply);
  const [idle, busy] = await Promise.all([connect(), connect()]);
  busy.send(create({ input: "Hello" }));
  await busy.next("response.output_text.delta");
  const stopped = app.close();
  expect((await idle.closed).code).toBe(1012);
  finish();
  await completed(busy);
  expect((await busy.closed).code).toBe(1012);
  await stopped;
});

async function connect(options: ConnectOptions = {}, query = ""): Promise<RealtimeClient> {
  const made = await connectRealtime(app, query, { ...options, path: PATH });
  opened.push(made);
  return made;
}

function create(fields: Readonly<Record<string, unknown>>): RealtimeEvent {
  return { type: "response.create", model: "acme/chat", max_output_tokens: 100, ...fields };
}

async function completed(socket: RealtimeClient): Promise<{ id: string; output: unknown[]; [field: string]: unknown }> {
  return (await socket.next("response.completed")).response as never;
}

function lastMessages(): unknown {
  const body = app.upstream.requests.at(-1)?.json as { messages: unknown } | undefined;
  return body?.messages;
}

/** A stream that stops before its end until `finish` is called. */
function paused(): { readonly reply: ReturnType<typeof sse>; readonly finish: () => void } {
  let finish: () => void = () => undefined;
  const finished = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const [begin, half, ...rest] = chatChunks(["Half", " done."], { usage: wireUsage(10, 4) });
  return { reply: sse([begin as never, half as never, waitFor(finished), ...(rest as never[])]), finish };
}

describe("responses on one connection", () => {
  it("runs several with the official client, each with the events of the HTTP stream", async () => {
    const openai = new OpenAI({ apiKey: app.key, baseURL: `${app.baseUrl}/v1`, maxRetries: 0 });
    app.upstream.replyNext(sse(chatChunks(["One."])), sse(chatChunks(["One."])), sse(chatChunks(["Two."])));
    const overHttp: string[] = [];
    for await (const { type } of await openai.responses.create({ model: "acme/chat", input: "Hello", max_output_tokens: 9, stream: true }))
      overHttp.push(type);
    const socket = new ResponsesWS(openai);
    const types: string[] = [];
    const texts: string[] = [];
    const ask = (input: string) => socket.send({ type: "response.create", model: "acme/chat", input, max_output_tokens: 9 });

    for await (const event of socket) {
      if (event.type === "open") ask("Hello");
      if (event.type === "error") throw event.error;
      if (event.type !== "message") continue;
      types.push(event.message.type);
      if (event.message.type === "response.output_text.done") texts.push(event.message.text);
      if (event.message.type !== "response.completed") continue;
      if (texts.length === 2) socket.close();
      else ask("And now?");
    }

    expect(texts).toEqual(["One.", "Two."]);
    expect(types).toEqual([...overHttp, ...overHttp]);
  });

  it("charges each as by HTTP", async () => {
    const usage = wireUsage(1000, 50, { prompt_tokens_details: { cached_tokens: 400 } });
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    app.upstream.replyNext(sse(chatChunks(["Hi."], { usage })), sse(chatChunks(["Hi."], { usage })));
    const overHttp = createClient(app.baseUrl, payer.key);
    await overHttp.post(PATH, { model: "acme/chat", input: "Hello", max_output_tokens: 100, stream: true });
    const socket = await connect({ key: payer.key });

    socket.send(create({ input: "Hello" }));
    const response = await completed(socket);

    const { rows } = await booksWith(app, payer, 2);
    expect(rows[1]?.costNanocredits).toBe(rows[0]?.costNanocredits);
    expect(rows[0]?.costNanocredits).toBeGreaterThan(0n);
    expect(response).toMatchObject({ usage: { input_tokens: 1000, output_tokens: 50 }, receipt: { model_used: "acme/chat" } });
  });

  it("takes the wishes and the preset of each response", async () => {
    const input = `{ name: "terse", systemPrompt: "Be terse." }`;
    ok(await executeText(app, { query: `mutation { createPreset(input: ${input}) { preset { name } } }` }));
    app.upstream.replyNext(sse(chatChunks(["Hi."])));
    const socket = await connect();
    const refused = async (fields: Readonly<Record<string, unknown>>) => {
      socket.send(create(fields));
      return ((await socket.next("error")).error as { param: string }).param;
    };

    socket.send(create({ model: "acme/chat:nitro", input: "Hello", preset: "terse", provider: { only: ["acme"] } }));
    await completed(socket);

    expect(JSON.stringify(lastMessages())).toContain("Be terse.");
    expect(app.upstream.requests.at(-1)?.json).not.toHaveProperty("provider");
    expect(await refused({ input: "Hello", provider: { only: ["acmee"] } })).toBe("provider.only.0");
    expect(await refused({ input: "Hello", models: ["acme/chta"] })).toBe("models.0");
    expect(await refused({ input: "Hello", preset: "tersse" })).toBe("preset");
    expect(await refused({ input: "Hello", route: "best" })).toBe("route");
  });

  it("refuses wishes of the connection, naming the field", async () => {
    for (const field of ["provider", "models", "preset", "route"]) {
      const answer = await refuseRealtime(app, `?${field}=x`, { key: app.key, path: PATH });
      expect(answer.json<{ error: { param: string } }>().error.param).toBe(field);
    }
  });

  it("continues a response by its id, with new items alone, and any response before it", async () => {
    const socket = await connect();
    const turn = async (text: string, fields: Readonly<Record<string, unknown>>) => {
      app.upstream.replyNext(sse(chatChunks([text])));
      socket.send(create(fields));
      return completed(socket);
    };

    const first = await turn("Hi.", { input: "Hello", instructions: "Be brief." });
    const second = await turn("Fine.", { input: [{ role: "user", content: "How are you?" }], previous_response_id: first.id });
    const whole = lastMessages();
    await turn("Bye.", { input: "Another way", previous_response_id: first.id });

    expect(whole).toEqual([
      { role: "user", content: "Hello" },
      { role: "assistant", content: [{ type: "text", text: "Hi." }] },
      { role: "user", content: "How are you?" },
    ]);
    expect(second.previous_response_id).toBe(first.id);
    expect(lastMessages()).toMatchObject([{ content: "Hello" }, { role: "assistant" }, { content: "Another way" }]);
    // The other way left the second one behind.
    socket.send(create({ input: "x", previous_response_id: second.id }));
    expect(await socket.next("error")).toMatchObject({
      status: 400,
      error: { code: "previous_response_not_found", param: "previous_response_id" },
    });
  });

  it("continues a call of a tool with its output", async () => {
    const call = { index: 0, id: "call_1", type: "function", function: { name: "weather", arguments: "{}" } };
    const tools = [{ type: "function", name: "weather", parameters: { type: "object", properties: {} } }];
    app.upstream.replyNext(
      sse([chatChunk({ tool_calls: [call] }), chatChunk({}, "tool_calls"), usageChunk(wireUsage(10, 4))]),
      sse(chatChunks(["Rain."])),
    );
    const socket = await connect();
    socket.send(create({ input: "Weather?", tools }));
    const { id } = await completed(socket);

    socket.send(create({ input: [{ type: "function_call_output", call_id: "call_1", output: "rain" }], tools, previous_response_id: id }));

    expect((await completed(socket)).output).toMatchObject([{ content: [{ text: "Rain." }] }]);
    expect(lastMessages()).toMatchObject([{ role: "user" }, { tool_calls: [{ id: "call_1" }] }, { role: "tool", tool_call_id: "call_1" }]);
  });

  it("keeps an input that is sent ahead, without a charge", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const socket = await connect({ key: payer.key });
    socket.send(create({ input: "Long instructions", generate: false }));
    const ahead = await completed(socket);
    app.upstream.replyNext(sse(chatChunks(["Hi."])));

    socket.send(create({ input: [], previous_response_id: ahead.id }));

    expect((await completed(socket)).output).toMatchObject([{ content: [{ text: "Hi." }] }]);
    expect(ahead).toMatchObject({ output: [], usage: { input_tokens: 0, output_tokens: 0 } });
    expect(lastMessages()).toEqual([{ role: "user", content: "Long instructions" }]);
    await booksWith(app, payer, 1);
  });

  it("keeps a previous response when the next one fails", async () => {
    const socket = await connect();
    app.upstream.replyNext(sse(chatChunks(["Hi."])), errorReply(400), sse(chatChunks(["Again."])));
    socket.send(create({ input: "Hello" }));
    const { id } = await completed(socket);
    socket.send(create({ input: "More", previous_response_id: id }));
    expect(await socket.next("error")).toMatchObject({ status: 400 });

    socket.send(create({ input: "More", previous_response_id: id }));

    expect((await completed(socket)).output).toMatchObject([{ content: [{ text: "Again." }] }]);
  });

  it("knows no response of another connection", async () => {
    const [one, other] = await Promise.all([connect(), connect()]);
    app.upstream.replyNext(sse(chatChunks(["Hi."])));
    one.send(create({ input: "Hello" }));
    const { id } = await completed(one);

    other.send(create({ input: "Hello", previous_response_id: id }));

    expect(await other.next("error")).toMatchObject({ error: { code: "previous_response_not_found" } });
  });

  it("bounds a response by max_cost of the event, the address and the header", async () => {
    for (const [options, query, fields] of [
      [{}, "", { max_cost: "0.000000001" }],
      [{}, "?max_cost=0.000000001", {}],
      [{ headers: { "X-Max-Cost": "0.000000001" } }, "", {}],
    ] as const) {
      const socket = await connect(options, query);
      socket.send(create({ input: "Hello", ...fields }));
      expect(await socket.next("error")).toMatchObject({ status: 402, error: { code: "MAX_COST_EXCEEDED" } });
    }
  });
});

describe("a frame that is refused", () => {
  it.each([
    ["no JSON", "garbage", "BAD_REQUEST"],
    ["nothing", "", "BAD_REQUEST"],
    ["no object", "[1]", "BAD_REQUEST"],
    ["bytes that are no text", Buffer.from([0xff, 0xfe, 0x00]), "BAD_REQUEST"],
    ["too deep", `${"[".repeat(500)}${"]".repeat(500)}`, "BAD_REQUEST"],
    ["another type", JSON.stringify({ type: "session.update" }), "BAD_REQUEST"],
    ["no model of the catalog", JSON.stringify(create({ model: "no/such", input: "x" })), "BAD_REQUEST"],
    ["no input", JSON.stringify(create({})), "BAD_REQUEST"],
    [
      "a previous response of the wrong type",
      JSON.stringify(create({ input: "x", previous_response_id: { id: 1 } })),
      "previous_response_not_found",
    ],
    ["a stored conversation", JSON.stringify(create({ input: "x", conversation: "conv_1" })), "BAD_REQUEST"],
  ])("is an error event, after which the connection goes on: %s", async (_, frame, code) => {
    const socket = await connect();
    app.upstream.replyNext(sse(chatChunks(["Still here."])));

    socket.socket.send(frame);
    const refused = await socket.next("error");
    socket.send(create({ input: "Hello" }));

    expect(refused).toMatchObject({
      type: "error",
      status: 400,
      error: { code, message: expect.any(String), requestId: expect.any(String) },
    });
    expect((await completed(socket)).status).toBe("completed");
  });

  it("is a second response while one runs, which goes on", async () => {
    const { reply, finish } = paused();
    app.upstream.replyNext(reply);
    const socket = await connect();
    socket.send(create({ input: "Hello" }));
    await socket.next("response.output_text.delta");

    socket.send(create({ input: "Me too" }));
    socket.send(create({ input: "long ".repeat(2_000) }));

    for (let refused = 0; refused < 2; refused++)
      expect(await socket.next("error")).toMatchObject({ status: 409, error: { code: "CONFLICT" } });
    finish();
    expect((await completed(socket)).output).toMatchObject([{ content: [{ text: "Half done." }] }]);
  });

  it("is none when a client says that it has processed a response", async () => {
    const socket = await connect();
    app.upstream.replyNext(sse(chatChunks(["Hi."])));

    socket.send({ type: "response.processed", response_id: "resp_1" });
    socket.send(create({ input: "Hello" }));
    await completed(socket);

    expect(socket.received.filter(({ type }) => type === "error")).toEqual([]);
  });
});

describe("a failure on the way", () => {
  it("is the events of the HTTP stream, after which the connection goes on", async () => {
    const [first] = chatChunks(["Half"]);
    app.upstream.replyNext(sse([first as never, { error: { message: "It broke." } }]), sse(chatChunks(["Well."])));
    const socket = await connect();

    socket.send(create({ input: "Hello" }));

    expect(await socket.next("error")).toMatchObject({ code: "UPSTREAM_ERROR" });
    expect(await socket.next("response.failed")).toMatchObject({ response: { status: "failed", error: { code: "server_error" } } });
    socket.send(create({ input: "Hello" }));
    await completed(socket);
  });

  it("cancels the response when the client leaves, and charges the delivered part", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const { reply, finish } = paused();
    app.upstream.replyNext(reply);
    const socket = await connect({ key: payer.key });
    socket.send(create({ input: "Hello" }));
    await socket.next("response.output_text.delta");

    socket.socket.terminate();

    const row = await waitForUsage(createClient(app.baseUrl, payer.key), ({ status }) => status === "cancelled");
    expect(Number(row.cost_usd)).toBeGreaterThan(0);
    finish();
  });
});

describe("the key of a connection", () => {
  it("is required before the upgrade, with status and envelope", async () => {
    expectEnvelope(await refuseRealtime(app, "", { key: null, path: PATH }), 401, "UNAUTHORIZED");
    expectEnvelope(await refuseRealtime(app, "", { key: `sk_${"x".repeat(40)}`, path: PATH }), 401, "UNAUTHORIZED");
    expectEnvelope(await client.get(PATH), 426, "UPGRADE_REQUIRED");
  });

  it("may be sent as a subprotocol, by browsers", async () => {
    const socket = await connect({ key: null, protocols: ["realtime", `openai-insecure-api-key.${app.key}`] });
    app.upstream.replyNext(sse(chatChunks(["Hi."])));

    socket.send(create({ input: "Hello" }));

    await completed(socket);
    expect(socket.socket.protocol).toBe("realtime");
  });

  it("opens a bounded number of connections", async () => {
    const { key } = await createKey(app);
    const open = await Promise.all(Array.from({ length: SOCKETS_PER_KEY_MAX }, () => connect({ key })));

    expectEnvelope(await refuseRealtime(app, "", { key, path: PATH }), 429, "RATE_LIMITED");
    open[0]?.socket.close();
    await open[0]?.closed;
    await eventually(() => connect({ key }));
  });

  it("ends its connections and the running response when it is revoked", async () => {
    const { key, id } = await createKey(app);
    const { reply, finish } = paused();
    app.upstream.replyNext(reply);
    const socket = await connect({ key });
    socket.send(create({ input: "Hello" }));
    await socket.next("response.output_text.delta");

    await client.request("DELETE", `/account/keys/${id}`);

    expect(await socket.next("error")).toMatchObject({ status: 401, error: { code: "UNAUTHORIZED" } });
    expect(await socket.closed).toEqual({ code: 1008, reason: "UNAUTHORIZED" });
    finish();
  });

  it("ends its connections when its account is suspended", async () => {
    const payer = await createPayer(app, { pack: 10n * CREDIT });
    const socket = await connect({ key: payer.key });

    ok(await execute(app, SuspendAccountDocument, { input: { accountId: payer.accountId, reason: "A leaver." } }));

    expect(await socket.next("error")).toMatchObject({ status: 403, error: { code: "ACCOUNT_SUSPENDED" } });
    expect(await socket.closed).toEqual({ code: 1008, reason: "ACCOUNT_SUSPENDED" });
  });
});

describe("the time of a connection", () => {
  it("ends when nothing runs on it for too long", async () => {
    times.idleMs = 50;
    const socket = await connect().finally(() => delete times.idleMs);

    expect(await socket.closed).toEqual({ code: 1000, reason: "The connection was idle" });
  });

  it("ends at its longest duration, with the code by which clients connect again", async () => {
    times.totalMs = 50;
    const socket = await connect().finally(() => delete times.totalMs);

    expect(await socket.next("error")).toMatchObject({ status: 503, error: { code: "websocket_connection_limit_reached" } });
    expect((await socket.closed).code).toBe(1000);
  });
});
