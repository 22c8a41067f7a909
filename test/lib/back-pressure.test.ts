import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, expect, it } from "vitest";
import { drained } from "../../src/lib/back-pressure.js";
import { inTime } from "../support/eventually.js";

const HOUR_MS = 3_600_000;
const open: (() => void)[] = [];

afterEach(() => {
  for (const close of open.splice(0)) close();
});

/** A response, and the socket of a client that reads nothing until it is resumed. */
async function respond(): Promise<{ res: ServerResponse; client: Socket }> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  client.pause();
  // A connection that the server has ended.
  client.on("error", () => undefined);
  open.push(() => {
    client.destroy();
    server.close();
  });
  client.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const [, res] = (await once(server, "request")) as [unknown, ServerResponse];
  return { res, client };
}

/** Writes more than the system takes for a client that reads nothing. */
function fill(res: ServerResponse): void {
  const piece = Buffer.alloc(16 * 1024 * 1024);
  expect(res.write(piece)).toBe(false);
}

function listenersOf(res: ServerResponse): number[] {
  return ["drain", "close"].map((name) => res.listenerCount(name));
}

it("resolves when the reader has taken the written bytes, and leaves no listener", async () => {
  const { res, client } = await respond();
  const before = listenersOf(res);
  fill(res);
  const taken = drained(res, HOUR_MS);

  client.resume();
  await inTime(taken, "the reader to take the bytes");

  expect([res.writableNeedDrain, res.destroyed]).toEqual([false, false]);
  expect(listenersOf(res)).toEqual(before);
});

it("resolves when the reader leaves", async () => {
  const { res, client } = await respond();
  fill(res);
  const taken = drained(res, HOUR_MS);

  client.destroy();
  await inTime(taken, "the end of the connection");

  expect(res.closed).toBe(true);
});

it("resolves at once when the connection has closed", async () => {
  const { res } = await respond();
  const closed = once(res, "close");
  res.destroy();
  await closed;
  const before = listenersOf(res);

  await inTime(drained(res, HOUR_MS), "a closed connection");

  expect(listenersOf(res)).toEqual(before);
});

it("disconnects a reader who takes nothing", async () => {
  const { res, client } = await respond();
  const ended = once(client, "close");
  fill(res);

  await inTime(drained(res, 1), "the reader to be disconnected");

  expect(res.destroyed).toBe(true);
  client.resume();
  await inTime(ended, "the client's end");
});
