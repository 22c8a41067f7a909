import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { errorReply, json, sse } from "../support/upstream-replies.js";
import { type Client, createClient, expectEnvelope } from "./client.js";

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

/** What the upstream was last asked. */
function lastAsked() {
  return app.upstream.requests.at(-1)?.json;
}

describe("GET /text/{prompt}", () => {
  it("answers plain text, with its cost in the headers", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Grüße." })));

    const answer = await client.get("/text/Say%20hello%20in%20German");

    expect(answer).toMatchObject({ status: 200, text: "Grüße." });
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "text/plain; charset=utf-8",
      "cache-control": "private, no-store",
      "x-cache": "MISS",
      "x-model-used": "acme/chat",
      "x-cost": "0.000018",
      "x-generation-id": expect.any(String),
    });
    expect(lastAsked()).toMatchObject({ model: "upstream-chat", messages: [{ role: "user", content: "Say hello in German" }], seed: 0 });
  });

  it("takes the key from the query, and lets no cache keep the answer", async () => {
    const answer = await client.get(`/text/hello?key=${app.key}`, { key: null });

    expect(answer.status).toBe(200);
    expect(answer.headers.get("referrer-policy")).toBe("no-referrer");
    expect(answer.headers.get("cache-control")).toBe("private, no-store");
  });

  const prompts: readonly (readonly [path: string, prompt: string])[] = [
    ["a/b", "a/b"],
    ["a%2Fb", "a/b"],
    ["a//b", "a//b"],
    ["..%2f..%2fetc%2fpasswd", "../../etc/passwd"],
    ["what%3F", "what?"],
    ["100%25", "100%"],
    ["%E2%9C%93", "✓"],
    ["a+b", "a+b"],
    ["models/old", "models/old"],
  ];
  for (const [path, prompt] of prompts) {
    it(`reads the prompt ${prompt} from /text/${path}`, async () => {
      expect((await client.get(`/text/${path}`)).status).toBe(200);

      expect(lastAsked()).toMatchObject({ messages: [{ role: "user", content: prompt }] });
    });
  }

  it("takes model, system, seed, temperature and json", async () => {
    const answer = await client.get("/text/hi?model=acme/free&system=Be%20brief&seed=7&temperature=0.5&json=true");

    expect(answer.headers.get("x-model-used")).toBe("acme/free");
    expect(lastAsked()).toMatchObject({
      messages: [
        { role: "system", content: "Be brief" },
        { role: "user", content: "hi" },
      ],
      seed: 7,
      temperature: 0.5,
      response_format: { type: "json_object" },
    });
  });

  it("draws a seed for -1", async () => {
    await client.get("/text/hi?seed=-1");

    expect(lastAsked()).toMatchObject({ seed: expect.toSatisfy((seed: number) => Number.isInteger(seed) && seed >= 0) });
  });

  it("takes the ends of each range, and 1 and 0 for true and false", async () => {
    for (const query of ["temperature=0", "temperature=2", "json=0", "json=1", "stream=0", "stream=false"]) {
      expect((await client.get(`/text/hi?${query}`)).status).toBe(200);
    }
  });

  const refused = [
    "temperature=-0.1",
    "temperature=2.1",
    "temperature=",
    "temperature=1e0",
    "temperature=%00",
    "seed=-2",
    "seed=1.5",
    "seed=x",
    "json=yes",
  ];
  for (const query of [...refused, "stream=TRUE", "json=", "stream=true&stream=true", "unknown=1", "system=%zz"]) {
    it(`answers 400 to ?${query} and calls no upstream`, async () => {
      const before = app.upstream.requests.length;

      expectEnvelope(await client.get(`/text/hi?${query}`), 400, "BAD_REQUEST");
      expect(app.upstream.requests.length).toBe(before);
    });
  }

  it("answers 400 to an unknown model, naming the parameter", async () => {
    const answer = await client.get("/text/hi?model=acme/chatt");

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json()).toMatchObject({ error: { param: "model", message: expect.stringContaining("acme/chat") } });
  });

  it("answers 400 to a prompt of white space alone", async () => {
    expectEnvelope(await client.get("/text/%20"), 400, "BAD_REQUEST");
  });

  it("streams chunks with stream=true", async () => {
    app.upstream.replyNext(sse(chatChunks(["a", "b"])));

    const answer = await client.get("/text/a%20stream?stream=true");

    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(answer.text).toContain('"object":"chat.completion.chunk"');
    expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  it("answers an upstream's failure in the envelope, and says nothing of a cache", async () => {
    app.upstream.replyNext(errorReply(500));

    const answer = await client.get("/text/hi%20again");

    expectEnvelope(answer, 502, "UPSTREAM_ERROR");
    expect(answer.headers.has("x-cache")).toBe(false);
  });

  it("generates nothing for HEAD, and checks the key and the parameters", async () => {
    const before = app.upstream.requests.length;

    const answer = await client.request("HEAD", "/text/hi");

    expect(answer.status).toBe(200);
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect((await client.request("HEAD", "/text/hi", { key: null })).status).toBe(401);
    expect((await client.request("HEAD", "/text/hi?json=yes")).status).toBe(400);
    expect(app.upstream.requests.length).toBe(before);
  });

  it("refuses a caller without a key", async () => {
    expectEnvelope(await client.get("/text/hi", { key: null }), 401, "UNAUTHORIZED");
  });
});

describe("POST /text", () => {
  const hello = { messages: [{ role: "user", content: "Hello" }] };

  it("takes a chat-completions body and answers plain text", async () => {
    app.upstream.replyNext(json(chatCompletion({ content: "Hi." })));

    const answer = await client.post("/text", hello);

    expect(answer).toMatchObject({ status: 200, text: "Hi." });
    expect(answer.headers.get("content-type")).toBe("text/plain; charset=utf-8");
    expect(answer.headers.get("x-cost")).toBe("0.000018");
    expect(answer.headers.get("x-cache")).toBe("MISS");
    expect(lastAsked()).not.toHaveProperty("seed");
  });

  it("streams chunks with stream", async () => {
    const answer = await client.post("/text", { ...hello, stream: true });

    expect(answer.headers.get("content-type")).toBe("text/event-stream; charset=utf-8");
    expect(answer.text.endsWith("data: [DONE]\n\n")).toBe(true);
  });

  it("answers 400 to a body without messages", async () => {
    const answer = await client.post("/text", {});

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json()).toMatchObject({ error: { param: "messages" } });
  });
});
