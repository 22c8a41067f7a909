/** What a caller can do about an error code. */
import type { GenerationErrorCode } from "../../client/generated/graphql.js";

const ADVICE: Partial<Readonly<Record<GenerationErrorCode, string>>> = {
  BAD_REQUEST: "Change the request as the message says. The same request fails again.",
  CONTENT_BLOCKED: "A safety check blocked the content. Change the input, or the safety setting of the request.",
  INSUFFICIENT_BALANCE: "Add credits, or request less: a smaller token limit or a less expensive model.",
  KEY_BUDGET_EXHAUSTED: "Raise the budget of the key, or use another key.",
  MAX_COST_EXCEEDED: "Raise the request’s max_cost, or request less.",
  FORBIDDEN: "The key is not allowed to do this. Use another key, or change its models and permissions.",
  ACCOUNT_SUSPENDED: "The account is suspended. Contact the operator of this gateway.",
  NOT_FOUND: "Something that the request refers to does not exist. Check its IDs.",
  CONFLICT: "Another request with the same idempotency key was in progress, or had other content.",
  PAYLOAD_TOO_LARGE: "Send less, or upload files first and send their URLs.",
  UNSUPPORTED_MEDIA_TYPE: "Send a supported content type.",
  RATE_LIMITED: "Send requests more slowly, and wait for the time in Retry-After before you try again.",
  UPSTREAM_ERROR: "The provider of the model failed. Try again, or use a model with fallbacks.",
  UPSTREAM_TIMEOUT: "The provider of the model took too long. Try again, or request less.",
  SERVICE_UNAVAILABLE: "The gateway was stopping or busy. Try again.",
  INTERNAL_ERROR: "The gateway failed. Contact its operator with the request ID.",
};

export function adviceFor(code: GenerationErrorCode): string {
  return ADVICE[code] ?? "Change the request as the message says.";
}
