import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";

describe("the fault proxy", () => {
  let proxy: FaultProxy;
  let echoPort: number;
  const open = new Set<Socket>();
  /** Answers every read with the same bytes. */
  const echo = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });

  beforeEach(async () => {
    echo.listen(0, "127.0.0.1");
    await once(echo, "listening");
    const address = echo.address();
    echoPort = typeof address === "object" && address !== null ? address.port : 0;
    proxy = await startFaultProxy({ port: echoPort });
  });

  afterEach(async () => {
    for (const socket of open) socket.destroy();
    open.clear();
    await proxy.close();
    echo.close();
    await once(echo, "close");
  });

  async function dial(port = proxy.port): Promise<Socket> {
    const socket = connect(port, "127.0.0.1");
    open.add(socket);
    await once(socket, "connect");
    return socket;
  }

  async function say(socket: Socket, text: string): Promise<string> {
    socket.write(text);
    const [bytes] = await once(socket, "data");
    return String(bytes);
  }

  it("passes bytes both ways", async () => {
    const socket = await dial();

    expect(await say(socket, "ping")).toBe("ping");
    expect(proxy.connectionCount()).toBe(1);
  });

  it("keeps its input while it is a black hole, and delivers it once healed", async () => {
    const socket = await dial();
    await say(socket, "before");
    proxy.blackHole();

    const arrived: string[] = [];
    socket.on("data", (bytes) => arrived.push(String(bytes)));
    socket.write("held");
    const other = await dial();
    other.write("held too");
    // Round trips past the proxy, each longer than one read through it, show that the bytes are really kept.
    const past = await dial(echoPort);
    for (let round = 0; round < 10; round++) await say(past, "past");
    expect(arrived).toEqual([]);

    const late = once(other, "data");
    proxy.heal();
    const [bytes] = await late;
    expect(String(bytes)).toBe("held too");
    await expect.poll(() => arrived.join("")).toBe("held");
  });

  it("resets open connections and refuses new ones, until healed", async () => {
    const socket = await dial();
    await say(socket, "ping");
    const [error] = await Promise.all([once(socket, "error"), proxy.resetAll()]);
    expect(error[0]).toMatchObject({ code: "ECONNRESET" });

    proxy.refuse();
    const refused = connect(proxy.port, "127.0.0.1");
    open.add(refused);
    const [refusal] = await once(refused, "error");
    expect(refusal).toMatchObject({ code: "ECONNRESET" });

    proxy.heal();
    expect(await say(await dial(), "again")).toBe("again");
  });

  it("cuts a connection after the given number of bytes", async () => {
    const socket = await dial();
    proxy.cutAfter(3);
    let received = "";
    socket.on("data", (bytes) => {
      received += String(bytes);
    });
    socket.on("error", () => undefined);

    socket.write("abcdef");
    await once(socket, "close");

    expect(received).toBe("abc");
  });

  it("delays the bytes that it passes on", async () => {
    const socket = await dial();
    proxy.delayBy(30);

    const startedAt = performance.now();
    await say(socket, "late");

    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(55);
  });
});
