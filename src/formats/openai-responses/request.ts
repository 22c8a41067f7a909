/** A request of OpenAI's Responses format (docs/spec/chat.md#responses). */
import { z } from "zod";
import { inUnit } from "../../lib/issue-words.js";
import { textPairs } from "../../lib/text-pairs.js";
import { USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { CHAT_MESSAGES_MAX, TEMPERATURE_MAX, TEMPERATURE_MIN } from "../../limits.js";

const ROLES = ["user", "assistant", "system", "developer"] as const;
/** OpenAI's values, and a client's value for none; also for the field's older name. */
const SUMMARIES = ["auto", "concise", "detailed", "none"] as const;
const DETAILS = ["auto", "low", "high", "original"] as const;
/** Longer than any id that is made here. */
const ID_CHARS_MAX = 100;
/** Of a response or a conversation. */
export const metadata = textPairs({ countMax: 16, nameCharsMax: 64, valueCharsMax: 512 });

const textPart = z.looseObject({ type: z.enum(["input_text", "output_text", "text"]), text: z.string() });
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });
/** Files are not stored here, so references are refused. */
const imagePart = z.looseObject({
  type: z.literal("input_image"),
  image_url: z.string("must be a URL: files are not kept here"),
  detail: z.enum(DETAILS).nullish(),
});
const filePart = z.looseObject({
  type: z.literal("input_file"),
  file_data: z.string("must be the file's content: files are not kept or fetched here"),
  file_url: z.string().nullish(),
  filename: z.string().nullish(),
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
/** Of a call of a tool in a group (`namespace`). */
const namespace = z.string().nullish();
const callItem = z.looseObject({
  type: z.literal("function_call"),
  call_id: z.string(),
  name: z.string(),
  namespace,
  arguments: z.string(),
});
const outputItem = z.looseObject({
  type: z.literal("function_call_output"),
  call_id: z.string(),
  output: z.union([z.string(), z.array(contentPart)]),
});
/** As answered here or elsewhere; `encrypted_content` of elsewhere is ignored. */
const thoughts = z.array(z.looseObject({ text: z.string().nullish() })).nullish();
const reasoningItem = z.looseObject({
  type: z.literal("reasoning"),
  content: thoughts,
  summary: thoughts,
  encrypted_content: z.string().nullish(),
});
const customCallItem = z.looseObject({
  type: z.literal("custom_tool_call"),
  call_id: z.string(),
  name: z.string(),
  namespace,
  input: z.string(),
});
const customOutputItem = z.looseObject({
  type: z.literal("custom_tool_call_output"),
  call_id: z.string(),
  output: z.union([z.string(), z.array(contentPart)]),
});
/** A conversation that was summarized, here or elsewhere; `encrypted_content` of elsewhere is left out. */
const compactionItem = z.looseObject({ type: z.literal("compaction"), encrypted_content: z.string() });
const READ_ITEMS: ReadonlySet<string> = new Set([
  "message",
  "function_call",
  "function_call_output",
  "reasoning",
  "custom_tool_call",
  "custom_tool_call_output",
  "compaction",
]);
/** Items of other tools, which a chat cannot hold; left out. */
const foreignItem = z
  .looseObject({
    type: z
      .string()
      // Items of known types get errors of their own schema.
      .refine((type) => !READ_ITEMS.has(type), { abort: true })
      .meta({ not: { enum: [...READ_ITEMS] } }),
  })
  .transform((item) => ({ type: null, foreignType: item.type, callId: item.call_id, item }));
export const inputItem = z.union([
  messageItem,
  callItem,
  outputItem,
  reasoningItem,
  customCallItem,
  customOutputItem,
  compactionItem,
  foreignItem,
]);

const functionTool = z.looseObject({
  type: z.literal("function"),
  name: z.string().min(1),
  description: z.string().nullish(),
  parameters: z.looseObject({}).nullish(),
  strict: z.boolean().nullish(),
});

/** A tool that takes plain text, optionally with a grammar. */
const customTool = z.looseObject({
  type: z.literal("custom"),
  name: z.string().min(1),
  description: z.string().nullish(),
  format: z.looseObject({ type: z.string() }).nullish(),
});
/** Vendors' own tools and unknown ones (tools.ts). */
const OWN_TYPES: readonly string[] = ["function", "custom", "namespace"];
const foreignTool = z.looseObject({
  type: z
    .string()
    .min(1)
    .refine((type) => !OWN_TYPES.includes(type), { abort: true })
    .meta({ not: { enum: [...OWN_TYPES] } }),
});
/** A group of tools, such as those of one MCP server. */
const namespaceTool = z.looseObject({
  type: z.literal("namespace"),
  name: z.string().min(1),
  description: z.string().nullish(),
  tools: z.array(z.union([functionTool, customTool, foreignTool])),
});
const tool = z.union([functionTool, customTool, namespaceTool, foreignTool]);

const textFormat = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text") }),
  z.looseObject({ type: z.literal("json_object") }),
  z.looseObject({ type: z.literal("json_schema"), name: z.string().min(1), schema: z.looseObject({}), strict: z.boolean().nullish() }),
]);

const idText = z.string().min(1).max(ID_CHARS_MAX);

export const responseFields = {
  model: z.string().min(1).max(253).nullish(),
  input: z.union([z.string().min(1), z.array(inputItem).min(1).max(CHAT_MESSAGES_MAX)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  max_output_tokens: inUnit(z.int().min(1).max(USAGE_AMOUNT_MAX), "tokens").nullish(),
  temperature: z.number().min(TEMPERATURE_MIN).max(TEMPERATURE_MAX).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: z.union([z.enum(["auto", "none", "required"]), z.looseObject({ type: z.string() })]).nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  text: z.looseObject({ format: textFormat.nullish(), verbosity: z.enum(["low", "medium", "high"]).nullish() }).nullish(),
  reasoning: z
    .looseObject({ effort: z.string().nullish(), summary: z.enum(SUMMARIES).nullish(), generate_summary: z.enum(SUMMARIES).nullish() })
    .nullish(),
  metadata: metadata.nullish(),
  user: z.string().nullish(),
  truncation: z.literal("disabled", { error: "must be disabled: nothing that is sent is ever cut" }).nullish(),
  previous_response_id: idText.nullish(),
  conversation: z.union([idText, z.looseObject({ id: idText })]).nullish(),
  prompt: z.null({ error: "must be left out: this gateway keeps no prompts. Send the prompt's text in instructions or input" }).optional(),
  background: z.boolean().nullish(),
  store: z.boolean().nullish(),
  include: z.array(z.string()).nullish(),
};

const responseRequest = z.looseObject(responseFields);
export type ResponseInput = z.output<typeof responseRequest>;
export type ResponseInputItem = z.output<typeof inputItem>;
export type ResponseContentPart = z.output<typeof contentPart>;
export type ResponseFunctionTool = z.output<typeof functionTool>;
export type ResponseCustomTool = z.output<typeof customTool>;
export type ResponseNamespaceTool = z.output<typeof namespaceTool>;
export type ResponseTool = z.output<typeof tool>;

export function wantsSummary({ reasoning }: Pick<ResponseInput, "reasoning">): boolean {
  return (reasoning?.summary ?? reasoning?.generate_summary ?? "none") !== "none";
}
