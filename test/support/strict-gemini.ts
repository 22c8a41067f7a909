/** The refusals of Gemini's API, in its words, so that tests fail where it would. Null: it accepts the request. */

type Loose = Record<string, unknown>;

const fieldsOf = (names: string) => new Set(names.split(" "));

const FIELDS = fieldsOf(
  "contents systemInstruction generationConfig tools toolConfig safetySettings cachedContent labels serviceTier store",
);
const CONFIG = fieldsOf(
  "temperature topP topK seed maxOutputTokens candidateCount stopSequences presencePenalty frequencyPenalty responseMimeType responseSchema " +
    "responseJsonSchema responseModalities responseLogprobs logprobs thinkingConfig speechConfig mediaResolution audioTimestamp imageConfig",
);
const KINDS = ["text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"];
const PART = new Set([...KINDS, "thought", "thoughtSignature", "videoMetadata"]);
const CALL = fieldsOf("id name args");
const RESULT = fieldsOf("id name response parts");

export function refusalOf(body: Loose, model: string): string | null {
  const unknown = unknownIn(body, FIELDS) ?? unknownIn(body.generationConfig ?? {}, CONFIG);
  if (unknown !== null) return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
  const { contents, systemInstruction: instruction } = body as { contents: Loose[]; systemInstruction?: Loose };
  if (!Array.isArray(contents) || contents.length === 0) return "* GenerateContentRequest.contents: contents is not specified";
  if (instruction && partsOf(instruction).length === 0) return "* GenerateContentRequest.system_instruction.parts: must not be empty";
  let open: unknown[] = [];
  let before: unknown = null;
  for (const [index, content] of contents.entries()) {
    const refusal = refusalOfContent(content, index, open, before);
    if (refusal !== null) return refusal;
    open = partsOf(content).flatMap(({ functionCall }) => (isObject(functionCall) ? [functionCall.name] : []));
    before = content.role;
  }
  if (open.length > 0 && contents.at(-1)?.role === "model")
    return "Please ensure that function response turn comes immediately after a function call turn.";
  return model.startsWith("gemini-2") ? null : missingSignature(contents);
}

function refusalOfContent(content: Loose, index: number, open: readonly unknown[], before: unknown): string | null {
  const { role } = content;
  const parts = partsOf(content);
  if (role !== "user" && role !== "model") return "Please use a valid role: user, model.";
  if (parts.length === 0) return `* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.`;
  for (const part of parts) {
    const unknown = unknownIn(part, PART) ?? unknownIn(part.functionCall ?? {}, CALL) ?? unknownIn(part.functionResponse ?? {}, RESULT);
    if (unknown !== null) return `Invalid JSON payload received. Unknown name "${unknown}": Cannot find field.`;
    const kinds = KINDS.filter((kind) => part[kind] !== undefined);
    if (kinds.length !== 1)
      return `* GenerateContentRequest.contents[${index}].parts: required oneof field 'data' must have one initialized field`;
    const { functionCall: call, functionResponse: result } = part;
    if (isObject(call) && !isObject(call.args)) return "Invalid value at 'function_call.args' (type.googleapis.com/google.protobuf.Struct)";
    if (isObject(result) && !isObject(result.response)) return "* function_response.response: must be an object";
  }
  const results = parts.filter(({ functionResponse }) => functionResponse !== undefined);
  if (role === "model" && results.length > 0) return "Please ensure that function response turn is of the role user.";
  if (open.length !== results.length)
    return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
  const calls = parts.some(({ functionCall }) => functionCall !== undefined);
  if (calls && before !== "user")
    return "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
  return null;
}

/** In the turn that goes on, the first call of each step needs its signature. */
function missingSignature(contents: readonly Loose[]): string | null {
  const start = contents.findLastIndex(
    (content) => content.role === "user" && partsOf(content).some(({ functionResponse }) => functionResponse === undefined),
  );
  for (const [index, content] of contents.entries()) {
    if (index < start) continue;
    const first = partsOf(content).find(({ functionCall }) => functionCall !== undefined);
    if (first && typeof first.thoughtSignature !== "string") return "Function call is missing a thought_signature in functionCall parts.";
  }
  return null;
}

function unknownIn(value: unknown, known: ReadonlySet<string>): string | null {
  return isObject(value) ? (Object.keys(value).find((name) => !known.has(name)) ?? null) : null;
}

function partsOf({ parts }: Loose): Loose[] {
  return Array.isArray(parts) ? parts : [];
}

function isObject(value: unknown): value is Loose {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
