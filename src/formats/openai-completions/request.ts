/** A request of OpenAI's completions format, the one before chats (docs/spec/chat.md#completions). */
import { z } from "zod";
import { chatFields } from "../openai-chat/request.js";

const CHAT_ONLY = "must be left out: POST /v1/chat/completions takes it";
const chatOnly = z.undefined({ error: CHAT_ONLY }).optional();

/** Tokens would have to be those of one model's vocabulary. */
const TEXT_ONLY = "must be 1 text: send a request for each prompt, and text instead of tokens";

/** A list of one text is that text, as some clients send it. */
const prompt = z.union(
  [z.string({ error: TEXT_ONLY }).min(1), z.array(z.string({ error: TEXT_ONLY }).min(1)).length(1, { error: TEXT_ONLY })],
  {
    error: TEXT_ONLY,
  },
);

export const completionFields = {
  model: chatFields.model,
  prompt,
  suffix: z.string().nullish(),
  echo: z.boolean().nullish(),
  best_of: z.literal(1, { error: "must be 1: only the answers that are returned are generated. Use n" }).nullish(),
  logprobs: z.int().min(0).max(5).nullish(),
  max_tokens: chatFields.max_tokens,
  n: chatFields.n,
  stop: chatFields.stop,
  stream: chatFields.stream,
  stream_options: chatFields.stream_options,
  seed: chatFields.seed,
  temperature: chatFields.temperature,
  top_p: chatFields.top_p,
  presence_penalty: chatFields.presence_penalty,
  frequency_penalty: chatFields.frequency_penalty,
  messages: chatOnly,
  tools: chatOnly,
  functions: chatOnly,
  response_format: chatOnly,
};

const completionRequest = z.looseObject(completionFields);
export type CompletionRequest = z.output<typeof completionRequest>;

/** The text to complete. */
export function promptOf({ prompt: stated }: Pick<CompletionRequest, "prompt">): string {
  return typeof stated === "string" ? stated : (stated[0] ?? "");
}
