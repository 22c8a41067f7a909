/**
 * The `fetch` that one exchange with an MCP server is made with. The SDK's transport says neither that an answer is too long nor that
 * it ended before the result was there; this says both.
 */
import { type RequestInit, Response } from "undici";

export type Fetch = (url: URL, init: RequestInit) => Promise<Response>;

export interface WatchedFetch {
  readonly fetch: Fetch;
  /** Resolves when what was sent last has been answered, in whatever way. */
  settled(): Promise<void>;
  /** Nothing more is wanted. */
  close(): void;
}

/** How long the end of a body may take to be understood before it counts as an answer without a result. */
const LATE_RESULT_MS = 250;

export interface Watch {
  /** Of all bodies together. */
  readonly bytesMax: number;
  /** True when a body that ends early will be asked for again. */
  isResumable(): boolean;
  /** Bodies are too long, one broke, or the last one ended and nothing came of it: neither did another request follow nor was this closed. */
  onLost(error: Error): void;
}

export function watchFetch(fetch: Fetch, { bytesMax, isResumable, onLost }: Watch): WatchedFetch {
  let last: Promise<unknown> = Promise.resolve();
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const watcher: BodyWatcher = {
    count: (size) => {
      bytes += size;
      if (bytes > bytesMax) throw new Error(`The answer is larger than ${bytesMax} bytes.`);
    },
    onBroken: onLost,
    onEnd: () => {
      if (isResumable()) return;
      timer = setTimeout(() => onLost(new Error("The answer ended without a result.")), LATE_RESULT_MS);
    },
  };
  const send = async (url: URL, init: RequestInit): Promise<Response> => {
    const response = await fetch(url, init);
    const { body, status, headers } = response;
    return body === null ? response : new Response(watchBody(body, watcher), { status, headers });
  };
  return {
    fetch: (url, init) => {
      clearTimeout(timer);
      // The SDK would open a stream for whatever the server has to say unasked: nobody listens to it.
      if (init.method === "GET" && !isResumption(init)) return Promise.resolve(new Response(null, { status: 405 }));
      const answered = send(url, init);
      last = answered.catch(() => undefined);
      return answered;
    },
    settled: async () => {
      await last;
    },
    close: () => clearTimeout(timer),
  };
}

/** A stream whose events have ids may end early, to be asked for again. */
function isResumption({ headers }: RequestInit): boolean {
  return headers instanceof Headers && headers.has("last-event-id");
}

interface BodyWatcher {
  count(size: number): void;
  onBroken(error: Error): void;
  onEnd(): void;
}

type Body = NonNullable<Response["body"]>;

function watchBody(body: Body, { count, onBroken, onEnd }: BodyWatcher): Body {
  const reader = body.getReader();
  let isUnwanted = false;
  const watched = new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      try {
        const { value, done } = await reader.read();
        if (isUnwanted) return;
        if (done) {
          controller.close();
          onEnd();
          return;
        }
        count(value.byteLength);
        controller.enqueue(value);
      } catch (error) {
        if (isUnwanted) return;
        controller.error(error);
        onBroken(error as Error);
        await reader.cancel().catch(() => undefined);
      }
    },
    cancel: (reason) => {
      isUnwanted = true;
      return reader.cancel(reason);
    },
  });
  return watched as unknown as Body;
}
