/**
 * The names of a Gemini request. Google's API takes each field in camelCase and in snake_case, so both are read as the first. Unknown
 * fields, and values that are the client's own (arguments, results, schemas), keep their names.
 */
import { isRecord } from "../../lib/json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";

/** Fields whose content belongs to the client. */
const OPAQUE: ReadonlySet<string> = new Set([
  ...["args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "labels"],
]);
/** Fields that are read. */
const KNOWN: ReadonlySet<string> = new Set([
  ...["systemInstruction", "toolConfig", "generationConfig", "safetySettings", "functionDeclarations", "parametersJsonSchema"],
  ...["functionCallingConfig", "allowedFunctionNames", "generateContentRequest"],
  ...["inlineData", "fileData", "functionCall", "functionResponse", "thoughtSignature", "mimeType", "fileUri", "videoMetadata"],
  ...["topP", "topK", "candidateCount", "maxOutputTokens", "stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema"],
  ...["responseModalities", "presencePenalty", "frequencyPenalty", "responseLogprobs", "thinkingConfig", "includeThoughts"],
  ...["thinkingBudget", "thinkingLevel", "mediaResolution", "partMetadata"],
  ...["taskType", "outputDimensionality"],
]);
const SNAKE = /^[a-z][a-z0-9]*(?:_[a-z0-9]+)+$/;
/** Longer names are none of Google's. */
const NAME_CHARS_MAX = 64;

/** A copy with names in camelCase; of a field under both names the one in camelCase counts. The depth is bounded where bodies are read. */
export function withCamelNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withCamelNames);
  if (!isRecord(value)) return value;
  const named: Record<string, unknown> = {};
  for (const name of Object.keys(value)) {
    const camel = toOwnName(name);
    if (camel !== name && Object.hasOwn(value, camel)) continue;
    const content = ownValue(value, name);
    setOwnValue(named, camel, OPAQUE.has(camel) ? content : withCamelNames(content));
  }
  return named;
}

function toOwnName(name: string): string {
  const camel = toCamel(name);
  return KNOWN.has(camel) ? camel : name;
}

export function toCamel(name: string): string {
  if (name.length > NAME_CHARS_MAX || !SNAKE.test(name)) return name;
  return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}
