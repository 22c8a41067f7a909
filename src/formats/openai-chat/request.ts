/**
 * The fields of a chat-completions request (docs/spec/chat.md#chat-completions) that are validated; unknown ones are passed to the upstream
 * unchanged.
 */
import { z } from "zod";
import { inUnit } from "../../lib/issue-words.js";
import { USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { CHAT_MESSAGES_MAX, TEMPERATURE_MAX, TEMPERATURE_MIN } from "../../limits.js";

const textPart = z.looseObject({ type: z.literal("text"), text: z.string() });
const otherPart = z.looseObject({
  type: z.enum(["image_url", "input_audio", "file", "video_url", "refusal"]),
  text: z.string().optional(),
});
const content = z.union([z.string(), z.array(z.discriminatedUnion("type", [textPart, otherPart]))]);
const optionalFields = { name: z.string().optional(), tool_calls: z.array(z.looseObject({})).nullish() };

const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer", "user", "tool", "function"]), content, ...optionalFields }),
  // A message that only calls tools has no content.
  z.looseObject({ role: z.literal("assistant"), content: content.nullish(), ...optionalFields }),
]);

const responseFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.enum(["text", "json_object"]), json_schema: z.looseObject({ name: z.string() }).optional() }),
  z.looseObject({ type: z.literal("json_schema"), json_schema: z.looseObject({ name: z.string() }) }),
]);

const penalty = z.number().min(-2).max(2).nullish();
const tokenCap = inUnit(z.int().min(1).max(USAGE_AMOUNT_MAX), "tokens").nullish();

export const chatFields = {
  model: z.string().min(1).max(253).nullish(),
  messages: z.array(message).min(1).max(CHAT_MESSAGES_MAX),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  temperature: z.number().min(TEMPERATURE_MIN).max(TEMPERATURE_MAX).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  n: z.int().min(1).max(128).nullish(),
  seed: z.int().min(-1).nullish(),
  max_tokens: tokenCap,
  max_completion_tokens: tokenCap,
  presence_penalty: penalty,
  frequency_penalty: penalty,
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: z.array(z.looseObject({ type: z.string() })).nullish(),
  tool_choice: z.union([z.string(), z.looseObject({})]).nullish(),
  response_format: responseFormat.nullish(),
  reasoning_effort: z.string().nullish(),
};

/** For a `refine`: the two names of the answer's cap may not differ. */
export function statesOneCap({ max_tokens: older, max_completion_tokens: newer }: Caps): boolean {
  return !older || !newer || older === newer;
}
export const TWO_CAPS = { message: "differs from max_tokens: state one of the two", path: ["max_completion_tokens"] };

interface Caps {
  readonly max_tokens?: number | null | undefined;
  readonly max_completion_tokens?: number | null | undefined;
}
