import { describe, expect, it } from "vitest";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { ResponsesEvents } from "../../../src/formats/openai-responses/upstream-stream.js";

type Loose = Record<string, unknown>;

/** The chat's chunks for the events of an upstream's stream. */
function read(events: readonly Loose[]): ChatChunk[] {
  const reader = new ResponsesEvents(null, []);
  const chunks: ChatChunk[] = [];
  for (const event of events) {
    const data = JSON.stringify(event);
    reader.take({ event: String(event.type), data, bytes: Buffer.from(`event: ${event.type}\ndata: ${data}\n\n`) } as never, chunks);
  }
  return chunks;
}

const call = (id: string, given: string, itemId: string | null = `fc_${id}`) => ({
  type: "function_call",
  ...(itemId !== null && { id: itemId }),
  call_id: id,
  name: "f",
  arguments: given,
});
const added = (item: Loose, place: number) => ({
  type: "response.output_item.added",
  output_index: place,
  item: { ...item, arguments: "" },
});
const delta = (item: Loose, place: number, text: string) => ({
  type: "response.function_call_arguments.delta",
  ...("id" in item && { item_id: item.id }),
  output_index: place,
  delta: text,
});
const done = (item: Loose, place: number) => ({ type: "response.output_item.done", output_index: place, item });
const completed = (output: readonly Loose[]) => ({ type: "response.completed", response: { status: "completed", output } });

function callsIn(chunks: readonly ChatChunk[]): unknown[][] {
  const calls = new Map<number, { id: unknown; text: string }>();
  for (const { object } of chunks) {
    for (const { index, id, function: called } of (object.choices?.[0]?.delta?.tool_calls ?? []) as unknown as (Loose & {
      index: number;
      function: { arguments?: string };
    })[]) {
      const known = calls.get(index) ?? { id, text: "" };
      calls.set(index, { id: known.id, text: known.text + (called.arguments ?? "") });
    }
  }
  return [...calls].map(([index, { id, text }]) => [index, id, text]);
}

describe("calls of an upstream that streams responses", () => {
  const [a, b] = [call("call_a", '{"city":"Oslo"}'), call("call_b", '{"zone":"CET"}')];
  const [bareA, bareB] = [call("call_a", '{"city":"Oslo"}', null), call("call_b", '{"zone":"CET"}', null)];
  const both = [
    [0, "call_a", '{"city":"Oslo"}'],
    [1, "call_b", '{"zone":"CET"}'],
  ];
  const streamed = (one: Loose, other: Loose, places: readonly [number, number]) => [
    added(one, places[0]),
    delta(one, places[0], '{"city":"Oslo"}'),
    done(one, places[0]),
    added(other, places[1]),
    delta(other, places[1], '{"zone":"CET"}'),
    done(other, places[1]),
  ];

  it.each([
    ["the end lists them from 0 and the events from 1", [...streamed(a, b, [1, 2]), completed([a, b])]],
    ["both have one place", [...streamed(a, b, [0, 0]), completed([a, b])]],
    ["both have one place and items no ids", [...streamed(bareA, bareB, [0, 0]), completed([bareA, bareB])]],
    ["the end has another item before them", [...streamed(a, b, [0, 1]), completed([{ type: "reasoning", summary: [] }, a, b])]],
    ["the ids of items change", [...streamed(a, b, [0, 1]), completed([call("call_a", '{"city":"Oslo"}', "x"), b])]],
    ["only the end has them", [completed([a, b])]],
    [
      "their pieces come in turns",
      [
        added(a, 0),
        added(b, 1),
        ...[delta(a, 0, '{"city":'), delta(b, 1, '{"zone":'), delta(a, 0, '"Oslo"}'), delta(b, 1, '"CET"}')],
        completed([a, b]),
      ],
    ],
  ])("are each one call when %s", (_, events) => {
    expect(callsIn(read(events))).toEqual(both);
  });
});

describe("calls of an upstream that names them badly", () => {
  const twin = (itemId: string, given: string) => ({ ...call("f", given), id: itemId });
  const bare = { type: "function_call", name: "f", arguments: "{}" };

  it("are two with one id between them", () => {
    const [a, b] = [twin("fc_1", '{"a":1}'), twin("fc_2", '{"b":2}')];
    const events = [added(a, 0), delta(a, 0, '{"a":1}'), added(b, 1), delta(b, 1, '{"b":2}'), completed([a, b])];

    const [first, second, ...others] = callsIn(read(events));

    expect([first, second?.[2], others]).toEqual([[0, "f", '{"a":1}'], '{"b":2}', []]);
    expect(second?.[1]).toMatch(/^call_/);
  });

  it("are known by their order at the end when they have no id", () => {
    const calls = callsIn(read([added(bare, 0), delta(bare, 0, "{}"), done(bare, 0), completed([bare])]));

    expect(calls).toEqual([[0, expect.stringMatching(/^call_/), "{}"]]);
  });
});

describe("texts of an upstream that streams responses", () => {
  const annotation = { type: "url_citation", url: "https://a.example", title: "A", start_index: 0, end_index: 2 };
  const message = { type: "message", content: [{ type: "output_text", text: "Hi", annotations: [annotation] }] };
  const cited = { type: "url_citation", url_citation: { url: "https://a.example", title: "A", start_index: 0, end_index: 2 } };

  it.each([
    ["in events", [{ type: "response.output_text.annotation.added", annotation }, completed([message])]],
    ["at the end alone", [completed([message])]],
  ])("have citations that come %s", (_, events) => {
    const found = read(events).flatMap(({ object }) => (object.choices?.[0]?.delta?.annotations ?? []) as unknown[]);

    expect(found).toEqual([cited]);
  });

  it("have the thoughts that the upstream has encrypted, once", () => {
    const item = { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" };

    const found = read([done(item, 0), completed([item, message])]).flatMap(
      ({ object }) => (object.choices?.[0]?.delta?.reasoning_details ?? []) as unknown[],
    );

    expect(found).toEqual([{ index: 0, type: "reasoning.encrypted", data: "gAAA", format: "openai-responses-v1", id: "rs_1" }]);
  });
});
