import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import type { AnswerPart, GenerateContentAnswer } from "../../../src/formats/gemini/answer.js";
import { toUsageMetadata } from "../../../src/formats/gemini/answer.js";
import { toGeminiError } from "../../../src/formats/gemini/errors.js";
import { withCamelNames } from "../../../src/formats/gemini/field-names.js";
import { generateContentFields } from "../../../src/formats/gemini/request.js";
import { GeminiAnswers } from "../../../src/formats/gemini/stream.js";
import { toChat } from "../../../src/formats/gemini/to-chat.js";
import { ArrayWriting, EventWriting } from "../../../src/formats/gemini/writing.js";
import { createSseScanner } from "../../../src/lib/sse.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import { EXCESS_MAX, findExcess, processorMs } from "../../support/growth.js";

type Loose = Record<string, unknown>;

const USAGE = toUsageMetadata(NO_USAGE, 0);
const FRAME = { id: "g", model: "m", includesThoughts: true };
const chunk = (delta: Loose, finishReason: string | null = null) => ({ choices: [{ index: 0, delta, finish_reason: finishReason }] });

function run(deltas: readonly Loose[], finishReason = "stop", frame = FRAME) {
  const answers = new GeminiAnswers(frame);
  const streamed = [...deltas.map((delta) => chunk(delta)), chunk({}, finishReason)].flatMap((each) => answers.read(each));
  const all = [...streamed, answers.end(USAGE)];
  return { all, parts: all.flatMap(partsOf), last: all.at(-1) };
}

const partsOf = ({ candidates }: GenerateContentAnswer) => candidates[0]?.content.parts ?? [];
const begun = (index: number, args = "", extra?: Loose) => ({
  tool_calls: [
    {
      index,
      id: `call_${index}`,
      type: "function",
      function: { name: `f${index}`, arguments: args },
      ...(extra && { extra_content: extra }),
    },
  ],
});
const more = (index: number, args: string) => ({ tool_calls: [{ index, function: { arguments: args } }] });
const callPart = (index: number, args: Loose) => ({ functionCall: { id: `call_${index}`, name: `f${index}`, args } });

/** The request that a client sends next, as a chat. */
function backToChat(parts: readonly AnswerPart[]) {
  const request = z.preprocess(withCamelNames, z.looseObject(generateContentFields));
  const results = parts.flatMap(({ functionCall: called }) =>
    called ? [{ functionResponse: { id: called.id, name: called.name, response: { output: "r" } } }] : [],
  );
  const contents = [
    { role: "user", parts: [{ text: "u" }] },
    { role: "model", parts },
    { role: "user", parts: [...results, { text: "more" }] },
  ];
  const { chat } = toChat("m", request.parse(JSON.parse(JSON.stringify({ contents }))), {
    hasEffort: true,
    isNative: false,
    isPricedTool: () => false,
    concernsMoney: () => false,
  });
  return (chat.messages as Loose[])[1];
}

describe("a streamed generateContent", () => {
  it("sends each text as it comes, and the reason at the end", () => {
    const { all, last } = run([{ role: "assistant", content: "" }, { content: "Hel" }, { content: "lo" }], "length");

    expect(all.map(partsOf)).toEqual([[{ text: "Hel" }], [{ text: "lo" }], [{ text: "" }]]);
    expect(last).toMatchObject({
      candidates: [{ finishReason: "MAX_TOKENS", index: 0 }],
      usageMetadata: USAGE,
      modelVersion: "m",
      responseId: "g",
    });
  });

  it.each([
    ["stop", "STOP"],
    ["length", "MAX_TOKENS"],
    ["content_filter", "SAFETY"],
    ["tool_calls", "STOP"],
  ])("ends %s as %s", (reason, expected) => {
    expect(run([{ content: "x" }], reason).last?.candidates[0]?.finishReason).toBe(expected);
  });

  it("sends calls whole and in order, with their pieces in any order", () => {
    const deltas = [begun(0, '{"a":'), begun(1, "{}"), more(0, "1}"), { content: "Done." }];

    expect(run(deltas, "tool_calls").parts).toEqual([callPart(0, { a: 1 }), callPart(1, {}), { text: "Done." }, { text: "" }]);
  });

  it("keeps arguments that are no object", () => {
    expect(run([begun(0, '{"cut": "o')], "length").parts).toEqual([callPart(0, { arguments: '{"cut": "o' })]);
  });

  it("sends thoughts where the request asks for them", () => {
    const deltas = [{ reasoning_content: "Hmm." }, { content: "Yes." }];

    expect(run(deltas).parts).toEqual([{ text: "Hmm.", thought: true }, { text: "Yes." }, { text: "" }]);
    expect(run(deltas, "stop", { ...FRAME, includesThoughts: false }).parts).toEqual([{ text: "Yes." }, { text: "" }]);
  });

  it("has cited pages, pictures and probabilities of tokens", () => {
    const annotations = [{ type: "url_citation", url_citation: { url: "https://example.com/", title: "Example" } }];
    const images = [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }];
    const { parts, last } = run([{ content: "x", annotations, images }]);
    const logprobs = { content: [{ token: "x", logprob: -1, top_logprobs: [{ token: "y", logprob: -2 }] }] };
    const [first] = new GeminiAnswers(FRAME).read({ choices: [{ index: 0, delta: { content: "x" }, logprobs }] });

    expect(parts).toContainEqual({ inlineData: { mimeType: "image/png", data: "AAAA" } });
    expect(last?.candidates[0]?.groundingMetadata).toEqual({
      groundingChunks: [{ web: { uri: "https://example.com/", title: "Example" } }],
    });
    expect(first?.candidates[0]?.logprobsResult).toEqual({
      topCandidates: [{ candidates: [{ token: "y", logProbability: -2 }] }],
      chosenCandidates: [{ token: "x", logProbability: -1 }],
    });
  });
});

describe("a signature", () => {
  const claude = { type: "reasoning.text", index: 0, text: "Hmm.", extra_content: { anthropic: { signature: "sig" } } };
  const google = { google: { thought_signature: "Z29vZ2xl" } };

  it("travels in the first call behind the thoughts and back, also without the thoughts themselves", () => {
    const { parts } = run([{ reasoning_content: "Hmm." }, { reasoning_details: [claude] }, begun(0, "{}"), begun(1, "{}")]);
    const kept = parts.filter(({ thought }) => thought !== true);

    expect(kept.map(({ thoughtSignature }) => thoughtSignature === undefined)).toEqual([false, true]);
    expect(Buffer.from(kept[0]?.thoughtSignature ?? "", "base64").toString("base64")).toBe(kept[0]?.thoughtSignature);
    expect(backToChat(kept)).toMatchObject({ reasoning_details: [claude], tool_calls: [{ id: "call_0" }, { id: "call_1" }] });
  });

  it("is Google's own unchanged, on calls and on texts", () => {
    const { parts } = run([begun(0, "{}", google)]);
    const signedText = { type: "reasoning.encrypted", data: "dGV4dA==", extra_content: { google: { thought_signature: "dGV4dA==" } } };
    const text = run([{ content: "Yes." }, { reasoning_details: [signedText] }]);

    expect(parts).toEqual([{ ...callPart(0, {}), thoughtSignature: "Z29vZ2xl" }]);
    expect(backToChat(parts)).toMatchObject({ tool_calls: [{ extra_content: google }] });
    expect(text.parts).toEqual([{ text: "Yes." }, { text: "", thoughtSignature: "dGV4dA==" }]);
    expect(backToChat(text.parts)).toMatchObject({ content: "Yes.", reasoning_details: [signedText] });
  });

  it("keeps a call's signature that comes beside another vendor's thoughts", () => {
    const { parts } = run([{ reasoning_details: [claude] }, begun(0, "{}", google)]);

    expect(backToChat(parts)).toMatchObject({ reasoning_details: [claude], tool_calls: [{ extra_content: google }] });
  });
});

const text = fc.string({ minLength: 1, maxLength: 8 }).filter((value) => value.trim() !== "");
const call = fc.record({
  name: fc.stringMatching(/^[a-z]{1,8}$/),
  args: fc.dictionary(fc.stringMatching(/^[a-z_]{1,6}$/), fc.jsonValue()),
});
const turn = fc.record({ thought: fc.option(text), said: fc.option(text), calls: fc.array(call, { maxLength: 3 }) });

describe("an assistant's turn", () => {
  it("sent, and sent back by the client, is the same", () => {
    fc.assert(
      fc.property(turn, fc.integer({ min: 1, max: 4 }), ({ thought, said, calls }, size) => {
        const pieces = (value: string) => value.match(new RegExp(`[\\s\\S]{1,${size}}`, "g")) ?? [];
        const toolCalls = calls.map(({ name, args }, index) => ({
          id: `c${index}`,
          type: "function",
          function: { name, arguments: JSON.stringify(args) },
        }));
        const deltas: Loose[] = [
          ...(thought === null ? [] : pieces(thought).map((piece) => ({ reasoning_content: piece }))),
          ...(said === null ? [] : pieces(said).map((piece) => ({ content: piece }))),
          ...toolCalls.flatMap(({ function: { name, arguments: args }, ...rest }, index) => [
            { tool_calls: [{ ...rest, index, function: { name, arguments: "" } }] },
            ...pieces(args).map((piece) => more(index, piece)),
          ]),
        ];
        const whole = { role: "assistant", content: said, reasoning_content: thought, tool_calls: toolCalls };
        const { candidates } = GeminiAnswers.whole(FRAME, chunk(whole, "stop"), USAGE);
        const expected = {
          role: "assistant",
          content: said,
          ...(thought !== null && { reasoning_content: thought }),
          ...(calls.length > 0 && { tool_calls: toolCalls.map((one) => normal(one)) }),
        };

        for (const parts of [run(deltas).parts, candidates[0]?.content.parts ?? []]) {
          const back = backToChat(parts);
          if (thought === null && said === null && calls.length === 0) expect(back).toEqual({ role: "user", content: "more" });
          else expect({ ...back, ...(back?.tool_calls ? { tool_calls: (back.tool_calls as Loose[]).map(normal) } : {}) }).toEqual(expected);
        }
      }),
      { numRuns: 300 },
    );
  });
});

/** JSON of one form. */
function normal(one: Loose): Loose {
  const called = one.function as { name: string; arguments: string };
  return { ...one, function: { name: called.name, arguments: JSON.parse(called.arguments) } };
}

describe("the bytes of a stream", () => {
  const { all } = run([{ content: "Grüße\n" }, begun(0, '{"a":"ß"}')]);

  it("are events that read alike when split anywhere, and one array", () => {
    const bytes = new EventWriting().write(all);
    for (let at = 0; at <= bytes.length; at += 1) {
      const scanner = createSseScanner({ eventBytesMax: 10_000 });
      const events = [...scanner.push(bytes.subarray(0, at)), ...scanner.push(bytes.subarray(at)), ...scanner.end()];
      expect(events.map(({ data }) => JSON.parse(data))).toEqual(JSON.parse(JSON.stringify(all)));
    }
    const array = new ArrayWriting();
    const written = Buffer.concat([...all.map((answer) => array.write([answer])), array.done]).toString();
    expect(JSON.parse(written)).toEqual(JSON.parse(JSON.stringify(all)));
  });

  it("end in an error that is readable, also before anything else", () => {
    const error = toGeminiError({ code: "UPSTREAM_ERROR", message: "It failed.", param: "messages" }, 502);
    const late = new ArrayWriting();
    const early = new ArrayWriting();

    expect(JSON.parse(Buffer.concat([late.write([{ a: 1 }]), late.writeError(error)]).toString())).toEqual([{ a: 1 }, { error }]);
    expect(JSON.parse(early.writeError(error).toString())).toEqual([{ error }]);
    expect(JSON.parse(new ArrayWriting().done.toString())).toEqual([]);
    expect(error).toMatchObject({ code: 502, status: "INTERNAL", reason: "UPSTREAM_ERROR", param: "contents" });
  });
});

describe("the work of a stream", () => {
  it.each<[string, (index: number) => Loose]>([
    ["pieces of one call", () => more(0, "0123456789")],
    ["calls", (index: number) => begun(index, "{}")],
    [
      "thoughts without a signature between calls",
      (index: number) => ({ ...begun(index), reasoning_details: [{ type: "reasoning.text", text: "a" }] }),
    ],
  ])("grows with its length: %s", (_, delta) => {
    const excess = findExcess(
      (size) =>
        processorMs(() => {
          const answers = new GeminiAnswers(FRAME);
          answers.read(chunk(begun(0)));
          for (let index = 0; index < size; index += 1) {
            answers.read(chunk(delta(index)));
            if (index % 2 === 0) answers.read(chunk({ content: "x" }));
          }
          answers.end(USAGE);
        }),
      { least: 1_000, steps: 3 },
    );

    expect(excess).toBeLessThan(EXCESS_MAX);
  });
});
