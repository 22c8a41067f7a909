/** Callers who leave: a test must know when the gateway, which runs in this process, has noticed. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { setImmediate as turn } from "node:timers/promises";

const REQUEST_STARTED = "http.server.request.start";

/** Call before the request is sent. `hasLeft` resolves when the gateway has seen its caller go. */
export function followNextRequest(baseUrl: string): { hasLeft(): Promise<void> } {
  const port = Number(new URL(baseUrl).port);
  const closed = new Promise<void>((resolve, reject) => {
    const onStart = (message: unknown) => {
      const { request } = message as { request: IncomingMessage };
      if (request.socket.localPort !== port) return;
      unsubscribe(REQUEST_STARTED, onStart);
      once(request.socket, "close").then(() => resolve(), reject);
    };
    subscribe(REQUEST_STARTED, onStart);
  });
  return {
    hasLeft: async () => {
      await closed;
      // The request's own listeners are called within this turn of the event loop.
      await turn();
    },
  };
}

/** What a stream says up to where `mark` has come. */
export async function readUntil({ body }: Response, mark: string): Promise<{ readonly reader: { read(): Promise<unknown> } }> {
  if (body === null) throw new Error("there is no answer to read");
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes(mark)) {
    const { done, value } = await reader.read();
    if (done) throw new Error(`the stream ended before "${mark}" had come: ${text}`);
    text += value;
  }
  return { reader };
}
