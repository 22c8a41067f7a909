/**
 * Every operation that generates, on every face: its request, and the outcome that its caller sees. A test that holds
 * for all of them walks this table; `test/contract/operations.test.ts` checks that no route and no field is missing.
 */

import type { TypedDocumentNode } from "@graphql-typed-document-node/core";
import { WebSocket } from "ws";
import { authorization, textOf } from "../graphql/client.js";
import {
  ChatDocument,
  CreateEmbeddingsDocument,
  CreateModerationDocument,
  CreateResponseDocument,
  CreateSpeechDocument,
  CreateTranscriptionDocument,
  EditImageDocument,
  GenerateImageDocument,
  GenerateMusicDocument,
  RerankDocument,
  StartImageDocument,
  StartMusicDocument,
  StartVideoDocument,
  StreamChatDocument,
  StreamResponseDocument,
  StreamSpeechDocument,
  VaryImageDocument,
} from "../operations/generated/graphql.js";
import { connectRealtime, RealtimeRefused } from "../rest/realtime-client.js";
import { followJob, type GenerationOutcome, readGraphQLOutcome, readRestOutcome, toRefusedOutcome } from "./generation-outcome.js";
import { picture } from "./pictures.js";
import { recording } from "./recordings.js";

/** Which kind of model answers. */
export const KINDS = [
  "text",
  "image",
  "video",
  "speech",
  "music",
  "transcription",
  "embedding",
  "rerank",
  "moderation",
  "realtime",
] as const;
export type Kind = (typeof KINDS)[number];

/**
 * Whole: the charge precedes the answer. Stream: pieces as they come. Job: fetched later, by any caller of the account.
 * Session: both sides send.
 */
export type Delivery = "whole" | "stream" | "job" | "session";

/** Who asks, and where. */
export interface Asking {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly key: string;
}

export type Fields = Readonly<Record<string, unknown>>;
export type RequestHeaders = Readonly<Record<string, string>>;

export interface Operation {
  /** Of the test that walks the table. */
  readonly name: string;
  /** As the contracts name it, such as `POST /text` or `Mutation.createSpeech`; several operations may be of one. */
  readonly contract: string;
  readonly face: "REST" | "GraphQL";
  readonly kind: Kind;
  readonly delivery: Delivery;
  /** An Idempotency-Key means something to it. */
  readonly isRepeatable: boolean;
  /** Sends these fields beside the required ones; over HTTP, and so not for a session. */
  readonly send: (asking: Asking, fields: Fields, headers?: RequestHeaders) => Promise<Response>;
  /** The same to its end: of a stream its last piece, of a job what became of it, of a session its close. */
  readonly ask: (asking: Asking, fields: Fields, headers?: RequestHeaders) => Promise<GenerationOutcome>;
}

export const PROMPT = "fox 0000";
let prompts = 0;

/** A prompt that is not cached; always of one length, because some models are priced by the character. */
function newPrompt(): string {
  prompts += 1;
  return `fox ${String(prompts).padStart(4, "0")}`;
}

const messages = [{ role: "user", content: PROMPT }];
const content = { role: "user", parts: [{ text: PROMPT }] };

function toForm(fields: Fields, files: Readonly<Record<string, Uint8Array>>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, typeof value === "string" ? value : JSON.stringify(value));
  for (const [name, bytes] of Object.entries(files)) form.append(name, new Blob([new Uint8Array(bytes)]), "file.wav");
  return form;
}

function toQuery(fields: Fields): string {
  return `?${new URLSearchParams(Object.entries(fields).map(([field, value]): [string, string] => [field, String(value)]))}`;
}

type RestShape = Pick<Operation, "kind"> & { readonly delivery?: Delivery; readonly name?: string };

/** A route that takes a body: JSON, or the form that is made of the fields. */
function posted(
  path: string,
  { kind, delivery = "whole", name = `POST ${path}` }: RestShape,
  body: () => Fields,
  toBody: (fields: Fields) => FormData | string | Promise<FormData> = JSON.stringify,
): Operation {
  return rest(`POST ${path}`, { kind, delivery, name, isRepeatable: true }, async ({ baseUrl, key }, fields, headers) => {
    const content = await toBody({ ...body(), ...fields });
    return fetch(baseUrl + path, {
      method: "POST",
      headers: { ...authorization({ key }), ...(typeof content === "string" && { "content-type": "application/json" }), ...headers },
      body: content,
    });
  });
}

/** A route of Gemini's format, whose model is a part of the path. */
function ofModel(operation: string, { kind, delivery = "whole" }: RestShape, body: () => Fields): Operation {
  const contract = `POST /v1beta/models/{model}:${operation}`;
  return rest(contract, { kind, delivery, name: contract, isRepeatable: true }, ({ baseUrl, key }, { model, ...fields }, headers) => {
    const query = delivery === "stream" ? "?alt=sse" : "";
    return fetch(`${baseUrl}/v1beta/models/${String(model)}:${operation}${query}`, {
      method: "POST",
      headers: { ...authorization({ key }), "content-type": "application/json", ...headers },
      body: JSON.stringify({ ...body(), ...fields }),
    });
  });
}

/** A route whose prompt is a part of the path, and whose fields are the query. */
function gotten(
  path: `/${string}/{${string}}`,
  { kind, delivery = "whole", name = `GET ${path}` }: RestShape,
  query: Fields = {},
): Operation {
  return rest(`GET ${path}`, { kind, delivery, name, isRepeatable: false }, ({ baseUrl, key }, fields, headers) => {
    const prompt = encodeURIComponent(newPrompt());
    const url = `${baseUrl}${path.replace(/\{\w+\}/, prompt)}${toQuery({ ...query, ...fields })}`;
    return fetch(url, { headers: { ...authorization({ key }), ...headers } });
  });
}

function rest(contract: string, stated: Omit<Operation, "contract" | "face" | "send" | "ask">, send: Operation["send"]): Operation {
  const ask: Operation["ask"] = async (asking, fields, headers) => {
    const outcome = await readRestOutcome(await send(asking, fields, headers));
    return stated.delivery === "job" ? followJob(asking, outcome) : outcome;
  };
  return { contract, face: "REST", ...stated, send, ask };
}

/** A field of the GraphQL schema, asked for alone, with its receipt. Over server-sent events when it is a subscription. */
function graphql<Input extends object>(
  contract: `Mutation.${string}` | `Subscription.${string}`,
  { kind, delivery = "whole" }: RestShape,
  document: TypedDocumentNode<unknown, { input: Input }>,
  input: () => Input | Promise<Input>,
): Operation {
  const [root = "", name = ""] = contract.split(".");
  const isLive = root === "Subscription";
  const query = textOf(document);
  const send: Operation["send"] = async ({ baseUrl, key }, fields, headers) => {
    const { body, ...own } = toGraphQLBody({ query, variables: { input: { ...(await input()), ...fields } } });
    const accept = isLive ? { accept: "text/event-stream" } : {};
    return fetch(`${baseUrl}/graphql`, {
      method: "POST",
      headers: { ...authorization({ key }), ...own.headers, ...accept, ...headers },
      body,
    });
  };
  const ask: Operation["ask"] = async (asking, fields, headers) => {
    const outcome = await readGraphQLOutcome(await send(asking, fields, headers), name);
    return delivery === "job" ? followJob(asking, outcome) : outcome;
  };
  return { name: contract, contract, face: "GraphQL", kind, delivery, isRepeatable: !isLive, send, ask };
}

/** JSON; or a form where the input holds a file. */
function toGraphQLBody(document: { readonly query: string; readonly variables: { readonly input: Fields } }): {
  readonly headers: RequestHeaders;
  readonly body: FormData | string;
} {
  const { input } = document.variables;
  const file = Object.entries(input).find(([, value]) => value instanceof Uint8Array);
  if (!file) return { headers: { "content-type": "application/json" }, body: JSON.stringify(document) };
  const [name, bytes] = file;
  const form = new FormData();
  form.set("operations", JSON.stringify({ ...document, variables: { input: { ...input, [name]: null } } }));
  form.set("map", JSON.stringify({ 0: [`variables.input.${name}`] }));
  form.set("0", new Blob([new Uint8Array(bytes as Uint8Array)]), "file.wav");
  return { headers: { "x-graphql-yoga-csrf": "1" }, body: form };
}

/** A session in which one answer is asked for, and which its caller leaves when that has come. */
const session: Operation = {
  ...{ name: "GET /v1/realtime", contract: "GET /v1/realtime", face: "REST", kind: "realtime", delivery: "session", isRepeatable: false },
  send: () => Promise.reject(new Error("A session is no request over HTTP.")),
  ask: async (asking, fields, headers = {}) => {
    try {
      const caller = await connectRealtime(asking, toQuery(fields), { key: asking.key, headers });
      caller.send({ type: "response.create" });
      await Promise.race([caller.next("response.done"), caller.closed]);
      if (caller.socket.readyState === WebSocket.OPEN) caller.socket.close();
      await caller.closed;
      const failure = caller.received.find(({ type }) => type === "error") as { error: { code: string; message: string } } | undefined;
      const generationId = String(caller.headers["x-generation-id"]);
      return { ...NO_OUTCOME, generationId, code: failure?.error.code ?? null, message: failure?.error.message ?? null };
    } catch (error) {
      if (error instanceof RealtimeRefused) return toRefusedOutcome(error.answer);
      throw error;
    }
  },
};
const NO_OUTCOME: GenerationOutcome = {
  ...{ status: 101, headers: new Headers(), text: "", code: null, message: null, generationId: null, cost: null },
  isReplay: false,
};

const editedForm = async (fields: Fields) => toForm(fields, { image: await picture() });
const spokenForm = (fields: Fields) => toForm(fields, { file: recording(1) });
const dataUrl = async () => `data:image/png;base64,${(await picture()).toString("base64")}`;
const stream = "stream" as const;
/** The format requires a limit. */
const MESSAGE_TOKENS = 1_000;

export const OPERATIONS: readonly Operation[] = [
  posted("/v1/chat/completions", { kind: "text" }, () => ({ messages })),
  posted("/v1/chat/completions", { kind: "text", delivery: stream, name: "POST /v1/chat/completions, streamed" }, () => ({
    messages,
    stream: true,
  })),
  posted("/v1/completions", { kind: "text" }, () => ({ prompt: PROMPT })),
  posted("/v1/completions", { kind: "text", delivery: stream, name: "POST /v1/completions, streamed" }, () => ({
    prompt: PROMPT,
    stream: true,
  })),
  posted("/v1/responses", { kind: "text" }, () => ({ input: PROMPT })),
  posted("/v1/responses", { kind: "text", delivery: stream, name: "POST /v1/responses, streamed" }, () => ({
    input: PROMPT,
    stream: true,
  })),
  posted("/v1/responses/compact", { kind: "text" }, () => ({ input: PROMPT })),
  posted("/v1/messages", { kind: "text" }, () => ({ messages, max_tokens: MESSAGE_TOKENS })),
  posted("/v1/messages", { kind: "text", delivery: stream, name: "POST /v1/messages, streamed" }, () => ({
    messages,
    max_tokens: MESSAGE_TOKENS,
    stream: true,
  })),
  ofModel("generateContent", { kind: "text" }, () => ({ contents: [content] })),
  ofModel("streamGenerateContent", { kind: "text", delivery: stream }, () => ({ contents: [content] })),
  posted("/text", { kind: "text" }, () => ({ messages })),
  posted("/text", { kind: "text", delivery: stream, name: "POST /text, streamed" }, () => ({ messages, stream: true })),
  gotten("/text/{prompt}", { kind: "text" }),
  gotten("/text/{prompt}", { kind: "text", delivery: stream, name: "GET /text/{prompt}, streamed" }, { stream: true }),
  posted("/v1/images/generations", { kind: "image" }, () => ({ prompt: PROMPT })),
  posted("/v1/images/edits", { kind: "image" }, () => ({ prompt: PROMPT }), editedForm),
  posted("/v1/images/variations", { kind: "image" }, () => ({}), editedForm),
  gotten("/image/{prompt}", { kind: "image" }),
  gotten("/video/{prompt}", { kind: "video" }),
  posted("/v1/videos", { kind: "video", delivery: "job" }, () => ({ prompt: PROMPT })),
  posted("/v1/audio/speech", { kind: "speech", delivery: stream }, () => ({ input: PROMPT })),
  posted("/v1/audio/speech", { kind: "speech", delivery: stream, name: "POST /v1/audio/speech, as events" }, () => ({
    input: PROMPT,
    stream_format: "sse",
  })),
  gotten("/audio/{text}", { kind: "speech" }),
  gotten("/audio/{text}", { kind: "music", name: "GET /audio/{text}, music" }),
  posted("/v1/audio/transcriptions", { kind: "transcription" }, () => ({}), spokenForm),
  posted("/v1/audio/translations", { kind: "transcription" }, () => ({}), spokenForm),
  posted("/v1/embeddings", { kind: "embedding" }, () => ({ input: PROMPT })),
  ofModel("embedContent", { kind: "embedding" }, () => ({ content })),
  ofModel("batchEmbedContents", { kind: "embedding" }, () => ({ requests: [{ content }] })),
  posted("/v1/rerank", { kind: "rerank" }, () => ({ query: PROMPT, documents: [PROMPT] })),
  posted("/v2/rerank", { kind: "rerank" }, () => ({ query: PROMPT, documents: [PROMPT] })),
  posted("/v1/moderations", { kind: "moderation" }, () => ({ input: PROMPT })),
  session,
  graphql("Mutation.createChatCompletion", { kind: "text" }, ChatDocument, () => ({
    messages: [{ role: "USER" as const, content: PROMPT }],
  })),
  graphql("Subscription.chatCompletion", { kind: "text", delivery: stream }, StreamChatDocument, () => ({
    messages: [{ role: "USER" as const, content: PROMPT }],
  })),
  graphql("Mutation.createResponse", { kind: "text" }, CreateResponseDocument, () => ({ input: { text: PROMPT } })),
  graphql("Subscription.response", { kind: "text", delivery: stream }, StreamResponseDocument, () => ({ input: { text: PROMPT } })),
  graphql("Mutation.generateImage", { kind: "image" }, GenerateImageDocument, () => ({ prompt: PROMPT })),
  graphql("Mutation.editImage", { kind: "image" }, EditImageDocument, async () => ({
    prompt: PROMPT,
    images: [await dataUrl()],
  })),
  graphql("Mutation.varyImage", { kind: "image" }, VaryImageDocument, async () => ({ image: await dataUrl() })),
  graphql("Mutation.startImage", { kind: "image", delivery: "job" }, StartImageDocument, () => ({ prompt: PROMPT })),
  graphql("Mutation.startVideo", { kind: "video", delivery: "job" }, StartVideoDocument, () => ({ prompt: PROMPT })),
  graphql("Mutation.createSpeech", { kind: "speech" }, CreateSpeechDocument, () => ({ input: PROMPT })),
  graphql("Subscription.speech", { kind: "speech", delivery: stream }, StreamSpeechDocument, () => ({ input: PROMPT })),
  graphql("Mutation.generateMusic", { kind: "music" }, GenerateMusicDocument, () => ({ prompt: PROMPT })),
  graphql("Mutation.startMusic", { kind: "music", delivery: "job" }, StartMusicDocument, () => ({ prompt: PROMPT })),
  graphql("Mutation.createTranscription", { kind: "transcription" }, CreateTranscriptionDocument, () => ({ file: recording(1) })),
  graphql("Mutation.createEmbeddings", { kind: "embedding" }, CreateEmbeddingsDocument, () => ({ input: [{ text: PROMPT }] })),
  graphql("Mutation.rerank", { kind: "rerank" }, RerankDocument, () => ({ query: PROMPT, documents: [PROMPT] })),
  graphql("Mutation.createModeration", { kind: "moderation" }, CreateModerationDocument, () => ({ input: [{ text: PROMPT }] })),
];
