/** Converts a completion's request to a chat's: the prompt is a message of the user. */
import { invalidInput } from "../../errors.js";
import { withoutFields } from "../../lib/own-values.js";
import { JSON_BODY_BYTES_MAX } from "../../limits.js";
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

/** Throws BAD_REQUEST for an echo that is longer in all answers together than a request may be. */
export function toChat(request: CompletionRequest): ChatOfCompletion {
  if (request.echo && promptOf(request).length * (request.n ?? 1) > JSON_BODY_BYTES_MAX)
    throw invalidInput(`With n the echo has more than ${JSON_BODY_BYTES_MAX} characters: ask for fewer answers, or without echo.`, "echo");
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
