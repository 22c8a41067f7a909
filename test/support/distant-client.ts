/**
 * Sends GraphQL operations from another thread, over HTTP or a WebSocket: nothing that a client does takes time of the thread that answers. The
 * operation is handed over before it is sent, and of an answer only its beginning comes back.
 */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { compile } from "./compile.js";
import type { Order, Received, Target } from "./distant-orders.js";

export interface DistantClient {
  /** `operation` is what will be sent, as JSON. */
  load(target: Target, operation: object): Promise<void>;
  send(): Promise<Received>;
  close(): Promise<void>;
}

export async function startDistantClient(): Promise<DistantClient> {
  const { program, folder } = await compile(fileURLToPath(new URL("programs/distant-client.ts", import.meta.url)));
  const worker = new Worker(program);
  const give = async (order: Order) => {
    worker.postMessage(order);
    const [answer] = (await once(worker, "message")) as [Received];
    return answer;
  };
  return {
    load: async (target, operation) => void (await give({ load: { ...target, body: JSON.stringify(operation) } })),
    send: () => give({ send: true }),
    close: async () => {
      await worker.terminate();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
