import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { expect, it, onTestFinished } from "vitest";
import { answerClientError } from "../../src/http/client-error.js";

/** What a connection gets on which nothing but `sent` is written, until the server closes it. */
async function answerTo(sent: string): Promise<string> {
  const server = createServer({ headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 10 }, (_, response) =>
    response.end("ok"),
  );
  server.on("clientError", answerClientError);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  let answer = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    answer += text;
  });
  if (sent !== "") socket.write(sent);
  await once(socket, "close");
  return answer;
}

it("closes a connection without a word when nothing was sent on it in time", async () => {
  await expect(answerTo("")).resolves.toBe("");
});

it("answers a request that did not arrive in time", async () => {
  const answer = await answerTo("GET / HTTP/1.1\r\nHost: a\r\n");

  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
  expect(answer).toContain("The request did not arrive in time.");
});
