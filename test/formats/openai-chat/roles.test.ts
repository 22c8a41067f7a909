/** The role of streamed choices: official clients need it in the first piece of each, once. */
import { ChatCompletionStream } from "openai/lib/ChatCompletionStream";
import { describe, expect, it } from "vitest";
import { type ChatChunk, ChatChunkEvents } from "../../../src/formats/openai-chat/stream.js";
import { createSseScanner } from "../../../src/lib/sse.js";
import { chatChunk } from "../../support/openai-bodies.js";

function pass(chunks: readonly object[]): ChatChunk[] {
  const events = new ChatChunkEvents([]);
  const batch: ChatChunk[] = [];
  const wire = Buffer.from(chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join(""));
  for (const event of createSseScanner({ eventBytesMax: 1_000_000 }).push(wire)) events.take(event, batch);
  return batch;
}

function dataOf({ bytes }: ChatChunk): Record<string, unknown> {
  return JSON.parse(Buffer.from(bytes).toString().slice("data: ".length)) as Record<string, unknown>;
}

function rolesOf(chunks: readonly ChatChunk[]): unknown[] {
  const choices = chunks.flatMap((chunk) => dataOf(chunk).choices as { index: number; delta: Record<string, unknown> }[]);
  return choices.map(({ index, delta }) => [index, delta.role]);
}

describe("the role of a streamed choice", () => {
  it.each([
    ["is missing", {}],
    ["is null", { role: null }],
    ["is empty", { role: "" }],
  ])("is added to the first piece where it %s, so that OpenAI's client puts the answer together", async (_, role) => {
    const passed = pass([chatChunk({ ...role, content: "Hel" }), chatChunk({ content: "lo" }), chatChunk({ content: "!" }, "stop")]);

    expect(rolesOf(passed)).toEqual([
      [0, "assistant"],
      [0, undefined],
      [0, undefined],
    ]);
    const lines = passed.map((chunk) => Buffer.from(`${JSON.stringify(dataOf(chunk))}\n`));
    const stream = ChatCompletionStream.fromReadableStream(new Blob(lines).stream());
    expect((await stream.finalMessage()).content).toBe("Hello!");
  });

  it("is added for each choice by itself", () => {
    const passed = pass([
      chatChunk({ role: "assistant", content: "a" }),
      chatChunk({ content: "b" }, null, 1),
      chatChunk({ content: "c" }),
    ]);

    expect(rolesOf(passed)).toEqual([
      [0, "assistant"],
      [1, "assistant"],
      [0, undefined],
    ]);
  });

  it("does not come twice where the upstream sends it late, also in pieces that are alike", () => {
    const late = Array.from({ length: 6 }, (_, index) => chatChunk({ role: "assistant", content: `piece ${index}` }));

    const passed = pass([chatChunk({ reasoning_content: "Hm." }), ...late]);

    expect(rolesOf(passed)).toEqual([[0, "assistant"], ...late.map(() => [0, undefined])]);
  });

  it("passes unchanged where the upstream sends it in each piece", () => {
    const chunks = Array.from({ length: 6 }, (_, index) => chatChunk({ role: "assistant", content: `piece ${index}` }));

    expect(pass(chunks).map(dataOf)).toEqual(chunks);
  });
});
