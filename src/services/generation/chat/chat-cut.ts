/**
 * Cuts what a chat's model has written to what is held for it: an upstream that does not heed its bound, or sends a stream in one
 * piece, gives nobody more than they can pay.
 */
import type { ChatChunkObject, ChatCompletion, ChatDelta } from "../../../lib/chat-format.js";
import { countTextTokens } from "../../../lib/tokenizer.js";
import { plainText } from "./chat-text.js";

/** Of an answer that its caller did not bound. */
export function cutWarning(tokens: number): string {
  return `The answer was cut at ${tokens} output tokens, which is what was held for it. State max_tokens, or add credits, to have a longer one.`;
}

/** The same answer with at most so many tokens of what it says, thoughts first; tool calls that do not fit are left out whole. */
export function cutCompletion(completion: ChatCompletion, tokens: number): ChatCompletion {
  const budget = { tokens };
  const choices = completion.choices?.map((choice) => {
    const message = choice.message ? cutDelta(choice.message, budget) : null;
    return message === choice.message ? choice : { ...choice, message, finish_reason: "length" };
  });
  return { ...completion, ...(choices && { choices }) };
}

/** A chunk of a stream, likewise; what ends it is the stream's own affair. */
export function cutChunk(chunk: ChatChunkObject, tokens: number): ChatChunkObject {
  const budget = { tokens };
  const choices = chunk.choices?.map(({ finish_reason: _, ...choice }) => ({
    ...choice,
    delta: choice.delta ? cutDelta(choice.delta, budget) : null,
    finish_reason: null,
  }));
  const { usage: _, ...rest } = chunk;
  return { ...rest, ...(choices && { choices }) };
}

/** Thoughts first. */
const TEXTS = ["reasoning_content", "reasoning", "content", "refusal"] as const;

function cutDelta(delta: ChatDelta, budget: { tokens: number }): ChatDelta {
  const written = JSON.stringify([
    delta.reasoning_content ?? delta.reasoning,
    delta.content,
    delta.refusal,
    delta.tool_calls,
    delta.audio,
    delta.images,
  ]);
  const whole = countTextTokens(written);
  if (whole <= budget.tokens) {
    budget.tokens -= whole;
    return delta;
  }
  // What holds more of the same, and what cannot be cut.
  const { reasoning_details: _details, audio: _audio, images: _images, annotations: _annotations, tool_calls: _calls, ...said } = delta;
  const texts = TEXTS.filter((name) => said[name] != null).map((name) => [name, cutText(plainText(said[name]), budget)]);
  return { ...said, ...Object.fromEntries(texts) };
}

/** By proportion, then ever less until it fits. */
function cutText(text: string, budget: { tokens: number }): string {
  let kept = text;
  let tokens = countTextTokens(kept);
  while (tokens > budget.tokens && kept !== "") {
    kept = kept.slice(0, Math.max(0, Math.floor((kept.length * Math.max(0, budget.tokens)) / tokens) - 1));
    tokens = kept === "" ? 0 : countTextTokens(kept);
  }
  budget.tokens -= tokens;
  return kept;
}
