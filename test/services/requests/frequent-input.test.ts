/**
 * Compiled parsers against their schema: the same input is accepted, with the same output, and refused in the same
 * words.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type * as z from "zod";
import { chatCompletionInput } from "../../../src/services/generation/chat/plan.js";
import { parsedOften, parseInput } from "../../../src/services/requests/input.js";

const compiled = parsedOften(chatCompletionInput.meta({}));
const plain = chatCompletionInput.meta({});

function outcome(schema: z.ZodType, input: unknown): unknown {
  try {
    const output = parseInput(schema, input);
    return { output, text: JSON.stringify(output) };
  } catch (error) {
    return { error };
  }
}

const messages = [{ role: "user", content: "Hello" }];
const ordinary: readonly [name: string, body: Readonly<Record<string, unknown>>][] = [
  ["a question", { messages }],
  ["a model", { model: "acme/chat", messages }],
  ["every number", { messages, temperature: 0.7, top_p: 1, n: 2, seed: -1, max_tokens: 256, presence_penalty: -2, frequency_penalty: 2 }],
  ["two names of one cap", { messages, max_tokens: 5, max_completion_tokens: 5 }],
  [
    "a conversation",
    { messages: [{ role: "system", content: "Be brief." }, ...messages, { role: "assistant", content: null }, ...messages] },
  ],
  ["a stream", { messages, stream: true, stream_options: { include_usage: true } }],
  [
    "nothing, said with null",
    { model: null, messages, stream: null, temperature: null, max_tokens: null, tools: null, stop: null, safe: null },
  ],
  [
    "a picture",
    {
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "What?" },
            { type: "image_url", image_url: { url: "data:," } },
          ],
        },
      ],
    },
  ],
  [
    "tools",
    { messages, tools: [{ type: "function", function: { name: "f", parameters: {} } }], tool_choice: "auto", parallel_tool_calls: false },
  ],
  [
    "a called tool",
    { messages: [...messages, { role: "assistant", tool_calls: [{ id: "c" }] }, { role: "tool", tool_call_id: "c", content: "1" }] },
  ],
  ["JSON", { messages, response_format: { type: "json_schema", json_schema: { name: "a", schema: { type: "object" } } } }],
  ["stops", { messages, stop: ["a", "b"], logprobs: true, top_logprobs: 3, reasoning_effort: "low", safe: "privacy" }],
  ["unknown fields", { messages, user: "u", metadata: { a: "b" }, toString: 1, constructor: { prototype: 2 }, logit_bias: { 5: 1 } }],
];

describe("a chat", () => {
  it.each(ordinary)("of %s is checked by compiled code alone", (_name, body) => {
    const watched = chatCompletionInput.meta({});
    let asked = 0;
    const { safeParse } = watched;
    Object.assign(watched, {
      safeParse: (...parameters: Parameters<typeof safeParse>) => {
        asked += 1;
        return safeParse(...parameters);
      },
    });

    expect(outcome(parsedOften(watched), body)).toEqual(outcome(plain, body));
    expect(asked).toBe(0);
    // One that is wrong is read until its first mistake, and as it is small, once more for all of them.
    expect(() => parseInput(watched, { messages: 5 })).toThrow("messages: expected an array");
    expect(asked).toBe(2);
  });

  it("gives the same result from the schema and from compiled code", () => {
    const odd = fc.constantFrom<unknown>(null, true, 0, -1, 1.5, 1e21, "", "x", [], {}, ["x"], [5], { type: "text" }, { include_usage: 1 });
    const text = fc.oneof(fc.string(), fc.constantFrom("user", "assistant", "text", "__proto__"));
    const part = fc.oneof(
      fc.record({ type: fc.constantFrom("text", "image_url", "refusal", "video"), text: fc.oneof(text, odd) }, { requiredKeys: [] }),
      odd,
    );
    const message = fc.record(
      {
        role: fc.oneof(fc.constantFrom("system", "user", "assistant", "tool", "function", "other"), odd),
        content: fc.oneof(text, fc.array(part, { maxLength: 3 }), odd),
        name: fc.oneof(text, odd),
        tool_calls: fc.oneof(fc.array(fc.oneof(fc.dictionary(text, odd), odd), { maxLength: 2 }), odd),
        extra: fc.jsonValue(),
      },
      { requiredKeys: ["role"] },
    );
    const number = fc.oneof(fc.integer({ min: -3, max: 130 }), fc.double({ min: -3, max: 3, noNaN: true }), odd);
    const body = fc.record(
      {
        model: fc.oneof(text, odd),
        messages: fc.oneof({ weight: 9, arbitrary: fc.array(message, { maxLength: 3 }) }, { weight: 1, arbitrary: odd }),
        stream: fc.oneof(fc.boolean(), odd),
        stream_options: fc.oneof(fc.record({ include_usage: fc.boolean() }), odd),
        ...{ temperature: number, top_p: number, n: number, seed: number, max_tokens: number, max_completion_tokens: number },
        ...{ presence_penalty: number, frequency_penalty: number, top_logprobs: number, logprobs: odd },
        stop: fc.oneof(text, fc.array(text, { maxLength: 2 }), odd),
        tools: fc.oneof(fc.array(fc.record({ type: fc.oneof(text, odd) }), { maxLength: 2 }), odd),
        tool_choice: odd,
        response_format: fc.oneof(
          fc.record(
            { type: fc.constantFrom("text", "json_schema"), json_schema: fc.oneof(fc.record({ name: text }), odd) },
            { requiredKeys: ["type"] },
          ),
          odd,
        ),
        reasoning_effort: odd,
        safe: fc.oneof(text, fc.boolean(), odd),
        extra: fc.jsonValue(),
      },
      { requiredKeys: ["messages"] },
    );

    fc.assert(
      fc.property(body, fc.jsonValue(), (sent, own) => {
        // As it comes: also with a name that every object's prototype has.
        const input: unknown = JSON.parse(`${JSON.stringify(sent).slice(0, -1)},"__proto__":${JSON.stringify(own)},"valueOf":1}`);
        expect(outcome(compiled, input)).toEqual(outcome(plain, input));
        expect(outcome(compiled, sent)).toEqual(outcome(plain, sent));
      }),
      { numRuns: 300 },
    );
  });
});
