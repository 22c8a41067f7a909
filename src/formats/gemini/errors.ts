/** Errors in Google's format, by the HTTP status. */

type Loose = Readonly<Record<string, unknown>>;

/** Google's names of statuses. A refusal for lack of credits is no quota that passes by itself. */
const STATUSES: ReadonlyMap<number, string> = new Map([
  [400, "INVALID_ARGUMENT"],
  [401, "UNAUTHENTICATED"],
  [402, "FAILED_PRECONDITION"],
  [403, "PERMISSION_DENIED"],
  [404, "NOT_FOUND"],
  [409, "ABORTED"],
  [429, "RESOURCE_EXHAUSTED"],
  [503, "UNAVAILABLE"],
  [504, "DEADLINE_EXCEEDED"],
]);

interface Reported {
  /** The gateway's own code. */
  readonly code: string;
  readonly message: string;
  readonly param: string | null;
  readonly details?: unknown;
}

const TYPE = "type.googleapis.com/google.rpc.";

/** Names of a chat's fields in this format: an upstream or a later check may refuse one of the converted request. */
const CHAT_NAMES: ReadonlyMap<string, string> = new Map([
  ["messages", "contents"],
  ["max_tokens", "generationConfig.maxOutputTokens"],
  ["max_completion_tokens", "generationConfig.maxOutputTokens"],
  ["top_p", "generationConfig.topP"],
  ["top_k", "generationConfig.topK"],
  ["temperature", "generationConfig.temperature"],
  ["seed", "generationConfig.seed"],
  ["stop", "generationConfig.stopSequences"],
  ["n", "generationConfig.candidateCount"],
  ["response_format", "generationConfig.responseSchema"],
  ["modalities", "generationConfig.responseModalities"],
  ["reasoning_effort", "generationConfig.thinkingConfig"],
  ["tool_choice", "toolConfig"],
  ["input", "content"],
  ["dimensions", "outputDimensionality"],
]);

function toOwnName(param: string): string {
  const [first = ""] = param.split(".", 1);
  return CHAT_NAMES.get(first) ?? param;
}

/** The gateway's fields, of which `code` and `details` have Google's meaning; `reason` keeps the gateway's code. */
export function toGeminiError<Error extends Reported>(error: Error, status: number, retryAfterSeconds?: number) {
  const { code: reason, message } = error;
  const param = error.param === null ? null : toOwnName(error.param);
  const { details: metadata } = error;
  const details: Loose[] = [{ "@type": `${TYPE}ErrorInfo`, reason, domain: "sluice", ...(metadata !== undefined && { metadata }) }];
  if (param !== null) details.push({ "@type": `${TYPE}BadRequest`, fieldViolations: [{ field: param, description: message }] });
  if (retryAfterSeconds !== undefined) details.push({ "@type": `${TYPE}RetryInfo`, retryDelay: `${retryAfterSeconds}s` });
  return { ...error, code: status, status: statusNameOf(status), reason, param, details } as const;
}

function statusNameOf(status: number): string {
  return STATUSES.get(status) ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
}
