import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { ChatChunkObject } from "../../../src/formats/openai-chat/schema.js";
import { type ResponseEvent, ResponseEvents } from "../../../src/formats/openai-responses/stream.js";
import { SignedReader } from "../../../src/formats/signatures.js";

type Loose = Record<string, unknown>;

const weather = { type: "function" as const, name: "get_weather", parameters: {} };

function read(
  deltas: readonly Loose[],
  { finish = "tool_calls", request = {}, logprobs }: { finish?: string; request?: Loose; logprobs?: unknown } = {},
) {
  const input = { input: "hi", ...request } as never;
  const tools = (request.tools ?? [weather]) as never;
  const reader = new ResponseEvents({ id: "resp_1", createdAt: 1, model: "m", input, tools });
  const chunks: ChatChunkObject[] = deltas.map((delta) => ({ choices: [{ index: 0, delta, logprobs }] }));
  const events = [...reader.begin(), ...chunks.flatMap((chunk) => reader.read(chunk))];
  events.push(...reader.read({ choices: [{ index: 0, delta: {}, finish_reason: finish }] }));
  const { events: last, response } = reader.end();
  return { events: [...events, ...last], output: response.output as unknown as Loose[], response };
}

const begin = (index: number, id: string, name: string) => ({
  tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }],
});
const grow = (index: number, piece: string) => ({ tool_calls: [{ index, function: { arguments: piece } }] });
const types = (events: readonly ResponseEvent[]) => events.map(({ type }) => type.replace("response.", ""));
const callsIn = (output: readonly Loose[]) =>
  output.filter(({ type }) => type === "function_call").map(({ call_id, name, arguments: given }) => [call_id, name, given]);

/** Each item is announced once and finished once, at one place of its own, with the deltas that make up its text. */
function expectWhole(events: readonly ResponseEvent[], output: readonly Loose[]): void {
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index));
  const added = events.filter(({ type }) => type === "response.output_item.added");
  const done = events.filter(({ type }) => type === "response.output_item.done");
  expect(added.map((event) => event.output_index)).toEqual(output.map((_, index) => index));
  expect(done.map((event) => event.item).sort(byPlace(done))).toEqual(output);
  for (const [index, item] of output.entries()) {
    if (item.type !== "function_call") continue;
    const deltas = events.filter((event) => event.type === "response.function_call_arguments.delta" && event.output_index === index);
    expect(deltas.map(({ delta }) => delta).join("")).toBe(item.arguments);
  }
}

function byPlace(done: readonly ResponseEvent[]) {
  const places = new Map(done.map((event) => [event.item, event.output_index as number]));
  return (one: unknown, other: unknown) => (places.get(one) as number) - (places.get(other) as number);
}

describe("calls of a streamed response", () => {
  it("puts pieces that come in turns together", () => {
    const both = { tool_calls: [...begin(0, "call_a", "get_weather").tool_calls, ...begin(1, "call_b", "get_time").tool_calls] };

    const { events, output } = read([both, grow(0, '{"city":'), grow(1, '{"zone":'), grow(0, '"Oslo"}'), grow(1, '"CET"}')]);

    expect(callsIn(output)).toEqual([
      ["call_a", "get_weather", '{"city":"Oslo"}'],
      ["call_b", "get_time", '{"zone":"CET"}'],
    ]);
    expectWhole(events, output);
  });

  it("gives in every order of pieces what each call's pieces give alone", () => {
    const pieces = fc.array(fc.string({ minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 4 });
    const calls = fc.array(pieces, { minLength: 2, maxLength: 3 });

    fc.assert(
      fc.property(calls, fc.infiniteStream(fc.nat()), (stated, draws) => {
        const left = stated.map((each, index) => [
          begin(index, `call_${index}`, `tool_${index}`),
          ...each.map((piece) => grow(index, piece)),
        ]);
        const deltas: Loose[] = [];
        for (let waiting = left.filter((each) => each.length > 0); waiting.length > 0; waiting = left.filter((each) => each.length > 0)) {
          deltas.push(waiting[(draws.next().value as number) % waiting.length]?.shift() as Loose);
        }

        const { events, output } = read(deltas);

        const order = callsIn(output).toSorted(([one], [other]) => String(one).localeCompare(String(other)));
        expect(order).toEqual(stated.map((each, index) => [`call_${index}`, `tool_${index}`, each.join("")]));
        expectWhole(events, output);
      }),
      { numRuns: 500 },
    );
  });

  it("announces a call when its name is known, with the pieces that came before", () => {
    const { events, output } = read([
      { tool_calls: [{ index: 0, id: "call_a", function: { arguments: '{"a"' } }] },
      { tool_calls: [{ index: 0, function: { name: "get_weather", arguments: ":1}" } }] },
    ]);

    expect(callsIn(output)).toEqual([["call_a", "get_weather", '{"a":1}']]);
    expect(events.find(({ type }) => type === "response.output_item.added")?.item).toMatchObject({
      name: "get_weather",
      call_id: "call_a",
    });
    expectWhole(events, output);
  });

  it("shows a call without a name, which was paid for", () => {
    const { events, output } = read([{ tool_calls: [{ index: 0, id: "call_a", function: { arguments: "{}" } }] }]);

    expect(callsIn(output)).toEqual([["call_a", "", "{}"]]);
    expectWhole(events, output);
  });

  it("keeps a call whole around a text that comes in between", () => {
    const { events, output } = read([begin(0, "call_a", "get_weather"), grow(0, "{"), { content: "Wait." }, grow(0, "}")]);

    expect(output.map(({ type }) => type)).toEqual(["function_call", "message"]);
    expect(callsIn(output)).toEqual([["call_a", "get_weather", "{}"]]);
    expectWhole(events, output);
  });

  it("is of a function when an upstream says that it is not custom", () => {
    const { output } = read([{ tool_calls: [{ ...begin(0, "a", "f").tool_calls[0], custom: null }] }, grow(0, "{}")]);

    expect(callsIn(output)).toEqual([["a", "f", "{}"]]);
  });

  it("calls only the last call unfinished when the answer was cut", () => {
    const { output } = read([begin(0, "a", "one"), grow(0, "{}"), begin(1, "b", "two"), grow(1, '{"x')], { finish: "length" });

    expect(output.map(({ status }) => status)).toEqual(["completed", "incomplete"]);
  });

  it("splits the name of a tool in a group", () => {
    const group = {
      type: "namespace",
      name: "mcp__sluice",
      tools: [
        { type: "function", name: "list_models" },
        { type: "custom", name: "patch" },
      ],
    };
    const deltas = [
      begin(0, "call_a", "mcp__sluice__list_models"),
      grow(0, "{}"),
      begin(1, "call_b", "mcp__sluice__patch"),
      grow(1, '{"input":"x"}'),
    ];

    const { events, output } = read(deltas, { request: { tools: [group] } });

    expect(output).toMatchObject([
      { type: "function_call", call_id: "call_a", name: "list_models", namespace: "mcp__sluice", arguments: "{}" },
      { type: "custom_tool_call", call_id: "call_b", name: "patch", namespace: "mcp__sluice", input: "x" },
    ]);
    expectWhole(events, output);
  });
});

describe("texts of a streamed response", () => {
  const chatCitation = { type: "url_citation", url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 2 } };
  const citation = { type: "url_citation", url: "https://a.example", title: "A", start_index: 0, end_index: 2 };

  it.each([
    ["with the text", [{ content: "Hi" }, { annotations: [chatCitation] }]],
    ["before the text", [{ annotations: [chatCitation] }, { content: "Hi" }]],
  ])("has citations that come %s", (_, deltas) => {
    const { events, output } = read(deltas, { finish: "stop" });

    expect(output).toMatchObject([{ type: "message", content: [{ type: "output_text", text: "Hi", annotations: [citation] }] }]);
    expect(events.find(({ type }) => type === "response.output_text.annotation.added")).toMatchObject({
      output_index: 0,
      content_index: 0,
      annotation_index: 0,
      annotation: citation,
    });
    expectWhole(events, output);
  });

  it("has logprobs in its deltas and in the whole", () => {
    const content = [{ token: "Hi", logprob: -0.1, bytes: [72, 105], top_logprobs: [] }];

    const { events, output } = read([{ content: "Hi" }], { finish: "stop", logprobs: { content, refusal: null } });

    expect(events.find(({ type }) => type === "response.output_text.delta")?.logprobs).toEqual(content);
    expect(output).toMatchObject([{ content: [{ logprobs: content }] }]);
  });

  it("takes an empty thought for none", () => {
    const { output } = read([{ reasoning_content: "", reasoning: "Hmm." }, { content: "Hi" }], { finish: "stop" });

    expect(output).toMatchObject([{ type: "reasoning", content: [{ text: "Hmm." }] }, { type: "message" }]);
  });

  it("says twice that it failed, in the event of each kind of client", () => {
    const reader = new ResponseEvents({ id: "resp_1", createdAt: 1, model: "m", input: { input: "hi" } as never, tools: [] });
    reader.begin();

    const events = reader.fail({ code: "KEY_BUDGET_EXHAUSTED", message: "Too little.", param: null });

    expect(types(events)).toEqual(["error", "failed"]);
    expect(events[0]).toMatchObject({ code: "KEY_BUDGET_EXHAUSTED", error: { code: "KEY_BUDGET_EXHAUSTED" }, sequence_number: 2 });
    expect(events[1]).toMatchObject({ response: { status: "failed", error: { code: "insufficient_quota", message: "Too little." } } });
  });

  it.each([
    ["INSUFFICIENT_BALANCE", undefined, "insufficient_quota"],
    ["UPSTREAM_ERROR", { upstreamCode: "context_length_exceeded" }, "context_length_exceeded"],
    ["UPSTREAM_ERROR", { upstreamCode: "insufficient_quota" }, "server_error"],
    ["INTERNAL_ERROR", undefined, "server_error"],
  ])("names a failure %s %j in OpenAI's words", (code, details, expected) => {
    const reader = new ResponseEvents({ id: "resp_1", createdAt: 1, model: "m", input: { input: "hi" } as never, tools: [] });

    expect(reader.fail({ code, message: "m", details }).at(-1)).toMatchObject({ response: { error: { code: expected } } });
  });
});

describe("what a vendor signed", () => {
  const signed = (text: string) => ({ type: "reasoning.text", index: 0, text, extra_content: { anthropic: { signature: "sig" } } });

  it("leaves with the thought that it signs", () => {
    const { events, output } = read([{ reasoning_content: "Hmm." }, { reasoning_details: [signed("Hmm.")] }, { content: "Hi" }], {
      finish: "stop",
    });

    expect(output).toMatchObject([
      { type: "reasoning", content: [{ text: "Hmm." }], encrypted_content: expect.any(String) },
      { type: "message" },
    ]);
    expect(new SignedReader().read(output[0]?.encrypted_content).thoughts).toEqual([signed("Hmm.")]);
    expectWhole(events, output);
  });

  it("is put together from pieces", () => {
    const pieces = [
      { type: "reasoning.text", index: 0, text: "Hm" },
      { type: "reasoning.text", index: 0, text: "m." },
      { type: "reasoning.text", index: 0, signature: "sig" },
    ];

    const { output } = read([...pieces.map((piece) => ({ reasoning: piece.text ?? "", reasoning_details: [piece] })), { content: "Hi" }]);

    expect(new SignedReader().read(output[0]?.encrypted_content).thoughts).toEqual([
      { type: "reasoning.text", index: 0, text: "Hmm.", signature: "sig" },
    ]);
  });

  it("leaves without a text that can be read, and with calls", () => {
    const redacted = { type: "reasoning.text", index: 0, text: "", extra_content: { anthropic: { redactedData: "r" } } };
    const extra = { google: { thoughtSignature: "t" } };
    const call = { tool_calls: [{ index: 0, function: {}, extra_content: extra }] };

    const { events, output } = read([{ reasoning_details: [redacted] }, begin(0, "call_a", "get_weather"), grow(0, "{}"), call]);

    const [, last] = output;
    expect(last).toMatchObject({ type: "reasoning", summary: [], content: [] });
    expect(new SignedReader().read(last?.encrypted_content)).toEqual({ thoughts: [redacted], calls: new Map([["call_a", extra]]) });
    expectWhole(events, output);
  });

  it.each([
    [undefined],
    ["gAAAAB"],
    ["sluice1.!"],
    ["sluice1.WzFd"],
    [`sluice1.${Buffer.from('{"thoughts":1,"calls":[1]}').toString("base64url")}`],
  ])("is nothing in content of others: %s", (content) => {
    expect(new SignedReader().read(content)).toEqual({ thoughts: [], calls: new Map() });
  });
});
