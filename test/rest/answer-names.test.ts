/**
 * What generations answer, on every route that generates and every GraphQL field that does: the model's name is the id that was called,
 * whatever the upstream calls it, in answers and in errors; and the headers that tell of a generation are on all of them.
 */
import { getNamedType, isInterfaceType, isObjectType } from "graphql";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createSchema } from "../../src/graphql/schema.js";
import { recordRoutes } from "../../src/rest/router.js";
import type { Database } from "../../src/store/database.js";
import { execute, post as postDocument, subscribeSse, type Target } from "../graphql/client.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { createMember, type Member, registerModel } from "../support/community-models.js";
import { startFakeRealtime } from "../support/fake-realtime.js";
import { createFakeVideos, readClip } from "../support/fake-videos.js";
import { findBrokenInvariants } from "../support/invariants.js";
import { chatChunks, chatCompletion } from "../support/openai-bodies.js";
import { imagesObject, picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { responseObject, responseUsage, textItem } from "../support/responses-bodies.js";
import { errorReply, event, json, type Reply, raw, sse } from "../support/upstream-replies.js";
import { connectRealtime } from "./realtime-client.js";

/** What upstreams call their models, and themselves. */
const SECRET = "Secret-9b.instruct";
const NAMES = { model: SECRET, provider: SECRET };
const MODALITIES = ["text", "image", "video", "speech", "music", "transcription", "embedding", "moderation"] as const;
type Kind = (typeof MODALITIES)[number] | "responses";

let app: TestApp;
let me: Member;
let target: Target;
/** Of the operator, called by an alias; and of an account. */
let owned: Partial<Record<Kind, string>>;
let replies: Record<Kind, () => Reply>;
let counter = 0;
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
  target = { baseUrl: app.baseUrl, wsUrl: app.wsUrl, key: me.key };
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
  const [painted, clip] = [await picture(), await readClip(1)];
  const sound = raw(recording(1), { headers: { "content-type": "audio/wav" } });
  const verdict = { flagged: false, categories: { hate: false }, category_scores: { hate: 0.1 } };
  replies = {
    text: () => json({ ...chatCompletion({ content: "Hello." }), ...NAMES }),
    responses: () => json(responseObject([textItem("Hello.")], { ...NAMES, usage: responseUsage({ input: 5, output: 2 }) })),
    image: () => json({ ...imagesObject([painted]), ...NAMES }),
    video: () => raw(clip, { headers: { "content-type": "video/mp4" } }),
    speech: () => sound,
    music: () => sound,
    transcription: () => json({ text: "Hello.", ...NAMES }),
    embedding: () =>
      json({
        object: "list",
        data: [{ object: "embedding", index: 0, embedding: [1, 2] }],
        usage: { prompt_tokens: 1, total_tokens: 1 },
        ...NAMES,
      }),
    moderation: () => json({ id: "modr-1", results: [verdict], ...NAMES }),
  };
});
afterAll(async () => {
  const { pool } = Reflect.get(app.services.usage, "database") as Database;
  const broken = await findBrokenInvariants(pool, { isIdle: true });
  await app.close();
  await realtime.close();
  expect(broken).toEqual({});
});

/** What nobody has asked for. */
function words(): string {
  counter += 1;
  return `piece ${counter}`;
}

function form(fields: Record<string, string>, name: string, file: Uint8Array): FormData {
  const data = new FormData();
  for (const [field, value] of Object.entries(fields)) data.set(field, value);
  data.set(name, new Blob([file as Uint8Array<ArrayBuffer>]), "file.wav");
  return data;
}

function ask(method: string, path: string, body?: unknown): Promise<Response> {
  const isForm = body instanceof FormData;
  return fetch(app.baseUrl + path, {
    method,
    headers: { authorization: `Bearer ${me.key}`, ...(body !== undefined && !isForm && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  });
}

const messages = [{ role: "user", content: "Hi" }];

/** By operation: which kind of model it calls, and how. */
const ROUTES: Readonly<Record<string, { readonly kind: Kind; readonly send: (model: string) => Promise<Response> }>> = {
  "POST /v1/chat/completions": { kind: "text", send: (model) => ask("POST", "/v1/chat/completions", { model, messages }) },
  "POST /v1/responses": { kind: "text", send: (model) => ask("POST", "/v1/responses", { model, input: "Hi" }) },
  "POST /text": { kind: "text", send: (model) => ask("POST", "/text", { model, messages }) },
  "GET /text/{prompt}": { kind: "text", send: (model) => ask("GET", `/text/${words()}?model=${encodeURIComponent(model)}`) },
  "POST /v1/images/generations": { kind: "image", send: (model) => ask("POST", "/v1/images/generations", { model, prompt: "A fox" }) },
  "POST /v1/images/edits": {
    kind: "image",
    send: async (model) => ask("POST", "/v1/images/edits", form({ model, prompt: "A fox" }, "image", await picture())),
  },
  "GET /image/{prompt}": { kind: "image", send: (model) => ask("GET", `/image/${words()}?model=${encodeURIComponent(model)}`) },
  "GET /video/{prompt}": { kind: "video", send: (model) => ask("GET", `/video/${words()}?model=${encodeURIComponent(model)}`) },
  "POST /v1/videos": { kind: "video", send: (model) => ask("POST", "/v1/videos", { model, prompt: "A fox" }) },
  "POST /v1/audio/speech": { kind: "speech", send: (model) => ask("POST", "/v1/audio/speech", { model, input: "Hi" }) },
  "GET /audio/{text}": { kind: "speech", send: (model) => ask("GET", `/audio/${words()}?model=${encodeURIComponent(model)}`) },
  "POST /v1/audio/transcriptions": {
    kind: "transcription",
    send: (model) => ask("POST", "/v1/audio/transcriptions", form({ model, response_format: "verbose_json" }, "file", recording(1))),
  },
  "POST /v1/embeddings": { kind: "embedding", send: (model) => ask("POST", "/v1/embeddings", { model, input: "Hi" }) },
  "POST /v1/moderations": { kind: "moderation", send: (model) => ask("POST", "/v1/moderations", { model, input: "Hi" }) },
};
/** Operators' videos are jobs of the upstream's. */
const isJob = (kind: Kind, isOwned: boolean) => kind === "video" && !isOwned;

const told = async (answer: Response) => ({
  status: answer.status,
  head: JSON.stringify([...answer.headers]),
  body: Buffer.from(await answer.arrayBuffer()).toString("latin1"),
});

const CALLED = Object.entries(ROUTES).flatMap(([operation, route]) => {
  const callers: readonly (readonly [string, Kind, boolean])[] = [
    [operation, route.kind, false],
    ...(route.kind === "moderation" ? [] : ([[operation, route.kind, true]] as const)),
    ...(route.kind === "text" ? ([[operation, "responses", true]] as const) : []),
  ];
  return callers;
});

describe("REST", () => {
  it("has no generation that is not asked here", () => {
    const generating = recordRoutes().flatMap(({ path, methods }) =>
      Object.entries(methods)
        .filter(([method, { isGeneration }]) => isGeneration || (method === "GET" && /^\/(?:text|image|video|audio)\/\*/.test(path)))
        .map(([method]) => `${method} ${path.replace(/\*(\w+)/, "{$1}")}`),
    );

    expect(generating.sort()).toEqual(Object.keys(ROUTES).sort());
  });

  it.each(CALLED)(
    "%s names the model as it was called (%s, of an account: %s), and tells of the generation",
    async (operation, kind, isOwned) => {
      const id = (isOwned ? owned[kind] : `acme/hidden-${kind}`) ?? "";
      const videos = createFakeVideos({ clip: await readClip(1), pollAfterMs: 1 });
      app.upstream.replyAlways(isJob(kind, isOwned) ? videos.reply : replies[kind]());
      const answer = await (ROUTES[operation]?.send(isOwned ? id : `by-alias-${kind}`) ?? Promise.reject(new Error(operation)));
      const { status, head, body } = await told(answer);
      app.upstream.replyAlways(null);

      expect([status, body.slice(0, 200)]).toEqual([200, expect.anything()]);
      expect(head + body).not.toContain(SECRET);
      if (body.startsWith("{") && body.includes('"model"')) expect(JSON.parse(body)).toMatchObject({ model: id });
      expect(answer.headers.get("x-cache")).toBe("MISS");
      expect(answer.headers.get("x-generation-id")).toMatch(/^[0-9a-f-]{36}$/);
      // A job is answered before anybody has begun to work on it.
      if (operation === "POST /v1/videos") return;
      expect(answer.headers.get("x-model-used")).toBe(id);
      expect(answer.headers.get("server-timing")).toMatch(/^gateway;dur=[\d.]+, upstream;dur=[\d.]+$/);
    },
  );

  it.each(CALLED.filter(([operation]) => operation !== "POST /v1/videos"))(
    "%s tells an upstream's refusal without its name (%s, %s)",
    async (operation, kind, isOwned) => {
      const id = (isOwned ? owned[kind] : `acme/hidden-${kind}`) ?? "";
      app.upstream.replyAlways(errorReply(400, `The model '${SECRET.toLowerCase()}' is not for you; ask models/${SECRET}.`));
      const { status, head, body } = await told(await (ROUTES[operation]?.send(id) ?? Promise.reject(new Error(operation))));
      app.upstream.replyAlways(null);

      expect(status).toBe(400);
      expect((head + body).toLowerCase()).not.toContain(SECRET.toLowerCase());
      expect(body).toContain(`The model '${id}' is not for you; ask models/${id}.`);
    },
  );

  it("names streams, whatever their upstream writes, kept answers and repeated ones", async () => {
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
    app.upstream.replyNext(named(), named(), replies.text());
    const responses = await (await ask("POST", "/v1/responses", { model: owned.text, input: "Hi", stream: true })).text();
    const kept = `/text/${words()}?model=by-alias-text&stream=true`;
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

  it("tells a refusal in the middle of a stream without the upstream's name", async () => {
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

/** By field: what is asked, and which kind of model answers. */
const FIELDS: Readonly<Record<string, { readonly kind: Kind; readonly selection: string; readonly input: (model: string) => object }>> = {
  createChatCompletion: {
    kind: "text",
    selection: "completion { model } raw",
    input: (model) => ({ model, messages: [{ role: "USER", content: "Hi" }] }),
  },
  createResponse: { kind: "text", selection: "response { raw }", input: (model) => ({ model, input: "Hi" }) },
  generateImage: { kind: "image", selection: "images { contentType }", input: (model) => ({ model, prompt: "A fox" }) },
  editImage: { kind: "image", selection: "images { contentType }", input: (model) => ({ model, prompt: "A fox", images: [PIXEL] }) },
  createSpeech: { kind: "speech", selection: "contentType", input: (model) => ({ model, input: "Hi" }) },
  generateMusic: { kind: "music", selection: "contentType", input: (model) => ({ model, prompt: "A tune" }) },
  createTranscription: {
    kind: "transcription",
    selection: "text formatted",
    input: (model) => ({ model, file: null, responseFormat: "VERBOSE_JSON" }),
  },
  createEmbeddings: { kind: "embedding", selection: "embeddings { index }", input: (model) => ({ model, input: ["Hi"] }) },
  createModeration: { kind: "moderation", selection: "id", input: (model) => ({ model, input: "Hi" }) },
};
const PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const RECEIPT = "receipt { model modelUsed warnings }";

function documentOf(name: string, selection: string): string {
  return `mutation($input: ${name[0]?.toUpperCase()}${name.slice(1)}Input!) { ${name}(input: $input) { ${selection} ${RECEIPT} } }`;
}

async function mutate(name: string, model: string): Promise<string> {
  const field = FIELDS[name];
  if (!field) throw new Error(name);
  const document = { query: documentOf(name, field.selection), variables: { input: field.input(model) } };
  if (name !== "createTranscription") return (await postDocument(target, document)).text();
  const data = new FormData();
  data.set("operations", JSON.stringify(document));
  data.set("map", JSON.stringify({ 0: ["variables.input.file"] }));
  data.set("0", new Blob([recording(1) as Uint8Array<ArrayBuffer>]), "a.wav");
  const headers = { authorization: `Bearer ${me.key}`, "x-graphql-yoga-csrf": "1" };
  return (await fetch(`${app.baseUrl}/graphql`, { method: "POST", headers, body: data })).text();
}

describe("GraphQL", () => {
  const schema = createSchema();

  it("has no generation that is not asked here", () => {
    const generating = [schema.getMutationType(), schema.getSubscriptionType()].flatMap((root) =>
      Object.values(root?.getFields() ?? {}).filter(({ type }) => {
        const payload = getNamedType(type);
        const types = isInterfaceType(payload) ? schema.getPossibleTypes(payload) : [payload];
        return types.some((one) => isObjectType(one) && "receipt" in one.getFields() && one.name !== "Generation");
      }),
    );

    expect(generating.map(({ name }) => name).sort()).toEqual([...Object.keys(FIELDS), "chatCompletion", "response", "speech"].sort());
  });

  it.each(Object.entries(FIELDS))("%s names the model as it was called", async (name, { kind }) => {
    app.upstream.replyNext(replies[kind]());
    const answered = await mutate(name, `by-alias-${kind}`);
    app.upstream.replyNext(errorReply(400, `No ${SECRET}.`));
    const refused = await mutate(name, `by-alias-${kind}`);

    expect(answered).not.toContain(SECRET);
    expect(JSON.parse(answered)).toMatchObject({
      data: { [name]: { receipt: { model: `acme/hidden-${kind}`, modelUsed: `acme/hidden-${kind}` } } },
    });
    expect(answered).not.toContain('"errors"');
    expect(refused).toContain(`No acme/hidden-${kind}.`);
  });

  it("names what subscriptions tell", async () => {
    const named = () => sse(chatChunks(["Hello"]).map((chunk) => ({ ...chunk, ...NAMES })));
    const documents = [
      `subscription { chatCompletion(input: { model: "${owned.text}", messages: [{ role: USER, content: "Hi" }] }) {
        ... on ChatCompletionDelta { raw } ... on ChatCompletionEnd { receipt { model modelUsed } } } }`,
      `subscription { response(input: { model: "${owned.text}", input: "Hi" }) { event receipt { model modelUsed } } }`,
      `subscription { speech(input: { model: "${owned.speech}", input: "Hi" }) {
        ... on SpeechChunk { contentType } ... on SpeechEnd { receipt { model modelUsed } } } }`,
    ];
    for (const [index, query] of documents.entries()) {
      app.upstream.replyNext(index < 2 ? named() : replies.speech());
      const text = JSON.stringify(await subscribeSse(target, { query }).rest());

      const id = index < 2 ? owned.text : owned.speech;
      expect(text).not.toContain(SECRET);
      expect(text).toContain(JSON.stringify({ model: id, modelUsed: id }).slice(1, -1));
    }
  });

  it("names the model of a generation job", async () => {
    app.upstream.replyAlways(createFakeVideos({ clip: await readClip(1), pollAfterMs: 1 }).reply);
    const started = JSON.stringify(
      await execute(target, 'mutation { generateVideo(input: { model: "by-alias-video", prompt: "A fox" }) { id model } }'),
    );
    const { id } = (JSON.parse(started) as { data: { generateVideo: { id: string } } }).data.generateVideo;
    const look = async () =>
      JSON.stringify(await execute(target, `{ generation(id: "${id}") { status model receipt { model modelUsed } } }`));
    await expect.poll(look).toContain("SUCCEEDED");
    app.upstream.replyAlways(null);

    expect(started + (await look())).not.toContain(SECRET);
    expect(await look()).toContain('"modelUsed":"acme/hidden-video"');
  });
});
