/** Why a request with an Idempotency-Key is not answered with what was answered before. */
import { AppError } from "../../errors.js";
import { formatNanocredits } from "../../lib/money.js";
import { IDEMPOTENT_ANSWER_BYTES_MAX } from "./limits.js";

const RETRY_AFTER_SECONDS = 1;

/** Why an answer is not kept. */
export type Omission = "too_large" | "no_room";

export function usedOtherwise(): AppError {
  return new AppError("CONFLICT", "This Idempotency-Key was used for another request.", { param: "Idempotency-Key" });
}

export function inProgress(): AppError {
  const message = "A request with this Idempotency-Key is still running.";
  return new AppError("CONFLICT", message, { param: "Idempotency-Key", retryAfterSeconds: RETRY_AFTER_SECONDS });
}

export function answerLost(generationId: string): AppError {
  const message = `The request with this Idempotency-Key was charged as generation ${generationId}, but its answer is lost. Nothing was charged now.`;
  return new AppError("CONFLICT", message, { param: "Idempotency-Key", details: { generationId } });
}

export function answerOmitted(omission: Omission, generationId: string, costNanocredits: bigint): AppError {
  const cost = formatNanocredits(costNanocredits);
  const reason =
    omission === "too_large"
      ? `its answer was too large to keep: ${IDEMPOTENT_ANSWER_BYTES_MAX} bytes are the most`
      : "there was no room to keep its answer: delete files of the account, or wait until kept answers expire";
  const message = `The request with this Idempotency-Key was answered as generation ${generationId} and charged ${cost} credits, and ${reason}. Nothing was charged now.`;
  return new AppError("CONFLICT", message, { param: "Idempotency-Key", details: { generationId, cost } });
}
