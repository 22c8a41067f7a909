/**
 * Addresses that a caller writes for an upstream to fetch pass the outbound guard in every place and kind of request;
 * texts that are never fetched are left alone: schemas, tools, metadata and plain text
 * (docs/spec/outbound.md#named-addresses).
 */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { execute } from "../graphql/client.js";
import { CreateSpeechDocument, GenerateMusicDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { type FakeRealtime, startFakeRealtime } from "../support/fake-realtime.js";
import { picture } from "../support/pictures.js";
import { recording } from "../support/recordings.js";
import { errorReply } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";
import { connectRealtime } from "./realtime-client.js";

const INSIDE = "http://169.254.169.254/latest";

let app: TestApp;
let client: Client;
let live: FakeRealtime;

beforeAll(async () => {
  live = await startFakeRealtime();
  const prices = { promptTextPrice: "0.000001", completionTextPrice: "0.000002" };
  app = await createTestApp({
    upstreams: [{ id: "live", wireFormat: "openai", baseUrl: live.baseUrl, apiKey: "live-key" }],
    models: [
      { id: "live/voice", modality: "realtime", upstream: "live", upstreamModel: "voice", title: "Voice", prices },
      {
        ...{ id: "acme/hosted", modality: "text", upstream: "acme", upstreamModel: "hosted", title: "Hosted", prices },
        pricedFields: { "tools.type": { mcp: { perRequest: "0.01" } } },
      },
    ],
  });
  client = createClient(app.baseUrl, app.key);
});
afterAll(async () => {
  await app.close();
  await live.close();
});
beforeEach(() => app.upstream.replyAlways(errorReply(418)));

type Fields = Readonly<Record<string, unknown>>;
type Send = (fields: Fields) => Promise<{ readonly refusedAt: unknown }>;

const post =
  (path: string, base: Fields): Send =>
  async (fields) => {
    const answer = await client.post(path, { ...base, ...fields });
    return { refusedAt: answer.status === 400 ? answer.json<{ error: { param: string } }>().error.param : null };
  };

const form =
  (path: string, base: Fields, files: () => Promise<Readonly<Record<string, Uint8Array>>>): Send =>
  async (fields) => {
    const body = new FormData();
    for (const [name, value] of Object.entries({ ...base, ...fields })) body.append(name, String(value));
    for (const [name, bytes] of Object.entries(await files())) body.append(name, new Blob([new Uint8Array(bytes)]), name);
    const answer = await fetch(app.baseUrl + path, { method: "POST", headers: { authorization: `Bearer ${app.key}` }, body });
    const told = (await answer.json()) as { error?: { param: string } };
    return { refusedAt: answer.status === 400 ? told.error?.param : null };
  };

const graphql =
  (kind: "speech" | "music"): Send =>
  async (extra) => {
    const { errors } =
      kind === "speech"
        ? await execute(app, CreateSpeechDocument, { input: { model: "acme/speech", input: "a", extra } })
        : await execute(app, GenerateMusicDocument, { input: { model: "acme/music", prompt: "a", extra } });
    const { code, param } = errors?.[0]?.extensions ?? {};
    return { refusedAt: code === "BAD_REQUEST" ? param : null };
  };

const MESSAGES = { model: "acme/chat", messages: [{ role: "user", content: "Hello" }] };
const message = (fields: Fields) => ({ messages: [{ role: "user", content: "Hello", ...fields }] });
const part = (fields: Fields) => message({ content: [{ type: "text", text: "Hello", ...fields }] });

const CHAT = () => post("/v1/chat/completions", MESSAGES);
const HOSTED = () => post("/v1/responses", { model: "acme/hosted", input: "Hello" });

const REFUSED: readonly (readonly [what: string, send: () => Send, fields: Fields, at: string])[] = [
  ["an unknown field of a chat", CHAT, { documents: [{ source: { url: INSIDE } }] }, "documents.0.source.url"],
  ["a list of them", CHAT, { attachments: ["data:text/plain;base64,YQ==", INSIDE] }, "attachments.1"],
  ["an unknown field of a message", CHAT, message({ attachments: [{ link: INSIDE }] }), "messages.0.attachments.0.link"],
  ["an unknown field of a part", CHAT, part({ poster: INSIDE }), "messages.0.content.0.poster"],
  ["parameters that are no tool's", CHAT, { parameters: { image: INSIDE } }, "parameters.image"],
  ["a tool that a vendor runs", HOSTED, { tools: [{ type: "mcp", server_url: INSIDE }] }, "tools.0.server_url"],
  ["a picture", () => post("/v1/images/generations", { prompt: "a" }), { control_image: INSIDE }, "control_image"],
  ["a picture's list", () => post("/v1/images/generations", { prompt: "a" }), { controls: [{ map: INSIDE }] }, "controls.0.map"],
  [
    "an edit",
    () => form("/v1/images/edits", { prompt: "a" }, async () => ({ image: await picture() })),
    { style_image: INSIDE },
    "style_image",
  ],
  ["a film", () => post("/v1/videos", { prompt: "a" }), { last_frame: { uri: INSIDE } }, "last_frame.uri"],
  ["speech", () => post("/v1/audio/speech", { input: "a" }), { reference: INSIDE }, "reference"],
  ["speech through GraphQL", () => graphql("speech"), { reference: INSIDE }, "extra.reference"],
  ["music through GraphQL", () => graphql("music"), { melody: INSIDE }, "extra.melody"],
  [
    "a transcription",
    () => form("/v1/audio/transcriptions", {}, async () => ({ file: recording(0.1) })),
    { vocabulary: INSIDE },
    "vocabulary",
  ],
  ["embeddings", () => post("/v1/embeddings", { input: "a" }), { context: { page: INSIDE } }, "context.page"],
  ["a moderation", () => post("/v1/moderations", { input: "a" }), { attachment: INSIDE }, "attachment"],
];

const TOOL = { type: "function", function: { name: "f", parameters: { $schema: INSIDE, properties: { a: { default: INSIDE } } } } };
const PASSED: readonly (readonly [what: string, send: () => Send, fields: Fields])[] = [
  ["a message", CHAT, message({ content: INSIDE })],
  ["a part", CHAT, part({ text: INSIDE })],
  ["the schema of a tool", CHAT, { tools: [TOOL] }],
  ["the schema of the answer", CHAT, { response_format: { type: "json_schema", json_schema: { name: "a", schema: { $id: INSIDE } } } }],
  ["a function", CHAT, { functions: [{ name: "f", parameters: { $ref: INSIDE } }] }],
  ["the choice of a tool", CHAT, { tool_choice: { type: "function", function: { name: INSIDE } } }],
  ["metadata", CHAT, { metadata: { ticket: INSIDE } }],
  ["a stop", CHAT, { stop: [INSIDE] }],
  ["the user", CHAT, { user: INSIDE }],
  ["what an answer cited", CHAT, message({ role: "assistant", annotations: [{ type: "url_citation", url_citation: { url: INSIDE } }] })],
  ["the prompt of a picture", () => post("/v1/images/generations", {}), { prompt: INSIDE }],
  ["a text for speech", () => post("/v1/audio/speech", {}), { input: INSIDE }],
  ["a text for embeddings", () => post("/v1/embeddings", {}), { input: [INSIDE] }],
];

describe("an address inside of the network", () => {
  it.each(REFUSED)("is refused in %s", async (_what, send, fields, at) => {
    const before = app.upstream.requests.length;

    expect(await send()(fields)).toEqual({ refusedAt: at });
    expect(app.upstream.requests.length).toBe(before);
  });

  it.each(PASSED)("passes as plain text in %s", async (_what, send, fields) => {
    const before = app.upstream.requests.length;

    expect(await send()(fields)).toEqual({ refusedAt: null });
    expect(app.upstream.requests.length).toBe(before + 1);
  });
});

const tool = (parameters: Fields) => ({ tools: [{ type: "function", name: "f", parameters: { type: "object", ...parameters } }] });

describe("an address in a realtime session", () => {
  it.each<[string, Fields]>([
    ["the schema's own", { session: tool({ $schema: "http://json-schema.org/draft-07/schema#", properties: {} }) }],
    ["a newer schema's own", { session: tool({ $schema: "https://json-schema.org/draft/2020-12/schema", properties: {} }) }],
    ["a default", { session: tool({ properties: { v: { default: "http://localhost/a" } } }) }],
    ["metadata", { type: "response.create", response: { metadata: { ref: "http://localhost/ticket/1" } } }],
    ["the choice of a tool", { session: { tool_choice: { type: "function", name: "http://localhost/" } } }],
  ])("is passed on as %s", async (_what, event) => {
    const sent = { type: "session.update", ...event };
    const caller = await connectRealtime(app, "?model=live/voice");
    const far = await live.nextSession();

    caller.send(sent);

    expect(await far.next(sent.type)).toMatchObject(sent);
    caller.socket.close();
    await far.closed;
  });

  it.each<[string, Fields, string]>([
    [
      "a picture",
      { type: "conversation.item.create", item: { type: "message", role: "user", content: [{ type: "input_image", image_url: INSIDE }] } },
      "item.content.0.image_url",
    ],
    ["an unknown field", { type: "session.update", session: { avatar: { url: INSIDE } } }, "session.avatar.url"],
    ["an unknown field of the event", { type: "response.create", attachments: [INSIDE] }, "attachments.0"],
  ])("is refused as %s", async (_what, event, param) => {
    const caller = await connectRealtime(app, "?model=live/voice");
    const far = await live.nextSession();

    caller.send(event);

    expect(await caller.next("error")).toMatchObject({ error: { code: "BAD_REQUEST", param } });
    expect(far.received).toEqual([]);
    caller.socket.close();
    await far.closed;
  });
});
