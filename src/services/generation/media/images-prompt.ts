/**
 * `enhance` (docs/spec/images.md#enhance): the default text model writes the prompt anew. It is a chat of the
 * caller's own, charged and recorded as one.
 */
import { deriveContext, type RequestContext } from "../../../context.js";
import { plainText } from "../chat/answer.js";
import type { ChatCompletions } from "../chat/chat.js";
import { chatCompletionInput } from "../chat/plan.js";

const INSTRUCTION = [
  "You write prompts for a model that makes pictures.",
  "Rewrite the user's text as one such prompt: keep everything that it asks for, and add what it leaves open",
  "(composition, light, style, materials, mood) in at most 120 words, in the user's language.",
  "Answer with the prompt alone.",
].join(" ");

/** A model that says nothing leaves the prompt as it is. */
export async function enhancePrompt(chat: ChatCompletions, ctx: RequestContext, prompt: string, signal: AbortSignal): Promise<string> {
  const input = chatCompletionInput.parse({
    messages: [
      { role: "system", content: INSTRUCTION },
      { role: "user", content: prompt },
    ],
  });
  const { completion } = await chat.create(deriveContext(ctx, { signal }), input);
  return plainText(completion.choices?.[0]?.message?.content).trim() || prompt;
}
