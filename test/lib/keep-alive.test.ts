import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { keepAlive } from "../../src/lib/keep-alive.js";
import { eventually, inTime } from "../support/eventually.js";

const PING_MS = 1_000;
const STALLED_MS = 5_000;

/** Both ends of a WebSocket, with the connections below them. */
interface Ends {
  readonly socket: WebSocket;
  readonly connection: Socket;
  readonly peer: WebSocket;
  readonly peerConnection: Socket;
}

let server: Server;
let ends: Ends;
let end: () => void;
let hangUps: number;

beforeEach(async () => {
  server = createServer();
  const sockets = new WebSocketServer({ server });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const peerConnection = connect(port, "127.0.0.1");
  const peer = new WebSocket(`ws://127.0.0.1:${port}`, { createConnection: () => peerConnection });
  const accepted = once(sockets, "connection");
  await once(peer, "open");
  const [socket, { socket: connection }] = (await accepted) as [WebSocket, { socket: Socket }];
  ends = { socket, connection, peer, peerConnection };
  hangUps = 0;
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval", "performance"] });
  end = keepAlive(socket, connection, { pingMs: PING_MS, stalledMs: STALLED_MS }, () => {
    hangUps += 1;
  });
});

afterEach(async () => {
  end();
  vi.useRealTimers();
  ends.socket.terminate();
  ends.peer.terminate();
  server.close();
  await once(server, "close");
});

/** One interval passes; then everything that has arrived is read, and the watch has decided. */
async function passInterval(): Promise<void> {
  vi.advanceTimersByTime(PING_MS);
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** One interval passes, and the peer answers its ping: it has read everything so far, the handshake included. */
async function answerPing(): Promise<void> {
  const answered = once(ends.socket, "pong");
  await passInterval();
  await inTime(answered, "the answer to a ping");
}

/** Puts more in the way than the system takes while the peer reads nothing. */
async function stall(): Promise<void> {
  ends.peerConnection.pause();
  ends.socket.send(Buffer.alloc(32 * 1024 * 1024));
  await passInterval();
  expect(ends.connection.writableLength).toBeGreaterThan(0);
}

describe("a peer that answers", () => {
  it("is pinged at each interval and stays connected", async () => {
    for (let interval = 0; interval < 20; interval += 1) {
      await answerPing();
    }

    expect(hangUps).toBe(0);
  });
});

describe("a peer with nothing to read that does not answer", () => {
  it("is hung up on one interval after the ping, once", async () => {
    await answerPing();
    ends.peerConnection.pause();

    await passInterval();
    expect(hangUps).toBe(0);
    await passInterval();
    expect(hangUps).toBe(1);
    for (let interval = 0; interval < 10; interval += 1) await passInterval();
    expect(hangUps).toBe(1);
  });

  it("is left alone after the end of the watch", async () => {
    await answerPing();
    ends.peerConnection.pause();
    await passInterval();

    end();
    for (let interval = 0; interval < 10; interval += 1) await passInterval();

    expect(hangUps).toBe(0);
  });

  it("is left alone when the watch ends before its decision", async () => {
    await answerPing();
    ends.peerConnection.pause();
    await passInterval();

    vi.advanceTimersByTime(PING_MS);
    end();
    await passInterval();

    expect(hangUps).toBe(0);
  });
});

describe("a peer with unread data", () => {
  it("is hung up on when it has read nothing for the longer time, and not before", async () => {
    await answerPing();
    await stall();
    for (let passed = PING_MS; passed < STALLED_MS - PING_MS; passed += PING_MS) await passInterval();
    expect(hangUps).toBe(0);

    // The last sign of life may be later: the system has taken more for the peer.
    for (let passed = 0; passed < 2 * STALLED_MS; passed += PING_MS) await passInterval();
    expect(hangUps).toBe(1);
  });

  it("stays connected when it has read all of it late", async () => {
    await stall();
    for (let passed = PING_MS; passed < STALLED_MS - PING_MS; passed += PING_MS) await passInterval();

    const received = once(ends.peer, "message");
    ends.peerConnection.resume();
    await inTime(received, "the message");
    await eventually(() => expect(ends.connection.writableLength).toBe(0));
    for (let interval = 0; interval < 10; interval += 1) {
      await answerPing();
    }

    expect(hangUps).toBe(0);
  });
});

describe("a peer whose messages are not read here", () => {
  it("is not pinged, and stays connected however long that lasts", async () => {
    let pings = 0;
    ends.peer.on("ping", () => {
      pings += 1;
    });
    ends.socket.pause();

    for (let interval = 0; interval < 20; interval += 1) await passInterval();

    expect([hangUps, pings]).toEqual([0, 0]);
  });
});
