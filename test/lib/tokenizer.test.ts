import fc from "fast-check";
import { countTokens } from "gpt-tokenizer/encoding/o200k_base";
import { describe, expect, it } from "vitest";
import { ChatCount, countChatTokens, countDeltaTokens } from "../../src/formats/openai-chat/count.js";
import { readChat } from "../../src/formats/openai-chat/prompt.js";
import { countInTurns, countTextTokens, TEXT_CHARS_EXACT } from "../../src/lib/tokenizer.js";

/** What the package itself counts, with nothing special about special tokens. */
function reference(text: string): number {
  return countTokens(text, { disallowedSpecial: new Set() });
}

const ENGLISH = "The quick brown fox jumps over the lazy dog near the riverbank, while seventeen committees deliberate. ";
const CHINESE = "今天天气很好我们一起去公园散步然后在咖啡馆里聊天讨论人工智能的未来发展趋势";

function randomLetters(length: number): string {
  let state = 1;
  let text = "";
  for (let at = 0; at < length; at += 1) {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    text += String.fromCharCode(97 + ((state >> 16) % 26));
  }
  return text;
}

/**
 * An estimate is drawn at random: the mean of some shows their tendency, where a single one would now and then be off
 * by chance.
 */
function meanOfTen(estimate: () => number): number {
  return Array.from({ length: 10 }, estimate).reduce((sum, count) => sum + count, 0) / 10;
}

describe("countTextTokens", () => {
  it.each([
    ["nothing", "", 0],
    ["one word", "hello", 1],
    ["a sentence", "Hello, world!", 4],
    ["a special token as plain text", "<|endoftext|>", 7],
  ])("counts %s", (_name, text, expected) => {
    expect(countTextTokens(text)).toBe(expected);
  });

  it.each([
    ["English", ENGLISH.repeat(20)],
    ["Chinese", CHINESE.repeat(20)],
    ["code", "function foo(bar) {\n    return bar.map((x) => x * 2).filter(Boolean);\n}\n".repeat(20)],
    ["emoji", "🎉👩‍👩‍👧‍👦🇩🇪".repeat(50)],
    ["one long word", "a".repeat(1_000)],
    ["spaces and lines", " \n\t\r\n   ".repeat(100)],
    ["special tokens", "a<|endoftext|>b<|im_start|>system<|fim_prefix|>"],
    ["half a surrogate pair", "x\ud83cy"],
  ])("agrees with the reference on %s", (_name, text) => {
    expect(countTextTokens(text)).toBe(reference(text));
  });

  it("agrees with the reference on any text", () => {
    const word = fc.oneof(fc.string({ unit: "grapheme", maxLength: 40 }), fc.string({ unit: "binary", maxLength: 40 }), fc.constant(" "));
    fc.assert(
      fc.property(fc.array(word, { maxLength: 10 }), (words) => {
        const text = words.join("");

        expect(countTextTokens(text)).toBe(reference(text));
      }),
      { numRuns: 200 },
    );
  });

  it("counts the same in a second call", () => {
    expect([countTextTokens(ENGLISH), countTextTokens(ENGLISH)]).toEqual([reference(ENGLISH), reference(ENGLISH)]);
  });

  it("is exact at the bound and within ten percent, never low by more than three, beyond it", () => {
    for (const unit of [ENGLISH, CHINESE, "x = [1, 22, 333];\n"]) {
      const text = unit.repeat(Math.ceil((8 * TEXT_CHARS_EXACT) / unit.length));
      const truth = (text.length / unit.length) * (reference(unit.repeat(100)) / 100);

      const estimate = meanOfTen(() => countTextTokens(text));

      expect(estimate / truth).toBeGreaterThan(0.97);
      expect(estimate / truth).toBeLessThan(1.1);
    }
    const atBound = ENGLISH.repeat(1_000).slice(0, TEXT_CHARS_EXACT);
    expect(countTextTokens(atBound)).toBe(reference(atBound));
  });

  it("estimates a megabyte that was crafted to be slow", () => {
    const letters = randomLetters(16_384);
    const rate = reference(letters.slice(0, 2_048)) / 2_048;

    const estimate = countTextTokens(letters.repeat(64));

    expect(estimate / (64 * 16_384 * rate)).toBeGreaterThan(0.9);
    expect(estimate / (64 * 16_384 * rate)).toBeLessThan(1.25);
    expect(countTextTokens("a".repeat(1_048_576))).toBeGreaterThan(1_048_576 / 8);
    expect(countTextTokens(" ".repeat(1_048_576))).toBeGreaterThan(0);
  });

  it("is not misled by text that is cheap at the places of a fixed sample", () => {
    const dear = randomLetters(480);
    const text = `${" ".repeat(32)}${dear}`.repeat(2_048);
    const truth = reference(dear) * 2_048;

    expect(countTextTokens(text) / truth).toBeGreaterThan(0.9);
  });
});

describe("countChatTokens", () => {
  it("adds OpenAI's tokens around messages and names", () => {
    // 3 before the answer; 3 + "user" 1 + "hello" 1; 3 + "system" 1 + "hello" 1 + name 1 + "bob" 1.
    expect(countChatTokens([{ role: "user", content: "hello" }])).toBe(3 + 5);
    expect(
      countChatTokens([
        { role: "user", content: "hello" },
        { role: "system", name: "bob", content: "hello" },
      ]),
    ).toBe(3 + 5 + 7);
  });

  it("counts text parts, and a fixed amount for other parts", () => {
    const base = countChatTokens([{ role: "user", content: [{ type: "text", text: "hello" }] }]);
    const image = { type: "image_url", image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}` } };

    expect(base).toBe(3 + 5);
    expect(countChatTokens([{ role: "user", content: [{ type: "text", text: "hello" }, image] }])).toBe(base + 765);
    expect(
      countChatTokens([{ role: "user", content: [{ type: "image_url", image_url: { url: "https://example.com/a.png", detail: "low" } }] }]),
    ).toBe(3 + 4 + 85);
    expect(countChatTokens([{ role: "user", content: [{ type: "input_audio", input_audio: { data: "AAAA", format: "wav" } }] }])).toBe(
      3 + 4 + 300,
    );
  });

  it("counts tool calls and declared tools", () => {
    const without = countChatTokens([{ role: "assistant", content: null }]);
    const call = { id: "1", type: "function", function: { name: "weather", arguments: '{"city":"Oslo"}' } };

    expect(countChatTokens([{ role: "assistant", content: null, tool_calls: [call] }])).toBe(
      without + 8 + reference("weather") + reference('{"city":"Oslo"}'),
    );
    expect(countChatTokens([], { tools: [{ type: "function", function: { name: "weather" } }] })).toBeGreaterThan(8);
  });

  it("estimates a chat of very many messages and of very many parts", () => {
    const message = { role: "user", content: ENGLISH.repeat(10) };
    const truth = 3 + 2_000 * (3 + 1 + reference(message.content));
    const varied = Array.from({ length: 2_000 }, (_, index) => ({ ...message, content: `${message.content}${index}` }));
    const parts = Array.from({ length: 200_000 }, () => ({ type: "text", text: "hello" }));

    const estimate = meanOfTen(() => countChatTokens(varied));

    expect(estimate / truth).toBeGreaterThan(0.97);
    expect(estimate / truth).toBeLessThan(1.1);
    expect(countChatTokens([{ role: "user", content: parts }])).toBeGreaterThan(200_000);
  });

  it.each([
    ["one text", [`Turn by turn. ${ENGLISH.repeat(400)}`]],
    ["code", [`// 1\n${"function foo(bar) {\n    return bar.map((x) => x * 2).filter(Boolean);\n}\n".repeat(300)}`]],
    ["half a surrogate pair where a turn may end", [`${"a b ".repeat(2_047)}x\ud83c ${ENGLISH.repeat(100)}`]],
    ["many texts", Array.from({ length: 200 }, (_, index) => `${index}: ${ENGLISH.repeat(2)}`)],
  ])("counts %s in turns with others, exactly", async (_name, texts) => {
    const counting = countInTurns(texts);
    let wasOthersTurn = false;
    setImmediate(() => {
      wasOthersTurn = true;
    });

    expect(counting).toBeInstanceOf(Promise);
    expect(await counting).toBe(texts.reduce((sum, text) => sum + reference(text), 0));
    expect(wasOthersTurn).toBe(true);
  });

  it("counts a chat in turns as it does at once, and a short one at once", async () => {
    const messages = [{ role: "user", content: `Whole or in turns: ${ENGLISH.repeat(300)}` }];
    const tools = [{ type: "function", function: { name: "open_sluice" } }];
    const textsOf = (request: { readonly messages: unknown; readonly tools: unknown }) => {
      const count = new ChatCount();
      readChat(request, count);
      return count;
    };
    const long = textsOf({ messages, tools });
    const short = textsOf({ messages: [{ role: "user", content: "Hello" }], tools });

    const inTurns = countInTurns(long.texts);

    expect(inTurns).toBeInstanceOf(Promise);
    expect(long.tokens + (await inTurns)).toBe(countChatTokens(messages, { tools }));
    expect(short.tokens + Number(countInTurns(short.texts))).toBe(countChatTokens([{ role: "user", content: "Hello" }], { tools }));
  });

  it("counts nothing for invalid messages, and never throws", () => {
    fc.assert(
      fc.property(fc.anything(), fc.jsonValue(), (messages, tools) => {
        expect(countChatTokens(messages, { tools })).toBeGreaterThanOrEqual(3);
        expect(countChatTokens([messages], { tools: [tools] })).toBeGreaterThanOrEqual(3);
      }),
    );
    expect(countChatTokens(undefined)).toBe(3);
    expect(countChatTokens([null, 1, "x", [], {}])).toBe(3 + 3);
  });
});

describe("countDeltaTokens", () => {
  it("counts content, reasoning, refusal and tool calls", () => {
    expect(countDeltaTokens({ content: "hello" })).toBe(1);
    expect(countDeltaTokens({ content: [{ type: "text", text: "hello" }] })).toBe(1);
    expect(countDeltaTokens({ reasoning_content: "hello" })).toBe(1);
    expect(countDeltaTokens({ reasoning: "hello" })).toBe(1);
    expect(countDeltaTokens({ refusal: "hello" })).toBe(1);
    expect(countDeltaTokens({ tool_calls: [{ index: 0, function: { arguments: "hello" } }] })).toBe(1);
    expect(countDeltaTokens({ tool_calls: [{ index: 0, function: { name: "hello", arguments: "" } }] })).toBe(9);
    expect(countDeltaTokens({ role: "assistant", content: null })).toBe(0);
    expect(countDeltaTokens(null)).toBe(0);
  });
});
