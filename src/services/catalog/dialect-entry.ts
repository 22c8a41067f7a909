/** `dialect` of an upstream or model in `MODELS_FILE` (docs/adding-a-model.md#dialects). */
import * as z from "zod";
import { THOUGHT_PLACES } from "../../formats/openai-chat/dialect.js";

/** Unspecified: fields in one list, and characters of a name. */
const FIELDS_MAX = 64;
const NAME_CHARS_MAX = 64;
/** Fields that every chat needs. */
const NEEDED: ReadonlySet<string> = new Set(["model", "messages", "stream", "role", "content"]);

const fieldName = z
  .string()
  .min(1)
  .max(NAME_CHARS_MAX)
  .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a field's name");
const otherField = fieldName.refine((name) => !NEEDED.has(name), "is a field that every chat needs");
const messageField = z
  .string()
  .max(NAME_CHARS_MAX)
  .regex(
    /^(?:(?:system|developer|user|assistant|tool|function)\.)?[A-Za-z_][A-Za-z0-9_]*$/,
    "must be a field's name, or one after a role, such as tool.name",
  );

export const dialectEntry = z.strictObject({
  developerRole: z.boolean().optional(),
  thoughts: z.enum(THOUGHT_PLACES).optional(),
  thoughtDetails: z.boolean().optional(),
  needsThoughts: z.boolean().optional(),
  needsSignatures: z.boolean().optional(),
  outputCap: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  streamOptions: z.boolean().optional(),
  content: z.enum(["parts", "text"]).optional(),
  originalDetail: z.boolean().optional(),
  refuses: z.array(otherField).max(FIELDS_MAX).optional(),
  names: z
    .record(otherField, otherField)
    .refine((names) => Object.keys(names).length <= FIELDS_MAX, `must hold at most ${FIELDS_MAX} names`)
    .optional(),
  messageFields: z
    .array(messageField)
    .max(FIELDS_MAX)
    .refine((fields) => fields.includes("content"), "must hold content, which every message has")
    .optional(),
});
