/**
 * A request of OpenAI's Responses format (decisions "Generation": stateless). Everything is in the request: what would need
 * a stored conversation is refused, never ignored.
 */
import { z } from "zod";
import { USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { CHAT_MESSAGES_MAX, TEMPERATURE_MAX, TEMPERATURE_MIN } from "../../limits.js";
import { safeInput } from "../safety/features.js";

const ROLES = ["user", "assistant", "system", "developer"] as const;
const DETAILS = ["auto", "low", "high", "original"] as const;

const textPart = z.looseObject({ type: z.enum(["input_text", "output_text", "text"]), text: z.string() });
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });
const imagePart = z
  .looseObject({ type: z.literal("input_image"), image_url: z.string().nullish(), detail: z.enum(DETAILS).nullish() })
  .refine((part) => typeof part.image_url === "string", { message: "is required: files are not kept here", path: ["image_url"] });
const filePart = z
  .looseObject({
    type: z.literal("input_file"),
    file_data: z.string().nullish(),
    file_url: z.string().nullish(),
    filename: z.string().nullish(),
  })
  .refine((part) => typeof part.file_data === "string", {
    message: "is required: files are not kept or fetched here",
    path: ["file_data"],
  });
const audioPart = z.looseObject({
  type: z.literal("input_audio"),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
});
const contentPart = z.discriminatedUnion("type", [textPart, refusalPart, imagePart, filePart, audioPart]);

const messageItem = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(ROLES),
  content: z.union([z.string(), z.array(contentPart)]),
});
const callItem = z.looseObject({ type: z.literal("function_call"), call_id: z.string(), name: z.string(), arguments: z.string() });
const outputItem = z.looseObject({
  type: z.literal("function_call_output"),
  call_id: z.string(),
  output: z.union([z.string(), z.array(contentPart)]),
});
const reasoningItem = z.looseObject({
  type: z.literal("reasoning"),
  content: z.array(z.looseObject({ type: z.string(), text: z.string() })).nullish(),
});
const inputItem = z.union([messageItem, callItem, outputItem, reasoningItem]);

const functionTool = z.looseObject({
  type: z.literal("function", { error: "must be function: no other tools can be called through this gateway" }),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
});

const textFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({ type: z.literal("json_schema"), name: z.string().min(1), schema: z.looseObject({}), strict: z.boolean().nullish() }),
]);

const stateless = z.null({ error: "must be left out: this gateway keeps no conversations, send them in input" }).optional();

export const responseInput = z.looseObject({
  model: z.string().min(1).max(253).nullish(),
  input: z.union([z.string().min(1), z.array(inputItem).min(1).max(CHAT_MESSAGES_MAX)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: z.int().min(1).max(USAGE_AMOUNT_MAX).nullish(),
  temperature: z.number().min(TEMPERATURE_MIN).max(TEMPERATURE_MAX).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: z.array(functionTool).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), z.looseObject({ type: z.literal("function"), name: z.string() })]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: textFormat.nullish(), verbosity: z.enum(["low", "medium", "high"]).nullish() }).nullish(),
  reasoning: z.looseObject({ effort: z.string().nullish(), summary: z.string().nullish() }).nullish(),
  metadata: z.record(z.string().max(64), z.string().max(512)).nullish(),
  user: z.string().nullish(),
  truncation: z.literal("disabled", { error: "must be disabled: nothing that is sent is ever cut" }).nullish(),
  previous_response_id: stateless,
  conversation: stateless,
  prompt: stateless,
  background: z.literal(false, { error: "must be false: a response is answered at once or streamed" }).nullish(),
  store: z.boolean().nullish(),
  include: z.array(z.string()).nullish(),
  /** For the gateway alone: no upstream sees it. */
  safe: safeInput,
});

export type ResponseInput = z.output<typeof responseInput>;
export type ResponseInputItem = z.output<typeof inputItem>;
export type ResponseContentPart = z.output<typeof contentPart>;
