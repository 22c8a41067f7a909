/** An upstream in a thread of its own, which reads nothing of its requests: its work takes no time of the thread that sends them. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort } from "node:worker_threads";
import { chatChunk, chatCompletion } from "../openai-bodies.js";

const answer = JSON.stringify(chatCompletion({ content: "Hi" }));

/** 40 MB of comments, which is as much as a stream may carry between pieces of content; its lines are as short as lines are. */
const SILENCE = Buffer.from(":\n".repeat(500_000));
const SILENCES = 40;
const CHUNK = `data: ${JSON.stringify(chatChunk({ content: "a" }))}\n\n`;
const LAST = `data: ${JSON.stringify(chatChunk({}, "stop"))}\n\ndata: [DONE]\n\n`;

function streamSilence(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const next = () => {
    sent += 1;
    if (sent > SILENCES) res.end(LAST);
    else if (res.write(CHUNK) && res.write(SILENCE)) setImmediate(next);
    else res.once("drain", next);
  };
  next();
}

const server = createServer((req, res) => {
  req.resume();
  req.on("end", () => {
    if (req.url?.startsWith("/silence/")) return streamSilence(res);
    const isChat = req.url?.endsWith("/chat/completions");
    res.writeHead(isChat ? 200 : 400, { "content-type": "application/json" });
    res.end(isChat ? answer : '{"error":{"message":"no"}}');
  });
});
server.listen(0, "127.0.0.1", () => parentPort?.postMessage((server.address() as AddressInfo).port));
