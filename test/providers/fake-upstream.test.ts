import { afterEach, beforeEach, expect, it } from "vitest";
import { type FakeUpstream, startFakeUpstream } from "../support/fake-upstream.js";
import { chatChunk } from "../support/openai-bodies.js";
import { bytes, closeSocket, comment, errorReply, flood, hang, json, sse } from "../support/upstream-replies.js";

let upstream: FakeUpstream;
beforeEach(async () => {
  upstream = await startFakeUpstream();
});
afterEach(() => upstream.close());

function post(body: unknown, signal?: AbortSignal): Promise<Response> {
  const init = { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  return fetch(`${upstream.baseUrl}/chat/completions`, signal ? { ...init, signal } : init);
}

it("answers a configured completion and records the request as it came", async () => {
  upstream.answer.pieces = ["one", "two"];

  const answer = (await (await post({ model: "m", odd: [1] })).json()) as { choices: { message: { content: string } }[] };
  const request = await upstream.nextRequest();

  expect(answer.choices[0]?.message.content).toBe("onetwo");
  expect(request).toMatchObject({ method: "POST", path: "/v1/chat/completions", json: { model: "m", odd: [1] }, connection: 1 });
});

it("streams the configured answer, with usage only when asked", async () => {
  const plain = await (await post({ model: "m", stream: true })).text();
  const withUsage = await (await post({ model: "m", stream: true, stream_options: { include_usage: true } })).text();

  expect(plain).toContain('"content":"Hello"');
  expect(plain).not.toContain('"usage"');
  expect(withUsage).toContain('"usage"');
  expect(withUsage.endsWith("data: [DONE]\n\n")).toBe(true);
});

it("writes every framing", async () => {
  const steps = [comment("hi"), chatChunk({ content: "x" }), bytes(": raw\n\n")];
  upstream.replyNext(sse(steps, { framing: "crlf" }), sse(steps, { framing: "cr" }), sse(steps, { framing: "mixed" }));

  const [crlf, cr, mixed] = [await (await post({})).text(), await (await post({})).text(), await (await post({})).text()];

  expect(crlf).toContain(": hi\r\n\r\ndata: {");
  expect(cr).toContain(": hi\r\rdata: {");
  expect(mixed).toContain(": hi\r\n\ndata: {");
});

it("plays queued replies in order and then the standing one", async () => {
  upstream.replyNext(errorReply(429), closeSocket());
  upstream.replyAlways(json({ standing: true }));

  expect((await post({})).status).toBe(429);
  await expect(post({})).rejects.toThrow();
  expect(await (await post({})).json()).toEqual({ standing: true });
});

it("says when the client has closed a hanging, cut or flooding answer", async () => {
  upstream.replyNext(hang(), flood("x".repeat(65_536)), sse([chatChunk({ content: "x" })], { end: "cut" }));

  const hung = new AbortController();
  const hanging = post({}, hung.signal);
  const first = await upstream.nextRequest();
  hung.abort();
  await expect(hanging).rejects.toThrow();
  await first.closedByClient;

  const flooded = new AbortController();
  await post({}, flooded.signal);
  const second = await upstream.nextRequest();
  flooded.abort();
  await second.closedByClient;
  expect(second.bytesSent()).toBeGreaterThan(0);

  const cut = await post({});
  await expect(cut.text()).rejects.toThrow();
});
