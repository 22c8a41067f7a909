/** What the fake upstream (fake-upstream.ts) can be told to answer, and short ways to say it. */
import type { ServerResponse } from "node:http";
import type { RecordedRequest } from "./fake-upstream.js";
import { errorBody } from "./openai-bodies.js";

export type Framing = "lf" | "crlf" | "cr" | "mixed";

/** One thing that a streamed reply does. */
export type StreamStep =
  | { readonly do: "event"; readonly data: string; readonly event?: string }
  | { readonly do: "comment"; readonly text: string }
  | { readonly do: "raw"; readonly bytes: Uint8Array }
  | { readonly do: "delay"; readonly ms: number }
  | { readonly do: "wait"; readonly until: Promise<unknown> };

/** How a reply's body ends. */
export type StreamEnd =
  /** The body is complete. */
  | "complete"
  /** The socket is destroyed: the body is cut. */
  | "cut"
  /** Nothing more comes, the socket stays open until the client leaves. */
  | "hang";

export type Reply =
  | {
      readonly kind: "body";
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly body: Uint8Array;
      /** Before the headers. */
      readonly delayMs?: number;
    }
  | {
      readonly kind: "stream";
      readonly status: number;
      readonly headers: Readonly<Record<string, string>>;
      readonly steps: readonly StreamStep[];
      readonly framing: Framing;
      readonly end: StreamEnd;
      /** Every step's bytes are written in pieces of this many, each a write of its own. */
      readonly writeBytes?: number;
      /** Before the headers. */
      readonly delayMs?: number;
      /** Before each event. */
      readonly paceMs?: number;
    }
  /** The same bytes for ever (or `bytesMax`), as fast as the client takes them. */
  | {
      readonly kind: "flood";
      readonly headers: Readonly<Record<string, string>>;
      readonly block: Uint8Array;
      readonly bytesMax: number;
    }
  /** Takes the request and never answers. */
  | { readonly kind: "hang" }
  /** Takes the request and closes the socket without a byte; `reset` sends an RST. */
  | { readonly kind: "close"; readonly reset: boolean }
  /** Anything else. */
  | { readonly kind: "handler"; readonly handle: (request: RecordedRequest, response: ServerResponse) => void | Promise<void> };

/** A JSON reply; `body` is serialised unless it is a string already. */
export function json(body: unknown, options: { status?: number; headers?: Record<string, string>; delayMs?: number } = {}): Reply {
  return raw(typeof body === "string" ? body : JSON.stringify(body), {
    ...options,
    headers: { "content-type": "application/json", ...options.headers },
  });
}

/** Any bytes, with a content-length. */
export function raw(
  body: string | Uint8Array,
  options: { status?: number; headers?: Record<string, string>; delayMs?: number } = {},
): Reply {
  const { status = 200, headers = {}, delayMs } = options;
  const reply = { kind: "body", status, headers, body: Buffer.from(body) } as const;
  return delayMs === undefined ? reply : { ...reply, delayMs };
}

/** OpenAI's error body with its status. */
export function errorReply(status: number, message = `Upstream says ${status}.`, param: string | null = null): Reply {
  return json(errorBody(message, { param }), { status });
}

export interface SseOptions {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly framing?: Framing;
  readonly end?: StreamEnd;
  /** Whether `data: [DONE]` is the last event; true unless said. */
  readonly done?: boolean;
  readonly writeBytes?: number;
  readonly delayMs?: number;
  readonly paceMs?: number;
}

/** A stream of events. An item that is not a step becomes one event with that JSON as its data. */
export function sse(items: readonly (StreamStep | Readonly<Record<string, unknown>>)[], options: SseOptions = {}): Reply {
  const { status = 200, headers = {}, framing = "lf", end = "complete", done = end === "complete", ...timing } = options;
  const steps = items.map((item) => (isStep(item) ? item : event(item)));
  if (done) steps.push(event("[DONE]"));
  return { kind: "stream", status, headers: { "content-type": "text/event-stream", ...headers }, steps, framing, end, ...timing };
}

/** One event; `data` is serialised unless it is a string already. */
export function event(data: unknown, name?: string): StreamStep {
  const text = typeof data === "string" ? data : JSON.stringify(data);
  return name === undefined ? { do: "event", data: text } : { do: "event", data: text, event: name };
}

export function comment(text: string): StreamStep {
  return { do: "comment", text };
}

/** Bytes without framing. */
export function bytes(value: string | Uint8Array): StreamStep {
  return { do: "raw", bytes: Buffer.from(value) };
}

export function delay(ms: number): StreamStep {
  return { do: "delay", ms };
}

/** The stream goes on when the promise has settled: a test decides when. */
export function waitFor(until: Promise<unknown>): StreamStep {
  return { do: "wait", until };
}

export function hang(): Reply {
  return { kind: "hang" };
}

export function closeSocket(options: { reset?: boolean } = {}): Reply {
  return { kind: "close", reset: options.reset ?? false };
}

/** `block` again and again; the default end is 10 GiB away. */
export function flood(block: string | Uint8Array, options: { headers?: Record<string, string>; bytesMax?: number } = {}): Reply {
  const { headers = { "content-type": "application/json" }, bytesMax = 10 * 1024 ** 3 } = options;
  return { kind: "flood", headers, block: Buffer.from(block), bytesMax };
}

/** A JSON reply that is given when `open` has been called: until then its caller may leave. */
export function gated(body: unknown, status = 200): { readonly reply: Reply; readonly open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  const reply = handler(async (_request, response) => {
    await opened;
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  return { reply, open };
}

export function handler(handle: (request: RecordedRequest, response: ServerResponse) => void | Promise<void>): Reply {
  return { kind: "handler", handle };
}

function isStep(item: StreamStep | Readonly<Record<string, unknown>>): item is StreamStep {
  return typeof item.do === "string";
}
