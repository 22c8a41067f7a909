/** Signed thoughts in the estimate of a chat's tokens. */
import { describe, expect, it } from "vitest";
import { countChatTokens } from "../../../src/formats/openai-chat/count.js";

const TEXT = "one two three four five six seven eight nine ten ".repeat(20);
const countOf = (message: object) => countChatTokens([{ role: "assistant", content: "Hi.", ...message }]);
const thoughts = (...texts: string[]) => texts.map((text) => ({ type: "reasoning.text", text, signature: "c2ln" }));

describe("reasoning_details", () => {
  it("count as the text that a model reads", () => {
    expect(countOf({ reasoning_details: thoughts(TEXT) })).toBe(countOf({ reasoning_content: TEXT }));
    expect(countOf({ reasoning_details: [{ type: "reasoning.summary", summary: TEXT }] })).toBe(countOf({ reasoning_content: TEXT }));
  });

  it("count once beside the reasoning that they repeat", () => {
    expect(countOf({ reasoning_content: TEXT, reasoning_details: thoughts(TEXT) })).toBe(countOf({ reasoning_content: TEXT }));
  });

  it("count where the reasoning beside them is shorter", () => {
    expect(countOf({ reasoning_content: "x", reasoning_details: thoughts(TEXT, TEXT) })).toBeGreaterThan(
      countOf({ reasoning_content: TEXT + TEXT }),
    );
  });

  it("count as nothing where they hold only what the vendor encrypted", () => {
    expect(countOf({ reasoning_details: [{ type: "reasoning.encrypted", data: TEXT }, null, 7, "x"] })).toBe(countOf({}));
    expect(countOf({ reasoning_details: 7 })).toBe(countOf({}));
  });
});
