/** A request of Gemini's generateContent (docs/spec/gemini.md). Unknown fields and parts are left out with a warning. */
import { z } from "zod";
import { inUnit } from "../../lib/issue-words.js";
import { USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { CHAT_MESSAGES_MAX, EMBEDDING_DIMENSIONS_MAX, EMBEDDING_INPUTS_MAX, TEMPERATURE_MAX } from "../../limits.js";
import { withCamelNames } from "./field-names.js";

const blob = z.looseObject({ mimeType: z.string().min(1), data: z.string() });
const file = z.looseObject({ mimeType: z.string().nullish(), fileUri: z.string().min(1) });

const resultPart = z.looseObject({ inlineData: blob.nullish(), fileData: file.nullish() });

/** One of its kinds; a part of a kind that is not listed is one of a tool that Google runs. */
const part = z.looseObject({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  thoughtSignature: z.string().nullish(),
  inlineData: blob.nullish(),
  fileData: file.nullish(),
  functionCall: z.looseObject({ id: z.string().nullish(), name: z.string().min(1), args: z.looseObject({}).nullish() }).nullish(),
  functionResponse: z
    .looseObject({
      id: z.string().nullish(),
      name: z.string().min(1),
      response: z.looseObject({}).nullish(),
      parts: z.array(resultPart).nullish(),
    })
    .nullish(),
});

const parts = z.array(part).nullish();
/** `function` is the former role of results. */
const content = z.looseObject({ role: z.enum(["user", "model", "function", ""]).nullish(), parts });
const instruction = z.union([z.string(), z.looseObject({ parts })]);

const declaration = z.looseObject({
  name: z.string().min(1),
  description: z.string().nullish(),
  /** Google's schema, with types in capitals. */
  parameters: z.looseObject({}).nullish(),
  parametersJsonSchema: z.looseObject({}).nullish(),
});
const tool = z.looseObject({ functionDeclarations: z.array(declaration).nullish() });

const toolConfig = z.looseObject({
  functionCallingConfig: z
    .looseObject({
      mode: z.enum(["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"]).nullish(),
      allowedFunctionNames: z.array(z.string()).nullish(),
    })
    .nullish(),
});

const thinkingConfig = z.looseObject({
  includeThoughts: z.boolean().nullish(),
  /** -1: the model decides. */
  thinkingBudget: inUnit(z.int().min(-1).max(USAGE_AMOUNT_MAX), "tokens").nullish(),
  thinkingLevel: z.enum(["THINKING_LEVEL_UNSPECIFIED", "MINIMAL", "LOW", "MEDIUM", "HIGH"]).nullish(),
});

/** Google's bounds. */
export const CANDIDATES_MAX = 8;
const LOGPROBS_MAX = 20;
const penalty = z.number().min(-2).max(2).nullish();

const generationConfig = z.looseObject({
  temperature: z.number().min(0).max(TEMPERATURE_MAX).nullish(),
  topP: z.number().min(0).max(1).nullish(),
  topK: z.number().min(0).nullish(),
  candidateCount: z.int().min(1).max(CANDIDATES_MAX).nullish(),
  maxOutputTokens: inUnit(z.int().min(1).max(USAGE_AMOUNT_MAX), "tokens").nullish(),
  stopSequences: z.array(z.string()).nullish(),
  responseMimeType: z.enum(["text/plain", "application/json", ""]).nullish(),
  responseSchema: z.looseObject({}).nullish(),
  responseJsonSchema: z.looseObject({}).nullish(),
  responseModalities: z.array(z.enum(["MODALITY_UNSPECIFIED", "TEXT", "IMAGE"])).nullish(),
  presencePenalty: penalty,
  frequencyPenalty: penalty,
  seed: z.int().nullish(),
  responseLogprobs: z.boolean().nullish(),
  logprobs: z.int().min(0).max(LOGPROBS_MAX).nullish(),
  thinkingConfig: thinkingConfig.nullish(),
});

const contentFields = {
  contents: z.array(content).min(1).max(CHAT_MESSAGES_MAX),
  systemInstruction: instruction.nullish(),
  tools: z.array(tool).nullish(),
  toolConfig: toolConfig.nullish(),
  generationConfig: generationConfig.nullish(),
};

const SAFETY_SETTINGS_MAX = 100;

/** The fields of a request, in camelCase. */
export const generateContentFields = {
  ...contentFields,
  safetySettings: z.array(z.looseObject({})).max(SAFETY_SETTINGS_MAX).nullish(),
};

const generateContentRequest = z.looseObject(generateContentFields);
export type GenerateContentRequest = z.output<typeof generateContentRequest>;
export type GeminiContent = z.output<typeof content>;
export type GeminiPart = z.output<typeof part>;
export type GeminiTool = z.output<typeof tool>;
export type GenerationConfig = z.output<typeof generationConfig>;

/** Contents alone, or a whole request. */
export const countTokensFields = {
  contents: contentFields.contents.nullish(),
  generateContentRequest: generateContentRequest.nullish(),
};
const countTokensRequest = z.looseObject(countTokensFields);
export type CountTokensRequest = z.output<typeof countTokensRequest>;

const embedded = z.looseObject({
  content: z.looseObject({ parts: z.array(part).min(1) }),
  taskType: z.string().nullish(),
  title: z.string().nullish(),
  outputDimensionality: z.int().min(1).max(EMBEDDING_DIMENSIONS_MAX).nullish(),
});
export type EmbedContentRequest = z.output<typeof embedded>;

export const embedContentRequest = z.preprocess(withCamelNames, embedded);
export const batchEmbedRequest = z.preprocess(
  withCamelNames,
  z.looseObject({ requests: z.array(embedded).min(1).max(EMBEDDING_INPUTS_MAX) }),
);
export type BatchEmbedRequest = z.output<typeof batchEmbedRequest>;
