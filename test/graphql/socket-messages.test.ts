/** Large messages of a WebSocket are read in turns of the event loop: in order, each bounded in bytes and in structure. */
import { once } from "node:events";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { GRAPHQL_MESSAGE_BYTES_MAX } from "../../src/graphql/limits.js";
import { JSON_BRACKETS_MAX, JSON_KEYS_MAX, JSON_VALUES_MAX } from "../../src/limits.js";
import { createTestApp, type TestApp } from "../support/app.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

let open: WebSocket | undefined;
afterEach(() => open?.terminate());

interface Message {
  readonly id?: string;
  readonly type: string;
  readonly payload?: unknown;
}

/** Initialised with the key. */
async function connect(): Promise<WebSocket> {
  const socket = new WebSocket(app.wsUrl, "graphql-transport-ws", { headers: { authorization: `Bearer ${app.key}` } });
  open = socket;
  await once(socket, "open");
  socket.send('{"type":"connection_init"}');
  expect(await nextMessage(socket)).toMatchObject({ type: "connection_ack" });
  return socket;
}

async function nextMessage(socket: WebSocket): Promise<Message> {
  const [data] = (await once(socket, "message")) as [Buffer];
  return JSON.parse(String(data)) as Message;
}

/** The next messages until the last of these operations is complete. */
async function messagesUntil(socket: WebSocket, ids: readonly string[]): Promise<Message[]> {
  const waiting = new Set(ids);
  const messages: Message[] = [];
  await new Promise<void>((resolve, reject) => {
    socket.on("message", (data) => {
      const message = JSON.parse(String(data)) as Message;
      messages.push(message);
      if (message.type !== "next" && message.id !== undefined) waiting.delete(message.id);
      if (waiting.size === 0) resolve();
    });
    socket.once("close", (code, reason) => reject(new Error(`closed with ${code}: ${reason}`)));
  });
  return messages;
}

/** An operation of this many bytes as a message. */
function operation(id: string, bytes: number): string {
  const toText = (text: string) =>
    JSON.stringify({
      id,
      type: "subscribe",
      payload: { query: "query ($after: String) { models(first: 1, after: $after) { totalCount } }", variables: { after: text } },
    });
  return toText("x".repeat(bytes - toText("").length));
}

const small = (id: string) => JSON.stringify({ id, type: "subscribe", payload: { query: "{ __typename }" } });
const answer = (id: string): Message => ({ id, type: "next", payload: expect.objectContaining({ data: { __typename: "Query" } }) });

describe("a message on a socket", () => {
  it("may have 8 MiB", async () => {
    const socket = await connect();

    socket.send(operation("a", GRAPHQL_MESSAGE_BYTES_MAX));

    expect(JSON.stringify(await messagesUntil(socket, ["a"]))).toContain("after: must be a cursor that this list has answered");
  });

  it("closes the socket with 1009 when it has one byte more", async () => {
    const socket = await connect();

    socket.send(operation("a", GRAPHQL_MESSAGE_BYTES_MAX + 1));

    expect((await once(socket, "close"))[0]).toBe(1009);
  });

  it.each([
    ["keys", Object.fromEntries(Array.from({ length: JSON_KEYS_MAX + 1 }, (_, index) => [`k${index}`, 1])), /has more than 20,?000 keys/],
    ["values", Array(JSON_VALUES_MAX + 1).fill(1), /has more than 400,?000 values/],
    ["objects", Array(JSON_BRACKETS_MAX + 1).fill({}), /has more than 150,?000 objects and lists/],
  ])("closes the socket with 4400 when it has too many %s", async (_what, extra, reason) => {
    const socket = await connect();

    socket.send(JSON.stringify({ id: "a", type: "subscribe", payload: { query: "{ __typename }", extra } }));
    const [code, text] = (await once(socket, "close")) as [number, Buffer];

    expect([code, String(text)]).toEqual([4400, expect.stringMatching(reason)]);
  });

  it("is read after a large one that came before it", async () => {
    const socket = await connect();
    const done = messagesUntil(socket, ["large", "first", "second"]);

    socket.send(operation("large", 4 * 1024 * 1024));
    socket.send(small("first"));
    socket.send(operation("larger", 5 * 1024 * 1024));
    socket.send('{"id":"larger","type":"complete"}');
    socket.send(small("second"));

    const messages = await done;
    expect(messages).toContainEqual(answer("first"));
    expect(messages.filter(({ id }) => id === "second")).toEqual([answer("second"), { id: "second", type: "complete" }]);
  });

  it("is not read once a large one before it was refused", async () => {
    const socket = await connect();
    const values = Array(JSON_VALUES_MAX + 1).fill(1);
    const answered: unknown[] = [];
    socket.on("message", (data) => answered.push(JSON.parse(String(data))));

    socket.send(JSON.stringify({ id: "a", type: "subscribe", payload: { query: "{ __typename }", values } }));
    socket.send(small("b"));

    expect((await once(socket, "close"))[0]).toBe(4400);
    expect(answered).toEqual([]);
  });
});
