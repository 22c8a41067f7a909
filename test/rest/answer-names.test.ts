/**
 * The model's name in answers and errors is the id that was called, on every route and GraphQL field that generates,
 * independent of the upstream's name for it; each of them carries the headers of a generation.
 */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { execute, ok } from "../graphql/client.js";
import { GenerationJobByIdDocument, StartVideoDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { startFakeRealtime } from "../support/fake-realtime.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { goodReply } from "../support/operation-upstreams.js";
import { type Asking, type Fields, OPERATIONS, type Operation, type Kind as OperationKind } from "../support/operations.js";
import { responseObject, responseUsage, textItem } from "../support/responses-bodies.js";
import { errorReply, event, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { connectRealtime } from "./realtime-client.js";

/** What upstreams call their models, and themselves. */
const SECRET = "Secret-9b.instruct";
const NAMES = { model: SECRET, provider: SECRET };
const MODALITIES = ["text", "image", "video", "speech", "music", "transcription", "embedding", "rerank", "moderation"] as const;
type Kind = OperationKind | "responses";

const clip = await readClip(1);

let app: TestApp;
let me: Member;
/** Of the operator, called by an alias; and of an account. */
let owned: Partial<Record<Kind, string>>;
let asking: Asking;
let realtime: Awaited<ReturnType<typeof startFakeRealtime>>;

beforeAll(async () => {
  realtime = await startFakeRealtime();
  const operators = MODALITIES.map((modality) => ({
    ...{
      id: `acme/hidden-${modality}`,
      aliases: [`by-alias-${modality}`],
      modality,
      upstream: "acme",
      upstreamModel: SECRET,
      title: modality,
      ...(modality === "image" && { variations: true }),
    },
    prices: {},
  }));
  const voice = { id: "live/hidden", modality: "realtime", upstream: "live", upstreamModel: SECRET, title: "Voice", prices: {} };
  app = await createTestApp({
    config: { upstreamAllowHosts: ["127.0.0.1"] },
    models: [...operators, voice],
    upstreams: [{ id: "live", wireFormat: "openai", baseUrl: realtime.baseUrl, apiKey: "live-secret-key" }],
  });
  me = await createMember(app);
  asking = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: me.key };
  const own = async (modality: string, path: string, api: "chat_completions" | "responses" | null = null) =>
    (await registerModel(app, me, { modality: modality as "text", api, url: app.upstream.baseUrl + path, upstreamModel: SECRET })).modelId;
  owned = {
    text: await own("text", "/chat/completions", "chat_completions"),
    responses: await own("text", "/responses", "responses"),
    image: await own("image", ""),
    video: await own("video", "/film"),
    speech: await own("speech", ""),
    transcription: await own("transcription", ""),
    embedding: await own("embedding", ""),
  };
});
afterAll(async () => {
  const { pool } = app.database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  await realtime.close();
  expect(broken).toEqual({});
});

function ask(method: string, path: string, body?: unknown): Promise<Response> {
  const isForm = body instanceof FormData;
  return fetch(app.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${me.key}`, ...(body !== undefined && !isForm && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  });
}

const messages = [{ role: "user", content: "Hi" }];

/** What the upstream answers, which names itself. */
function replyTo(operation: Operation, kind: Kind, isOwned: boolean): Reply {
  if (kind === "responses") return json(responseObject([textItem("Hello.")], { ...NAMES, usage: responseUsage({ input: 5, output: 2 }) }));
  return kind === "video" && isOwned ? raw(clip, { headers: { "content-type": "video/mp4" } }) : goodReply(operation, NAMES);
}

/** With everything that may be told. */
function fieldsOf({ kind, face }: Operation, model: string): Fields {
  if (kind !== "transcription") return { model };
  return face === "REST" ? { model, response_format: "verbose_json" } : { model, responseFormat: "VERBOSE_JSON" };
}

const told = async (answer: Response) => ({
  status: answer.status,
  head: JSON.stringify([...answer.headers]),
  body: Buffer.from(await answer.arrayBuffer()).toString("latin1"),
});

const countUnfinished = () => app.database.prisma.generationJob.count({ where: { status: { in: ["queued", "running"] } } });

/** Registered models have none. */
const UNREGISTERED = "POST /v1/images/variations";
const CALLED = OPERATIONS.filter(({ face, delivery }) => face === "REST" && delivery !== "session").flatMap((operation) => {
  const { name, kind, delivery } = operation;
  const callers: readonly (readonly [string, Kind, boolean, Operation])[] = [
    [name, kind, false, operation],
    ...(kind === "moderation" || kind === "rerank" || kind === "music" || name === UNREGISTERED
      ? []
      : ([[name, kind, true, operation]] as const)),
    ...(kind === "text" && delivery === "whole" ? ([[name, "responses", true, operation]] as const) : []),
  ];
  return callers;
});

describe("REST", () => {
  it.each(CALLED)(
    "%s names the model as it was called (%s, of an account: %s), with the generation's headers",
    async (_name, kind, isOwned, operation) => {
      const id = (isOwned ? owned[kind] : `acme/hidden-${kind}`) ?? "";
      app.upstream.replyAlways(replyTo(operation, kind, isOwned));
      const answer = await operation.send(asking, fieldsOf(operation, isOwned ? id : `by-alias-${kind}`));
      const { status, head, body } = await told(answer);
      // A job still asks its upstream after its answer, and would take the replies of the next test.
      if (operation.delivery === "job") await expect.poll(countUnfinished).toBe(0);
      app.upstream.replyAlways(null);

      expect([status, body.slice(0, 200)]).toEqual([200, expect.anything()]);
      expect(head + body).not.toContain(SECRET);
      if (body.startsWith("{") && body.includes('"model":')) expect(JSON.parse(body)).toMatchObject({ model: id });
      if (body.includes('"modelVersion":')) expect(body).toContain(`"modelVersion":${JSON.stringify(id)}`);
      expect(answer.headers.get("x-cache")).toBe("MISS");
      expect(answer.headers.get("x-generation-id")).toMatch(/^[0-9a-f-]{36}$/);
      // A job is answered before its work begins.
      if (operation.delivery === "job") return;
      expect(answer.headers.get("x-model-used")).toBe(id);
      expect(answer.headers.get("server-timing")).toMatch(/^gateway;dur=[\d.]+, upstream;dur=[\d.]+$/);
    },
  );

  it.each(CALLED.filter(([, , , { delivery }]) => delivery !== "job"))(
    "%s reports an upstream's refusal without its name (%s, %s)",
    async (_name, kind, isOwned, operation) => {
      const id = (isOwned ? owned[kind] : `acme/hidden-${kind}`) ?? "";
      app.upstream.replyAlways(errorReply(400, `The model '${SECRET.toLowerCase()}' is not for you; ask models/${SECRET}.`));
      const { status, head, body } = await told(await operation.send(asking, fieldsOf(operation, id)));
      app.upstream.replyAlways(null);

      expect(status).toBe(400);
      expect((head + body).toLowerCase()).not.toContain(SECRET.toLowerCase());
      expect(body).toContain(`The model '${id}' is not for you; ask models/${id}.`);
    },
  );

  it("names streams, kept answers and repeated ones by the called id", async () => {
    const odd = [
      `{"model":"${SECRET}","choices":[{"index":0,"delta":{"content":"a"}}]}`,
      `{"\\u006dodel":"${SECRET}","choices":[{"index":0,"delta":{"content":"b"}}]}`,
      `{"x":{"model":"nested"},"model":"${SECRET}","provider":"${SECRET}","choices":[{"index":0,"delta":{"content":"model"}}]}`,
      `{"model":"${SECRET}","model":"${SECRET}","choices":[{"index":0,"delta":{"content":"d"}}]}`,
      `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
    ];
    app.upstream.replyNext(sse(odd.map((data) => event(data))));
    const streamed = await (await ask("POST", "/v1/chat/completions", { model: "by-alias-text", messages, stream: true })).text();
    const chunks = streamed.split("\n\n").filter((line) => line.startsWith("data: {"));
    const named = () => sse(chatChunks(["Hello"]).map((chunk) => ({ ...chunk, ...NAMES })));
    app.upstream.replyNext(named(), named(), json({ ...chatCompletion({ content: "Hello." }), ...NAMES }));
    const responses = await (await ask("POST", "/v1/responses", { model: owned.text, input: "Hi", stream: true })).text();
    const kept = `/text/names?model=by-alias-text&stream=true`;
    const [made, replayed] = [await (await ask("GET", kept)).text(), await ask("GET", kept)];
    const again = () =>
      fetch(`${app.baseUrl}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${me.key}`, "content-type": "application/json", "idempotency-key": "names" },
        body: JSON.stringify({ model: "by-alias-text", messages }),
      });
    const [first, second] = [await again(), await again()];
    const texts = [streamed, responses, made, await replayed.text(), await first.text(), await second.text()];

    expect(chunks.map((line) => line.match(/"model":"acme\/hidden-text"/g)?.length)).toEqual(chunks.map(() => 1));
    expect(chunks).toHaveLength(odd.length);
    expect([replayed.headers.get("x-cache"), first.headers.get("x-cache"), second.headers.get("x-cache")]).toEqual(["HIT", "MISS", "MISS"]);
    expect(second.headers.get("x-idempotent-replay")).toBe("true");
    for (const text of texts) expect(text).not.toContain(SECRET);
    for (const text of texts.slice(2)) expect(text).toContain('"model":"acme/hidden-text"');
    expect(responses).toContain(`"model":"${owned.text}"`);
  });

  it("reports a refusal in the middle of a stream without the upstream's name", async () => {
    app.upstream.replyNext(
      sse([...chatChunks(["Hi"], { finishReason: null, usage: null }), { error: { code: 400, message: `${SECRET} is tired.` } }]),
    );
    const { body } = await told(await ask("POST", "/v1/chat/completions", { model: owned.text, messages, stream: true }));

    expect(body).toContain(`${owned.text} is tired.`);
    expect(body).not.toContain(SECRET);
  });

  it("names a realtime session, its answers and its errors", async () => {
    const client = await connectRealtime(app, "?model=live/hidden", { key: me.key });
    const session = await realtime.nextSession();
    session.send({ type: "session.created", session: { type: "realtime", model: `${SECRET}-2026-01-01`, client_secret: { value: "x" } } });
    session.send({ type: "response.created", response: { id: "r1", model: SECRET } });
    session.send({ type: "error", error: { message: `${SECRET} cannot do that.` } });
    const [created, begun, failed] = [
      await client.next("session.created"),
      await client.next("response.created"),
      await client.next("error"),
    ];
    client.socket.close();
    await client.closed;

    expect(client.headers).toMatchObject({ "x-model-used": "live/hidden", "x-cache": "MISS" });
    expect(created).toEqual({ type: "session.created", session: { type: "realtime", model: "live/hidden" } });
    expect(begun).toEqual({ type: "response.created", response: { id: "r1", model: "live/hidden" } });
    expect(failed).toEqual({ type: "error", error: { message: "live/hidden cannot do that." } });
  });
});

const FIELDS = OPERATIONS.filter(({ face }) => face === "GraphQL").map((operation) => [operation.name, operation] as const);

describe("GraphQL", () => {
  it.each(FIELDS.filter(([, { delivery }]) => delivery === "whole"))("%s names the model as it was called", async (name, operation) => {
    const { kind } = operation;
    const ask = async () => (await operation.send(asking, fieldsOf(operation, `by-alias-${kind}`))).text();
    app.upstream.replyNext(goodReply(operation, NAMES));
    const answered = await ask();
    app.upstream.replyNext(errorReply(400, `No ${SECRET}.`));
    const refused = await ask();

    expect(answered).not.toContain(SECRET);
    expect(JSON.parse(answered)).toMatchObject({
      data: { [name.replace("Mutation.", "")]: { receipt: { modelId: `acme/hidden-${kind}`, modelUsedId: `acme/hidden-${kind}` } } },
    });
    expect(answered).not.toContain('"errors"');
    expect(refused).toContain(`No acme/hidden-${kind}.`);
  });

  it.each(FIELDS.filter(([, { delivery }]) => delivery === "stream"))("%s names the model as it was called", async (_name, operation) => {
    const id = owned[operation.kind];
    app.upstream.replyNext(goodReply(operation, NAMES));
    const text = await (await operation.send(asking, { model: id })).text();

    expect(text).not.toContain(SECRET);
    expect(text).toContain(JSON.stringify({ modelId: id, modelUsedId: id }).slice(1, -1));
  });

  it("names the model of a generation job", async () => {
    app.upstream.replyAlways(createFakeVideos({ clip: clip, pollAfterMs: 1 }).reply);
    const started = await execute(asking, StartVideoDocument, { input: { model: "by-alias-video", prompt: "A fox" } });
    const { restId: id } = ok(started).startVideo.job;
    const look = async () => JSON.stringify(await execute(asking, GenerationJobByIdDocument, { id }));
    await expect.poll(look).toContain("SUCCEEDED");
    app.upstream.replyAlways(null);

    expect(JSON.stringify(started) + (await look())).not.toContain(SECRET);
    expect(await look()).toContain('"modelUsedId":"acme/hidden-video"');
  });
});
