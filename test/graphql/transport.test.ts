import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { auditServer } from "graphql-http";
import { createClient } from "graphql-ws";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ClientOptions, WebSocket } from "ws";
import {
  BalanceChangedDocument,
  type ChatCompletionInput,
  CurrentApiKeyDocument,
  GrantCreditsDocument,
  ModelByIdDocument,
  MyLastChargeDocument,
  RevokeApiKeyDocument,
  SignUpDocument,
  StreamChatDocument,
  type StreamChatSubscription,
  UsageRecordedDocument,
  WhoAmIDocument,
} from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { inTime } from "../support/eventually.js";
import { chatChunk, chatChunks } from "../support/openai-bodies.js";
import { signedIn, signUp } from "../support/sign-in.js";
import { hang, sse, waitFor } from "../support/upstream-replies.js";
import {
  type Answer,
  authorization,
  codes,
  connect,
  execute,
  ok,
  post,
  subscribeSse,
  subscribeWith,
  type Target,
  TRANSPORTS,
  textOf,
} from "./client.js";

const GREETING: ChatCompletionInput = { model: "acme/chat", messages: [{ role: "USER", content: "Hi" }] };
const TYPENAME = { query: "{ __typename }" };
const PREFLIGHTED = { "apollo-require-preflight": "true" };

/** Short, so that a test can wait for some periods of it. */
const PING_MS = 40;

let app: TestApp;

beforeAll(async () => {
  app = await createTestApp({ config: { webSockets: { pingMs: PING_MS, stalledMs: 60_000 } } });
});

afterAll(async () => {
  await app.close();
});

function url(search = ""): string {
  return `${app.baseUrl}/graphql${search}`;
}

async function refusal(response: Response): Promise<{ status: number; codes: string[] }> {
  return { status: response.status, codes: codes((await response.json()) as Answer) };
}

function send(body: BodyInit, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url(), { method: "POST", headers: { ...authorization(app), ...headers }, body });
}

describe("the GraphQL endpoint", () => {
  it("speaks GraphQL over HTTP as its audit wants it", async () => {
    const results = await auditServer({
      url: url(),
      fetchFn: (input: string, init: RequestInit = {}) =>
        fetch(input, { ...init, headers: { ...PREFLIGHTED, ...(init.headers as Record<string, string>) } }),
    });

    expect(results).toHaveLength(61);
    expect(results.filter(({ status }) => status !== "ok").map(({ name, status }) => `${status}: ${name}`)).toEqual([]);
  });

  it("answers with the request id that it was sent, in the header and in errors", async () => {
    const response = await post(app, { query: "{ nonsense }" }, { "x-request-id": "my-request.1" });

    expect(response.headers.get("x-request-id")).toBe("my-request.1");
    expect(((await response.json()) as Answer).errors?.[0]?.extensions.requestId).toBe("my-request.1");
  });

  it("makes a request id when the one sent is not well-formed", async () => {
    const response = await post(app, TYPENAME, { "x-request-id": "no spaces" });

    expect(response.headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
  });

  it.each([
    ["an unknown key", { authorization: "Bearer sk_0000000000000000000000000000000000000000000" }],
    ["another scheme", { authorization: "Basic dXNlcjpwYXNz" }],
    ["Bearer with two keys", { authorization: "Bearer sk_a sk_b" }],
  ])("refuses %s with 401", async (_what, headers) => {
    const response = await fetch(url(), {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(TYPENAME),
    });

    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer error="invalid_token", error_description="The A[^"]+\."$/);
    expect(await refusal(response)).toEqual({ status: 401, codes: ["UNAUTHORIZED"] });
  });

  it.each([["two keys in the URL", "?key=sk_a&key=sk_b", {}]])("refuses %s with 400", async (_what, search, headers) => {
    const response = await fetch(url(search), {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify(TYPENAME),
    });

    expect(await refusal(response)).toEqual({ status: 400, codes: ["BAD_REQUEST"] });
  });

  it("takes the key from the URL, and from the header when both are sent", async () => {
    const query = { query: textOf(CurrentApiKeyDocument) };
    const ask = (key: string, headers = {}) =>
      fetch(url(`?key=${key}`), {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(query),
      });

    const byUrl = (await (await ask(app.key)).json()) as Answer;
    const byHeader = (await (await ask("sk_wrong", authorization(app))).json()) as Answer;

    expect(byUrl.data?.apiKey).toEqual(byHeader.data?.apiKey);
    expect(byUrl.errors).toBeUndefined();
  });

  it("keeps answers out of caches and readable by any page", async () => {
    const { headers } = await post(app, TYPENAME);

    expect(headers.get("cache-control")).toBe("private, no-store");
    expect(headers.get("access-control-allow-origin")).toBe("*");
    expect(headers.get("access-control-allow-credentials")).toBeNull();
  });

  it("compresses long answers for a browser that is signed in, and not those for a key", async () => {
    const query = JSON.stringify({ query: "{ models(first: 100) { nodes { restId title description } } }" });
    const headers = { "content-type": "application/json", "accept-encoding": "gzip, br" };
    const ask = async (credential: Record<string, string>, accepted = headers["accept-encoding"]) => {
      const response = await fetch(url(), {
        method: "POST",
        headers: { ...headers, "accept-encoding": accepted, ...credential },
        body: query,
      });
      const { data } = (await response.json()) as Answer;
      return { coding: response.headers.get("content-encoding"), vary: response.headers.get("vary"), data };
    };
    const browser = signedIn(await signUp(app));

    const byBrowser = await ask(browser);
    const byKey = await ask(authorization(app));

    expect(byBrowser).toMatchObject({ coding: "gzip", vary: "Accept-Encoding" });
    expect((await ask(browser, "identity")).coding).toBeNull();
    expect(byKey.coding).toBeNull();
    expect(byBrowser.data).toEqual(byKey.data);
  });

  it.each(["/graphql/below", "/GraphQL"])("leaves %s to REST, which knows no such path", async (path) => {
    const response = await fetch(`${app.baseUrl}${path}`, { method: "POST", headers: authorization(app) });

    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ error: { code: "NOT_FOUND" } });
  });

  it("answers a browser's preflight", async () => {
    const response = await fetch(url(), {
      method: "OPTIONS",
      headers: { origin: "https://page.example", "access-control-request-headers": "authorization, x-asked" },
    });

    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-methods")).toBe("GET, POST, OPTIONS");
    expect(response.headers.get("access-control-allow-headers")?.split(", ")).toContain("x-asked");
    // As on every route: a cache in between must not give one page the answer that another was given.
    expect(response.headers.get("vary")).toBe("Access-Control-Request-Headers");
  });
});

describe("a request that a page of another site could send without a preflight", () => {
  it.each([
    ["application/x-www-form-urlencoded", "query=%7B__typename%7D"],
    [
      "multipart/form-data; boundary=x",
      '--x\r\nContent-Disposition: form-data; name="operations"\r\n\r\n{"query":"{__typename}"}\r\n--x--\r\n',
    ],
    ["text/plain", JSON.stringify(TYPENAME)],
  ])("is refused as %s with 403", async (contentType, body) => {
    expect(await refusal(await send(body, { "content-type": contentType }))).toEqual({ status: 403, codes: ["FORBIDDEN"] });
  });

  it("is refused as GET with 403", async () => {
    expect(await refusal(await fetch(url(`?query=%7B__typename%7D&key=${app.key}`)))).toEqual({ status: 403, codes: ["FORBIDDEN"] });
  });

  it("is answered as GET with a header that a browser asks about first", async () => {
    const response = await fetch(url("?query=%7B__typename%7D"), { headers: PREFLIGHTED });

    expect(await response.json()).toMatchObject({ data: { __typename: "Query" } });
  });

  it("is answered as GET with a key in its header, which no page has and no browser adds", async () => {
    const response = await fetch(url("?query=%7B__typename%7D"), { headers: { ...authorization(app), cookie: "a=b" } });

    expect(await response.json()).toMatchObject({ data: { __typename: "Query" } });
  });

  it("is refused as GET with a cookie, signed in or not, with the names of the headers to send", async () => {
    const signedUp = await post(
      { ...app, key: null },
      { query: textOf(SignUpDocument), variables: { input: { email: "reader@example.com", password: "correct horse battery" } } },
    );
    const session = signedUp.headers.getSetCookie().map((line) => line.split(";", 1)[0]);
    const ask = (cookie: string, headers = {}) => fetch(url("?query=%7Bme%7Bid%7D%7D"), { headers: { cookie, ...headers } });

    const refused = [await ask(session.join("; ")), await ask("a=b")];
    const answered = (await (await ask(session.join("; "), PREFLIGHTED)).json()) as Answer;

    for (const response of refused) {
      expect(response.status).toBe(403);
      const [error] = ((await response.json()) as Answer).errors ?? [];
      expect(error?.message).toMatch(/^Send one of the headers .*apollo-require-preflight.* or the key as Authorization: Bearer\./);
    }
    expect(answered.data?.me).toEqual({ id: expect.any(String) });
  });
});

describe("invalid requests", () => {
  it("refuses a mutation over GET with 405", async () => {
    const query = encodeURIComponent(textOf(RevokeApiKeyDocument));

    const response = await fetch(url(`?query=${query}`), { headers: authorization(app) });
    const answer = (await response.json()) as Answer;

    expect(response.headers.get("allow")).toBe("POST");
    expect(response.status).toBe(405);
    expect(answer.errors).toMatchObject([{ message: expect.stringContaining("with POST"), extensions: { code: "METHOD_NOT_ALLOWED" } }]);
  });

  it.each(["PUT", "DELETE", "PATCH"])("refuses %s with 405", async (method) => {
    const response = await fetch(url(), { method, headers: authorization(app) });

    expect(response.headers.get("allow")).toBe("GET, POST, OPTIONS");
    expect(await refusal(response)).toEqual({ status: 405, codes: ["METHOD_NOT_ALLOWED"] });
  });

  it.each([
    ["JSON that does not parse", "{"],
    ["a JSON string", '"x"'],
    ["null", "null"],
    ["a batch", JSON.stringify([TYPENAME, TYPENAME])],
    ["JSON without a query", "{}"],
    ["a query that is no text", '{"query":1}'],
    ["variables that are no object", '{"query":"{__typename}","variables":"x"}'],
    ["bytes that are not UTF-8", Buffer.from([0x7b, 0xff, 0x7d])],
    ["JSON nested 20,000 levels deep", `${"[".repeat(20_000)}${"]".repeat(20_000)}`],
  ] as const)("refuses %s with 400", async (_what, body) => {
    expect(await refusal(await send(body, { "content-type": "application/json" }))).toEqual({ status: 400, codes: ["BAD_REQUEST"] });
  });

  it("refuses query parameters that are not JSON with 400", async () => {
    const response = await fetch(url("?query=%7B__typename%7D&variables=%7B"), {
      headers: { ...PREFLIGHTED, accept: "application/graphql-response+json" },
    });

    expect(await refusal(response)).toEqual({ status: 400, codes: ["BAD_REQUEST"] });
  });

  it.each([
    ["of an unknown type", { "content-type": "application/xml" }],
    ["that is compressed", { "content-type": "application/json", "content-encoding": "gzip" }],
    ["in another encoding than UTF-8", { "content-type": "application/json; charset=iso-8859-1" }],
  ])("refuses a body %s with 415", async (_what, headers) => {
    expect(await refusal(await send("{}", headers))).toEqual({ status: 415, codes: ["UNSUPPORTED_MEDIA_TYPE"] });
  });

  it("takes a body that says in any case that it is not compressed", async () => {
    const answer = await send(JSON.stringify(TYPENAME), { "content-type": "application/json", "content-encoding": "Identity" });

    expect(answer.status).toBe(200);
  });

  it.each(["text/plain", "application/json; charset=latin1"])("refuses to answer as %s with 406 before anything runs", async (accept) => {
    const asked = app.upstream.requests.length;
    const query = `mutation { createEmbeddings(input: { model: "acme/embedding", input: { text: "Hi" } }) { receipt { cost } } }`;

    const response = await post(app, { query }, { accept });
    const answer = (await response.json()) as Answer;

    expect(response.status).toBe(406);
    expect(answer.errors).toMatchObject([{ message: expect.stringContaining("Accept header with application/json") }]);
    expect(app.upstream.requests).toHaveLength(asked);
  });

  it("refuses a subscription that is requested as JSON with 406", async () => {
    const response = await post(app, { query: textOf(UsageRecordedDocument) }, { accept: "application/json" });

    expect(await refusal(response)).toEqual({ status: 406, codes: ["BAD_REQUEST"] });
  });

  it("refuses a body that is declared too large before it is sent", async () => {
    const response = await answerTo({ "content-length": String(32 * 1024 * 1024 + 1), ...authorization(app) }, () => undefined);

    expect(response).toMatchObject({ status: 413, codes: ["PAYLOAD_TOO_LARGE"], connection: "close" });
  });

  it("refuses a body that turns out too large, and closes the connection", async () => {
    const response = await answerTo({}, (outgoing) => outgoing.write(Buffer.alloc(100 * 1024 + 1, " ")));

    expect(response).toMatchObject({ status: 413, codes: ["PAYLOAD_TOO_LARGE"], connection: "close" });
  });

  it("takes more than that from a key", async () => {
    const body = JSON.stringify({ ...TYPENAME, extensions: { padding: "x".repeat(200 * 1024) } });

    expect(await (await send(body, { "content-type": "application/json" })).json()).toMatchObject({ data: { __typename: "Query" } });
  });

  /** A request whose body may never be finished. */
  async function answerTo(headers: Record<string, string>, write: (outgoing: ReturnType<typeof httpRequest>) => void) {
    const outgoing = httpRequest(url(), { method: "POST", headers: { "content-type": "application/json", ...headers } });
    outgoing.on("error", () => undefined);
    outgoing.flushHeaders();
    write(outgoing);
    const [response] = (await once(outgoing, "response")) as [IncomingMessage];
    let text = "";
    for await (const chunk of response) text += chunk;
    outgoing.destroy();
    return { status: response.statusCode, codes: codes(JSON.parse(text) as Answer), connection: response.headers.connection };
  }
});

describe("internal failures", () => {
  it("are INTERNAL_ERROR on both transports, and logged once", async () => {
    const broken = await createTestApp({ upstream: app.upstream });
    const secret = "a detail of the database";
    broken.services.accounts.own = () => Promise.reject(new Error(secret));
    broken.services.live.usageRecorded = () => failingStream(secret);
    const client = connect(broken);
    const answers = [
      await execute(broken, WhoAmIDocument),
      ...(await subscribeWith(client, WhoAmIDocument).rest()),
      ...(await subscribeSse(broken, UsageRecordedDocument).rest()),
      ...(await subscribeWith(client, UsageRecordedDocument).rest()),
    ];

    expect(answers.flatMap(codes)).toEqual(["INTERNAL_ERROR", "INTERNAL_ERROR", "INTERNAL_ERROR", "INTERNAL_ERROR"]);
    expect(JSON.stringify(answers)).not.toContain(secret);
    expect(broken.logs.filter((line) => JSON.stringify(line).includes(secret))).toHaveLength(4);
    await client.dispose();
    await broken.close();
  });

  // biome-ignore lint/correctness/useYield: it fails before it has anything to say
  async function* failingStream(message: string): AsyncGenerator<never> {
    throw new Error(message);
  }
});

/** The code with which a socket was closed. */
async function closeCode(socket: WebSocket): Promise<number> {
  socket.on("error", () => undefined);
  const [code] = (await once(socket, "close")) as [number];
  return code;
}

function open(protocol = "graphql-transport-ws", path = "/graphql"): WebSocket {
  return new WebSocket(`${app.wsUrl.replace("/graphql", path)}`, protocol);
}

describe("a WebSocket", () => {
  it("is closed with 4403 when its key is not good", async () => {
    const socket = open();
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: "Bearer sk_wrong" } }));

    expect(await closeCode(socket)).toBe(4403);
  });

  it("takes the key from its URL", async () => {
    const client = connect({ ...app, wsUrl: `${app.wsUrl}?key=${app.key}`, key: null });

    const answers = await subscribeWith(client, CurrentApiKeyDocument).rest();

    expect(answers.flatMap(codes)).toEqual([]);
    await client.dispose();
  });

  it("is closed with 4403 when its upgrade came with two keys", async () => {
    const socket = new WebSocket(app.wsUrl, "graphql-transport-ws", {
      headers: { authorization: [`Bearer ${app.key}`, `Bearer ${app.key}`] as unknown as string },
    });
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init" }));

    expect(await closeCode(socket)).toBe(4403);
  });

  it("bounds its operations by the cost that its upgrade states, which must be one", async () => {
    const socket = new WebSocket(app.wsUrl, "graphql-transport-ws", { headers: { "x-max-cost": "a lot" } });
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init" }));
    await once(socket, "message");
    socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: TYPENAME }));
    const [refused] = (await once(socket, "message")) as [Buffer];

    expect(JSON.parse(String(refused))).toMatchObject({
      type: "error",
      payload: [{ extensions: { code: "BAD_REQUEST", param: "X-Max-Cost" } }],
    });
    socket.terminate();
  });

  it("answers the public catalog without a key", async () => {
    const client = connect({ ...app, key: null });

    const answers = await subscribeWith(client, ModelByIdDocument, { id: "chat" }).rest();

    expect(ok(answers[0] ?? null).model.restId).toBe("acme/chat");
    await client.dispose();
  });

  it("is closed with 4408 when it sends nothing", async () => {
    expect(await closeCode(open())).toBe(4408);
  });

  it("is closed with 4401 when it subscribes before connection_init", async () => {
    const socket = open();
    await once(socket, "open");
    socket.send(JSON.stringify({ id: "1", type: "subscribe", payload: TYPENAME }));

    expect(await closeCode(socket)).toBe(4401);
  });

  it("is closed with 4406 when it speaks another protocol", async () => {
    const socket = new WebSocket(app.wsUrl);

    expect(await closeCode(socket)).toBe(4406);
  });

  it("is closed with 4400 when it sends an invalid message", async () => {
    const socket = open();
    await once(socket, "open");
    socket.send("nonsense");

    expect(await closeCode(socket)).toBe(4400);
  });

  it("is closed when it sends too much without a key", async () => {
    const socket = open();
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init", payload: { padding: "x".repeat(200 * 1024) } }));

    expect(await closeCode(socket)).not.toBe(1000);
  });

  it("runs ten operations at once and refuses the eleventh", async () => {
    app.upstream.replyAlways(hang());
    const client = connect(app);
    const running = Array.from({ length: 10 }, () => subscribeWith(client, StreamChatDocument, { input: GREETING }));

    const eleventh = await subscribeWith(client, StreamChatDocument, { input: GREETING }).rest();

    expect(eleventh.flatMap(codes)).toEqual(["RATE_LIMITED"]);
    for (const live of running) live.leave();
    app.upstream.replyAlways(null);
    await client.dispose();
  });

  it("is one of at most 100 of a key and of an address", async () => {
    const proxied = await createTestApp({ upstream: app.upstream, config: { trustProxyHops: 1 } });
    const from = async (address: string): Promise<WebSocket> => {
      const socket = new WebSocket(proxied.wsUrl, "graphql-transport-ws", { headers: { "x-forwarded-for": `spoofed, ${address}` } });
      await once(socket, "open");
      socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${app.key}` } }));
      await once(socket, "message");
      return socket;
    };
    // One customer of a provider has at least a /64 to choose addresses from.
    for (let index = 0; index < 100; index += 1) await from(`2001:db8:1:1::${index}`);

    const [refused] = (await once(new WebSocket(proxied.wsUrl, { headers: { "x-forwarded-for": "2001:db8:1:1:ffff::1" } }), "error")) as [
      Error,
    ];
    const elsewhere = new WebSocket(proxied.wsUrl, "graphql-transport-ws", { headers: { "x-forwarded-for": "2001:db8:1:2::1" } });
    await once(elsewhere, "open");
    elsewhere.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${app.key}` } }));

    expect(refused.message).toContain("429");
    expect(await closeCode(elsewhere)).toBe(4429);
    await proxied.close();
  });

  it("ends its operations when it breaks", async () => {
    app.upstream.replyNext(sse([chatChunk({ content: "One" })], { end: "hang" }));
    const seen = app.upstream.requests.length;
    const client = connect(app);
    const live = subscribeWith(client, StreamChatDocument, { input: GREETING });
    await live.next();

    client.terminate();

    await expect(app.upstream.requests[seen]?.closedByClient).resolves.toBeGreaterThan(0);
    await client.dispose();
  });

  it("is refused with 404 at any other path", async () => {
    const socket = open("graphql-transport-ws", "/elsewhere");
    const [, response] = (await once(socket, "unexpected-response")) as [unknown, IncomingMessage];

    expect(response.statusCode).toBe(404);
    expect(JSON.parse(Buffer.concat(await response.toArray()).toString())).toMatchObject({ status: 404, error: { code: "NOT_FOUND" } });
  });
});

describe("a WebSocket whose client reads nothing", () => {
  /** 16 MiB in all: more than the system buffers on the way. */
  const PIECES = Array.from({ length: 256 }, (_, index) => `${index} `.padEnd(64 * 1024, "lorem ipsum "));
  const subscribeTo = (model: string) => ({
    id: "1",
    type: "subscribe",
    payload: { query: textOf(StreamChatDocument), variables: { input: { ...GREETING, model } } },
  });

  it("is kept while its messages wait, through any number of pings, and delivers all of them in order", async () => {
    // Longer than this process, which is client and server, may be busy with the answer: the witness has nothing else to show that it lives.
    const webSockets = { pingMs: 10 * PING_MS, stalledMs: 60_000 };
    const patient = await createTestApp({ upstream: app.upstream, config: { webSockets } });
    const asked = app.upstream.requests.length;
    app.upstream.replyNext(sse(chatChunks(PIECES)));
    const [reader, witness] = await Promise.all([initialised(patient), initialised(patient)]);
    const answered = readContents(reader);
    reader.send(JSON.stringify(subscribeTo("acme/free")));
    await once(reader, "message");
    reader.pause();

    for (let pings = 0; pings < 3; pings += 1) await once(witness, "ping");
    const sentBefore = app.upstream.requests[asked]?.bytesSent() ?? 0;
    reader.resume();

    expect(await answered).toEqual({ contents: ["", ...PIECES, null], status: "OK" });
    expect(sentBefore).toBeLessThan(PIECES.length * 64 * 1024);
    expect(reader.readyState).toBe(WebSocket.OPEN);
    for (const socket of [reader, witness]) socket.terminate();
    await patient.close();
  });

  it("is closed when that lasts too long, and its generation is charged", async () => {
    const webSockets = { pingMs: PING_MS, stalledMs: 3 * PING_MS };
    const impatient = await createTestApp({ upstream: app.upstream, config: { webSockets } });
    const asked = app.upstream.requests.length;
    app.upstream.replyNext(sse(chatChunks(PIECES, { finishReason: null, usage: null }), { end: "hang" }));
    const reader = await initialised(impatient);
    reader.send(JSON.stringify(subscribeTo("acme/chat")));
    await once(reader, "message");
    reader.pause();

    await expect(app.upstream.requests[asked]?.closedByClient).resolves.toBeGreaterThan(0);
    const charged = async () => {
      const { usage, balance } = ok(await execute(impatient, MyLastChargeDocument)).me;
      return [usage?.edges[0]?.node.status, balance?.held];
    };
    await expect.poll(charged).toEqual(["CANCELLED", "0"]);
    reader.resume();
    expect(await closeCode(reader)).toBe(1006);
    await impatient.close();
  });

  it("is closed when it answers no ping and no message waits", async () => {
    const [silent, witness] = await Promise.all([initialised(app, { autoPong: false }), initialised(app)]);
    // So far it has read everything.
    silent.once("ping", () => silent.pong());

    expect(await closeCode(silent)).toBe(1006);
    expect(witness.readyState).toBe(WebSocket.OPEN);
    witness.terminate();
  });

  async function initialised(target: TestApp, options: ClientOptions = {}): Promise<WebSocket> {
    const socket = new WebSocket(target.wsUrl, "graphql-transport-ws", options);
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "connection_init", payload: { authorization: `Bearer ${target.key}` } }));
    await once(socket, "message");
    return socket;
  }

  function readContents(socket: WebSocket): Promise<{ contents: (string | null)[]; status: string }> {
    const contents: (string | null)[] = [];
    return new Promise((resolve, reject) => {
      socket.on("close", (code) => reject(new Error(`closed with ${code}`)));
      socket.on("message", (data) => {
        const { type, payload } = JSON.parse(String(data)) as { type: string; payload: Answer<StreamChatSubscription> };
        if (type !== "next") return;
        const event = ok(payload).chatCompletion;
        if (event.__typename === "ChatCompletionDelta") contents.push(event.content);
        else resolve({ contents, status: event.receipt.status });
      });
    });
  }
});

describe.each(TRANSPORTS)("a source that never waits, over %s", (_name, subscribe) => {
  it("is pulled no further than its reader reads, and ends when that leaves", async () => {
    const endless = await createTestApp({ upstream: app.upstream });
    const left = new Promise<string>((resolve) => {
      endless.services.live.balanceChanged = () => endlessBalances(() => resolve("left"));
    });

    const live = subscribe(endless, BalanceChangedDocument);
    await live.next();
    live.leave();

    expect(await inTime(left, "the source was not left")).toBe("left");
    await endless.close();
  });

  function endlessBalances(onReturn: () => void): ReturnType<TestApp["services"]["live"]["balanceChanged"]> {
    const value = { accountId: "00000000-0000-4000-8000-000000000000" };
    return {
      next: () => Promise.resolve({ done: false, value }),
      return: () => {
        onReturn();
        return Promise.resolve({ done: true, value: undefined });
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }
});

describe("closing the gateway", () => {
  it("cuts live subscriptions off without completing them: sockets close with 1012, event streams break", async () => {
    const closing = await createTestApp({ upstream: app.upstream });
    const client = connect(closing);
    const closed = new Promise((resolve) => client.on("closed", resolve));
    const streamed = subscribeSse(closing, BalanceChangedDocument);
    const live = subscribeWith(client, BalanceChangedDocument);
    await grantUntil(closing, Promise.all([streamed.next(), live.next()]));

    const broken = streamed.rest().then(
      () => "completed",
      (error: unknown) => String(error),
    );
    const ends = live.rest();
    await closing.close();

    expect((await ends).at(-1)).toMatchObject({ errors: [{ extensions: { code: "1012" } }] });
    expect(await broken).toMatch(/terminated|cut/);
    expect(await closed).toMatchObject({ code: 1012, reason: "Service restart" });
  });

  it("opens live subscriptions again in clients that retry", async () => {
    const closing = await createTestApp({ upstream: app.upstream });
    const next = await createTestApp({ upstream: app.upstream });
    const targets = [closing, next];
    const client = createClient({
      webSocketImpl: WebSocket,
      url: () => (targets[0] ?? next).wsUrl,
      connectionParams: () => ({ authorization: `Bearer ${(targets.shift() ?? next).key}` }),
      retryWait: () => Promise.resolve(),
    });
    const live = subscribeWith(client, BalanceChangedDocument);
    await grantUntil(closing, live.next());

    const again = live.next();
    await closing.close();
    await grantUntil(next, again);

    expect(ok(await again)).toMatchObject({ balanceChanged: { account: { balance: { pack: expect.any(String) } } } });
    await client.dispose();
    await next.close();
  });

  it("lets generations finish on both transports", async () => {
    const closing = await createTestApp({ upstream: app.upstream });
    let goOn = () => {};
    const gate = new Promise<void>((resolve) => {
      goOn = resolve;
    });
    const reply = sse([chatChunk({ content: "One" }), waitFor(gate), chatChunk({ content: " two" }, "stop")]);
    app.upstream.replyNext(reply, reply);
    const client = connect(closing);
    const running = [
      subscribeSse(closing, StreamChatDocument, { input: GREETING }),
      subscribeWith(client, StreamChatDocument, { input: GREETING }),
    ];
    await Promise.all(running.map((stream) => stream.next()));
    // It keeps the socket open no longer than the generation.
    const live = subscribeWith(client, BalanceChangedDocument);
    await grantUntil(closing, live.next());

    const ends = Promise.all(running.map((stream) => stream.rest()));
    const isClosed = closing.close();
    goOn();

    for (const answers of await ends) {
      expect(ok(answers.at(-1) ?? null).chatCompletion).toMatchObject({ __typename: "ChatCompletionEnd", receipt: { status: "OK" } });
    }
    expect((await live.rest()).at(-1)).toMatchObject({ errors: [{ extensions: { code: "1012" } }] });
    await isClosed;
  });

  async function grantUntil(target: Target, until: Promise<unknown>): Promise<void> {
    const { id } = ok(await execute(target, WhoAmIDocument)).me;
    let isSettled = false;
    void until.then(() => {
      isSettled = true;
    });
    while (!isSettled) {
      await execute(target, GrantCreditsDocument, { input: { accountId: id, bucket: "PACK", credits: "1" } });
    }
  }
});
