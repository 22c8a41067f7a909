import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, it } from "vitest";
import type { ChatBody } from "../../../src/formats/openai-chat/schema.js";
import type { ChatChunk, ChatChunkBatch } from "../../../src/formats/openai-chat/stream.js";
import { countTextTokens } from "../../../src/lib/tokenizer.js";
import { NO_USAGE } from "../../../src/lib/usage.js";
import type { UpstreamTimeouts } from "../../../src/providers/provider.js";
import { createSandboxChatProvider } from "../../../src/providers/sandbox/text.js";

const TIMEOUTS: UpstreamTimeouts = { connectMs: 1_000, idleMs: 60_000, totalMs: 300_000 };
const HASTY: UpstreamTimeouts = { connectMs: 1_000, idleMs: 50, totalMs: 150 };
const WEATHER = {
  type: "function",
  function: { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } },
};
const CLOCK = { type: "function", function: { name: "clock" } };

function ask(prompt: string, more: ChatBody = {}): ChatBody {
  return { model: "sandbox/text", messages: [{ role: "user", content: prompt }], ...more };
}

function call(body: ChatBody, signal = new AbortController().signal) {
  return { upstreamModel: "text", body, signal };
}

function complete(body: ChatBody, timeouts = TIMEOUTS) {
  return createSandboxChatProvider({ timeouts }).complete(call(body));
}

async function textOf(body: ChatBody): Promise<unknown> {
  return (await complete(body)).completion.choices?.[0]?.message?.content;
}

interface Streamed {
  readonly chunks: ChatChunk[];
  readonly batches: number;
  readonly error: unknown;
}

async function stream(body: ChatBody, timeouts = TIMEOUTS): Promise<Streamed> {
  const chunks: ChatChunk[] = [];
  let batches = 0;
  try {
    for await (const batch of await createSandboxChatProvider({ timeouts }).stream(call(body))) {
      batches += 1;
      chunks.push(...batch);
    }
    return { chunks, batches, error: undefined };
  } catch (error) {
    return { chunks, batches, error };
  }
}

function contentOf(chunks: readonly ChatChunk[], index = 0): string {
  const deltas = chunks.flatMap((chunk) => chunk.object.choices ?? []).filter((choice) => choice.index === index);
  return deltas.map((choice) => choice.delta?.content ?? "").join("");
}

function pieces(chunks: readonly ChatChunk[]): unknown[] {
  return chunks.map((chunk) => chunk.object.choices?.[0]?.delta?.content).filter((content) => content !== undefined && content !== "");
}

describe("an ordinary prompt", () => {
  it("gets a plain answer that names the model, the same each time, in OpenAI's format", async () => {
    const answer = await complete(ask("What is the weather?"));

    expect(answer.completion).toMatchObject({
      object: "chat.completion",
      model: "text",
      choices: [
        { index: 0, message: { role: "assistant", content: expect.stringContaining("What is the weather?") }, finish_reason: "stop" },
      ],
    });
    expect(answer.completion.choices?.[0]?.message?.content).toContain("no language model");
    expect(JSON.parse(Buffer.from(answer.bytes).toString())).toEqual(answer.completion);
    expect(await textOf(ask("What is the weather?"))).toBe(answer.completion.choices?.[0]?.message?.content);
  });

  it("is answered from the last user message, of any parts", async () => {
    const messages = [
      { role: "user", content: "first" },
      {
        role: "user",
        content: [
          { type: "text", text: "second" },
          { type: "image_url", image_url: { url: "https://example.com" } },
        ],
      },
      { role: "assistant", content: "third" },
    ];

    expect(await textOf({ messages })).toContain('"second"');
    expect(await textOf({ messages: "odd" })).toContain("sandbox");
  });

  it("gets another closing with another seed", async () => {
    expect(await textOf(ask("Hi", { seed: 1 }))).not.toBe(await textOf(ask("Hi", { seed: 2 })));
    expect(await textOf(ask("Hi", { seed: 1 }))).toBe(await textOf(ask("Hi", { seed: 1 })));
  });

  it("streams the answer of a whole request, in several chunks, with usage last", async () => {
    const body = ask("Hi", { n: 2 });
    const { chunks, batches, error } = await stream(body);
    const whole = await complete(body);

    expect(error).toBeUndefined();
    expect(batches).toBeGreaterThan(1);
    expect([contentOf(chunks, 0), contentOf(chunks, 1)]).toEqual(whole.completion.choices?.map((choice) => choice.message?.content));
    expect(chunks.at(-1)).toMatchObject({ object: { choices: [] }, usage: whole.usage });
    expect(chunks.slice(0, -1).every((chunk) => chunk.usage === null)).toBe(true);
    for (const chunk of chunks) expect(Buffer.from(chunk.bytes).toString()).toBe(`data: ${JSON.stringify(chunk.object)}\n\n`);
    expect(chunks.filter((chunk) => chunk.object.choices?.[0]?.finish_reason === "stop")).toHaveLength(2);
  });

  it("is counted with the tokenizer", async () => {
    const { completion, usage } = await complete(ask("hello"));

    expect(usage).toEqual({
      ...NO_USAGE,
      inputTextTokens: 3 + 1 + 1 + 3,
      outputTextTokens: countTextTokens(String(completion.choices?.[0]?.message?.content)),
    });
  });
});

describe("the fields of a request", () => {
  it("cut the answer at max_tokens", async () => {
    const { completion, usage } = await complete(ask("[repeat 100 word]", { max_tokens: 5 }));
    const { chunks } = await stream(ask("[repeat 100 word]", { max_completion_tokens: 5 }));

    expect(completion.choices?.[0]).toMatchObject({ message: { content: "word word word word word" }, finish_reason: "length" });
    expect(usage?.outputTextTokens).toBe(5);
    expect(contentOf(chunks)).toBe("word word word word word");
    expect(chunks.at(-2)?.object.choices?.[0]?.finish_reason).toBe("length");
  });

  it("keep words that just fit and the beginning of a word that does not", async () => {
    expect((await complete(ask("[repeat 5 word]", { max_tokens: 5 }))).completion.choices?.[0]?.finish_reason).toBe("stop");
    const long = await complete(ask("[repeat 1 supercalifragilisticexpialidocious]", { max_tokens: 2 }));
    expect(long.usage?.outputTextTokens).toBe(2);
  });

  it("end it before a stop sequence", async () => {
    expect(await textOf(ask("[echo] one two three", { stop: " two" }))).toBe("one");
    expect(await textOf(ask("[echo] one two three", { stop: ["three", "two"] }))).toBe("one ");
    expect((await complete(ask("[echo] one two", { stop: "two" }))).completion.choices?.[0]?.finish_reason).toBe("stop");
  });

  it("may ask for JSON, of any kind or of a schema", async () => {
    const schema = {
      type: "object",
      properties: { name: { type: "string" }, age: { type: "integer", minimum: 18 } },
      required: ["name", "age"],
    };

    const free = await textOf(ask("Hi", { response_format: { type: "json_object" } }));
    const strict = await textOf(ask("Hi", { response_format: { type: "json_schema", json_schema: { name: "x", schema } } }));

    expect(JSON.parse(String(free))).toBeTypeOf("object");
    expect(new Ajv2020().compile(schema)(JSON.parse(String(strict)))).toBe(true);
  });

  it("may ask for effort, which is thought and counted as reasoning", async () => {
    const { completion, usage } = await complete(ask("[repeat 1 word]", { reasoning_effort: "high" }));
    const { chunks } = await stream(ask("[repeat 1 word]", { reasoning_effort: "high" }));
    const thought = String(completion.choices?.[0]?.message?.reasoning_content);

    expect(thought).toContain("sandbox");
    expect(usage).toMatchObject({ outputReasoningTokens: countTextTokens(thought), outputTextTokens: 1 });
    expect(chunks.map((chunk) => chunk.object.choices?.[0]?.delta?.reasoning_content ?? "").join("")).toBe(thought);
  });

  it("are ignored when the sandbox does not know them", async () => {
    expect(await textOf(ask("[echo] ok", { logprobs: true, top_logprobs: 3, temperature: 2, user: "x", odd: {} }))).toBe("ok");
  });
});

describe("tools", () => {
  it("are called when they must be, with arguments that their schema accepts", async () => {
    const required = await complete(ask("Hi", { tools: [WEATHER, CLOCK], tool_choice: "required" }));
    const named = await complete(ask("Hi", { tools: [WEATHER, CLOCK], tool_choice: { type: "function", function: { name: "clock" } } }));

    const [choice] = required.completion.choices ?? [];
    expect(choice).toMatchObject({
      message: { content: null, tool_calls: [{ type: "function", function: { name: "weather" } }] },
      finish_reason: "tool_calls",
    });
    expect(
      new Ajv2020().compile(WEATHER.function.parameters)(JSON.parse(choice?.message?.tool_calls?.[0]?.function?.arguments ?? "")),
    ).toBe(true);
    expect(named.completion.choices?.[0]?.message?.tool_calls?.[0]?.function).toEqual({ name: "clock", arguments: "{}" });
    expect(required.usage?.outputTextTokens).toBeGreaterThan(0);
  });

  it("are called when the prompt says so: one, several, or one of several", async () => {
    const names = async (more: ChatBody) => {
      const { completion } = await complete(ask("[tool weather] [tool clock]", { tools: [WEATHER, CLOCK], ...more }));
      return completion.choices?.[0]?.message?.tool_calls?.map((made) => made.function?.name);
    };

    expect(await names({})).toEqual(["weather", "clock"]);
    expect(await names({ parallel_tool_calls: false })).toEqual(["weather"]);
    expect(await names({ tool_choice: "none" })).toBeUndefined();
  });

  it("stream their calls in pieces that make the whole", async () => {
    const { chunks } = await stream(ask("[tool weather]", { tools: [WEATHER] }));
    const calls = chunks.flatMap((chunk) => chunk.object.choices?.[0]?.delta?.tool_calls ?? []);

    expect(calls.length).toBeGreaterThan(2);
    expect(JSON.parse(calls.map((made) => made.function?.arguments ?? "").join(""))).toEqual({ city: "sandbox" });
    expect(chunks.at(-2)?.object.choices?.[0]?.finish_reason).toBe("tool_calls");
  });

  it("that have answered are not called again for the same prompt", async () => {
    const messages = [
      { role: "user", content: "[tool weather]" },
      { role: "assistant", content: null, tool_calls: [] },
      { role: "tool", tool_call_id: "1", content: "12 degrees" },
    ];

    expect(await textOf({ messages, tools: [WEATHER] })).toContain('A tool answered: "12 degrees"');
  });

  it("that are not declared are a bad request", async () => {
    await expect(complete(ask("[tool other]", { tools: [WEATHER] }))).rejects.toMatchObject({
      kind: "status",
      status: 400,
      upstreamParam: "tools",
    });
    await expect(complete(ask("Hi", { tool_choice: "required" }))).rejects.toMatchObject({ status: 400, upstreamParam: "tool_choice" });
  });
});

describe("a directive", () => {
  it.each([400, 401, 402, 403, 404, 408, 409, 413, 415, 422, 429, 500, 502, 503, 504, 524])(
    "[fail %i] fails with that status",
    async (status) => {
      const expected = { kind: "status", status, upstreamMessage: `The sandbox was told to fail with status ${status}.` };

      await expect(complete(ask(`Please [fail ${status}]`))).rejects.toMatchObject(expected);
      await expect(createSandboxChatProvider().stream(call(ask(`[fail ${status}]`)))).rejects.toMatchObject(expected);
    },
  );

  it("dictates the answer: [echo], [repeat], [think]", async () => {
    expect(await textOf(ask("[echo] say this"))).toBe("say this");
    expect(await textOf(ask("[repeat 3 ha]"))).toBe("ha ha ha");
    expect((await complete(ask("[think 4 hm] [repeat 1 word]"))).completion.choices?.[0]?.message?.reasoning_content).toBe("hm hm hm hm");
  });

  it("[chunks] cuts the answer into so many pieces, one a word without it", async () => {
    expect(pieces((await stream(ask("[echo] one two three"))).chunks)).toEqual(["one", " two", " three"]);
    expect(pieces((await stream(ask("[chunks 20] [repeat 50 word]"))).chunks)).toHaveLength(20);
    expect(pieces((await stream(ask("[chunks 20] [echo] 🎉🎉🎉"))).chunks)).toEqual(["🎉", "🎉", "🎉"]);
  });

  it("[tokens] reports exactly these amounts", async () => {
    const prompt = "[tokens in=100 out=50 cached=20 cache_write=10 audio_in=5 image_in=4 reasoning=15 audio_out=3 image_out=2]";
    const expected = {
      ...NO_USAGE,
      inputTextTokens: 100 - 20 - 10 - 5 - 4,
      inputCachedTokens: 20,
      inputCacheWriteTokens: 10,
      inputAudioTokens: 5,
      inputImageTokens: 4,
      outputTextTokens: 50 - 15 - 3 - 2,
      outputReasoningTokens: 15,
      outputAudioTokens: 3,
      outputImageTokens: 2,
    };

    expect((await complete(ask(prompt))).usage).toEqual(expected);
    expect((await stream(ask(prompt))).chunks.at(-1)?.usage).toEqual(expected);
    expect((await complete(ask("[tokens in=0 out=0]"))).usage).toEqual(NO_USAGE);
  });

  it("[tokens] may report implausible amounts, [no usage] nothing", async () => {
    expect((await complete(ask("[tokens in=-5 out=1]"))).usage).toBeNull();
    expect((await complete(ask("[tokens in=1.5]"))).usage).toBeNull();
    expect((await complete(ask("[no usage]"))).completion.usage).toBeUndefined();
    expect((await stream(ask("[no usage]"))).chunks.every((chunk) => chunk.usage === null)).toBe(true);
    await expect(complete(ask("[tokens video=1]"))).rejects.toMatchObject({ status: 400 });
  });

  it("[cut] ends a stream unfinished and breaks a whole answer", async () => {
    const half = await stream(ask("[cut] [repeat 10 word]"));
    const three = await stream(ask("[cut after 3] [repeat 10 word]"));

    expect([pieces(half.chunks).length, pieces(three.chunks).length]).toEqual([5, 3]);
    expect(half.error).toMatchObject({ kind: "cut" });
    expect(three.chunks.every((chunk) => !chunk.object.choices?.[0]?.finish_reason)).toBe(true);
    await expect(complete(ask("[cut]"))).rejects.toMatchObject({ kind: "cut" });
  });

  it("[error] reports an error in the middle", async () => {
    const half = await stream(ask("[error mid-stream] [repeat 10 word]"));
    const none = await stream(ask("[error after 0]"));

    expect(pieces(half.chunks)).toHaveLength(5);
    expect(half.error).toMatchObject({ kind: "status", status: 500, upstreamMessage: expect.any(String) });
    expect(pieces(none.chunks)).toHaveLength(0);
    await expect(complete(ask("[error mid-stream]"))).rejects.toMatchObject({ kind: "status", status: 500 });
  });

  it("[hang] ends with a time-out, before anything or after some pieces", async () => {
    await expect(complete(ask("[hang]"), HASTY)).rejects.toMatchObject({ kind: "timeout" });
    await expect(createSandboxChatProvider({ timeouts: HASTY }).stream(call(ask("[hang]")))).rejects.toMatchObject({ kind: "timeout" });
    const later = await stream(ask("[hang after 2] [repeat 5 word]"), HASTY);
    expect(pieces(later.chunks)).toHaveLength(2);
    expect(later.error).toMatchObject({ kind: "timeout" });
  });

  it("[delay] and [pace] take their time and deliver finished pieces meanwhile", async () => {
    const startedAt = performance.now();
    const iterator = (await createSandboxChatProvider().stream(call(ask("[delay 60ms] [pace 40ms] [echo] a b"))))[Symbol.asyncIterator]();
    const seen: { content: string; ms: number }[] = [];
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      seen.push({ content: contentOf(next.value), ms: performance.now() - startedAt });
    }

    expect(seen.map(({ content }) => content).filter((content) => content !== "")).toEqual(["a", " b"]);
    expect(seen[0]?.ms).toBeGreaterThanOrEqual(55);
    expect(seen.at(-1)?.ms).toBeGreaterThanOrEqual(95);
  });

  it("that waits longer than the time-outs is timed out", async () => {
    expect((await stream(ask("[delay 10s]"), HASTY)).error).toMatchObject({ kind: "timeout" });
    expect((await stream(ask("[pace 30ms] [repeat 50 word]"), HASTY)).error).toMatchObject({ kind: "timeout" });
    await expect(complete(ask("[delay 10s]"), HASTY)).rejects.toMatchObject({ kind: "timeout" });
    await expect(complete(ask("[delay 10s] [fail 429]"), HASTY)).rejects.toMatchObject({ kind: "timeout" });
  });

  it.each(["[delay 3600s]", "[chunks 0]", "[chunks 10001]", "[repeat 1000000 word]", `${"[tool weather]".repeat(17)}`])(
    "%s exceeds a limit",
    async (prompt) => {
      await expect(complete(ask(prompt, { tools: [WEATHER] }))).rejects.toMatchObject({ kind: "status", status: 400 });
    },
  );

  it.each([
    "[fail 99]",
    "[delay soon]",
    "[error handling](https://example.com)",
    "[Tool weather]",
    "[cut after]",
    "[]",
    "[tokens]",
    "[repeat x]",
  ])("%s is ordinary text", async (prompt) => {
    expect(await textOf(ask(prompt))).toContain(prompt);
  });

  it("works within the first 10,000 characters", async () => {
    expect(await textOf(ask(`${"x".repeat(10_000)}[fail 429]`))).toContain("sandbox");
  });
});

describe("leaving", () => {
  it("ends every wait with the signal's reason", async () => {
    const provider = createSandboxChatProvider();
    const reason = new Error("gone");
    for (const prompt of ["[hang]", "[delay 100s]", "[pace 100s]", "[delay 100s] [fail 500]"]) {
      const controller = new AbortController();
      const waiting = provider.complete(call(ask(prompt), controller.signal));
      controller.abort(reason);
      await expect(waiting).rejects.toBe(reason);
    }
    await expect(provider.stream(call(ask("Hi"), AbortSignal.abort(reason)))).rejects.toBe(reason);
  });

  it("ends a stream that waits, by signal and by return", async () => {
    const controller = new AbortController();
    const open = async () => {
      const iterator = (await createSandboxChatProvider().stream(call(ask("[hang after 1]"), controller.signal)))[Symbol.asyncIterator]();
      await iterator.next();
      return iterator as AsyncIterator<ChatChunkBatch>;
    };
    const [left, aborted] = [await open(), await open()];

    const leftNext = left.next();
    const abortedNext = aborted.next();
    // Both are waiting now: the loop has turned since they were pulled.
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    await left.return?.();
    controller.abort("gone");

    expect((await leftNext).done).toBe(true);
    await expect(abortedNext).rejects.toBe("gone");
    expect((await left.next()).done).toBe(true);
    expect((await aborted.next()).done).toBe(true);
  });

  it("stops a stream without a reader", async () => {
    const controller = new AbortController();
    const iterator = (await createSandboxChatProvider().stream(call(ask("[repeat 100 word]"), controller.signal)))[Symbol.asyncIterator]();
    await iterator.next();

    controller.abort("gone");

    await expect(iterator.next()).rejects.toBe("gone");
  });
});
