/** An upstream in a thread of its own, which reads nothing of what it is sent: what it does takes no time of the thread that asks. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort } from "node:worker_threads";
import { chatCompletion } from "../openai-bodies.js";

const answer = JSON.stringify(chatCompletion({ content: "Hi" }));

const server = createServer((req, res) => {
  req.resume();
  req.on("end", () => {
    const isChat = req.url?.endsWith("/chat/completions");
    res.writeHead(isChat ? 200 : 400, { "content-type": "application/json" });
    res.end(isChat ? answer : '{"error":{"message":"no"}}');
  });
});
server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
