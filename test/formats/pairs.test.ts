/**
 * Each pair of formats: a conversation goes from a chat into the first format, through a chat into the second and back, and an answer the
 * other way. Each format's two sides are used on each other: an upstream's request is read as a caller's, a caller's answer as an upstream's.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { NO_MESSAGE_USAGE } from "../../src/formats/anthropic-messages/answer.js";
import { messageFields } from "../../src/formats/anthropic-messages/request.js";
import { MessageEvents } from "../../src/formats/anthropic-messages/stream.js";
import { toChat as fromMessages } from "../../src/formats/anthropic-messages/to-chat.js";
import { toCompletion as fromMessage } from "../../src/formats/anthropic-messages/upstream-answer.js";
import { toMessagesRequest } from "../../src/formats/anthropic-messages/upstream-request.js";
import { MessagesStreamEvents } from "../../src/formats/anthropic-messages/upstream-stream.js";
import { toUsageMetadata } from "../../src/formats/gemini/answer.js";
import { withCamelNames } from "../../src/formats/gemini/field-names.js";
import { generateContentFields } from "../../src/formats/gemini/request.js";
import { GeminiAnswers } from "../../src/formats/gemini/stream.js";
import { toChat as fromContents } from "../../src/formats/gemini/to-chat.js";
import { toCompletion as fromGemini } from "../../src/formats/gemini/upstream-answer.js";
import { toGeminiRequest } from "../../src/formats/gemini/upstream-request.js";
import { AnswerStreamEvents } from "../../src/formats/gemini/upstream-stream.js";
import { CollectedAnswer } from "../../src/formats/openai-chat/collect.js";
import type { ChatBody, ChatChunkObject, ChatCompletion } from "../../src/formats/openai-chat/schema.js";
import { type ChatChunk, ChatChunkEvents, type StreamFormat } from "../../src/formats/openai-chat/stream.js";
import { CompletionChunks, toCompletion as toTextCompletion } from "../../src/formats/openai-completions/answer.js";
import { toChat as fromCompletion } from "../../src/formats/openai-completions/to-chat.js";
import { responseFields } from "../../src/formats/openai-responses/request.js";
import { ResponseEvents } from "../../src/formats/openai-responses/stream.js";
import { toChat as fromResponse } from "../../src/formats/openai-responses/to-chat.js";
import { toCompletion as fromResponseAnswer } from "../../src/formats/openai-responses/upstream-answer.js";
import { toResponsesRequest } from "../../src/formats/openai-responses/upstream-request.js";
import { ResponsesEvents } from "../../src/formats/openai-responses/upstream-stream.js";
import { createSseScanner, formatSseEvent } from "../../src/lib/sse.js";
import { NO_USAGE } from "../../src/lib/usage.js";

type Loose = Record<string, unknown>;

interface Built {
  readonly request: Loose;
  readonly warnings: readonly string[];
}

interface Format {
  readonly build: (chat: ChatBody) => Built;
  readonly read: (request: Loose) => { readonly chat: ChatBody; readonly warnings: readonly string[] };
  readonly answer: (completion: ChatCompletion) => unknown;
  readonly readAnswer: (answer: never) => ChatCompletion;
  readonly stream: (chunks: readonly ChatChunkObject[]) => Buffer;
  readonly reader: () => StreamFormat;
}

const MODEL = "m";
const NO_SECRETS = [] as const;
const json = (value: unknown) => JSON.parse(JSON.stringify(value)) as Loose;
const asChunk = ({ choices }: ChatCompletion): ChatChunkObject =>
  ({ choices: (choices ?? []).map(({ message, ...choice }) => ({ ...choice, delta: message ?? null })) }) as ChatChunkObject;
const named = (events: readonly { readonly type: string }[]) =>
  Buffer.concat(events.map((event) => Buffer.from(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)));
const unnamed = (events: readonly object[]) => Buffer.concat(events.map((event) => formatSseEvent(JSON.stringify(event))));

const messageRequest = z.looseObject(messageFields);
const responseRequest = z.looseObject(responseFields);
const geminiRequest = z.preprocess(withCamelNames, z.looseObject(generateContentFields));
const isFree = () => false;
const GEMINI = "gemini-3.5-flash";
/** Calls of a conversation that began with another model have no signature of Google's: they are marked, and the rest is the same. */
const UNSIGNED = "messages: the signed thoughts before the last tool calls are missing, so the model goes on without them.";
const GEMINI_FRAME = { id: "g", model: MODEL, includesThoughts: true };
const GEMINI_USAGE = toUsageMetadata(NO_USAGE, 0);
const responseEvents = () => new ResponseEvents({ id: "resp_1", createdAt: 1, model: MODEL, input: { input: "x" } as never, tools: [] });

const FORMATS: Readonly<Record<string, Format>> = {
  chat: {
    build: (chat) => ({ request: json(chat), warnings: [] }),
    read: (request) => ({ chat: request as ChatBody, warnings: [] }),
    answer: (completion) => completion,
    readAnswer: (answer) => answer,
    stream: (chunks) => Buffer.concat([unnamed(chunks), Buffer.from("data: [DONE]\n\n")]),
    reader: () => new ChatChunkEvents(NO_SECRETS),
  },
  messages: {
    build: (chat) => {
      const { fields, warnings } = toMessagesRequest(chat, "claude-sonnet-4-5", { isStreamed: false });
      return { request: json(fields), warnings };
    },
    read: (request) =>
      fromMessages(messageRequest.parse({ model: MODEL, max_tokens: 9, ...request }) as never, {
        ...{ hasEffort: true, withoutThinking: null, isNative: true, betas: [], hasLongContext: false, concernsMoney: isFree },
      }),
    answer: (completion) => {
      const events = new MessageEvents({ id: "msg_1", model: MODEL }, true);
      events.read(asChunk(completion));
      return json(events.whole(NO_MESSAGE_USAGE));
    },
    readAnswer: (answer) => fromMessage(answer),
    stream: (chunks) => {
      const events = new MessageEvents({ id: "msg_1", model: MODEL });
      return named([...events.begin(), ...chunks.flatMap((chunk) => events.read(chunk)), ...events.end(NO_MESSAGE_USAGE)]);
    },
    reader: () => new MessagesStreamEvents(null),
  },
  gemini: {
    build: (chat) => {
      const { fields, warnings } = toGeminiRequest(chat, GEMINI);
      return { request: json(fields), warnings };
    },
    read: (request) =>
      fromContents(MODEL, geminiRequest.parse(request), { hasEffort: true, isNative: true, isPricedTool: isFree, concernsMoney: isFree }),
    answer: (completion) => json(GeminiAnswers.whole(GEMINI_FRAME, asChunk(completion), GEMINI_USAGE)),
    readAnswer: (answer) => fromGemini(answer),
    stream: (chunks) => {
      const answers = new GeminiAnswers(GEMINI_FRAME);
      return unnamed([...chunks.flatMap((chunk) => answers.read(chunk)), answers.end(GEMINI_USAGE)]);
    },
    reader: () => new AnswerStreamEvents([]),
  },
  responses: {
    build: (chat) => {
      const { fields, warnings } = toResponsesRequest(chat, MODEL, false) as never as { fields: Loose; warnings: readonly string[] };
      return { request: json(fields), warnings };
    },
    read: (request) => fromResponse(responseRequest.parse(request) as never, { isNative: true } as never),
    answer: (completion) => {
      const events = responseEvents();
      events.read(asChunk(completion));
      return json(events.end().response);
    },
    readAnswer: (answer) => fromResponseAnswer(answer, NO_SECRETS),
    stream: (chunks) => {
      const events = responseEvents();
      return named([...events.begin(), ...chunks.flatMap((chunk) => events.read(chunk)), ...events.end().events]);
    },
    reader: () => new ResponsesEvents(NO_SECRETS, []),
  },
};
const NAMES = Object.keys(FORMATS);
const PAIRS = NAMES.flatMap((from) => NAMES.map((to) => [from, to] as const));
const formatOf = (name: string) => FORMATS[name] as Format;

const text = fc.string({ minLength: 1, maxLength: 8 }).filter((value) => value.trim() !== "");
const input = fc.dictionary(fc.constantFrom("a", "b", "c"), fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null)), {
  noNullPrototype: true,
});
const picture = fc.constant({ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } });
const call = fc.record({ name: fc.constantFrom("f", "g"), input, result: text });
const turn = fc.record({
  asked: text,
  picture: fc.option(picture),
  said: fc.option(text),
  calls: fc.array(call, { maxLength: 3 }),
  told: text,
});
type Turn = typeof turn extends fc.Arbitrary<infer Each> ? Each : never;

function toCalls(calls: readonly Pick<Turn["calls"][number], "name" | "input">[], idOf: () => string): Loose[] {
  return calls.map((each) => ({ id: idOf(), type: "function", function: { name: each.name, arguments: JSON.stringify(each.input) } }));
}

/** Turns in an order that every vendor takes: calls, their results, and a text at the end. */
function toMessages(system: string | null, turns: readonly Turn[]): Loose[] {
  let ids = 0;
  const all: Loose[] = system === null ? [] : [{ role: "system", content: system }];
  for (const { asked, picture: shown, said, calls, told } of turns) {
    all.push({ role: "user", content: shown === null ? asked : [{ type: "text", text: asked }, shown] });
    if (calls.length > 0) {
      const made = toCalls(calls, () => `call_${ids++}`);
      all.push({ role: "assistant", content: said, tool_calls: made });
      for (const [index, { result }] of calls.entries()) all.push({ role: "tool", tool_call_id: made[index]?.id, content: result });
    }
    all.push({ role: "assistant", content: told });
  }
  return all;
}

/** A chat's messages without their form: texts as parts, arguments as values, no fields of one vendor. */
function plain(messages: unknown): unknown {
  return (json(messages) as unknown as Loose[]).map(({ role, content, tool_calls: calls, tool_call_id: id }) => ({
    role,
    content: typeof content === "string" ? content && [{ type: "text", text: content }] : toPlainParts(content),
    calls: plainCalls(calls),
    id,
  }));
}

function toPlainParts(content: unknown): unknown {
  const parts = ((content ?? []) as Loose[]).map(({ type, text: said, image_url: image }) => ({
    type,
    text: said,
    url: (image as Loose)?.url,
  }));
  return parts.length === 0 ? "" : parts.map((part) => json(part));
}

function plainCalls(calls: unknown): unknown {
  return ((calls ?? []) as Loose[]).map(({ id, function: called }) => {
    const { name, arguments: given } = called as { name: string; arguments: string };
    return [id, name, JSON.parse(given || "{}")];
  });
}

const TOOLS = ["f", "g"].map((name) => ({ type: "function", function: { name, parameters: { type: "object", properties: {} } } }));

const calledOnce = (result: string) => ({
  ...{ asked: "a", picture: null, said: null, told: "b" },
  calls: [{ name: "f" as const, input: {}, result }],
});

describe.each(PAIRS)("a conversation in the format of %s for an upstream of %s", (from, to) => {
  it("arrives as it was sent", () => {
    fc.assert(
      fc.property(fc.option(text), fc.array(turn, { minLength: 1, maxLength: 3 }), (system, turns) => {
        const messages = toMessages(system, turns).slice(0, -1);
        const stated = { temperature: 1, max_completion_tokens: 9 };
        const sent = formatOf(from).build({ model: MODEL, messages, tools: TOOLS, ...stated } as ChatBody);
        const asked = formatOf(from).read(sent.request);
        const built = formatOf(to).build(asked.chat);
        const { chat, warnings } = formatOf(to).read(built.request);

        const told = [...sent.warnings, ...asked.warnings, ...built.warnings, ...warnings];
        expect(told.filter((warning) => warning !== UNSIGNED)).toEqual([]);
        expect(plain(chat.messages)).toEqual(plain(messages));
        expect(((chat.tools ?? []) as { function: { name: string } }[]).map(({ function: { name } }) => name)).toEqual(["f", "g"]);
      }),
      // Results that look like an object, or like nothing, are the rarest.
      {
        numRuns: 60,
        examples: [
          [null, [calledOnce("{}")]],
          [null, [calledOnce("")]],
        ],
      },
    );
  });
});

const answered = fc.record({ thought: fc.option(text), said: fc.option(text), calls: fc.array(call, { maxLength: 3 }) });

function toMessage({ thought, said, calls }: typeof answered extends fc.Arbitrary<infer Each> ? Each : never): Loose {
  let ids = 0;
  return {
    role: "assistant",
    content: said ?? (calls.length > 0 ? null : ""),
    ...(thought !== null && { reasoning_content: thought }),
    ...(calls.length > 0 && { tool_calls: toCalls(calls, () => `call_${ids++}`) }),
  };
}

function saidIn({ choices }: ChatCompletion): Loose {
  const { message, finish_reason: reason } = (choices?.[0] ?? {}) as { message: Loose; finish_reason: unknown };
  const { content, reasoning_content: thought, tool_calls: calls } = message;
  return { content: content || "", thought: thought ?? "", calls: plainCalls(calls), reason };
}

/** Each text and each call's arguments in pieces of that length. */
function toChunks({ content, reasoning_content: thought, tool_calls: calls = [] }: Loose, length: number): ChatChunkObject[] {
  const cut = (whole: unknown) =>
    Array.from({ length: Math.ceil(String(whole ?? "").length / length) }, (_, index) =>
      String(whole).slice(index * length, (index + 1) * length),
    );
  const deltas: Loose[] = [
    ...cut(thought).map((piece) => ({ reasoning_content: piece })),
    ...cut(content).map((piece) => ({ content: piece })),
    ...(calls as Loose[]).flatMap(({ id, type, function: called }, index) => {
      const { name, arguments: given } = called as Loose;
      return [
        { tool_calls: [{ index, id, type, function: { name, arguments: "" } }] },
        ...cut(given).map((piece) => ({ tool_calls: [{ index, function: { arguments: piece } }] })),
      ];
    }),
  ];
  const reason = (calls as Loose[]).length > 0 ? "tool_calls" : "stop";
  const all = [{ role: "assistant", content: "" }, ...deltas].map((delta) => ({ choices: [{ index: 0, delta, finish_reason: null }] }));
  return [...all, { choices: [{ index: 0, delta: {}, finish_reason: reason }] }].map((chunk) => ({
    ...{ id: "c", object: "chat.completion.chunk", created: 1, model: MODEL },
    ...chunk,
  })) as ChatChunkObject[];
}

/** The chunks that an upstream's side reads from bytes that were split there. */
function readSplit(format: Format, bytes: Buffer, at: number): ChatChunk[] {
  const scanner = createSseScanner({ eventBytesMax: 1_000_000 });
  const reader = format.reader();
  const chunks: ChatChunk[] = [];
  for (const event of [...scanner.push(bytes.subarray(0, at)), ...scanner.push(bytes.subarray(at)), ...scanner.end()]) {
    if (reader.take(event, chunks)) break;
  }
  reader.end?.(chunks);
  return chunks;
}

function collected(chunks: readonly ChatChunk[]): Loose {
  const answer = new CollectedAnswer();
  for (const { object, report } of chunks) answer.add(object, report);
  return saidIn(answer.toCompletion());
}

describe.each(PAIRS)("an answer of an upstream of %s in the format of %s", (from, to) => {
  it("arrives as it was given, whole, in pieces and split anywhere", () => {
    fc.assert(
      fc.property(answered, fc.integer({ min: 1, max: 5 }), (given, length) => {
        const message = json(toMessage(given));
        const reason = given.calls.length > 0 ? "tool_calls" : "stop";
        const completion = { id: "c", created: 1, model: MODEL, choices: [{ index: 0, message, finish_reason: reason }] } as ChatCompletion;
        const expected = saidIn(completion);

        const received = formatOf(from).readAnswer(formatOf(from).answer(completion) as never);
        expect(saidIn(formatOf(to).readAnswer(formatOf(to).answer(received) as never))).toEqual(expected);

        const bytes = formatOf(from).stream(toChunks(message, length));
        const chunks = readSplit(formatOf(from), bytes, 0).map(({ object }) => object);
        const sent = formatOf(to).stream(chunks);
        for (let at = 0; at <= sent.length; at += Math.max(1, Math.floor(sent.length / 25))) {
          expect(collected(readSplit(formatOf(to), sent, at))).toEqual(expected);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe.each(NAMES)("completions with an upstream of %s", (name) => {
  it("send their prompt, and return its text, whole and in pieces", () => {
    fc.assert(
      fc.property(text, text, fc.integer({ min: 1, max: 5 }), (prompt, said, length) => {
        const { chat } = fromCompletion({ model: MODEL, prompt, max_tokens: 9 });
        const frame = { id: "cmpl-1", created: 1, model: MODEL, echo: "", choices: 1 };
        const completion = {
          choices: [{ index: 0, message: { role: "assistant", content: said }, finish_reason: "stop" }],
        } as ChatCompletion;
        const received = formatOf(name).readAnswer(formatOf(name).answer(completion) as never);
        const bytes = formatOf(name).stream(toChunks({ content: said }, length));
        const pieces = new CompletionChunks(frame);

        expect(plain(formatOf(name).read(formatOf(name).build(chat).request).chat.messages)).toEqual(
          plain([{ role: "user", content: prompt }]),
        );
        expect(toTextCompletion(frame, received, null).choices).toMatchObject([{ text: said, finish_reason: "stop" }]);
        const streamed = readSplit(formatOf(name), bytes, bytes.length >> 1).flatMap(({ object }) => pieces.read(object));
        expect(streamed.flatMap(({ choices }) => choices.map((choice) => choice.text)).join("")).toBe(said);
      }),
      { numRuns: 60 },
    );
  });
});
