/**
 * What others write is read in time that grows no faster than it does: one request must not hold up everybody else's. Every
 * pattern of the sources is fed the worst that can be made for it.
 */
import { fileURLToPath } from "node:url";
import { GraphQLError } from "graphql";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import * as z from "zod";
import { toPublicError } from "../../src/graphql/public-errors.js";
import { parseCredits, parseDateTime, parsePrice } from "../../src/graphql/scalars.js";
import { parseQuery } from "../../src/http/context.js";
import { AnswerName } from "../../src/lib/answer-name.js";
import { toDisposition } from "../../src/lib/content-types.js";
import { cutTexts, jsonDepthExceeds } from "../../src/lib/json.js";
import { decodeCursor } from "../../src/lib/pagination.js";
import { stripMetadata } from "../../src/lib/picture-metadata.js";
import { createSseScanner } from "../../src/lib/sse.js";
import { countChatTokens, countTextTokens } from "../../src/lib/tokenizer.js";
import { parseBaseUrl, withoutTrailing } from "../../src/lib/urls.js";
import { SAFETY_OVERLAP_CHARS, SAFETY_WINDOW_CHARS } from "../../src/limits.js";
import { parseDirectives } from "../../src/providers/sandbox/directives.js";
import { toCsvRows } from "../../src/rest/routes/usage.js";
import { readBearer } from "../../src/services/access/access.js";
import { budget, termsQuery } from "../../src/services/api-keys/grant-terms.js";
import { addressesIn } from "../../src/services/generation/admission.js";
import { inCallersWords } from "../../src/services/generation/failures.js";
import { toSrt } from "../../src/services/generation/media/transcriptions.js";
import { findPersonalData } from "../../src/services/safety/personal-data.js";
import { quoteMarksInJson } from "../../src/services/safety/redaction.js";
import { findSecrets } from "../../src/services/safety/secrets.js";
import { measureExcess, NOISE_MS, processorMs } from "../support/growth.js";
import { worstCases } from "../support/pattern-attacks.js";
import { findPatterns } from "../support/source-patterns.js";

const CHARS = 1_024;
const FACTOR = 8;
/** The larger of the two is what the safety features look at in one go. */
const READ_CHARS = (SAFETY_WINDOW_CHARS + SAFETY_OVERLAP_CHARS) / FACTOR;
/** Between 1, linear, and FACTOR, quadratic. */
const EXCESS_MAX = 3;
/** What is worse than quadratic would never come to an end with that many. */
const REPEATS_FIRST = 20;

/** Patterns that are slow over long texts and never see one: each with what bounds it. */
const BOUNDED: Readonly<Record<string, string>> = {};

/** As a search, a test and a replacement use it: everywhere in the text. Null when the time is linear. */
function slowness(pattern: RegExp): string | null {
  const everywhere = pattern.sticky ? pattern : new RegExp(pattern.source, `${pattern.flags.replace("g", "")}g`);
  for (const { unit, text } of worstCases(pattern)) {
    const replaceIn = (chars: number) => {
      const input = text(chars);
      return processorMs(() => input.replace(everywhere, ""));
    };
    const shown = `${JSON.stringify(text(40))} …`;
    const first = REPEATS_FIRST * unit.length;
    if (replaceIn(first) > NOISE_MS && replaceIn(first) > NOISE_MS) return `${shown} takes exponential time`;
    // Quadratic work is that of the repetitions, times the characters.
    const chars = Math.ceil(CHARS * Math.sqrt(unit.length));
    const excess = measureExcess(replaceIn, chars, FACTOR);
    if (excess > EXCESS_MAX) return `${shown} grows ${excess.toFixed(1)} times too fast`;
  }
  return null;
}

it("matches every pattern in linear time", async () => {
  const patterns = [
    ...new Map((await findPatterns(fileURLToPath(new URL("../../src", import.meta.url)))).map((one) => [one.name, one])).values(),
  ];
  const slow = patterns.flatMap(({ name, pattern }) => {
    const found = name in BOUNDED ? null : slowness(pattern);
    return found === null ? [] : [`${name} ${found}`];
  });

  expect(patterns.length).toBeGreaterThan(250);
  expect(slow).toEqual([]);
});

it.each([/0+$/, / ?Did you mean .+\?$/, /(?<=x+)(?!x)/, /^(?:a|a)*$/, /\S+@\S+/])("finds that %s is not linear", (pattern) => {
  expect(slowness(pattern)).not.toBeNull();
});

/** What reads texts of others in loops or by other libraries' patterns; what it throws is its answer. */
const READERS: Readonly<Record<string, (text: string) => unknown>> = {
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
  "the depth of JSON": (text) => jsonDepthExceeds(Buffer.from(text), 100),
  "texts in JSON": (text) => cutTexts(Buffer.from(`{"data":"${text}"}`), "data"),
  "the name in JSON": (text) =>
    new AnswerName("acme/chat").inBytes(Buffer.from(`{"model":"${text}","x":"\\\\"}`), { model: "", provider: "" }),
  "names in upstreams' words": (text) => inCallersWords(text, { id: "acme/chat", upstreamModel: "a1", isCommunity: true }),
  "marks in JSON": (text) => quoteMarksInJson(JSON.stringify({ text }), `{"${text}`),
  "server-sent events": (text) => createSseScanner({ eventBytesMax: 2 ** 30 }).push(Buffer.from(text)),
  "tokens of a text": countTextTokens,
  "tokens of a chat": (text) => countChatTokens([{ role: "user", content: [{ type: "text", text }] }]),
  "addresses in a chat": (text) => addressesIn([{ role: "user", content: [{ type: "image_url", image_url: { url: text } }] }], "messages"),
  "cells of CSV": (text) => toCsvRows({ text: (row: string) => row }, [text]),
  captions: (text) => toSrt({ text, language: null, segments: null, words: null, durationMs: 1 }),
  secrets: findSecrets,
  "personal data": findPersonalData,
  "the sandbox's directives": parseDirectives,
  "JPEG files": (text) => stripMetadata(Buffer.from(`\xff\xd8${text}`, "latin1"), "image/jpeg"),
  "PNG files": (text) => stripMetadata(Buffer.from(`\x89PNG\r\n\x1a\n${text}`, "latin1"), "image/png"),
};

/** What repeats in the texts that have been slow, here and elsewhere. */
const UNITS = [
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

describe("in linear time are read", () => {
  it.each(Object.entries(READERS))("%s", (_what, read) => {
    const slow = UNITS.flatMap((unit) => {
      const excess = measureExcess(
        (chars) => {
          const text = `${unit.repeat(chars / unit.length)}\u0001`;
          return processorMs(() => {
            try {
              read(text);
            } catch {
              // A refusal.
            }
          });
        },
        READ_CHARS,
        FACTOR,
      );
      return excess > EXCESS_MAX ? [`${JSON.stringify(unit)} grows ${excess.toFixed(1)} times too fast`] : [];
    });

    expect(slow).toEqual([]);
  });
});
