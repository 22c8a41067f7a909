/** Converts a completion's request to a chat's: the prompt is a message of the user. */
import { withoutFields } from "../../lib/own-values.js";
import type { ChatBody } from "../openai-chat/schema.js";
import { type CompletionRequest, promptOf } from "./request.js";

const READ_FIELDS: ReadonlySet<string> = new Set(["prompt", "suffix", "echo", "best_of", "logprobs"]);

const INSERT =
  "Write the text that belongs between the beginning and the end of the document below. Answer with that text only, without repeating either.";

export interface ChatOfCompletion {
  /** Not validated yet. */
  readonly chat: ChatBody;
  readonly warnings: readonly string[];
}

export function toChat(request: CompletionRequest): ChatOfCompletion {
  const passed = withoutFields(request, READ_FIELDS, (value) => value !== null);
  const warnings = request.logprobs == null ? [] : ["logprobs: left out: this format's log probabilities are not available."];
  return { chat: { ...passed, messages: toMessages(request) }, warnings };
}

function toMessages(request: CompletionRequest): readonly object[] {
  const prompt = promptOf(request);
  if (!request.suffix) return [{ role: "user", content: prompt }];
  return [
    { role: "system", content: INSERT },
    { role: "user", content: `<beginning>\n${prompt}\n</beginning>\n<end>\n${request.suffix}\n</end>` },
  ];
}
