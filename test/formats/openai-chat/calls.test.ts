/** Calls of a stream, in every way in which servers number them, put together by OpenAI's client. */
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { describe, expect, it } from "vitest";
import type { ChatChunk } from "../../../src/formats/openai-chat/stream.js";
import { ChatChunkEvents } from "../../../src/formats/openai-chat/stream.js";
import { createSseScanner } from "../../../src/lib/sse.js";
import { EXCESS_MAX, findExcess, processorMs } from "../../support/growth.js";
import { chatChunk } from "../../support/openai-bodies.js";

interface Said {
  readonly id: string;
  readonly name: string;
  readonly arguments: string;
}

const CALLS: readonly Said[] = [
  { id: "call_a", name: "get_weather", arguments: '{"city":"Oslo"}' },
  { id: "call_b", name: "get_time", arguments: '{"zone":"CET \\" }"}' },
  { id: "call_c", name: "get_weather", arguments: "{}" },
];
type Piece = Readonly<Record<string, unknown>>;
/** A piece as it leaves. */
interface WirePiece {
  readonly index: number;
  readonly id?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: string };
}
/** The pieces of one call. */
type Shape = (call: Said, index: number) => readonly Piece[];

const cut = (text: string) => [text.slice(0, 1), text.slice(1)];
const grow = (call: Said, head: Piece, each: Piece) => [
  head,
  ...cut(call.arguments).map((said) => ({ ...each, function: { arguments: said } })),
];
const named = ({ name }: Said) => ({ type: "function", function: { name, arguments: "" } });

/** Shapes in which every piece says which call it belongs to. */
const MARKED: readonly (readonly [string, Shape])[] = [
  ["OpenAI's own", (call, index) => grow(call, { index, id: call.id, ...named(call) }, { index })],
  ["index 0 and ids", (call) => grow(call, { index: 0, id: call.id, ...named(call) }, { index: 0, id: call.id })],
  ["ids without an index", (call) => grow(call, { id: call.id, ...named(call) }, { id: call.id })],
  [
    "ids, types and names in every piece",
    (call, index) =>
      cut(call.arguments).map((said) => ({ index, id: call.id, type: "function", function: { name: call.name, arguments: said } })),
  ],
  [
    "the name behind the id",
    (call, index) => [
      { index, id: call.id },
      { index, function: { name: call.name } },
      { index, function: { arguments: call.arguments } },
    ],
  ],
  [
    "the name behind the arguments",
    (call) => [...cut(call.arguments).map((said) => ({ id: call.id, function: { arguments: said } })), { id: call.id, ...named(call) }],
  ],
  [
    "the id behind the name",
    (call, index) => [
      { index, ...named(call) },
      { index, id: call.id, function: { arguments: call.arguments } },
    ],
  ],
  ["indices without ids", (call, index) => grow(call, { index, ...named(call) }, { index })],
  ["indices from 7 on", (call, index) => grow(call, { index: index + 7, id: call.id, ...named(call) }, { index: index + 7 })],
];

/** Shapes in which a call must have ended before the next one. */
const IN_TURN: readonly (readonly [string, Shape])[] = [
  ["index 0 and one id for each", (call) => grow(call, { index: 0, id: call.id, ...named(call) }, { index: 0 })],
  ["one id for each, no index", (call) => grow(call, { id: call.id, ...named(call) }, {})],
  ["names alone", ({ name, arguments: said }) => [{ function: { name, arguments: said } }]],
  ["index 0 and names alone", ({ name, arguments: said }) => [{ index: 0, function: { name, arguments: said } }]],
  [
    "names as ids",
    (call) => [
      { index: 0, id: call.name, ...named(call) },
      { index: 0, id: call.name, function: { name: call.name, arguments: call.arguments } },
    ],
  ],
  ["one id for all", ({ name, arguments: said }) => [{ index: 0, id: "call_0", function: { name, arguments: said } }]],
  ["arguments as an object", ({ id, name, arguments: said }) => [{ index: 0, id, function: { name, arguments: JSON.parse(said) } }]],
];

/** Every order of these pieces in which each call's own stay in order. */
function* interleavings<Item>(lists: readonly (readonly Item[])[]): Generator<readonly Item[]> {
  if (lists.every((list) => list.length === 0)) yield [];
  for (const [turn, list] of lists.entries()) {
    const [first, ...rest] = list;
    if (first === undefined) continue;
    for (const others of interleavings(lists.with(turn, rest))) yield [first, ...others];
  }
}

function toWire(lists: readonly (readonly Piece[])[]): Buffer {
  const chunks = [
    chatChunk({ role: "assistant", content: null }),
    ...lists.map((pieces) => chatChunk({ tool_calls: pieces })),
    chatChunk({}, "tool_calls"),
  ];
  return Buffer.from(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(""));
}

/** What leaves, when the wire is cut at these places. */
function pass(wire: Buffer, cuts: readonly number[] = []): ChatChunk[] {
  const scanner = createSseScanner({ eventBytesMax: 1_000_000 });
  const events = new ChatChunkEvents([]);
  const batch: ChatChunk[] = [];
  const bounds = [0, ...cuts, wire.length];
  for (const [index, from] of bounds.slice(0, -1).entries()) {
    for (const event of scanner.push(wire.subarray(from, bounds[index + 1]))) events.take(event, batch);
  }
  return batch;
}

/** The calls as OpenAI's client puts them together from the bytes. */
async function putTogether(chunks: readonly ChatChunk[]): Promise<Said[]> {
  const lines = chunks.map(({ bytes }) => Buffer.from(Buffer.from(bytes).toString().slice("data: ".length).trim().concat("\n")));
  const stream = ChatCompletionStream.fromReadableStream(new Blob(lines).stream());
  const [choice] = (await stream.finalChatCompletion()).choices;
  return (choice?.message.tool_calls ?? []).map((call) => {
    if (call.type !== "function") throw new Error("not a function");
    return { id: call.id, ...call.function };
  });
}

/** Clients in Python append texts, and keep a list by index: a call's id, type and name must come once, with its first piece. */
function expectOncePerCall(chunks: readonly ChatChunk[]): void {
  let begun = 0;
  for (const chunk of chunks) {
    const pieces = (chunk.object.choices?.[0]?.delta?.tool_calls ?? []) as readonly WirePiece[];
    const seen = new Set<number>();
    for (const { index, id, function: called } of pieces) {
      const isFirst = index === begun;
      if (seen.has(index) || index > begun || Boolean(id) !== isFirst || Boolean(called?.name) !== isFirst)
        expect.fail(JSON.stringify(pieces));
      seen.add(index);
      if (isFirst) begun += 1;
    }
  }
}

/** As a client in Python puts them together, by index. */
function appended(chunks: readonly ChatChunk[]): Said[] {
  const made: { id: string; name: string; arguments: string }[] = [];
  for (const chunk of chunks) {
    for (const piece of (chunk.object.choices?.[0]?.delta?.tool_calls ?? []) as readonly WirePiece[]) {
      made[piece.index] ??= { id: "", name: "", arguments: "" };
      const call = made[piece.index] as { id: string; name: string; arguments: string };
      call.id += piece.id ?? "";
      call.name += piece.function?.name ?? "";
      call.arguments += piece.function?.arguments ?? "";
    }
  }
  return made;
}

function expectCalls(chunks: readonly ChatChunk[], calls: readonly Said[]): Said[] {
  expectOncePerCall(chunks);
  const made = appended(chunks);
  const said = (list: readonly Said[]) => JSON.stringify(list.map(({ name, arguments: input }) => [name, input]));
  expect(said(made)).toBe(said(calls));
  expect(new Set(made.map(({ id }) => id)).size).toBe(calls.length);
  return made;
}

function cutEverywhere(length: number): readonly (readonly number[])[] {
  const places = Array.from({ length: length - 1 }, (_, at) => at + 1);
  return [places, ...places.map((at) => [at])];
}

/** Ids that the gateway makes differ each time. */
function textOf(chunks: readonly ChatChunk[]): string {
  const bytes = Buffer.concat(chunks.map((chunk) => chunk.bytes)).toString();
  return bytes.replace(/"call_[0-9a-f]{32}"/g, '""');
}

describe("the calls of a stream", () => {
  it.each(MARKED)("are put together from every interleaving: %s", async (_name, shape) => {
    for (const calls of [CALLS.slice(0, 2), CALLS]) {
      const marked = calls.map((call, index) => shape(call, index).map((piece) => ({ piece, call })));
      for (const turns of interleavings(marked)) {
        // Calls are known in the order in which they begin.
        const begun = [...new Set(turns.map(({ call }) => call))];
        const chunks = pass(toWire(turns.map(({ piece }) => [piece])));
        const made = expectCalls(chunks, begun);
        if (turns[0]?.piece.id) expect(made.map(({ id }) => id).join()).toBe(begun.map(({ id }) => id).join());
        if (calls.length === 2) expect(await putTogether(chunks)).toEqual(made);
      }
    }
  });

  it.each([...MARKED, ...IN_TURN])("are put together one after the other, however the stream is cut: %s", async (_name, shape) => {
    const wire = toWire(CALLS.flatMap(shape).map((piece) => [piece]));
    const whole = pass(wire);

    expect(await putTogether(whole)).toEqual(expectCalls(whole, CALLS));
    for (const cuts of cutEverywhere(wire.length)) if (textOf(pass(wire, cuts)) !== textOf(whole)) expect.fail(`cut at ${cuts}`);
  });

  it.each([...MARKED, ...IN_TURN])("are put together from one chunk: %s", async (_name, shape) => {
    const chunks = pass(toWire([CALLS.flatMap(shape)]));

    expect(await putTogether(chunks)).toEqual(expectCalls(chunks, CALLS));
  });

  it("are known by their places when index and id are missing behind the first chunk", () => {
    const [first, second] = CALLS as [Said, Said];
    const lists = [
      [first, second].map((call) => ({ id: call.id, ...named(call) })),
      ...[0, 1].map((part) => [first, second].map((call) => ({ function: { arguments: cut(call.arguments)[part] } }))),
    ];

    for (const index of [undefined, 0]) {
      expectCalls(pass(toWire(lists.map((pieces) => pieces.map((piece) => ({ ...piece, index }))))), [first, second]);
    }
  });

  it("pass byte for byte when they are numbered as OpenAI numbers them", () => {
    const rest = ["", null].map((id) => [{ index: 0, id, function: { name: id, arguments: "" } }]);
    const wire = toWire([
      ...CALLS.flatMap((call, index) => grow(call, { index, id: call.id, ...named(call) }, { index })).map((piece) => [piece]),
      ...rest,
    ]);

    expect(Buffer.concat(pass(wire).map(({ bytes }) => bytes)).toString()).toBe(wire.toString());
  });

  it("leave without a name when none comes, at the finish or at the end of the stream", () => {
    const piece = { index: 0, id: "call_a", function: { arguments: '{"city":"Oslo"}' } };
    const finished = pass(toWire([[piece]]));
    const done = pass(Buffer.from(`data: ${JSON.stringify(chatChunk({ tool_calls: [piece] }))}\n\ndata: [DONE]\n\n`));

    for (const chunks of [finished.slice(1), done]) {
      expect(chunks.map(({ object }) => object.choices?.[0]?.delta?.tool_calls)).toEqual([
        undefined,
        [{ index: 0, id: "call_a", type: "function", function: { name: "", arguments: '{"city":"Oslo"}' } }],
      ]);
    }
    expect(finished.at(-1)?.object.choices?.[0]?.finish_reason).toBe("tool_calls");
  });

  it("wait for a name at most 65,536 characters long", () => {
    const piece = (said: string) => [{ index: 0, id: "call_a", function: { arguments: said } }];
    const held = pass(toWire([piece("x".repeat(65_536))]).subarray(0, -200));
    const passed = pass(toWire([piece("x".repeat(65_536)), piece("y")]));

    expect(held.flatMap(({ object }) => object.choices?.[0]?.delta?.tool_calls ?? [])).toEqual([]);
    expect(passed[2]?.object.choices?.[0]?.delta?.tool_calls?.[0]?.function?.arguments).toBe(`${"x".repeat(65_536)}y`);
  });

  it("are numbered for each choice alone", () => {
    const chunks = [0, 1, 0, 1].map((choice, turn) =>
      chatChunk({ tool_calls: [{ id: `call_${turn}`, function: { name: "now", arguments: "{}" } }] }, null, choice),
    );
    const wire = Buffer.from(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(""));

    expect(pass(wire).map(({ object }) => object.choices?.[0]?.delta?.tool_calls)).toMatchObject(
      [0, 0, 1, 1].map((index, turn) => [{ index, id: `call_${turn}` }]),
    );
  });

  it("are joined in linear time", () => {
    const run = (size: number) => {
      const wire = toWire([Array.from({ length: size }, (_, at) => ({ index: 0, [`k${at}`]: 1 }))]);
      return processorMs(() => pass(wire));
    };

    expect(findExcess(run, { least: 512, steps: 3 })).toBeLessThan(EXCESS_MAX);
  });

  it("are at most 1,024 in one choice, and choices at most 128", () => {
    const calls = (count: number) => toWire(Array.from({ length: count }, (_, index) => [{ index }]));
    const choice = (index: number) => Buffer.from(`data: ${JSON.stringify(chatChunk({ tool_calls: [{}] }, null, index))}\n\n`);

    expect(() => pass(calls(1024))).not.toThrow();
    expect(() => pass(calls(1025))).toThrow("more than 1024 tool calls");
    expect(() => pass(choice(127))).not.toThrow();
    for (const index of [128, -1]) expect(() => pass(choice(index))).toThrow("not below 128");
  });

  it.each([undefined, "get_weather"])("go on under one index when each piece has a new id, with the name %s", (name) => {
    const pieces = ['{"ci', 'ty": ', '"Oslo"}'].map((said, at) => ({
      index: 0,
      id: `a-${at}`,
      function: { ...((at === 0 || name) && { name: "get_weather" }), arguments: said },
    }));
    const next = { index: 0, id: "b-0", function: { name: "get_weather", arguments: "{}" } };

    expectCalls(pass(toWire([...pieces, next].map((piece) => [piece]))), [
      { id: "a-0", name: "get_weather", arguments: '{"city": "Oslo"}' },
      { id: "b-0", name: "get_weather", arguments: "{}" },
    ]);
  });

  it.each([{}, { delta: null }])("leave with a finish that has no delta: %j", (delta) => {
    const held = chatChunk({ tool_calls: [{ index: 0, id: "call_a", function: { arguments: "{}" } }] });
    const finish = { ...held, choices: [{ ...delta, finish_reason: "tool_calls" }] };
    const wire = Buffer.from([held, finish].map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(""));

    expect(pass(wire).at(-1)?.object.choices).toMatchObject([
      { index: 0, finish_reason: "tool_calls", delta: { tool_calls: [{ index: 0, id: "call_a" }] } },
    ]);
  });

  it("are read without a custom part that is not an object, and with its input as text", () => {
    const sent = (piece: Piece) => pass(toWire([[{ id: "call_a", ...piece }]]))[1]?.object.choices?.[0]?.delta?.tool_calls?.[0];
    const called = { name: "now", arguments: "{}" };

    expect(sent({ function: called, custom: "x" })).toEqual({ index: 0, id: "call_a", type: "function", function: called });
    expect(sent({ function: called, custom: null })).toMatchObject({ type: "function", function: called });
    expect(sent({ custom: { name: "run", input: { a: 1 } } })).toMatchObject({ type: "custom", custom: { name: "run", input: '{"a":1}' } });
  });
});
