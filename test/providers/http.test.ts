import { createServer, type Server } from "node:net";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createUpstreamPool, type UpstreamPool } from "../../src/providers/http.js";
import type { UpstreamTimeouts } from "../../src/providers/provider.js";
import type { UpstreamResponse } from "../../src/providers/upstream-response.js";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { failureOf } from "../support/provider-calls.js";
import { bytes, closeSocket, event, flood, handler, hang, json, raw, sse, waitFor } from "../support/upstream-replies.js";

const TIMEOUTS: UpstreamTimeouts = { connectMs: 10_000, idleMs: 20_000, totalMs: 60_000 };

let upstream: FakeUpstream;
let pool: UpstreamPool;
beforeEach(async () => {
  upstream = await startFakeUpstream();
  pool = createUpstreamPool(upstream.baseUrl, TIMEOUTS);
});
afterEach(async () => {
  await upstream.close();
  await pool.close();
});

function post(options: { body?: string; signal?: AbortSignal; isStreamed?: boolean; pool?: UpstreamPool } = {}): Promise<UpstreamResponse> {
  const { body = "{}", signal = new AbortController().signal, isStreamed = true } = options;
  const headers = ["content-type", "application/json", "x-odd", "1"];
  return (options.pool ?? pool).request({ method: "POST", path: "/v1/x?y=1", headers, body, signal, isStreamed });
}

async function readRest(response: UpstreamResponse): Promise<string> {
  let text = "";
  for (let read = await response.read(); read !== null; read = await response.read()) text += Buffer.concat(read).toString();
  return text;
}

/** undici takes a connection back a turn of the event loop after its answer has ended; a few turns let that arrive. */
async function turn(): Promise<void> {
  for (let turns = 0; turns < 10; turns += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A promise and the function that resolves it. */
function gate(): { readonly open: () => void; readonly opened: Promise<void> } {
  let open = () => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open, opened };
}

describe("requests", () => {
  it("send exactly their method, headers and body", async () => {
    upstream.replyNext(raw("ok"));

    const response = await post({ body: '{"a":"ä"}' });
    const request = await upstream.nextRequest();

    expect(response.status).toBe(200);
    expect((await response.readAll(100)).toString()).toBe("ok");
    expect(request).toMatchObject({ method: "POST", path: "/v1/x?y=1", json: { a: "ä" } });
    expect(Object.keys(request.headers).sort()).toEqual(["connection", "content-length", "content-type", "host", "x-odd"]);
  });

  it("reuse a connection, after a whole body and after a stream that was finished", async () => {
    upstream.replyNext(raw("one"), sse([bytes("two")]), raw("three"));

    await (await post()).readAll(100);
    await turn();
    const second = await post();
    await second.read();
    second.finish();
    await upstream.requests[1]?.answered;
    await turn();
    const third = await post();
    await third.readAll(100);

    expect(upstream.requests.map((request) => request.connection)).toEqual([1, 1, 1]);
  });

  it("are sent once when the upstream closes an idle connection or a used one", async () => {
    upstream.replyNext(raw("one"), closeSocket(), raw("three"));
    await (await post()).readAll(100);
    await turn();

    const error = await failureOf(post());
    const third = await post();

    expect(error.kind).toBe("closed");
    expect((await third.readAll(100)).toString()).toBe("three");
    expect(upstream.requests).toHaveLength(3);
  });

  it("take a new connection when the idle one was closed", async () => {
    upstream.replyAlways(raw("ok"));
    await (await post()).readAll(100);
    upstream.closeIdleConnections();

    const second = await post();
    await second.readAll(100);

    expect(upstream.requests.map((request) => request.connection)).toEqual([1, 2]);
  });

  it("disable Nagle's algorithm on their sockets", async () => {
    const { Socket } = await import("node:net");
    const setNoDelay = Socket.prototype.setNoDelay;
    const asked: (boolean | undefined)[] = [];
    Socket.prototype.setNoDelay = function (noDelay) {
      if (this.connecting) asked.push(noDelay);
      return setNoDelay.call(this, noDelay);
    };
    upstream.replyNext(raw("ok"));
    try {
      await (await post()).readAll(100);
    } finally {
      Socket.prototype.setNoDelay = setNoDelay;
    }

    expect(asked).toContain(true);
  });
});

describe("failures", () => {
  it("distinguish a connection that is refused and an unknown host from one that is reset", async () => {
    const port = upstream.port;
    upstream.replyNext(closeSocket({ reset: true }));
    const reset = await failureOf(post());
    const unknown = createUpstreamPool("http://no-such-host.invalid", TIMEOUTS);
    const unresolved = await failureOf(post({ pool: unknown }));
    await upstream.close();
    const refusing = createUpstreamPool(`http://127.0.0.1:${port}`, TIMEOUTS);
    const refused = await failureOf(post({ pool: refusing }));
    upstream = await startFakeUpstream();

    const unreachable = ["network", "The upstream could not be reached."];
    expect([unresolved, refused].map(({ kind, message }) => [kind, message])).toEqual([unreachable, unreachable]);
    expect(reset).toMatchObject({ kind: "closed", message: "The upstream closed the connection without an answer." });
    await Promise.all([unknown.close(), refusing.close()]);
  });

  it("include a redirect, which is not followed", async () => {
    upstream.replyNext(raw("", { status: 302, headers: { location: "http://169.254.169.254/latest" } }));

    const error = await failureOf(post());

    expect(error.kind).toBe("invalid-response");
    expect(upstream.requests).toHaveLength(1);
  });

  it("include a body in an encoding that cannot be decoded", async () => {
    upstream.replyNext(flood(Buffer.alloc(65_536), { headers: { "content-encoding": "compress" } }));

    const error = await failureOf(post());
    const request = await upstream.nextRequest();
    await request.closedByClient;

    expect(error.kind).toBe("invalid-response");
  });

  it("include an answer that is not HTTP", async () => {
    const server = await listen((socket) => socket.once("data", () => socket.end("SSH-2.0-OpenSSH_9.2\r\n")));
    const other = createUpstreamPool(`http://127.0.0.1:${portOf(server)}`, TIMEOUTS);

    const error = await failureOf(post({ pool: other }));

    expect(error.kind).toBe("invalid-response");
    await other.close();
    server.close();
  });

  it("include an endless body, which is cut at the cap and its connection closed", async () => {
    upstream.replyNext(flood(Buffer.alloc(65_536, "x")));

    const response = await post({ isStreamed: false });
    const error = await failureOf(response.readAll(1_000_000));
    const request = await upstream.nextRequest();
    await request.closedByClient;

    expect(error.kind).toBe("invalid-response");
    expect(request.bytesSent()).toBeLessThan(64 * 1024 * 1024);
  });

  it("include a body that is announced to be too large, which is not read; one at the cap passes", async () => {
    upstream.replyNext(raw("x".repeat(101)), raw("x".repeat(100)), sse([bytes("x".repeat(101))], { done: false }));

    expect((await failureOf((await post()).readAll(100))).kind).toBe("invalid-response");
    expect(await (await post()).readAll(100)).toHaveLength(100);
    expect((await failureOf((await post()).readAll(100))).kind).toBe("invalid-response");
  });

  it("include late headers: after the idle time for a stream, after the total time for a whole answer", async () => {
    const hasty = createUpstreamPool(upstream.baseUrl, { ...TIMEOUTS, idleMs: 300, totalMs: 10_000 });
    const total = createUpstreamPool(upstream.baseUrl, { ...TIMEOUTS, idleMs: 10, totalMs: 1_500 });
    upstream.replyAlways(hang());

    const idle = await failureOf(post({ pool: hasty }));
    const whole = await failureOf(post({ pool: total, isStreamed: false }));

    expect([idle.kind, whole.kind]).toEqual(["timeout", "timeout"]);
    expect(idle).toMatchObject({ message: "The upstream did not answer in time.", hasBegun: false });
    expect(whole.message).toContain("in time");
    await Promise.all([hasty.close(), total.close()]);
  });

  it("include a stream that falls silent, after the earlier bytes were delivered", async () => {
    const hasty = createUpstreamPool(upstream.baseUrl, { ...TIMEOUTS, idleMs: 1_500 });
    upstream.replyNext(sse([bytes("begun")], { end: "hang" }));

    const response = await post({ pool: hasty });
    const first = await response.read();
    const error = await failureOf(response.read());
    const request = await upstream.nextRequest();
    await request.closedByClient;

    expect(Buffer.concat(first ?? []).toString()).toBe("begun");
    expect(error).toMatchObject({ kind: "timeout", hasBegun: true, message: expect.stringContaining("did not finish it in time") });
    await hasty.close();
  });

  it("include the total time although bytes keep coming", async () => {
    const hasty = createUpstreamPool(upstream.baseUrl, { ...TIMEOUTS, totalMs: 1_500 });
    const still = Array.from({ length: 10_000 }, () => event("still here"));
    upstream.replyNext(sse(still, { paceMs: 5 }));

    const error = await failureOf(readRest(await post({ pool: hasty })));

    expect(error.kind).toBe("timeout");
    await hasty.close();
  });

  it("say of a body that breaks off that it ended early, with any framing", async () => {
    upstream.replyNext(sse([bytes("begun")], { end: "cut" }), sse([bytes("begun")], { end: "cut", headers: { "content-length": "1000" } }));

    for (const _ of ["chunked", "of a stated length"]) {
      const error = await failureOf(readRest(await post()));
      expect(error).toMatchObject({ kind: "cut", message: expect.stringContaining("ended early: the connection broke") });
    }
  });
});

describe("leaving", () => {
  it("rejects with the signal's reason without sending anything when that is aborted already", async () => {
    const reason = new Error("gone");

    await expect(post({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect(upstream.connectionsSeen()).toBe(0);
  });

  it("closes the connection when the signal is aborted before headers, and while a read waits", async () => {
    const reason = { any: "value" };
    const first = new AbortController();
    const second = new AbortController();
    upstream.replyNext(hang(), sse([bytes("begun")], { end: "hang" }));

    const waiting = post({ signal: first.signal });
    const hung = await upstream.nextRequest();
    first.abort(reason);
    await expect(waiting).rejects.toBe(reason);
    await hung.closedByClient;

    const response = await post({ signal: second.signal });
    const begun = await upstream.nextRequest();
    await response.read();
    const read = response.read();
    second.abort(reason);
    await expect(read).rejects.toBe(reason);
    await begun.closedByClient;
  });

  it("rejects at once when the signal is aborted while the connection is being made", async () => {
    // TEST-NET-1 (RFC 5737): these addresses have no server.
    const unreachable = createUpstreamPool("http://192.0.2.1", { ...TIMEOUTS, connectMs: 60_000 });
    const controller = new AbortController();

    const waiting = post({ pool: unreachable, signal: controller.signal });
    controller.abort(new Error("gone"));

    await expect(waiting).rejects.toThrow("gone");
  });

  it("closes the connection when the answer is destroyed, and ends a read that waits", async () => {
    upstream.replyNext(sse([bytes("begun")], { end: "hang" }));
    const response = await post();
    await response.read();

    const read = failureOf(response.read());
    response.destroy();
    const request = await upstream.nextRequest();
    await request.closedByClient;

    expect((await read).kind).toBe("network");
  });

  it("close the connection of a finished answer whose end does not come", async () => {
    upstream.replyNext(sse([bytes("all there is")], { end: "hang" }));
    const response = await post();
    await response.read();

    const finishedAt = performance.now();
    response.finish();

    const request = await upstream.nextRequest();
    expect(await request.closedByClient).toBeGreaterThanOrEqual(finishedAt);
  });

  it("does not mind an abort after the end", async () => {
    const controller = new AbortController();
    upstream.replyAlways(raw("ok"));
    await (await post({ signal: controller.signal })).readAll(100);

    controller.abort();
    await turn();
    await (await post()).readAll(100);

    expect(upstream.requests.map((request) => request.connection)).toEqual([1, 1]);
  });
});

describe("back-pressure", () => {
  it("takes only a little from an upstream without a reader", async () => {
    const seen = gate();
    let accepted = 0;
    upstream.replyNext(
      handler((_request, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        const block = Buffer.alloc(65_536, "x");
        // Writes until the operating systems on both sides have taken all that they take: then nothing has drained for a while.
        const fill = () => {
          while (response.write(block)) accepted += block.length;
          accepted += block.length;
        };
        let quiet = setTimeout(seen.open, 500);
        response.on("drain", () => {
          clearTimeout(quiet);
          quiet = setTimeout(seen.open, 500);
          fill();
        });
        fill();
      }),
    );

    const response = await post();
    await seen.opened;
    const acceptedUnread = accepted;
    let read = 0;
    while (read < 2 * acceptedUnread) read += Buffer.concat((await response.read()) ?? []).length;
    response.destroy();

    expect(acceptedUnread).toBeLessThan(32 * 1024 * 1024);
    expect(read).toBeGreaterThan(acceptedUnread);
  });

  it("continues where it stopped, byte for byte", async () => {
    const content = Array.from({ length: 40_000 }, (_, index) => `${index}\n`).join("");
    const second = gate();
    upstream.replyNext(sse([bytes(content), waitFor(second.opened), bytes(content)], { done: false }));

    const response = await post();
    let text = Buffer.concat((await response.read()) ?? []).toString();
    second.open();
    text += await readRest(response);

    expect(text === content + content).toBe(true);
  });

  it("does not count as silent while its reader pauses", async () => {
    const patient = createUpstreamPool(upstream.baseUrl, { ...TIMEOUTS, idleMs: 200 });
    const content = "x".repeat(30 * 1024 * 1024);
    upstream.replyNext(raw(content));

    const response = await post({ pool: patient });
    // Longer than undici's coarse timers need to notice silence.
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const rest = await response.readAll(content.length);

    expect(rest.length).toBe(content.length);
    await patient.close();
  });
});

it("reads a JSON reply whole, in pieces of any size", async () => {
  upstream.replyNext(json({ a: "x".repeat(300_000) }), sse([bytes('{"a":'), bytes("1}")], { done: false }));

  expect((await (await post({ isStreamed: false })).readAll(1_000_000)).length).toBe(300_008);
  expect((await (await post({ isStreamed: false })).readAll(1_000_000)).toString()).toBe('{"a":1}');
});

function listen(onConnection: (socket: import("node:net").Socket) => void): Promise<Server> {
  return new Promise((resolve) => {
    const server = createServer(onConnection);
    server.listen(0, "127.0.0.1", () => resolve(server));
  });
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}
