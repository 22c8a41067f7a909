/** `generate_text`: a chat completion for one prompt. */
import * as z from "zod";
import { chatCompletionInput } from "../../generation/chat-input.js";
import type { TextGeneration } from "../../generation/text.js";
import { type GatewayTool, model, optional, textBlock, toReceiptJson } from "./tool.js";

const { shape } = chatCompletionInput;

const input = z.strictObject({
  prompt: z.string().min(1).describe("What to answer."),
  system: z.string().optional().describe("How to answer: the instructions before the prompt."),
  model: model(shape.model),
  temperature: optional(shape.temperature, "0 is the most predictable."),
  top_p: optional(shape.top_p, "Nucleus sampling."),
  max_tokens: optional(shape.max_tokens, "The most tokens of the answer."),
  seed: optional(shape.seed, "The same seed gives the same answer as far as the model can; -1 is a random one."),
  reasoning_effort: optional(shape.reasoning_effort, "How much a reasoning model thinks: minimal, low, medium or high."),
  json: z.boolean().optional().describe("Answer a JSON object; say so in the prompt, too."),
  safe: optional(shape.safe, "Safety features for the input: true for the usual ones, or their names separated by commas."),
});

export function createTextTool(text: Pick<TextGeneration, "create">): GatewayTool<z.output<typeof input>> {
  return {
    name: "generate_text",
    title: "Generate text",
    description: "Asks a text model and answers what it says.",
    input,
    isReadOnly: false,
    call: async (ctx, { prompt, system, json, ...options }) => {
      const messages = [...(system === undefined ? [] : [{ role: "system", content: system }]), { role: "user", content: prompt }];
      const format = json ? { response_format: { type: "json_object" } } : {};
      const made = await text.create(ctx, chatCompletionInput.parse({ ...options, ...format, messages }));
      return {
        isError: false,
        content: [textBlock(made.text)],
        structuredContent: { text: made.text, ...toReceiptJson(made.receipt) },
      };
    },
  };
}
