/** `generate_text`: a chat completion for one prompt. A client that requests progress gets the text as it is generated. */
import * as z from "zod";
import type { RequestContext } from "../../../context.js";
import { type ChatCompletionInput, chatCompletionInput } from "../../generation/chat/plan.js";
import { type TextGeneration, textOfChunk } from "../../generation/chat/text.js";
import type { Receipt } from "../../generation/receipt.js";
import { MCP_REPEATED_TEXT_BYTES_MAX } from "../limits.js";
import { type GatewayTool, model, optional, type Report, textBlock, toReceiptJson } from "./tool.js";

const { shape } = chatCompletionInput;

const input = z.strictObject({
  prompt: z.string().min(1).describe("The prompt to answer."),
  system: z.string().optional().describe("System instructions, placed before the prompt."),
  model: model(shape.model),
  temperature: optional(shape.temperature, "The sampling temperature. 0 is the most predictable."),
  top_p: optional(shape.top_p, "Nucleus sampling."),
  max_tokens: optional(shape.max_tokens, "The maximum length of the answer in tokens."),
  seed: optional(shape.seed, "The random seed, for repeatable answers where the model supports it. -1 draws a random one."),
  reasoning_effort: optional(shape.reasoning_effort, "The reasoning effort: minimal, low, medium or high."),
  json: z.boolean().optional().describe("Return a JSON object. The prompt must ask for JSON, too."),
  safe: optional(shape.safe, "Safety checks of the input: true for the default ones, or a comma-separated list."),
});

type Texts = Pick<TextGeneration, "create" | "stream">;

export function createTextTool(texts: Texts): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_text",
    title: "Generate text",
    description: "Generates text with a text model.",
    input,
    isReadOnly: false,
    call: async (ctx, { prompt, system, json, ...options }, report) => {
      const messages = [...(system === undefined ? [] : [{ role: "system", content: system }]), { role: "user", content: prompt }];
      const format = json ? { response_format: { type: "json_object" } } : {};
      const request = chatCompletionInput.parse({ ...options, ...format, messages });
      const { text, receipt } = await (report === null ? texts.create(ctx, request) : follow(texts, ctx, request, report));
      const isRepeated = Buffer.byteLength(JSON.stringify(text)) <= MCP_REPEATED_TEXT_BYTES_MAX;
      const structuredContent = { ...(isRepeated && { text }), ...(receipt && toReceiptJson(receipt)) };
      return { isError: false, content: [textBlock(text)], structuredContent };
    },
  };
}

/** A client that disconnects pays for the text delivered by then. */
async function follow(
  texts: Texts,
  ctx: RequestContext,
  request: ChatCompletionInput,
  report: Report,
): Promise<{ readonly text: string; readonly receipt: Receipt | null }> {
  const stream = texts.stream(ctx, request);
  const leave = () => void stream.events.return?.().then(ignore, ignore);
  ctx.signal.addEventListener("abort", leave, { once: true });
  if (ctx.signal.aborted) leave();
  let text = "";
  try {
    for await (const { chunks } of stream.events) {
      const message = chunks.map(textOfChunk).join("");
      text += message;
      if (message !== "") report({ progress: text.length, message });
    }
  } finally {
    ctx.signal.removeEventListener("abort", leave);
  }
  ctx.signal.throwIfAborted();
  return { text, receipt: stream.receipt() };
}

function ignore(): void {}
