/** The thread of `../distant-client.ts`. */
import { request } from "node:http";
import { parentPort } from "node:worker_threads";
import { WebSocket } from "ws";
import { type Order, type Received, SERIAL, type Target } from "../distant-orders.js";

function post({ url, headers }: Target, body: string): Promise<Received> {
  return new Promise((resolve) => {
    const sending = request(url, { method: "POST", headers: { "content-type": "application/json", ...headers } }, (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text: Buffer.concat(parts).toString() }));
    });
    sending.on("error", (error) => resolve({ status: 0, text: String(error) }));
    sending.end(body);
  });
}

function subscribe({ url, headers }: Target, body: string): Promise<Received> {
  return new Promise((resolve) => {
    const socket = new WebSocket(url, "graphql-transport-ws", { headers });
    const texts: string[] = [];
    const end = (status: number, text: string) => {
      resolve({ status, text: [...texts, text].join("\n") });
      socket.terminate();
    };
    socket.on("open", () => socket.send('{"type":"connection_init"}'));
    socket.on("message", (data) => {
      const text = String(data);
      const { type } = JSON.parse(text) as { readonly type: string };
      if (type === "connection_ack") socket.send(`{"id":"1","type":"subscribe","payload":${body}}`);
      else if (type === "ping") socket.send('{"type":"pong"}');
      else if (type === "error" || type === "complete") end(200, text);
      else texts.push(text);
    });
    socket.on("close", (code, reason) => end(code, String(reason)));
    socket.on("error", (error) => end(0, String(error)));
  });
}

let target: Target = { url: "", headers: {} };
let body = "";
let sent = 0;

parentPort?.on("message", async (order: Order) => {
  if ("load" in order) {
    ({ body, ...target } = order.load);
    parentPort?.postMessage(null);
    return;
  }
  sent += 1;
  const text = body.replace(SERIAL, String(sent));
  const received = await (target.url.startsWith("ws") ? subscribe(target, text) : post(target, text));
  parentPort?.postMessage({ ...received, text: received.text.slice(0, 2_000) });
});
