/** The end of an answer waits for its record, however it is written. */
import { EventEmitter, once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, it } from "vitest";
import { AnswerRecorder, type RecordedAnswer } from "../../src/lib/answer-recorder.js";

let server: Server | null = null;
afterEach(() => server?.close());

interface Recording {
  readonly stored: (RecordedAnswer | null)[];
  /** What the client had received when the answer was about to be stored. */
  readonly early: string[];
  readonly response: Response;
  readonly text: string;
}

/** The answer is stored when the client has received `before`; null: after a while in which nothing should come. */
async function record(write: (res: ServerResponse) => void, bytesMax = 1_000_000, before: string | null = null): Promise<Recording> {
  const stored: (RecordedAnswer | null)[] = [];
  const early: string[] = [];
  let received = "";
  const arrivals = new EventEmitter();
  server = createServer((_req, res) => {
    new AnswerRecorder(res, bytesMax, async (answer) => {
      if (before === null) await sleep(50);
      else while (!received.startsWith(before)) await once(arrivals, "chunk");
      early.push(received);
      stored.push(answer);
    });
    write(res);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    received += decoder.decode(chunk as Uint8Array);
    arrivals.emit("chunk");
  }
  return { stored, early, response, text: received };
}

it("holds an answer of known length back until it is stored, in one piece or in many", async () => {
  const inPieces = await record((res) => {
    res.writeHead(200, { "Content-Type": "text/plain", "Content-Length": 6, "X-Cost": "1", "X-Request-Id": "r" });
    res.cork();
    res.write(Buffer.from("abc"));
    res.write("def");
    res.end();
    res.uncork();
  });

  expect([inPieces.text, inPieces.early]).toEqual(["abcdef", [""]]);
  expect(inPieces.stored).toEqual([
    { statusCode: 200, headers: { "content-type": "text/plain", "x-cost": "1" }, body: Buffer.from("abcdef") },
  ]);

  const whole = await record((res) => {
    res.writeHead(201, { "Content-Length": 2 });
    res.end("ok");
  });
  expect([whole.response.status, whole.text, whole.early, String(whole.stored[0]?.body)]).toEqual([201, "ok", [""], "ok"]);
});

it("lets a stream pass, all but its end, and leaves comments out of the record", async () => {
  const passed = "data: 1\n\n: keep-alive\n\n";
  const streamed = await record(
    (res) => {
      res.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" });
      res.write("data: 1\n\n");
      res.write(": keep-alive\n\n");
      res.end("data: [DONE]\n\n");
    },
    1_000_000,
    passed,
  );

  expect(streamed.early).toEqual([passed]);
  expect(streamed.text).toBe("data: 1\n\n: keep-alive\n\ndata: [DONE]\n\n");
  expect(String(streamed.stored[0]?.body)).toBe("data: 1\n\ndata: [DONE]\n\n");
});

it("sends an answer that is too large to be recorded", async () => {
  const { stored, text } = await record((res) => {
    res.writeHead(200, { "Content-Length": 8 });
    res.write("12345678");
    res.end();
  }, 7);

  expect([stored, text]).toEqual([[null], "12345678"]);
});

it("answers when the record cannot be made", async () => {
  server = createServer((_req, res) => {
    new AnswerRecorder(res, 10, () => Promise.reject(new Error("no")));
    res.writeHead(200, {});
    res.end("fine");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");

  expect(await (await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)).text()).toBe("fine");
});

it("records a stream as cut when its reader has left, and a whole answer as whole", async () => {
  const recorders: AnswerRecorder[] = [];
  const stored: string[] = [];
  let arrived = () => {};
  server = createServer(async (req, res) => {
    arrived();
    const recorder = new AnswerRecorder(res, 1_000, async (answer) => void stored.push(String(answer?.body)));
    recorders.push(recorder);
    const isWhole = req.url === "/whole";
    res.writeHead(200, isWhole ? { "Content-Length": 5 } : {});
    if (!isWhole) res.write("begun");
    await once(res, "close");
    res.end(isWhole ? "whole" : undefined);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  for (const path of ["/stream", "/whole"]) {
    const leaving = new AbortController();
    const arrival = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const answer = fetch(`http://127.0.0.1:${port}${path}`, { signal: leaving.signal }).then((response) => response.text());
    await arrival;
    // The written bytes may still be on their way: the test counts only those that have reached the recorder.
    leaving.abort();
    await answer.catch(() => undefined);
  }
  while (stored.length === 0) await sleep(5);

  expect(recorders.map(({ isEnded }) => isEnded)).toEqual([false, true]);
  expect(stored).toEqual(["whole"]);
  expect(String(recorders[0]?.answer()?.body)).toBe("begun");
});
