/** A request of Anthropic's Messages format (docs/spec/messages.md). Unknown fields and beta features are left out with a warning. */
import { z } from "zod";
import { inUnit } from "../../lib/issue-words.js";
import { USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { CHAT_MESSAGES_MAX } from "../../limits.js";

/** Anthropic's bounds of the temperature. */
const TEMPERATURE_MAX = 1;

const cacheControl = z.looseObject({ type: z.string(), ttl: z.string().nullish() }).nullish();

const textBlock = z.looseObject({ type: z.literal("text"), text: z.string(), cache_control: cacheControl });

const base64Source = z.looseObject({ type: z.literal("base64"), media_type: z.string().min(1), data: z.string().min(1) });
const urlSource = z.looseObject({ type: z.literal("url"), url: z.string().min(1) });
const textSource = z.looseObject({ type: z.literal("text"), data: z.string() });
/** Files of Anthropic's own store: none is kept here, so the source is refused. */
const fileSource = z.looseObject({
  type: z.literal("file"),
  file_id: z.never("must be sent as base64 or by URL: files are not kept here"),
});

const imageBlock = z.looseObject({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [base64Source, urlSource, fileSource]),
  cache_control: cacheControl,
});
const contentSource = z.looseObject({
  type: z.literal("content"),
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [textBlock, imageBlock]))]),
});
const documentBlock = z.looseObject({
  type: z.literal("document"),
  source: z.discriminatedUnion("type", [base64Source, urlSource, textSource, contentSource, fileSource]),
  title: z.string().nullish(),
  context: z.string().nullish(),
  cache_control: cacheControl,
});
const searchResultBlock = z.looseObject({
  type: z.literal("search_result"),
  source: z.string(),
  title: z.string(),
  content: z.array(textBlock),
  cache_control: cacheControl,
});
const shownBlock = z.discriminatedUnion("type", [textBlock, imageBlock, documentBlock, searchResultBlock]);

const toolUseBlock = z.looseObject({
  type: z.literal("tool_use"),
  id: z.string().min(1),
  name: z.string().min(1),
  input: z.unknown(),
  cache_control: cacheControl,
});
const toolResultBlock = z.looseObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string().min(1),
  content: z.union([z.string(), z.array(shownBlock)]).nullish(),
  is_error: z.boolean().nullish(),
  cache_control: cacheControl,
});
const thinkingBlock = z.looseObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string().nullish() });
const redactedBlock = z.looseObject({ type: z.literal("redacted_thinking"), data: z.string() });

const READ_BLOCKS: ReadonlySet<string> = new Set([
  ...["text", "image", "document", "search_result"],
  ...["tool_use", "tool_result", "thinking", "redacted_thinking"],
]);
/** Blocks of tools that Anthropic runs, which only an upstream of this format reads. */
const foreignBlock = z
  .looseObject({
    type: z
      .string()
      // Blocks of known types get errors of their own schema.
      .refine((type) => !READ_BLOCKS.has(type), { abort: true })
      .meta({ not: { enum: [...READ_BLOCKS] } }),
  })
  .transform((raw) => ({ type: null, foreignType: raw.type, raw }));
const block = z.union([
  z.discriminatedUnion("type", [
    textBlock,
    imageBlock,
    documentBlock,
    searchResultBlock,
    toolUseBlock,
    toolResultBlock,
    thinkingBlock,
    redactedBlock,
  ]),
  foreignBlock,
]);

/** `system` in the middle of a conversation is a beta feature that coding agents use. */
const message = z.looseObject({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union([z.string(), z.array(block)]),
});

/** A tool of the caller. Anthropic's own tools have a `type` and no schema. */
const ownTool = z.looseObject({
  type: z.literal("custom").nullish(),
  name: z.string().min(1),
  description: z.string().nullish(),
  input_schema: z.looseObject({}),
  strict: z.boolean().nullish(),
  cache_control: cacheControl,
});
const serverTool = z
  .looseObject({
    type: z
      .string()
      .refine((type) => type !== "custom", { abort: true })
      .meta({ not: { const: "custom" } }),
    name: z.string().nullish(),
  })
  .transform((raw) => ({ serverType: raw.type as string, name: raw.name, raw: raw as ServerToolFields }));

interface ServerToolFields extends Readonly<Record<string, unknown>> {
  readonly type: string;
}

const effort = z.enum(["low", "medium", "high", "xhigh", "max"]);
const jsonFormat = z.looseObject({ type: z.literal("json_schema"), schema: z.looseObject({}) });

const thinking = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("enabled"), budget_tokens: inUnit(z.int().min(1).max(USAGE_AMOUNT_MAX), "tokens") }),
  z.looseObject({ type: z.literal("adaptive") }),
  z.looseObject({ type: z.literal("disabled") }),
]);

const parallel = { disable_parallel_tool_use: z.boolean().nullish() };
const toolChoice = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("auto"), ...parallel }),
  z.looseObject({ type: z.literal("any"), ...parallel }),
  z.looseObject({ type: z.literal("tool"), name: z.string().min(1), ...parallel }),
  z.looseObject({ type: z.literal("none") }),
]);

/** The fields that decide how many tokens a request has. */
export const messageCountFields = {
  model: z.string().min(1).max(253),
  messages: z.array(message).min(1).max(CHAT_MESSAGES_MAX),
  system: z.union([z.string(), z.array(textBlock)]).nullish(),
  tools: z.array(z.union([ownTool, serverTool])).nullish(),
  tool_choice: toolChoice.nullish(),
  thinking: thinking.nullish(),
  output_config: z.looseObject({ effort: effort.nullish(), format: jsonFormat.nullish() }).nullish(),
  /** The former name of `output_config.format`. */
  output_format: jsonFormat.nullish(),
};

export const messageFields = {
  ...messageCountFields,
  max_tokens: inUnit(z.int().min(1).max(USAGE_AMOUNT_MAX), "tokens"),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(TEMPERATURE_MAX).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(0).nullish(),
  stop_sequences: z.array(z.string()).nullish(),
};

const messageRequest = z.looseObject(messageFields);
const messageCountRequest = z.looseObject(messageCountFields);
export type MessageRequest = z.output<typeof messageRequest>;
export type MessageCountRequest = z.output<typeof messageCountRequest>;
export type MessageBlock = z.output<typeof block>;
export type MessageShownBlock = z.output<typeof shownBlock>;
export type MessageServerTool = z.output<typeof serverTool>;
export type MessageTool = z.output<typeof ownTool> | z.output<typeof serverTool>;
