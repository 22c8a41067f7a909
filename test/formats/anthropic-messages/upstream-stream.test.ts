/** Streams of an Anthropic upstream: the same answer as the whole message, wherever the bytes are split. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toCompletion } from "../../../src/formats/anthropic-messages/upstream-answer.js";
import { MessagesStreamEvents } from "../../../src/formats/anthropic-messages/upstream-stream.js";
import { CollectedAnswer } from "../../../src/formats/openai-chat/collect.js";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { createSseScanner } from "../../../src/lib/sse.js";
import { anthropicEvents, anthropicMessage } from "../../support/anthropic.js";

type Loose = Record<string, unknown>;

function toBytes(events: readonly Loose[]): Buffer {
  return Buffer.from(events.map((event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}

function read(pieces: readonly Buffer[]): ChatChunk[] {
  const scanner = createSseScanner({ eventBytesMax: 1_000_000 });
  const events = new MessagesStreamEvents(null);
  const chunks: ChatChunk[] = [];
  for (const piece of pieces) for (const event of scanner.push(piece)) events.take(event, chunks);
  return chunks;
}

function collect(chunks: readonly ChatChunk[]): Loose {
  const answer = new CollectedAnswer();
  for (const { object, report } of chunks) answer.add(object, report);
  return answer.toCompletion() as Loose;
}

/** Comparable: the time is that of the reading. */
function plain({ created: _, ...completion }: Loose): unknown {
  return JSON.parse(JSON.stringify(completion));
}

/** The events of a message, its texts and inputs in pieces of that length. */
function streamed(message: Loose, length: number): Loose[] {
  const { content, usage, stop_reason: reason, stop_sequence: sequence, ...head } = message;
  const events: Loose[] = [
    { type: "message_start", message: { ...head, content: [], usage: { ...(usage as Loose), output_tokens: 1 } } },
    { type: "ping" },
  ];
  for (const [index, block] of (content as Loose[]).entries()) {
    const delta = (more: Loose) => events.push({ type: "content_block_delta", index, delta: more });
    const begin = (empty: Loose) => events.push({ type: "content_block_start", index, content_block: empty });
    if (block.type === "text") {
      begin({ type: "text", text: "" });
      for (const piece of pieces(String(block.text), length)) delta({ type: "text_delta", text: piece });
      for (const citation of (block.citations as Loose[] | undefined) ?? []) delta({ type: "citations_delta", citation });
    } else if (block.type === "thinking") {
      begin({ type: "thinking", thinking: "", signature: "" });
      for (const piece of pieces(String(block.thinking), length)) delta({ type: "thinking_delta", thinking: piece });
      delta({ type: "signature_delta", signature: block.signature });
    } else if (block.type === "tool_use") {
      begin({ ...block, input: {} });
      for (const piece of pieces(JSON.stringify(block.input), length)) delta({ type: "input_json_delta", partial_json: piece });
    } else begin(block);
    events.push({ type: "content_block_stop", index }, { type: "an_event_of_tomorrow", index });
  }
  events.push({
    type: "message_delta",
    delta: { stop_reason: reason, stop_sequence: sequence },
    usage: { output_tokens: (usage as Loose).output_tokens },
  });
  return [...events, { type: "message_stop" }];
}

function pieces(text: string, length: number): string[] {
  return Array.from({ length: Math.ceil(text.length / length) }, (_, index) => text.slice(index * length, (index + 1) * length));
}

describe("MessagesStreamEvents", () => {
  it("gives the same chunks for every split of the bytes", () => {
    const bytes = toBytes(anthropicEvents());
    const whole = read([bytes]).map(({ object }) => plain(object as Loose));

    for (let at = 1; at < bytes.length; at += 1) {
      expect(read([bytes.subarray(0, at), bytes.subarray(at)]).map(({ object }) => plain(object as Loose))).toEqual(whole);
    }
  });

  it("gives what the whole message gives", () => {
    const text = fc.string({ minLength: 1, maxLength: 12 });
    const citation = fc.record({ type: fc.constant("char_location"), cited_text: text, document_index: fc.nat(3), document_title: text });
    const block = fc.oneof(
      fc.record({ type: fc.constant("text"), text, citations: fc.array(citation, { maxLength: 2 }) }),
      fc.record({ type: fc.constant("thinking"), thinking: text, signature: fc.constant("c2ln") }),
      fc.record({ type: fc.constant("redacted_thinking"), data: text }),
      fc.record({ type: fc.constant("tool_use"), id: text, name: fc.constant("f"), input: fc.dictionary(fc.constantFrom("a", "b"), text) }),
    );
    const reason = fc.constantFrom(
      "end_turn",
      "max_tokens",
      "stop_sequence",
      "tool_use",
      "pause_turn",
      "refusal",
      "model_context_window_exceeded",
    );
    fc.assert(
      fc.property(fc.array(block, { minLength: 1, maxLength: 6 }), reason, fc.integer({ min: 1, max: 9 }), (content, stop, length) => {
        const message = anthropicMessage({ content, stop_reason: stop, stop_sequence: stop === "stop_sequence" ? "END" : null }) as Loose;
        const chunks = collect(read([toBytes(streamed(message, length))]));

        const [whole] = (toCompletion(message).choices ?? []) as unknown as Loose[];
        const [put] = chunks.choices as Loose[];
        expect(comparable(put)).toEqual(comparable(whole));
        expect(chunks.usage).toEqual(toCompletion(message).usage);
      }),
      { numRuns: 300 },
    );
  });

  it("has the text of a thought once where its server signs none", () => {
    const message = anthropicMessage({ content: [{ type: "thinking", thinking: "Hm.", signature: "" }] }) as Loose;
    const chunks = read([toBytes(streamed(message, 2))]);

    expect(chunks.map(({ object }) => object.choices?.[0]?.delta).filter((delta) => delta?.reasoning_details !== undefined)).toEqual([]);
    expect((collect(chunks).choices as Loose[])[0]).toMatchObject({ message: { reasoning_content: "Hm." } });
    expect(toCompletion(message).choices?.[0]?.message).not.toHaveProperty("reasoning_details");
  });

  it("names the stop sequence and the vendor's reason", () => {
    const { choices } = toCompletion(anthropicMessage({ stop_reason: "stop_sequence", stop_sequence: "END" }) as Loose);

    expect(choices?.[0]).toMatchObject({ finish_reason: "stop", native_finish_reason: "stop_sequence", stop_reason: "END" });
  });

  it("reports both lifetimes of cache writes", () => {
    const usage = {
      ...{ input_tokens: 5, output_tokens: 7, cache_read_input_tokens: 11, cache_creation_input_tokens: 30 },
      cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
    };
    const chunks = read([toBytes(streamed(anthropicMessage({ usage }) as Loose, 4))]);

    expect(chunks.at(-1)?.usage).toMatchObject({
      inputTextTokens: 5,
      inputCachedTokens: 11,
      inputCacheWriteTokens: 30,
      inputCacheWriteHourTokens: 20,
      outputTextTokens: 7,
    });
  });

  it("reports the input with the first chunk, for an answer that is cut", () => {
    const chunks = read([toBytes(anthropicEvents().slice(0, 4))]);

    expect(chunks[0]?.usage).toMatchObject({ inputTextTokens: 20, inputCachedTokens: 100, inputCacheWriteTokens: 50 });
    expect(chunks[0]?.object).not.toHaveProperty("usage");
  });

  it("finishes a stream that ends without its last event", () => {
    const events = new MessagesStreamEvents(null);
    const chunks: ChatChunk[] = [];
    const scanner = createSseScanner({ eventBytesMax: 1_000_000 });
    for (const event of scanner.push(toBytes(anthropicEvents().slice(0, -1)))) events.take(event, chunks);

    expect(events.isWhole).toBe(true);
    events.end(chunks);

    expect(chunks.at(-2)?.object.choices?.[0]).toMatchObject({ finish_reason: "tool_calls" });
    expect(chunks.at(-1)?.usage).toMatchObject({ outputReasoningTokens: 12, outputTextTokens: 18 });
  });

  it("passes blocks of tools that the vendor runs unread, and leaves out kinds that it does not know", () => {
    const server = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "x" } };
    const chunks = read([
      toBytes(streamed(anthropicMessage({ content: [server, { type: "odd", a: 1 }, { type: "text", text: "Hi" }] }) as Loose, 9)),
    ]);

    expect(chunks.map(({ object }) => object.choices?.[0]?.delta)).toEqual([
      { role: "assistant", extra_content: { anthropic: { block: server } } },
      { content: "Hi" },
      { extra_content: { anthropic: { order: ["server", "text"] } } },
      {},
      undefined,
    ]);
  });

  it("fails with the status of an error on the way, and for events that are no JSON", () => {
    const failing = [...anthropicEvents().slice(0, 4), { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }];

    expect(() => read([toBytes(failing)])).toThrow(expect.objectContaining({ kind: "status", status: 503, upstreamMessage: "Overloaded" }));
    expect(() => read([Buffer.from("event: message_start\ndata: {odd\n\n")])).toThrow(
      expect.objectContaining({ kind: "invalid-response" }),
    );
  });
});

/** Texts of a stream are pieces; marks of blocks stand between them. */
function comparable(choice: Loose | undefined): unknown {
  const { message, ...more } = (choice ?? {}) as { message: Loose };
  const { refusal: _, extra_content: extra, tool_calls: calls, ...said } = message;
  const order = ((extra as Loose | undefined)?.anthropic as Loose | undefined)?.order;
  return JSON.parse(JSON.stringify({ ...more, ...said, order, calls }));
}
