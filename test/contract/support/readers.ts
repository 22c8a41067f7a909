/** Code that reads texts of callers and upstreams, and the texts that have been slow to read. */
import { GraphQLError } from "graphql";
import { pino } from "pino";
import * as z from "zod";
import { countChatTokens } from "../../../src/formats/openai-chat/count.js";
import { toPublicError } from "../../../src/graphql/public-errors.js";
import { parseCredits, parseDateTime, parsePrice } from "../../../src/graphql/scalars.js";
import { parseQuery } from "../../../src/http/context.js";
import { AnswerName } from "../../../src/lib/answer-name.js";
import { toDisposition } from "../../../src/lib/header-text.js";
import { cutTexts } from "../../../src/lib/json.js";
import { jsonExcess } from "../../../src/lib/json-bounds.js";
import { decodeCursor } from "../../../src/lib/pagination.js";
import { stripMetadata } from "../../../src/lib/picture-metadata.js";
import { createSseScanner } from "../../../src/lib/sse.js";
import { countTextTokens } from "../../../src/lib/tokenizer.js";
import { parseBaseUrl, withoutTrailing } from "../../../src/lib/urls.js";
import { parseDirectives } from "../../../src/providers/sandbox/directives.js";
import { toCsvRows } from "../../../src/rest/csv.js";
import { readBearer } from "../../../src/services/access/access.js";
import { budget, termsQuery } from "../../../src/services/api-keys/grant-terms.js";
import { inCallersWords } from "../../../src/services/generation/failures.js";
import { toSrt } from "../../../src/services/generation/media/transcriptions.js";
import { addressesIn } from "../../../src/services/generation/named-addresses.js";
import { jsonTokens } from "../../../src/services/safety/json-tokens.js";
import { findPersonalData } from "../../../src/services/safety/personal-data.js";
import { findSecrets } from "../../../src/services/safety/secrets.js";

/** Readers with loops or with patterns of libraries. A thrown refusal is an answer. */
export const READERS: ReadonlyMap<string, (text: string) => unknown> = new Map(
  Object.entries<(text: string) => unknown>({
    "Credits of GraphQL": parseCredits,
    "Price of GraphQL": parsePrice,
    "DateTime of GraphQL": parseDateTime,
    "refusals of GraphQL": (text) => toPublicError(new GraphQLError(`${text}?`), { requestId: "", log: pino({ level: "silent" }) }),
    "formats of fields": (text) =>
      [z.email(), z.url(), z.uuid(), z.iso.date(), z.iso.datetime({ offset: true })].map((format) => format.safeParse(text)),
    "a budget of REST": (text) => budget.safeParse(text),
    "the terms of a grant": (text) => z.object(termsQuery).safeParse({ budget: text, models: text, expiry: text, permissions: text }),
    "query strings": (text) => parseQuery(`/?a=${text}`),
    "bearer keys": (text) => readBearer(`Bearer ${text}`),
    addresses: parseBaseUrl,
    cursors: (text) => decodeCursor(text, "usage"),
    "file names": (text) => toDisposition("attachment", text),
    "ends of texts": (text) => withoutTrailing(text, " /.0"),
    "the structure of JSON": (text) =>
      jsonExcess(Buffer.from(text), { depthMax: 100, keysMax: 2 ** 30, valuesMax: 2 ** 30, textsMax: 2 ** 30, bracketsMax: 2 ** 30 }),
    "texts in JSON": (text) => cutTexts(Buffer.from(`{"data":"${text}"}`), "data"),
    "the name in JSON": (text) =>
      new AnswerName("acme/chat").inBytes(Buffer.from(`{"model":"${text}","x":"\\\\"}`), { model: "", provider: "" }),
    "names in upstreams' words": (text) =>
      inCallersWords(text, { model: { id: "acme/chat", isCommunity: true }, route: { upstreamModel: "a1" } }),
    "names and values of JSON": (text) => jsonTokens(JSON.stringify({ text, [text]: text })),
    "server-sent events": (text) => createSseScanner({ eventBytesMax: 2 ** 30 }).push(Buffer.from(text)),
    "tokens of a text": countTextTokens,
    "tokens of a chat": (text) => countChatTokens([{ role: "user", content: [{ type: "text", text }] }]),
    "addresses in a chat": (text) =>
      addressesIn({ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: text } }] }] }),
    "cells of CSV": (text) => toCsvRows({ text: (row: string) => row }, [text]),
    captions: (text) => toSrt({ text, language: null, segments: null, words: null, durationMs: 1 }),
    secrets: findSecrets,
    "personal data": findPersonalData,
    "the sandbox's directives": parseDirectives,
    "JPEG files": (text) => stripMetadata(Buffer.from(`\xff\xd8${text}`, "latin1"), "image/jpeg"),
    "PNG files": (text) => stripMetadata(Buffer.from(`\x89PNG\r\n\x1a\n${text}`, "latin1"), "image/png"),
  }),
);

/** Repeated, each of these made some reader slow. */
export const UNITS: readonly string[] = [
  ...[
    "0",
    "1 ",
    "a",
    "a1 ",
    '"model":',
    "A0",
    ".",
    "!",
    "-",
    "=",
    "/",
    " ",
    "\n",
    "\r",
    '"',
    '\\"',
    "[",
    "{",
    "{}",
    "%41",
    "a@",
    "a@a.",
    ":",
    "1:",
    "é",
    "😀",
  ],
  ...["\xff", "\xff\xd9", "\0\0\0\0tEXt", "data: a\n", "data:\n\n", "Did you mean ", "[REDACTED_EMAIL]", "[error 500]", "https://a:b"],
  ...[
    "password: a1",
    "bearer aaaaaaaaaaaaaaaaa.",
    "-----BEGIN PRIVATE KEY-----",
    "eyJaaaaaaaaa.",
    "sk-proj-",
    "0049 ",
    "DE89 3704 ",
    "4111 ",
  ],
];

/** Repeated, each of these made some finder of secrets or of personal data slow. */
export const SAFETY_UNITS: readonly string[] = [
  "a",
  "@",
  "a@",
  "a@a.",
  "a.a@",
  "1",
  "1 ",
  "12 ",
  "123 ",
  "4242 ",
  "0123 456 ",
  "01 23 45 67 89 ",
  "+1",
  "+1 ",
  "+12345678 ",
  "+44 20 7946 0958 ",
  "(",
  "(1) ",
  "1.",
  "1.1.1.1",
  ":",
  "::",
  "1:",
  "a:1:",
  "DE89",
  "DE89 ",
  "DE",
  "phone ",
  "phone 1",
  "call ",
  "-----BEGIN PRIVATE KEY-----",
  "-----BEGIN PRIVATE KEY-----AAAA",
  "-",
  "_",
  '"',
  " ",
  "\n",
  "http://",
  "http://a:b@",
  "http://a:",
  "mongodb://a:b",
  "postgres://",
  "SG.SG.aaaa",
  "xoxb-a-",
  "eyJ",
  "eyJa.eyJ",
  "bearer ",
  "Bearer a",
  "password",
  "password:",
  "password: a1",
  "secret=",
  "sk-",
  "sk-a1",
  "sk_",
  "AKIA",
  "account ",
  "token is ",
  "$",
  "é",
  "😀",
];

export const SAFETY_READERS: ReadonlySet<string> = new Set(["secrets", "personal data"]);
