/** A receiver of webhooks, on a port of its own. It records each request, and answers as its test sets. */
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

export interface ReceivedWebhook {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface WebhookReceiver {
  readonly url: string;
  readonly port: number;
  readonly received: readonly ReceivedWebhook[];
  /** The most requests that were open at the same time. */
  readonly openMax: number;
  /** How it answers from now on: a status, or by itself; one that never ends the answer hangs. */
  answer: number | ((response: ServerResponse, request: ReceivedWebhook) => void);
  close(): Promise<void>;
}

export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedWebhook[] = [];
  let open = 0;
  let openMax = 0;
  const server = createServer(async (request, response) => {
    open += 1;
    openMax = Math.max(openMax, open);
    response.once("close", () => {
      open -= 1;
    });
    let body = "";
    for await (const part of request.setEncoding("utf8")) body += part;
    const webhook = { method: request.method ?? "", path: request.url ?? "", headers: request.headers, body };
    received.push(webhook);
    const { answer } = receiver;
    if (typeof answer === "number") response.writeHead(answer).end("noted");
    else answer(response, webhook);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const receiver: WebhookReceiver = {
    url: `http://127.0.0.1:${port}/hooks`,
    port,
    received,
    get openMax() {
      return openMax;
    },
    answer: 200,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return receiver;
}

/** The payload, when a receiver's library finds the signature right; throws when it does not. */
export function verifyWebhook(secret: string, { body, headers }: Pick<ReceivedWebhook, "body" | "headers">): VerifiedWebhook {
  const signed = { "webhook-id": "", "webhook-timestamp": "", "webhook-signature": "" };
  for (const name of Object.keys(signed) as (keyof typeof signed)[]) signed[name] = String(headers[name] ?? "");
  return new Webhook(secret).verify(body, signed) as VerifiedWebhook;
}

export interface VerifiedWebhook {
  readonly type: string;
  readonly timestamp: string;
  readonly data: Readonly<Record<string, unknown>>;
}
