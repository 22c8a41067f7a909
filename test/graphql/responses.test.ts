import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CreateResponseDocument, StreamResponseDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunk, chatChunks, chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { json, sse } from "../support/upstream-replies.js";
import { codes, execute, ok, type Subscribe, TRANSPORTS } from "./client.js";

let app: TestApp;
beforeAll(async () => {
  app = await createTestApp();
});
afterAll(() => app.close());

describe("createResponse", () => {
  it("gives the answer of POST /v1/responses, with its receipt", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi.", usage: wireUsage(1000, 2) })));

    const answer = await execute(app, CreateResponseDocument, {
      input: { model: "acme/chat", input: { text: "Hello" }, maxOutputTokens: 9, metadata: { a: "b" } },
    });

    expect(ok(answer).createResponse).toMatchObject({
      response: {
        status: "COMPLETED",
        outputText: "Hi.",
        output: [{ type: "message" }],
        raw: { object: "response", max_output_tokens: 9 },
      },
      receipt: { cost: "0.001004" },
    });
  });

  it("leaves unsupported tools out, as the REST route does, and says so in the receipt", async () => {
    const tools = [{ type: "web_search" }, { type: "function", name: "shell", parameters: { type: "object" } }];
    const answer = await execute(app, CreateResponseDocument, {
      input: { model: "acme/chat", input: { text: "Go" }, tools, reasoning: { summary: "AUTO" } },
    });
    const forced = await execute(app, CreateResponseDocument, {
      input: { model: "acme/chat", input: { text: "Go" }, tools, toolChoice: { type: "web_search" } },
    });

    expect(ok(answer).createResponse).toMatchObject({
      response: { raw: { tools: [{ name: "shell" }], reasoning: { summary: "auto" } } },
      receipt: { warnings: [expect.stringMatching(/^tools: web_search left out: /)] },
    });
    expect([codes(forced), forced.errors?.[0]?.message]).toEqual([["BAD_REQUEST"], expect.stringContaining("web_search")]);
  });

  it("refuses with the words and the parameter of the REST route", async () => {
    const answer = await execute(app, CreateResponseDocument, { input: { model: "acme/chat", input: { items: [] }, temperature: 3 } });

    expect(codes(answer)).toEqual(["BAD_REQUEST"]);
    expect(answer.errors?.[0]?.extensions.details).toMatchObject({
      fieldErrors: { input: expect.any(Array), temperature: expect.any(Array) },
    });
  });
});

describe.each(TRANSPORTS)("subscription response over %s", (_name, subscribe: Subscribe) => {
  it("streams the events, and the receipt at the end", async () => {
    app.upstream.replyNext(sse(chatChunks(["One", " two"], { usage: wireUsage(10, 2) })));

    const live = subscribe(app, StreamResponseDocument, { input: { model: "acme/chat", input: { text: "Count" } } });
    const events = (await live.rest()).map((answer) => ok(answer).response);

    expect(events.map(({ type }) => type)).toEqual([
      "response.created",
      "response.in_progress",
      "response.output_item.added",
      "response.content_part.added",
      "response.output_text.delta",
      "response.output_text.delta",
      "response.output_text.done",
      "response.content_part.done",
      "response.output_item.done",
      "response.completed",
      null,
    ]);
    expect(events.at(-1)).toMatchObject({ event: null, receipt: { cost: "0.000014", status: "OK" } });
  });

  it("names left out tools in the receipt", async () => {
    app.upstream.replyNext(sse(chatChunks(["One"], { usage: wireUsage(10, 2) })));

    const input = { model: "acme/chat", input: { text: "Count" }, tools: [{ type: "tool_search" }] };
    const events = (await subscribe(app, StreamResponseDocument, { input }).rest()).map((answer) => ok(answer).response);

    expect(events.at(-1)).toMatchObject({ receipt: { warnings: [expect.stringMatching(/^tools: tool_search left out: /)] } });
  });

  it("stops the upstream when the subscriber leaves", async () => {
    const request = app.upstream.requests.length;
    app.upstream.replyNext(sse([chatChunk({ content: "Slow" })], { end: "hang" }));
    const live = subscribe(app, StreamResponseDocument, { input: { model: "acme/chat", input: { text: "Slowly" } } });
    for (let event = await live.next(); ok(event).response.type !== "response.output_text.delta"; ) event = await live.next();

    live.leave();

    await expect(app.upstream.requests[request]?.closedByClient).resolves.toBeGreaterThan(0);
  });
});
