/** Code agents, called like any model: the requests to them and theirs, who pays, and the handling of failures. */
import { randomUUID } from "node:crypto";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { CODE_RUN_CALLS_MAX, CODE_RUNS_KEPT_MAX } from "../../src/services/agents/limits.js";
import { databaseOf } from "../e2e/money.js";
import { execute } from "../graphql/client.js";
import { type ChatCompletionInput, ChatDocument, MyAgentRunsDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { changeModel, createMember, type Member, type RegisteredRow, registerModel } from "../support/community-models.js";
import { startMcpServer, type TestMcpServer } from "../support/mcp-server.js";
import { chatCompletion, wireUsage } from "../support/openai-bodies.js";
import { json } from "../support/upstream-replies.js";
import { type Answer, type Client, createClient, expectEnvelope, type UsageJson } from "./client.js";

const COMMIT = "0123456789abcdef0123456789abcdef01234567";

let app: TestApp;
let mcp: TestMcpServer;
let owner: Member;
let caller: Member;
let client: Client;

beforeAll(async () => {
  // Loaded at an agent's first call, and on a busy machine for longer than a connection is waited for: server and client are one here.
  await Promise.all([import("@modelcontextprotocol/sdk/client/index.js"), import("@modelcontextprotocol/sdk/client/streamableHttp.js")]);
  mcp = await startMcpServer(() => {
    const server = new McpServer({ name: "search", version: "1" });
    server.registerTool("find", { inputSchema: { query: z.string() } }, ({ query }) => ({
      content: [{ type: "text", text: `found ${query}` }],
    }));
    return server;
  });
  const tenth = { id: "acme/tenth", modality: "text", upstream: "acme", upstreamModel: "tenth", title: "A tenth of a credit each time" };
  app = await createTestApp({
    config: { mcpServers: { search: mcp.url } },
    models: [{ ...tenth, prices: { promptTextPrice: "0", completionTextPrice: "0.1" } }],
  });
  [owner, caller] = await Promise.all([createMember(app, { handle: "maker" }), createMember(app)]);
  client = createClient(app.baseUrl, caller.key);
});
afterAll(async () => {
  await app.close();
  await mcp.close();
});

/** The script's default export is the body of an asynchronous function of `{ request, sluice, mcp }`. */
function deploy(body: string, fields: object = {}): Promise<RegisteredRow> {
  const script = `export default async ({ request, sluice, mcp }) => {${body}};`;
  return registerModel(app, owner, {
    type: "code_agent",
    visibility: "public",
    api: null,
    url: null,
    upstreamModel: null,
    bearerToken: null,
    agent: { create: { repository: "https://git.example/maker/agent", deployedCommitSha: COMMIT, bundle: script, ...fields } },
  });
}

/** A script's answer in the Responses format; `text` is an expression. */
function say(text: string): string {
  return `const text = ${text};
    const parts = [{ type: "output_text", text: typeof text === "string" ? text : JSON.stringify(text), annotations: [] }];
    return Response.json({ id: "resp_1", object: "response", created_at: 1, status: "completed", model: "mine",
      output: [{ type: "message", id: "msg_1", role: "assistant", status: "completed", content: parts }] });`;
}

function ask(modelId: string, more: object = {}): Promise<Answer> {
  return client.post("/v1/chat/completions", { model: modelId, messages: [{ role: "user", content: "Hello" }], ...more });
}

function saidIn(answer: Answer): string {
  return answer.json<{ choices: { message: { content: string } }[] }>().choices[0]?.message.content ?? "";
}

async function usageOf(generationId: string | null): Promise<{ own: Record<string, unknown>[]; children: Record<string, unknown>[] }> {
  const { usage } = (await client.get("/account/usage")).json<UsageJson>();
  return {
    own: usage.filter((row) => row.request_id === generationId),
    children: usage.filter((row) => row.parent_request_id === generationId),
  };
}

const ASK_BOTH = `
  const { input, model } = await request.json();
  const answer = await sluice("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "sandbox/text-paid", messages: [{ role: "user", content: "Hello" }] }),
  });
  const { choices } = await answer.json();
  const { content } = await mcp("search", "find", { query: "the way" });
  ${say('[model, input.at(-1).content, choices[0].message.role, content[0].text].join(" | ")')}`;

const PIPE = `
  const asked = await request.json();
  return sluice("/v1/responses", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...asked, model: "sandbox/text-paid", stream: true }),
  });`;

/** Sends a request in words of its own. */
const ASK_OWN_WORDS = `
  await sluice("/v1/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "acme/chat", messages: [{ role: "user", content: "Mail ann@example.com" }] }),
  });
  ${say('"Done."')}`;

/** Asks six times at once, a tenth of a credit each, and tells how that went. */
const ASK_AT_ONCE = `
  const body = JSON.stringify({ model: "acme/tenth", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] });
  const answers = await Promise.all(Array.from({ length: 6 }, () =>
    sluice("/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" }, body })));
  const refused = answers.find(({ status }) => status === 402);
  ${say("{ ok: answers.filter(({ status }) => status === 200).length, error: refused ? (await refused.json()).error : null }")}`;

describe("the requests of a run", () => {
  const costing = (model: string, maxCost: string) => ({ ...greeting(model), maxCost });

  beforeAll(() => {
    app.upstream.replyAlways(json(chatCompletion({ usage: wireUsage(1, 1) })));
  });
  afterAll(() => {
    app.upstream.replyAlways(null);
  });

  it("cost no more in all than its caller allows, however many it sends at once", async () => {
    const agent = await deploy(ASK_AT_ONCE);
    for (const [headers, count] of [
      [{ "X-Max-Cost": "0.4" }, 4],
      [{ "X-Max-Cost": "0.05" }, 0],
      [{ "X-Max-Cost": "1" }, 6],
    ] as const) {
      const answer = await client.request("POST", "/v1/chat/completions", { body: toBody(agent.modelId), headers });

      const { ok, error } = JSON.parse(saidIn(answer)) as { ok: number; error: Record<string, unknown> | null };
      expect(ok).toBe(count);
      expect(answer.headers.get("x-child-cost")).toBe(String(count / 10));
      if (count === 6) expect(error).toBeNull();
      else
        expect(error).toMatchObject({
          code: "KEY_BUDGET_EXHAUSTED",
          param: "X-Max-Cost",
          message: expect.stringContaining("X-Max-Cost"),
          details: { bound: "run", required: "0.1", available: expect.any(String) },
        });
    }
  });

  it("cost at most a tenth of the caller's budget or balance by default", async () => {
    const agent = await deploy(ASK_AT_ONCE);
    const poor = await createMember(app, { credits: 3 });
    const made = await createClient(app.baseUrl, poor.key).post("/account/keys", { name: "budgeted", creditBudget: 2 });
    for (const [key, count] of [
      [made.json<{ key: string }>().key, 2],
      [poor.key, 2], // Of 2.8 credits that are left.
    ] as const) {
      const answer = await client.request("POST", "/v1/chat/completions", { key, body: toBody(agent.modelId) });

      expect(JSON.parse(saidIn(answer))).toMatchObject({ ok: count, error: { code: "KEY_BUDGET_EXHAUSTED" } });
    }
  });

  it("are bounded over GraphQL and in streams, too, and so are those of a prompt agent", async () => {
    const agent = await deploy(ASK_AT_ONCE);
    const prompt = await registerModel(app, owner, {
      ...{ type: "prompt_agent", visibility: "public", api: null, url: null, upstreamModel: null, bearerToken: null },
      agent: { create: { systemPrompt: "You help.", baseModel: "acme/tenth" } },
    });

    const { data } = await execute({ ...app, key: caller.key }, ChatDocument, { input: costing(agent.modelId, "0.3") });
    const streamed = await client.request("POST", "/v1/chat/completions", {
      body: { ...toBody(agent.modelId), stream: true },
      headers: { "X-Max-Cost": "0.2" },
    });
    const refused = await client.request("POST", "/v1/chat/completions", {
      body: { ...toBody(prompt.modelId), max_tokens: 1 },
      headers: { "X-Max-Cost": "0.05" },
    });
    const allowed = await ask(prompt.modelId, { max_tokens: 1 });

    expect(data).toMatchObject({ createChatCompletion: { receipt: { childCost: "0.3" } } });
    expect(streamed.text).toContain('"child_cost":0.2');
    expectEnvelope(refused, 402, "KEY_BUDGET_EXHAUSTED");
    expect(allowed.status).toBe(200);
  });

  it.each(["-1", "much", "", "1e3", "1,2", "9999999999", "0.0000000001"])("cannot be bounded by %j", async (value) => {
    const answer = await client.request("POST", "/v1/chat/completions", { body: toBody("acme/chat"), headers: { "X-Max-Cost": value } });

    expectEnvelope(answer, 400, "BAD_REQUEST");
    expect(answer.json<{ error: { param: string } }>().error.param).toBe("X-Max-Cost");
    const { errors } = await execute({ ...app, key: caller.key }, ChatDocument, { input: costing("acme/chat", value) });
    expect(errors).toMatchObject([{ extensions: { code: "BAD_REQUEST" } }]);
  });
});

function greeting(model: string): ChatCompletionInput {
  return { model, messages: [{ role: "USER", content: "Hello" }] };
}

function toBody(model: string): object {
  return { model, messages: [{ role: "user", content: "Hello" }] };
}

describe("a code agent", () => {
  it("sends no text that its own request's safety features would have changed or refused", async () => {
    const agent = await deploy(ASK_OWN_WORDS);

    const answer = await ask(agent.modelId, { safe: "privacy" });

    expect(saidIn(answer)).toBe("Done.");
    expect(app.upstream.requests.at(-1)?.json).toMatchObject({ messages: [{ role: "user", content: "Mail [REDACTED_EMAIL]" }] });
  });

  it.each([
    ["/v1/chat/completions", { messages: [{ role: "user", content: "Hello" }] }, "/choices/0/message/content"],
    ["/v1/responses", { input: "Hello" }, "/output/0/content/0/text"],
  ])("calls a model and a tool for its caller, who pays for the model alone, over %s", async (path, body, place) => {
    const agent = await deploy(ASK_BOTH);

    const answer = await client.post(path, { model: agent.modelId, ...body });

    expect(answer.status, JSON.stringify(app.logs.filter(({ end, err }) => end !== undefined || err !== undefined))).toBe(200);
    const text = place
      .split("/")
      .slice(1)
      .reduce<unknown>((value, name) => (value as Record<string, unknown>)[name], answer.json());
    expect(text).toBe(`${agent.modelId} | Hello | assistant | found the way`);
    const { own, children } = await usageOf(answer.headers.get("x-generation-id"));
    expect(own).toMatchObject([{ model: agent.modelId, cost_usd: 0 }]);
    expect(children).toMatchObject([{ model: "sandbox/text-paid", api_key_id: caller.keyId, cost_usd: expect.any(Number) }]);
    expect(children[0]?.cost_usd).toBeGreaterThan(0);
    expect(mcp.noted.map(({ authorization }) => authorization)).toEqual(mcp.noted.map(() => null));
  });

  it("streams, as chunks of a chat and as events of a response", async () => {
    const agent = await deploy(PIPE);

    const chat = await ask(agent.modelId, { stream: true });
    const response = await client.post("/v1/responses", { model: agent.modelId, input: "Hello", stream: true });

    const chunks = chat.text.split("\n\n").filter((event) => event.startsWith("data: {"));
    const parsed = chunks.map((event) => JSON.parse(event.slice(6)) as { choices: { delta: { content?: string } }[] });
    expect(chat.headers.get("content-type")).toContain("text/event-stream");
    expect(parsed.length).toBeGreaterThan(3);
    expect(parsed.flatMap(({ choices }) => choices.map(({ delta }) => delta.content ?? "")).join("")).toMatch(/\w/);
    expect(chat.text).toMatch(/data: \[DONE\]\n\n$/);
    expect(response.text.match(/^event: response\.output_text\.delta$/gm)?.length).toBeGreaterThan(1);
    expect(response.text).toContain("event: response.completed");
    const { own, children } = await usageOf(chat.headers.get("x-generation-id"));
    expect(own).toMatchObject([{ cost_usd: 0 }]);
    expect(children).toMatchObject([{ model: "sandbox/text-paid", status: "ok" }]);
  });

  it("sees neither credentials nor anything but its request, and may only generate", async () => {
    const agent = await deploy(`
      const tries = {
        account: ["/account/balance"], keys: ["/account/keys"], agents: ["/account/agents"],
        self: ["/v1/chat/completions", { method: "POST", headers: { "content-type": "application/json" },
          body: JSON.stringify({ model: (await request.clone().json()).model, messages: [{ role: "user", content: "x" }] }) }],
        key: ["/account/balance", { headers: { authorization: "Bearer ${owner.key}", cookie: "a=b" } }],
        method: ["/media/0123456789abcdef", { method: "DELETE" }],
        host: ["//example.org/v1/models"], up: ["/\\\\\\\\example.org/"], url: ["https://example.org/"],
        models: ["/v1/models"],
      };
      const seen = {};
      for (const [name, args] of Object.entries(tries)) {
        seen[name] = await sluice(...args).then(async (answer) => { await answer.text(); return answer.status; }, (error) => error.message);
      }
      seen.tool = await mcp("nobody", "x").catch((error) => error.message);
      seen.unmapped = await mcp("ada", "x").catch((error) => error.message);
      seen.headers = [...request.headers.keys()];
      seen.url = new URL(request.url).pathname;
      ${say("seen")}`);

    const answer = await client.post(
      "/v1/chat/completions",
      { model: agent.modelId, messages: [{ role: "user", content: "Hello" }] },
      { headers: { cookie: "session=secret" } },
    );

    const path = "sluice() takes a path of this gateway, such as /v1/chat/completions.";
    expect(JSON.parse(saidIn(answer))).toEqual({
      account: 403,
      keys: 403,
      agents: 403,
      self: 400,
      key: 403,
      method: expect.stringContaining("no DELETE"),
      host: path,
      up: path,
      url: "/v1/responses",
      models: 200,
      tool: expect.stringContaining("ffmpeg, computer, sluice, search, integrations, ada"),
      unmapped: expect.stringMatching(/\w/),
      headers: ["accept", "content-type", "x-request-id"],
    });
  });

  it("cannot create accounts, sign in or begin a device flow", async () => {
    const agent = await deploy(`
      const post = (body) => ({ method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
      const graphql = (query) => ["/graphql", post({ query })];
      const who = 'input: { email: "made-by-an-agent@example.com", password: "correct horse battery" }';
      const tries = {
        signUp: graphql("mutation { signUp(" + who + ") { accountId } }"),
        signIn: graphql("mutation { signIn(" + who + ") { accountId } }"),
        device: graphql("mutation { createDeviceAuthorization(input: {}) { __typename } }"),
        deviceCode: ["/api/device/code", post({})],
        deviceToken: ["/api/device/token", post({ device_code: "x" })],
        page: ["/sign-up"],
        schema: ["/schema.graphql"],
        introspection: graphql("{ __schema { queryType { name } } }"),
        models: graphql("{ models(first: 1) { nodes { __typename } } }"),
      };
      const seen = {};
      for (const [name, args] of Object.entries(tries)) {
        const answer = await sluice(...args);
        const text = await answer.text();
        seen[name] = answer.status === 200 ? JSON.parse(text).errors?.[0].extensions.code ?? "OK" : answer.status;
      }
      ${say("seen")}`);

    expect(JSON.parse(saidIn(await ask(agent.modelId)))).toEqual({
      signUp: "FORBIDDEN",
      signIn: "FORBIDDEN",
      device: "FORBIDDEN",
      deviceCode: 403,
      deviceToken: 403,
      page: 403,
      schema: 403,
      introspection: "BAD_REQUEST",
      models: "OK",
    });
    const { prisma } = databaseOf(app);
    expect(await prisma.account.count({ where: { email: "made-by-an-agent@example.com" } })).toBe(0);
    expect(await prisma.deviceAuthorization.count()).toBe(0);
  });

  it(`makes ${CODE_RUN_CALLS_MAX} calls, and not one more`, async () => {
    const agent = await deploy(`
      const seen = [];
      for (let i = 0; i <= ${CODE_RUN_CALLS_MAX}; i++) seen.push(await sluice("/v1/models").then((answer) => answer.status, (error) => error.message));
      ${say("seen")}`);

    const seen = JSON.parse(saidIn(await ask(agent.modelId))) as unknown[];

    expect(seen.slice(0, -1)).toEqual(Array.from({ length: CODE_RUN_CALLS_MAX }, () => 200));
    expect(seen.at(-1)).toBe(`An agent may make ${CODE_RUN_CALLS_MAX} calls in one run.`);
  });

  it("is run as it is deployed", async () => {
    const agent = await deploy(say('"first"'));
    const first = saidIn(await ask(agent.modelId));

    await databaseOf(app).prisma.agent.update({
      where: { id: agent.id },
      data: { bundle: `export default () => {${say('"second"')}}` },
    });
    await changeModel(app, owner, agent.id, {});

    expect([first, saidIn(await ask(agent.modelId))]).toEqual(["first", "second"]);
  });
});

describe("a failing code agent", () => {
  it.each([
    ["throws", `throw new Error("a secret of the owner's")`, 500, "INTERNAL_ERROR", "The agent failed."],
    ["answers no Response", `return "text"`, 500, "INTERNAL_ERROR", "The agent failed."],
    [
      "ends its process",
      `setTimeout(() => { throw new Error("late") }, 0); return new Promise(() => {})`,
      500,
      "INTERNAL_ERROR",
      "The agent failed.",
    ],
    ["answers no JSON", `return new Response("text")`, 502, "UPSTREAM_ERROR", null],
    ["answers another format", `return Response.json({ choices: [] })`, 502, "UPSTREAM_ERROR", null],
    ["refuses", `return Response.json({ error: { message: "Say please." } }, { status: 422 })`, 400, "BAD_REQUEST", "Say please."],
    ["is busy", `return Response.json({ error: { message: "no" } }, { status: 429 })`, 502, "UPSTREAM_ERROR", null],
  ])("that %s is answered in the envelope, and costs nothing", async (_how, body, status, code, message) => {
    const agent = await deploy(body);

    const answer = await ask(agent.modelId);

    expectEnvelope(answer, status, code);
    expect(answer.text).not.toContain("secret");
    if (status === 500) expect(answer.headers.get("x-should-retry")).toBe("false");
    if (message !== null) expect(answer.json<{ error: { message: string } }>().error.message).toContain(message);
    expect((await usageOf(answer.headers.get("x-generation-id"))).own).toEqual([]);
  });

  it("in the middle of a stream ends it with an error", async () => {
    const agent = await deploy(`
      const event = (type, fields) => new TextEncoder().encode("event: " + type + "\\ndata: " + JSON.stringify({ type, ...fields }) + "\\n\\n");
      const response = { id: "resp_1", object: "response", created_at: 1, status: "in_progress", model: "mine", output: [] };
      let step = 0;
      return new Response(new ReadableStream({ pull: (controller) => {
        step += 1;
        if (step === 1) controller.enqueue(event("response.created", { response }));
        else if (step === 2) controller.enqueue(event("response.output_text.delta", { output_index: 0, content_index: 0, item_id: "m", delta: "Well" }));
        else throw new Error("a secret of the owner's");
      } }), { headers: { "content-type": "text/event-stream" } });`);

    const answer = await ask(agent.modelId, { stream: true });

    expect(answer.status).toBe(200);
    expect(answer.text).toContain("Well");
    expect(answer.text).toMatch(/"code":"INTERNAL_ERROR","message":"The agent failed\."/);
    expect(answer.text).not.toContain("[DONE]");
    expect(answer.text).not.toContain("secret");
  });

  it("is reported alike over GraphQL", async () => {
    const agent = await deploy(`throw new Error("a secret of the owner's")`);

    const { errors } = await execute({ ...app, key: caller.key }, ChatDocument, { input: greeting(agent.modelId) });

    expect(errors).toMatchObject([{ message: "The agent failed.", extensions: { code: "INTERNAL_ERROR" } }]);
  });

  it("for want of code answers 503", async () => {
    const agent = await deploy("", { bundle: null });

    expectEnvelope(await ask(agent.modelId), 503, "SERVICE_UNAVAILABLE");
  });
});

describe("the last runs of a code agent", () => {
  const runsSeenBy = async (member: Member, id: string) => {
    await app.services.codeRuns.flush();
    const { data } = await execute({ ...app, key: member.key }, MyAgentRunsDocument, { id });
    const agent = data?.me?.agent;
    return agent?.__typename === "CodeAgent" ? agent.runs : null;
  };
  const PRINT = `
    const { input } = await request.json();
    const { content } = input.at(-1);
    console.log("asked: " + content);
    if (content === "throw") throw new Error("about " + content);
    if (content === "zero") throw new Error("\\0 and \\ud800");
    ${say("content")}`;
  const askAs = (key: string, modelId: string, content: string) =>
    client.request("POST", "/v1/chat/completions", { key, body: { model: modelId, messages: [{ role: "user", content }] } });

  it("are shown to its owner, with the log of the owner's own calls alone", async () => {
    const agent = await deploy(PRINT);
    const answers = [
      await askAs(owner.key, agent.modelId, "Hello"),
      await askAs(caller.key, agent.modelId, "a secret of the caller's"),
      await askAs(caller.key, agent.modelId, "throw"),
      await askAs(owner.key, agent.modelId, "throw"),
      await askAs(owner.key, agent.modelId, "zero"),
    ];
    const [first] = answers;
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 500, 500, 500]);

    // An answer is there before its run is over.
    await expect.poll(async () => (await runsSeenBy(owner, agent.id))?.length).toBe(5);
    const runs = await runsSeenBy(owner, agent.id);

    const when = { startedAt: expect.any(String), durationMs: expect.any(Number) };
    const ofOthers = { ...when, isOwn: false, generationId: null, error: null, output: null };
    const failed = { outcome: "FAILED", status: null };
    expect(runs).toMatchObject([
      { ...when, ...failed, isOwn: true, error: expect.stringContaining("\ufffd and \ufffd"), output: "asked: zero\n" },
      { ...when, ...failed, isOwn: true, error: expect.stringContaining("about throw"), output: "asked: throw\n" },
      { ...ofOthers, ...failed },
      { ...ofOthers, outcome: "ANSWERED", status: 200 },
      {
        ...{ ...when, outcome: "ANSWERED", status: 200, isOwn: true, error: null, output: "asked: Hello\n" },
        generationId: first?.headers.get("x-generation-id"),
      },
    ]);
    expect(await runsSeenBy(caller, agent.id)).toBeNull();
  });

  it(`are ${CODE_RUNS_KEPT_MAX}, and gone with the agent`, async () => {
    const agent = await deploy(PRINT);
    const { prisma } = databaseOf(app);
    const old = { agentId: agent.id, durationMs: 1, outcome: "answered" as const };
    await prisma.agentRun.createMany({
      data: Array.from({ length: CODE_RUNS_KEPT_MAX }, (_, index) => ({ ...old, id: randomUUID(), startedAt: new Date(index) })),
    });
    await askAs(owner.key, agent.modelId, "newest");

    await expect.poll(async () => (await runsSeenBy(owner, agent.id))?.[0]?.output).toBe("asked: newest\n");
    const runs = await runsSeenBy(owner, agent.id);
    expect(runs).toHaveLength(CODE_RUNS_KEPT_MAX);
    expect(runs?.at(-1)?.startedAt).toBe(new Date(1).toISOString());
    await prisma.communityModel.delete({ where: { id: agent.id } });
    expect(await prisma.agentRun.count({ where: { agentId: agent.id } })).toBe(0);
  });
});
