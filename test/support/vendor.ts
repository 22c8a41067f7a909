/** A vendor in OpenAI's format that knows its keys, or answers all, and counts its requests by key. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { answerWhole, refuse } from "./keyed-upstream.js";

export interface Vendor {
  readonly baseUrl: string;
  /** Keys that it accepts. Another key gets 401. */
  readonly keys: Set<string>;
  /** By key: the status of a chat, or its answer. */
  readonly answers: Map<string, number | ((response: ServerResponse) => void)>;
  /** Chats by key. */
  readonly chats: Map<string, number>;
  /** Every header of the last request. */
  lastHeaders: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

export interface VendorOptions {
  /** The list of models is open to all. */
  readonly isListOpen?: boolean;
  /** No key is looked at. */
  readonly isOpen?: boolean;
}

export async function startVendor(keys: readonly string[], { isListOpen = false, isOpen = false }: VendorOptions = {}): Promise<Vendor> {
  const known = new Set(keys);
  const answers: Vendor["answers"] = new Map();
  const chats = new Map<string, number>();
  const server = createServer(async (request, response) => {
    const key = request.headers.authorization?.replace("Bearer ", "") ?? "";
    vendor.lastHeaders = request.headers;
    const body = await text(request);
    const isList = request.url?.endsWith("/models") ?? false;
    if (!isOpen && !(isList && isListOpen) && !known.has(key)) return refuse(response, 401);
    if (isList) {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify({ object: "list", data: [] }));
    }
    chats.set(key, (chats.get(key) ?? 0) + 1);
    const answer = answers.get(key);
    if (typeof answer === "function") return answer(response);
    if (answer !== undefined) return refuse(response, answer);
    answerWhole(response, (JSON.parse(body) as { stream?: boolean }).stream === true);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const vendor: Vendor = {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    ...{ keys: known, answers, chats, lastHeaders: {} },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  return vendor;
}
