import { describe, expect, it } from "vitest";
import { z } from "zod";
import { NO_MESSAGE_USAGE } from "../../../src/formats/anthropic-messages/answer.js";
import { messageFields } from "../../../src/formats/anthropic-messages/request.js";
import { type MessageEvent, MessageEvents } from "../../../src/formats/anthropic-messages/stream.js";
import { toChat } from "../../../src/formats/anthropic-messages/to-chat.js";
import { EXCESS_MAX, findExcess, processorMs } from "../../support/growth.js";

const OTHER_FORMAT = { isNative: false, betas: [], hasLongContext: false, withoutThinking: null } as const;

type Loose = Record<string, unknown>;

/** The blocks as a client builds them from the events; throws for events out of order. */
function assemble(events: readonly MessageEvent[]): Loose[] {
  const blocks: Loose[] = [];
  let open: number | null = null;
  for (const event of events) {
    if (event.type === "content_block_start") {
      expect([open, event.index]).toEqual([null, blocks.length]);
      open = event.index as number;
      blocks.push({ ...(event.content_block as Loose), json: "" });
    } else if (event.type === "content_block_delta") {
      expect(event.index).toBe(open);
      grow(blocks.at(-1) as Loose, event.delta as Loose);
    } else if (event.type === "content_block_stop") {
      expect(event.index).toBe(open);
      open = null;
    }
  }
  expect(open).toBeNull();
  return blocks.map(({ json, ...block }) => (block.type === "tool_use" ? { ...block, input: JSON.parse(String(json) || "{}") } : block));
}

function grow(block: Loose, delta: Loose): void {
  if (delta.type === "text_delta") block.text = String(block.text) + String(delta.text);
  if (delta.type === "thinking_delta") block.thinking = String(block.thinking) + String(delta.thinking);
  if (delta.type === "signature_delta") block.signature = delta.signature;
  if (delta.type === "input_json_delta") block.json = String(block.json) + String(delta.partial_json);
  if (delta.type === "citations_delta") block.citations = [...((block.citations as unknown[]) ?? []), delta.citation];
}

function run(deltas: readonly Loose[], finishReason = "stop") {
  const stream = new MessageEvents({ id: "msg_1", model: "m" });
  const whole = new MessageEvents({ id: "msg_1", model: "m" }, true);
  for (const delta of deltas) whole.read({ choices: [{ index: 0, delta }] });
  whole.read({ choices: [{ index: 0, delta: {}, finish_reason: finishReason }] });
  const events = [...stream.begin(), ...deltas.flatMap((delta) => stream.read({ choices: [{ index: 0, delta }] }))];
  events.push(...stream.read({ choices: [{ index: 0, delta: {}, finish_reason: finishReason }] }));
  return { events: [...events, ...stream.end(NO_MESSAGE_USAGE)], message: whole.whole(NO_MESSAGE_USAGE) };
}

const piece = (index: number, rest: Loose) => ({ tool_calls: [{ index, ...rest }] });
const begun = (index: number, args = "") =>
  piece(index, { id: `call_${index}`, type: "function", function: { name: `f${index}`, arguments: args } });
const more = (index: number, args: string) => piece(index, { function: { arguments: args } });

describe("a streamed message", () => {
  it("sends each text as it comes, between the events of its message", () => {
    const { events, message } = run([{ role: "assistant", content: "" }, { content: "Hel" }, { content: "lo" }]);

    expect(events.map(({ type }) => type)).toEqual([
      ...["message_start", "ping", "content_block_start", "content_block_delta", "content_block_delta", "content_block_stop"],
      ...["message_delta", "message_stop"],
    ]);
    expect(assemble(events)).toEqual([{ type: "text", text: "Hello" }]);
    expect(message).toMatchObject({ content: [{ type: "text", text: "Hello" }], stop_reason: "end_turn" });
  });

  it("streams a call's input in its pieces", () => {
    const stream = new MessageEvents({ id: "msg_1", model: "m" });
    const read = (delta: Loose) => stream.read({ choices: [{ index: 0, delta }] });
    read(begun(0));

    expect(read(more(0, '{"a"'))).toEqual([
      { type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"a"' } },
    ]);
  });

  it("opens the next call as soon as the one before it is complete", () => {
    const stream = new MessageEvents({ id: "msg_1", model: "m" });
    const read = (delta: Loose) => stream.read({ choices: [{ index: 0, delta }] });
    read(begun(0, '{"a":"}"}'));

    expect(read(begun(1)).map(({ type }) => type)).toEqual(["content_block_stop", "content_block_start"]);
  });

  it("keeps one block open at a time in every order of the pieces of two calls", () => {
    const first = [begun(0), more(0, '{"a":'), more(0, "[1,"), more(0, "2]}")];
    const second = [begun(1), more(1, '{"b"'), more(1, ':"{"}')];
    for (const order of interleavings(first, second)) {
      const { events, message } = run([{ content: "I look." }, ...order], "tool_calls");

      const calls = [
        { type: "tool_use", id: "call_0", name: "f0", input: { a: [1, 2] } },
        { type: "tool_use", id: "call_1", name: "f1", input: { b: "{" } },
      ];
      const began = order[0] === first[0] ? calls : calls.toReversed();
      expect(assemble(events)).toEqual([{ type: "text", text: "I look." }, ...began]);
      expect(message.content).toEqual([{ type: "text", text: "I look." }, ...began]);
      expect(message.stop_reason).toBe("tool_use");
    }
  });

  it("waits for a call's name, and keeps text that comes between", () => {
    const { events } = run([
      piece(0, { id: "call_0", function: { arguments: "{" } }),
      { content: "x" },
      piece(0, { function: { name: "f", arguments: "}" } }),
    ]);

    expect(assemble(events)).toEqual([
      { type: "tool_use", id: "call_0", name: "f", input: {} },
      { type: "text", text: "x" },
    ]);
  });

  it("keeps arguments that are no object", () => {
    const { message } = run([begun(0, '{"cut": "o')], "length");

    expect(message).toMatchObject({ content: [{ input: { arguments: '{"cut": "o' } }], stop_reason: "max_tokens" });
  });

  it.each([
    ["stop", "end_turn"],
    ["length", "max_tokens"],
    ["content_filter", "refusal"],
    ["tool_calls", "tool_use"],
  ])("ends %s as %s", (reason, expected) => {
    expect(run([{ content: "x" }], reason).message.stop_reason).toBe(expected);
  });

  it("cites pages in the text, and in an empty one where there is none", () => {
    const annotations = [{ type: "url_citation", url_citation: { url: "https://example.com/", title: "Example" } }];
    const citation = {
      type: "web_search_result_location",
      url: "https://example.com/",
      title: "Example",
      cited_text: "",
      encrypted_index: "",
    };

    expect(assemble(run([{ content: "x" }, { annotations }]).events)).toEqual([{ type: "text", text: "x", citations: [citation] }]);
    expect(assemble(run([{ annotations }]).events)).toEqual([{ type: "text", text: "", citations: [citation] }]);
  });
});

describe("what a vendor signed", () => {
  const detail = { type: "reasoning.text", index: 0, text: "Hmm.", extra_content: { anthropic: { signature: "sig" } } };
  const extra = { google: { thought_signature: "call-sig" } };

  it("travels out and back in blocks of the next request", () => {
    const called = { ...begun(0, "{}").tool_calls[0], extra_content: extra };
    const { events, message } = run([
      { reasoning_content: "Hmm." },
      { reasoning_details: [detail] },
      { content: "Yes." },
      { tool_calls: [called] },
    ]);
    const request = z.looseObject(messageFields).parse({
      model: "m",
      max_tokens: 1,
      messages: [
        { role: "user", content: "u" },
        { role: "assistant", content: message.content },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "call_0", content: "r" }] },
      ],
    });
    const { chat } = toChat(request, { ...OTHER_FORMAT, hasEffort: true, concernsMoney: () => false });

    expect(assemble(events).map(({ type }) => type)).toEqual(["thinking", "text", "tool_use", "redacted_thinking"]);
    expect((chat.messages as Loose[])[1]).toMatchObject({
      content: "Yes.",
      reasoning_content: "Hmm.",
      reasoning_details: [{ type: "reasoning.text", text: "Hmm.", extra_content: { anthropic: { signature: "sig" } } }],
      tool_calls: [{ id: "call_0", extra_content: extra }],
    });
  });
});

describe("the work of a stream", () => {
  const unsigned = { reasoning_content: "a", content: "b", reasoning_details: [{ type: "reasoning.text", text: "a" }] };

  it.each<[string, (index: number) => Loose]>([
    ["pieces of one call", () => more(0, "0123456789")],
    ["thoughts and texts in turns", () => unsigned],
    ["calls", (index: number) => begun(index, "{}")],
    ["calls that never end", (index: number) => begun(index, "{")],
  ])("grows with its length: %s", (_, delta) => {
    const excess = findExcess(
      (size) =>
        processorMs(() => {
          const stream = new MessageEvents({ id: "msg_1", model: "m" });
          const first: Loose = begun(0, "{");
          stream.read({ choices: [{ index: 0, delta: first }] });
          for (let index = 0; index < size; index += 1) stream.read({ choices: [{ index: 0, delta: delta(index) }] });
          stream.end(NO_MESSAGE_USAGE);
        }),
      { least: 1_000, steps: 3 },
    );

    expect(excess).toBeLessThan(EXCESS_MAX);
  });
});

function interleavings<Item>(first: readonly Item[], second: readonly Item[]): Item[][] {
  const [a, ...restA] = first;
  const [b, ...restB] = second;
  if (a === undefined || b === undefined) return [[...first, ...second]];
  return [...interleavings(restA, second).map((rest) => [a, ...rest]), ...interleavings(first, restB).map((rest) => [b, ...rest])];
}
