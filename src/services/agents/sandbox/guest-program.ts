/**
 * The program of a guest's process. It runs the agent's script with `{ request, sluice, mcp }` (docs/spec/agents.md#code-agents), and sends
 * its answer to the gateway. The script can undo everything here and gains nothing: all output of the process is treated as the agent's.
 *
 * Bundled into one file that runs in Deno: Web APIs, and Deno's standard streams.
 */
import { encodeFrame, FrameReader } from "./frames.js";
import type { FromGuest, ToGuest } from "./messages.js";

interface DenoStreams {
  readonly stdin: { read(into: Uint8Array): Promise<number | null> };
  readonly stdout: { write(bytes: Uint8Array): Promise<number> };
  exit(code: number): never;
}
declare const Deno: DenoStreams;

/** A call of the agent under way in the gateway. */
interface Call {
  receive(message: ToGuest, bytes: Uint8Array<ArrayBuffer>): void;
}

const { stdin, stdout, exit } = Deno;
const { Request, Response, ReadableStream } = globalThis;
const DETAIL_CHARS_MAX = 8_000;
const NULL_BODY_STATUSES = [204, 205, 304];
/** Functions that would wait for a terminal or end the process early, and those that browser scripts would take for Node. */
const WITHHELD = ["process", "alert", "confirm", "prompt", "close"];
/** Functions that write to standard output, which carries frames. */
const PRINTERS = ["log", "info", "debug", "dir", "dirxml", "table", "count", "group", "groupCollapsed", "timeLog", "timeEnd"] as const;

const calls = new Map<number, Call>();
let lastId = 0;
let writing: Promise<void> = Promise.resolve();

/** Resolves when written, which takes as long as the gateway takes to read. */
function send(message: FromGuest, bytes?: Uint8Array): Promise<void> {
  const frame = encodeFrame(message, bytes);
  writing = writing.then(async () => {
    for (let at = 0; at < frame.length; ) at += await stdout.write(frame.subarray(at));
  });
  return writing;
}

function begin(message: FromGuest, bytes: Uint8Array | undefined, call: (id: number) => Call): void {
  if (!("id" in message)) return;
  calls.set(message.id, call(message.id));
  void send(message, bytes);
}

/** A fetch that reaches only this gateway, as the agent's caller. */
async function sluice(path: string, init: RequestInit = {}): Promise<Response> {
  if (typeof path !== "string" || !path.startsWith("/")) {
    throw new TypeError("sluice() takes a path of this gateway, such as /v1/chat/completions.");
  }
  const request = new Request(new URL(path, "http://sluice"), init);
  const body = new Uint8Array(await request.arrayBuffer());
  const { signal } = request;
  signal.throwIfAborted();
  const id = ++lastId;
  const message: FromGuest = { type: "fetch", id, method: request.method, path, headers: [...request.headers] };
  return new Promise((resolve, reject) => {
    let controller: ReadableStreamDefaultController<Uint8Array> | null = null;
    let pulled: (() => void) | null = null;
    const stop = () => {
      if (calls.delete(id)) void send({ type: "cancel", id });
    };
    const fail = (reason: unknown) => {
      calls.delete(id);
      reject(reason);
      controller?.error(reason);
    };
    signal.addEventListener("abort", () => {
      stop();
      fail(signal.reason);
    });
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: (given) => {
        controller = given;
      },
      pull: () => {
        void send({ type: "pull", id });
        return new Promise((done) => {
          pulled = done;
        });
      },
      cancel: stop,
    };
    begin(message, body, () => ({
      receive: (answer, bytes) => {
        if (answer.type === "head") {
          const { status, headers } = answer;
          const isEmpty = NULL_BODY_STATUSES.includes(status);
          if (isEmpty) stop();
          const init = { status, headers: headers.map(([name, value]): [string, string] => [name, value]) };
          resolve(new Response(isEmpty ? null : new ReadableStream(source, { highWaterMark: 0 }), init));
        } else if (answer.type === "error") {
          fail(new Error(answer.message));
        } else if (answer.type === "data") {
          controller?.enqueue(bytes);
        } else if (answer.type === "end") {
          calls.delete(id);
          controller?.close();
        }
        pulled?.();
      },
    }));
  });
}

/** Calls a tool of an MCP server: `{ isError, content, structuredContent }`. */
function mcp(server: string, tool: string, args: Record<string, unknown> = {}): Promise<unknown> {
  const id = ++lastId;
  return new Promise((resolve, reject) => {
    begin({ type: "tool", id, server: String(server), tool: String(tool), args }, undefined, () => ({
      receive: (answer) => {
        calls.delete(id);
        if (answer.type === "result") resolve(answer.result);
        else reject(new Error(answer.type === "error" ? answer.message : "The gateway gave no result."));
      },
    }));
  });
}

async function answer({ request }: Extract<ToGuest, { type: "run" }>, script: Uint8Array<ArrayBuffer>): Promise<void> {
  try {
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    const { default: agent } = (await import(url)) as { default?: unknown };
    if (typeof agent !== "function") throw new TypeError("agent.ts must export a function as its default.");
    const { url: address, headers, body } = request;
    const given = new Request(address, { method: "POST", headers: headers.map(([name, value]): [string, string] => [name, value]), body });
    const response: unknown = await agent({ request: given, sluice, mcp });
    if (!(response instanceof Response)) throw new TypeError("The agent must answer with a Response.");
    await send({ type: "answer", status: response.status, headers: [...response.headers] });
    const reader = response.body?.getReader();
    for (let read = await reader?.read(); read && !read.done; read = await reader?.read()) await send({ type: "data" }, read.value);
    await send({ type: "end" });
  } catch (error) {
    const detail = error instanceof Error ? `${error.stack ?? error.message}` : String(error);
    await send({ type: "failed", detail: detail.slice(0, DETAIL_CHARS_MAX) });
  }
  exit(0);
}

async function read(): Promise<never> {
  const frames = new FrameReader({ headerBytesMax: 2 ** 31, bytesMax: 2 ** 31 });
  const chunk = new Uint8Array(64 * 1024);
  for (;;) {
    const length = await stdin.read(chunk);
    // The gateway has gone.
    if (length === null) return exit(0);
    for (const { header, bytes } of frames.push(chunk.slice(0, length))) {
      const message = header as ToGuest;
      if (message.type === "run") void answer(message, bytes);
      else calls.get(message.id)?.receive(message, bytes);
    }
  }
}

for (const name of PRINTERS) console[name] = (...values: unknown[]) => console.error(...values);
for (const name of WITHHELD) Reflect.deleteProperty(globalThis, name);
for (const name of ["stdin", "stdout"]) Reflect.deleteProperty(Deno, name);
void read();
