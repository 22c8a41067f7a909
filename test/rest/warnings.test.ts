/** X-Warnings: fields without an effect on an answer that is good all the same. Bounded for any input of a caller. */

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import { FIELD_NAMES, FORMAT_FIELDS, misspeltChatFields, RESPONSE_NAMES } from "../../src/services/catalog/field-names.js";
import type { Modality } from "../../src/services/catalog/modality.js";
import { chatCompletionInput } from "../../src/services/generation/chat/plan.js";
import { responseInput } from "../../src/services/generation/chat/responses.js";
import { embeddingsInput } from "../../src/services/generation/embeddings.js";
import { imageEditBody, imageEditForm, imageGenerationInput } from "../../src/services/generation/media/images-input.js";
import { musicInput, speechInput } from "../../src/services/generation/media/speech.js";
import { transcriptionForm, transcriptionInput } from "../../src/services/generation/media/transcriptions.js";
import { videoBody } from "../../src/services/generation/media/videos-body.js";
import { moderationsInput } from "../../src/services/generation/moderations.js";
import { joinWarnings } from "../../src/services/generation/receipt.js";
import { execute, ok } from "../graphql/client.js";
import { ChatDocument } from "../operations/generated/graphql.js";
import { createTestApp, type TestApp } from "../support/app.js";
import { chatChunks, wireUsage } from "../support/openai-bodies.js";
import { recording } from "../support/recordings.js";
import { sse } from "../support/upstream-replies.js";
import { type Client, createClient } from "./client.js";

let app: TestApp;
let client: Client;

beforeAll(async () => {
  app = await createTestApp();
  client = createClient(app.baseUrl, app.key);
});
afterAll(() => app.close());

type Fields = Record<string, unknown>;

const CHAT = { model: "acme/chat", messages: [{ role: "user", content: "Hi" }] };

function lastBody(): Fields {
  return app.upstream.requests.at(-1)?.json as Fields;
}

describe("a field that is one letter off", () => {
  it.each<[string, string, Fields, string]>([
    ["a chat", "/v1/chat/completions", { ...CHAT, temprature: 1 }, "temprature: unknown; did you mean temperature?"],
    ["a chat", "/v1/chat/completions", { ...CHAT, max_token: 9 }, "max_token: unknown; did you mean max_tokens?"],
    ["a chat", "/v1/chat/completions", { ...CHAT, tool_choise: "auto" }, "tool_choise: unknown; did you mean tool_choice?"],
    ["a chat", "/v1/chat/completions", { ...CHAT, strem: true }, "strem: unknown; did you mean stream?"],
    ["a chat", "/v1/chat/completions", { ...CHAT, maxTokens: 9 }, "maxTokens: unknown; did you mean max_tokens?"],
    ["a chat", "/v1/chat/completions", { ...CHAT, temperatrue: 1 }, "temperatrue: unknown; did you mean temperature?"],
    ["plain text", "/text", { ...CHAT, temprature: 1 }, "temprature: unknown; did you mean temperature?"],
    [
      "a response",
      "/v1/responses",
      { model: "acme/chat", input: "Hi", max_output_token: 9 },
      "max_output_token: unknown; did you mean max_output_tokens?",
    ],
    [
      "embeddings",
      "/v1/embeddings",
      { model: "sandbox/embedding", input: "Hi", dimension: 9 },
      "dimension: unknown; did you mean dimensions?",
    ],
    [
      "pictures",
      "/v1/images/generations",
      { model: "sandbox/image", prompt: "A", respons_format: "url" },
      "respons_format: unknown; did you mean response_format?",
    ],
    ["speech", "/v1/audio/speech", { model: "sandbox/speech", input: "Hi", voise: "nova" }, "voise: unknown; did you mean voice?"],
  ])("is reported to a caller of %s over %s", async (_what, path, body, warning) => {
    const answer = await client.post(path, body);

    expect([answer.status, answer.headers.get("x-warnings")]).toEqual([200, expect.stringContaining(warning)]);
  });

  it("is reported in a form, too", async () => {
    const form = new FormData();
    form.append("model", "sandbox/transcription");
    form.append("langage", "en");
    form.append("file", new Blob([new Uint8Array(recording(0.1))]), "a.wav");
    const response = await fetch(`${app.baseUrl}/v1/audio/transcriptions`, {
      method: "POST",
      headers: { Authorization: `Bearer ${app.key}` },
      body: form,
    });

    expect([response.status, response.headers.get("x-warnings")]).toEqual([200, "langage: unknown; did you mean language?"]);
  });

  it("is passed on to the upstream, and reported at the head of a stream", async () => {
    app.upstream.replyNext(sse(chatChunks(["a"], { usage: wireUsage(1, 1) })));
    const answer = await client.post("/v1/chat/completions", { ...CHAT, stream: true, temprature: 1 });

    expect(answer.headers.get("x-warnings")).toBe("temprature: unknown; did you mean temperature?");
    expect(lastBody()).toMatchObject({ temprature: 1 });
  });

  it("is reported to callers of GraphQL in the receipt", async () => {
    const answer = await execute(app, ChatDocument, {
      input: { model: "acme/chat", messages: [{ role: "USER", content: "Hi" }], extra: { temprature: 1 } },
    });

    expect(ok(answer).createChatCompletion.receipt.warnings).toEqual(["temprature: unknown; did you mean temperature?"]);
  });

  it("is nothing that a vendor reads, and nothing far from everything", async () => {
    const answer = await client.post("/v1/chat/completions", { ...CHAT, top_k: 1, top_a: 0, min_p: 0, vendor_knob: 7, user: "a", n: 1 });

    expect([answer.status, answer.headers.get("x-warnings")]).toEqual([200, null]);
  });

  it("costs no more for more of them, and breaks no header", async () => {
    const hostile = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`temperatur${String.fromCharCode(0x100 + index)}`, 1]));
    const answer = await client.post("/v1/chat/completions", {
      ...CHAT,
      "strea\r\nX-Cost": 1,
      "m\u0001del": 1,
      ...hostile,
      [`to${"o".repeat(1_000)}ls`]: 1,
    });

    expect([answer.status, answer.headers.get("x-cost")]).toEqual([200, expect.stringMatching(/^0\.0/)]);
    const warnings = answer.headers.get("x-warnings") ?? "";
    expect(warnings).toContain("m?del: unknown; did you mean model?");
    expect(warnings).toMatch(/^[\x20-\x7e]{1,2100}$/);
    expect(misspeltChatFields(hostile)).toHaveLength(8);
  });
});

it("is bounded as a whole, and states how many warnings were left out", () => {
  const many = joinWarnings(
    Array.from({ length: 50 }, (_, index) => `${index}: ${"x".repeat(1_000)}`),
    ["a"],
    ["a"],
  );

  expect(many.join("; ").length).toBeLessThan(2_100);
  expect(many.at(-1)).toMatch(/^There are \d+ more warnings\.$/);
  expect(joinWarnings(["a"], ["a", "b"])).toEqual(["a", "b"]);
});

it("knows every field of every schema", () => {
  const schemas: [typeof RESPONSE_NAMES, z.ZodObject][] = [
    [FIELD_NAMES.text, chatCompletionInput],
    [RESPONSE_NAMES, responseInput],
    [FIELD_NAMES.embedding, embeddingsInput],
    ...[imageGenerationInput, imageEditBody, imageEditForm].map(
      (schema) => [FIELD_NAMES.image, schema] as [typeof RESPONSE_NAMES, z.ZodObject],
    ),
    [FIELD_NAMES.video, videoBody],
    [FIELD_NAMES.speech, speechInput],
    [FIELD_NAMES.music, musicInput],
    [FIELD_NAMES.transcription, transcriptionInput],
    [FIELD_NAMES.transcription, transcriptionForm],
    [FIELD_NAMES.moderation, moderationsInput],
  ];
  for (const [{ exact }, { shape }] of schemas) expect(Object.keys(shape).filter((name) => !exact.has(name))).toEqual([]);
});

it.each<[Modality, z.ZodObject[]]>([
  ["text", [chatCompletionInput]],
  ["embedding", [embeddingsInput]],
  ["image", [imageGenerationInput, imageEditBody, imageEditForm]],
  ["video", [videoBody]],
  ["speech", [speechInput]],
  ["music", [musicInput]],
  ["transcription", [transcriptionInput, transcriptionForm]],
  ["moderation", [moderationsInput]],
])("has every field of the schemas of %s among those of the format, which every vendor is sent", (modality, schemas) => {
  // Of JSON alone: it becomes `image`.
  const known = [...FORMAT_FIELDS[modality].split(" "), "images"];

  for (const { shape } of schemas) expect(Object.keys(shape).filter((name) => !known.includes(name))).toEqual([]);
});
