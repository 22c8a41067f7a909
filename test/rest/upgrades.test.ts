/** Requests that ask for another protocol (RFC 9110, 7.8). */
import { request } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

/** As Java's client and `curl --http2` do on a connection without TLS. */
const ASKING_FOR_HTTP2 = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c", "http2-settings": "AAMAAABkAAQCAAAAAAIAAAAA" };

it("answers a request that asks for HTTP/2 without it, body and all", async () => {
  const body = JSON.stringify({ model: "sandbox/text", messages: [{ role: "user", content: "Hello" }] });

  const answer = await send("POST", "/v1/chat/completions", body, {
    authorization: `Bearer ${app.key}`,
    "content-type": "application/json",
  });

  expect(answer).toMatchObject({ status: 200, body: expect.stringContaining("chat.completion") });
  expect(await send("GET", "/healthz", "", {})).toMatchObject({ status: 200 });
});

function send(
  method: string,
  path: string,
  body: string,
  headers: Record<string, string>,
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(`${app.baseUrl}${path}`, {
      method,
      headers: { ...headers, ...ASKING_FOR_HTTP2, "content-length": body.length },
    });
    outgoing.on("response", (response) => {
      const parts: Buffer[] = [];
      response.on("data", (part: Buffer) => parts.push(part));
      response.on("end", () => resolve({ status: response.statusCode, body: Buffer.concat(parts).toString() }));
    });
    outgoing.on("upgrade", () => reject(new Error("It was upgraded.")));
    outgoing.on("error", reject);
    outgoing.end(body);
  });
}
