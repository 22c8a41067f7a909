/** From Gemini's format to Gemini's format: a chat between them loses nothing. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { toUsageMetadata } from "../../../src/formats/gemini/answer.js";
import { withCamelNames } from "../../../src/formats/gemini/field-names.js";
import { generateContentFields } from "../../../src/formats/gemini/request.js";
import { GeminiAnswers } from "../../../src/formats/gemini/stream.js";
import { toChat } from "../../../src/formats/gemini/to-chat.js";
import { toCompletion } from "../../../src/formats/gemini/upstream-answer.js";
import { toGeminiRequest } from "../../../src/formats/gemini/upstream-request.js";
import { AnswerStreamEvents } from "../../../src/formats/gemini/upstream-stream.js";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { createSseScanner, formatSseEvent } from "../../../src/lib/sse.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import { refusalOf } from "../../support/strict-gemini.js";

type Loose = Record<string, unknown>;

const MODEL = "gemini-3.5-flash";
const USAGE = toUsageMetadata(NO_USAGE, 0);
const FRAME = { id: "g", model: "m", includesThoughts: true };
const request = z.preprocess(withCamelNames, z.looseObject(generateContentFields));

const text = fc.string({ minLength: 1, maxLength: 8 });
const signature = fc.stringMatching(/^[A-Za-z0-9]{4,12}$/).map((value) => Buffer.from(value).toString("base64"));
const json = fc.dictionary(fc.stringMatching(/^[a-z_]{2,6}$/), fc.jsonValue(), { noNullPrototype: true });
const picture = fc.constant({ inlineData: { mimeType: "image/png", data: "AAAA" } });
const call = fc.record({
  name: fc.constantFrom("f", "g"),
  args: json,
  response: fc.oneof(
    json,
    text.map((output) => ({ output })),
  ),
});
const turn = fc.record({
  asked: fc.oneof(
    text.map((value) => [{ text: value }]),
    fc.tuple(
      text.map((value) => ({ text: value })),
      picture,
    ),
  ),
  said: fc.option(text, { nil: undefined }),
  signature: fc.option(signature, { nil: undefined }),
  calls: fc.array(call, { maxLength: 3 }),
});

/** Contents as Google's own models and clients write them. */
function toContents(turns: readonly (typeof turn extends fc.Arbitrary<infer Turn> ? Turn : never)[]): Loose[] {
  let ids = 0;
  return turns.flatMap(({ asked, said, signature: signed, calls }) => {
    const named = calls.map((one) => ({ ...one, id: `id_${ids++}` }));
    const parts: Loose[] = [
      ...(said === undefined ? [] : [{ text: said }]),
      ...named.map(({ id, name, args }, index) => ({
        functionCall: { id, name, args },
        ...(index === 0 && { thoughtSignature: signed ?? "c2ln" }),
      })),
    ];
    if (calls.length === 0 && signed !== undefined) parts.splice(-1, 1, { text: said ?? "", thoughtSignature: signed });
    const results = named.map(({ id, name, response }) => ({ functionResponse: { id, name, response } }));
    return [
      { role: "user", parts: [...asked] },
      ...(parts.length > 0 ? [{ role: "model", parts }] : []),
      ...(results.length > 0 ? [{ role: "user", parts: results }] : []),
    ];
  });
}

/** Contents of one role in a row as one. */
function merged(contents: readonly Loose[]): Loose[] {
  const all: { role: unknown; parts: unknown[] }[] = [];
  for (const { role, parts } of contents as { role: unknown; parts: unknown[] }[]) {
    const last = all.at(-1);
    if (last?.role === role) last?.parts.push(...parts);
    else all.push({ role, parts: [...parts] });
  }
  return all;
}

describe("a request", () => {
  it("reaches an upstream of the same format as it was sent", () => {
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 4 }), (turns) => {
        const contents = JSON.parse(JSON.stringify(toContents(turns))) as Loose[];
        const body = {
          contents,
          systemInstruction: { parts: [{ text: "s" }] },
          tools: [
            {
              functionDeclarations: [
                { name: "f", parametersJsonSchema: { type: "object", properties: { a: { type: "string" } } } },
                { name: "g" },
              ],
            },
          ],
          generationConfig: {
            temperature: 0.5,
            topK: 3,
            maxOutputTokens: 9,
            thinkingConfig: { includeThoughts: true, thinkingLevel: "HIGH" },
          },
          safetySettings: [{ category: "c", threshold: "BLOCK_NONE" }],
        };
        const target = { hasEffort: true, isNative: true, isPricedTool: () => false, concernsMoney: () => false };
        const { chat, warnings } = toChat("m", request.parse(body), target);
        const sent = toGeminiRequest(chat, MODEL);

        expect([...warnings, ...sent.warnings]).toEqual([]);
        expect(sent.fields).toEqual({ ...body, contents: merged(contents) });
        expect(refusalOf(sent.fields as Loose, MODEL)).toBeNull();
      }),
      { numRuns: 300 },
    );
  });
});

const answerParts = fc
  .record({ thought: fc.option(text), said: fc.option(text), signature: fc.option(signature), calls: fc.array(call, { maxLength: 3 }) })
  .map(({ thought, said, signature: signed, calls }) => {
    const named = calls.map(({ name, args }, index) => ({
      functionCall: { id: `id_${index}`, name, args },
      ...(index === 0 && signed !== null && { thoughtSignature: signed }),
    }));
    const parts = [
      ...(thought === null ? [] : [{ text: thought, thought: true }]),
      ...(said === null ? [] : [{ text: said }]),
      ...named,
      ...(calls.length === 0 && signed !== null ? [{ text: "", thoughtSignature: signed }] : []),
    ];
    // Minus zero is no number of JSON.
    return JSON.parse(JSON.stringify(parts)) as Loose[];
  });

/** The parts of a streamed answer, with its texts put together. */
function joined(parts: readonly Loose[]): Loose[] {
  const all: Loose[] = [];
  for (const part of parts) {
    const last = all.at(-1);
    const isMore = last?.text !== undefined && part.text !== undefined && last.thought === part.thought;
    if (last !== undefined && isMore && part.thoughtSignature === undefined) last.text = `${String(last.text)}${String(part.text)}`;
    else if (part.text !== "" || part.thoughtSignature !== undefined) all.push({ ...part });
  }
  return all;
}

describe("an answer", () => {
  it("reaches a client of the same format as it was given, whole, streamed and split at every byte", () => {
    fc.assert(
      fc.property(answerParts, (parts) => {
        const answer = {
          candidates: [{ content: { parts, role: "model" }, finishReason: "STOP", index: 0 }],
          responseId: "r",
          modelVersion: "m",
        };
        const { choices } = toCompletion(answer);
        const whole = GeminiAnswers.whole(
          FRAME,
          { choices: (choices ?? []).map(({ message, ...choice }) => ({ ...choice, delta: message ?? null })) },
          USAGE,
        );
        const pieces = parts.map((part, index) => ({
          ...answer,
          candidates: [
            { content: { parts: [part], role: "model" }, index: 0, ...(index === parts.length - 1 && { finishReason: "STOP" }) },
          ],
        }));
        const bytes = Buffer.concat((parts.length === 0 ? [answer] : pieces).map((piece) => formatSseEvent(JSON.stringify(piece))));

        const partsOf = ({ candidates }: typeof whole) => candidates[0]?.content.parts ?? [];
        expect(joined(partsOf(whole) as Loose[])).toEqual(joined(parts));
        for (let at = 0; at <= bytes.length; at += Math.max(1, Math.floor(bytes.length / 40))) {
          const scanner = createSseScanner({ eventBytesMax: 100_000 });
          const events = new AnswerStreamEvents([]);
          const chunks: ChatChunk[] = [];
          for (const event of [...scanner.push(bytes.subarray(0, at)), ...scanner.push(bytes.subarray(at)), ...scanner.end()])
            events.take(event, chunks);
          expect(events.isWhole).toBe(true);
          events.end(chunks);
          const answers = new GeminiAnswers(FRAME);
          const all = [...chunks.flatMap(({ object }) => answers.read(object)), answers.end(USAGE)];
          expect(joined(all.flatMap(partsOf) as Loose[])).toEqual(joined(parts));
        }
      }),
      { numRuns: 100 },
    );
  });
});
