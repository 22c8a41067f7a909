/** An upstream in OpenAI's chat format that answers each of its keys as a test says, and counts its requests by key. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { chatChunks, chatCompletion, wireUsage } from "./openai-bodies.js";

/** What a key gets: a status, with headers for a refusal, or an answer that writes itself. */
export type KeyAnswer =
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  | ((response: ServerResponse, isStreamed: boolean) => void);

export interface KeyedUpstream {
  readonly baseUrl: string;
  /** By key; absent: a whole answer of 10 and 4 tokens. */
  readonly answers: Map<string, KeyAnswer>;
  readonly requests: Map<string, number>;
  close(): Promise<void>;
}

export async function startKeyedUpstream(): Promise<KeyedUpstream> {
  const answers = new Map<string, KeyAnswer>();
  const requests = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const key = request.headers.authorization?.replace("Bearer ", "") ?? "";
    requests.set(key, (requests.get(key) ?? 0) + 1);
    const { stream = false } = JSON.parse(await text(request)) as { stream?: boolean };
    const answer = answers.get(key);
    if (typeof answer === "function") return answer(response, stream);
    if (answer) return refuse(response, answer.status, answer.headers);
    answerWhole(response, stream);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    answers,
    requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

export function refuse(response: ServerResponse, status: number, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify({ error: { message: `Status ${status}.`, type: "error" } }));
}

export function answerWhole(response: ServerResponse, isStreamed: boolean): void {
  if (!isStreamed) {
    response.writeHead(200, { "content-type": "application/json" });
    return void response.end(JSON.stringify(chatCompletion({ usage: wireUsage(10, 4) })));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const chunk of chatChunks(["Hello, ", "world."])) response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  response.end("data: [DONE]\n\n");
}
