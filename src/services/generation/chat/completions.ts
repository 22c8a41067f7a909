/** Completions (docs/spec/chat.md#completions, POST /v1/completions): a chat completion in OpenAI's format before chats. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { z } from "zod";
import type { RequestContext } from "../../../context.js";
import { CompletionChunks, completionIdOf, type TextCompletion, toCompletion } from "../../../formats/openai-completions/answer.js";
import { completionFields, promptOf } from "../../../formats/openai-completions/request.js";
import { toChat } from "../../../formats/openai-completions/to-chat.js";
import { formatSseEvent } from "../../../lib/sse.js";
import { parseInput } from "../../requests/input.js";
import { safeInput } from "../../safety/features.js";
import type { Receipt } from "../receipt.js";
import { withCost } from "./answer.js";
import type { ChatCompletions } from "./chat.js";
import { type ConvertedStream, convertStream } from "./converted-stream.js";
import { chatCompletionInput } from "./plan.js";

export const completionInput = z.looseObject({
  ...completionFields,
  /** For the gateway: never sent upstream. */
  safe: safeInput,
});
export type CompletionInput = z.output<typeof completionInput>;

/** A chat's stream in chunks of the completions format. */
export type CompletionStream = ConvertedStream<TextCompletion>;

export class Completions {
  constructor(private readonly chat: ChatCompletions) {}

  /** Resolves when the charge is committed. */
  async create(ctx: RequestContext, input: CompletionInput): Promise<{ readonly completion: TextCompletion; readonly receipt: Receipt }> {
    const { chat, warnings } = toChat(input);
    if (ctx.hasLargeInput) await nextTurn();
    const { completion, receipt } = await this.chat.create(ctx, parseInput(chatCompletionInput, chat), warnings);
    const frame = { ...frameOf(receipt.generationId, input), model: receipt.model };
    return { completion: toCompletion(frame, completion, withCost(completion.usage, receipt)), receipt };
  }

  stream(ctx: RequestContext, input: CompletionInput): CompletionStream {
    const { chat: body, warnings } = toChat(input);
    const chat = this.chat.stream(ctx, { ...parseInput(chatCompletionInput, body), stream: true }, warnings);
    const begin = async () => {
      const { model } = await chat.opened;
      const chunks = new CompletionChunks({ ...frameOf(chat.generationId, input), model: model || (input.model ?? "") });
      return { begin: () => [], read: (chunk: Parameters<CompletionChunks["read"]>[0]) => chunks.read(chunk), end: () => [] };
    };
    return convertStream(chat, begin, writeChunks);
  }
}

/** Without event lines, as those of a chat. */
function writeChunks(chunks: readonly TextCompletion[]): Buffer {
  return Buffer.concat(chunks.map((chunk) => formatSseEvent(JSON.stringify(chunk))));
}

function frameOf(generationId: string, input: CompletionInput) {
  return {
    id: completionIdOf(generationId),
    created: Math.floor(Date.now() / 1000),
    echo: input.echo ? promptOf(input) : "",
    choices: input.n ?? 1,
  };
}
