/** The estimate of a chat's input tokens, as for a hold, for routes that count without a charge. */
import { ChatCount } from "../../../formats/openai-chat/count.js";
import { readChat } from "../../../formats/openai-chat/prompt.js";
import type { ChatBody } from "../../../formats/openai-chat/schema.js";
import { countInTurns } from "../../../lib/tokenizer.js";
import { parseInput } from "../../requests/input.js";
import { chatCompletionInput } from "./plan.js";

/** Throws BAD_REQUEST for a chat that is not valid. */
export async function countChat(chat: ChatBody): Promise<number> {
  const count = new ChatCount();
  readChat(parseInput(chatCompletionInput, chat), count);
  return count.tokens + (await countInTurns(count.texts));
}
