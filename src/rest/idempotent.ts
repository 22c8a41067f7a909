/** Idempotency-Key on REST (docs/spec/generation.md#idempotency): the answer to a generation is stored before its last byte goes out. */
import { AppError } from "../errors.js";
import type { HttpRequestContext } from "../http/context.js";
import { explain, toErrorAnswer, toErrorObject } from "../http/errors.js";
import type { Exchange } from "../http/exchange.js";
import { AnswerRecorder, type RecordedAnswer } from "../lib/answer-recorder.js";
import { storedAnswerTypeOf } from "../lib/content-types.js";
import { formatSseEvent } from "../lib/sse.js";
import type { Idempotency, IdempotentRun, StoredAnswer } from "../services/idempotency/idempotency.js";
import { IDEMPOTENT_ANSWER_BYTES_MAX } from "../services/idempotency/limits.js";

export interface IdempotentRequest {
  readonly ctx: HttpRequestContext;
  readonly exchange: Exchange;
  readonly key: string;
  /** The body as it was parsed, with its files. */
  readonly input: unknown;
}

/** Does the work and stores what it answers, or answers what was stored. Rejects as `work` does, and with CONFLICT. */
export async function answerOnce(idempotency: Idempotency, request: IdempotentRequest, work: () => Promise<void>): Promise<void> {
  const { ctx, exchange, key, input } = request;
  const begun = await idempotency.begin(ctx, { key, operation: `${exchange.req.method} ${exchange.path}`, input });
  if (begun.kind === "replay") return replay(exchange, begun.answer);
  const { run } = begun;
  ctx.reservedId = run.reservedId;
  const recorder = new AnswerRecorder(exchange.res, IDEMPOTENT_ANSWER_BYTES_MAX, async (answer) => {
    if (answer) await run.succeed(answer);
    else await run.omit();
  });
  try {
    await work();
  } catch (error) {
    recorder.stop();
    const told = explain(error, exchange);
    const reason = `The answer broke off: ${told.message}`;
    await run.fail(() => (recorder.isBegun ? toCut(recorder.answer(), reason, run, exchange) : toErrorAnswer(told, exchange.requestId)));
    throw told;
  }
  // Whoever was to read it has left.
  if (!recorder.isEnded) await run.fail(() => toCut(recorder.answer(), "The answer was cut when its reader left.", run, exchange));
}

function replay(exchange: Exchange, { statusCode, headers, body }: StoredAnswer): void {
  const contentType = storedAnswerTypeOf(headers["content-type"] ?? "");
  exchange.writeHead(statusCode, {
    ...headers,
    "content-type": contentType,
    "X-Idempotent-Replay": "true",
    "Content-Length": body.byteLength,
  });
  exchange.res.end(body);
}

/** Unspecified: a stream whose reader left is replayed as far as it came, then says so; of anything else there is nothing to replay. */
function toCut(answer: RecordedAnswer | null, reason: string, { generationId }: IdempotentRun, { requestId }: Exchange): StoredAnswer {
  const message = `${reason} What was generated until then was charged as generation ${generationId}.`;
  const error = new AppError("CONFLICT", message, { details: { generationId } });
  if (!answer?.headers["content-type"]?.startsWith("text/event-stream")) return toErrorAnswer(error, requestId);
  const told = toErrorObject(error, requestId);
  const { code, param } = told;
  // For readers of chat chunks and of response events alike.
  const event = formatSseEvent(JSON.stringify({ type: "error", code, message, param, error: told }), "error");
  return { ...answer, body: Buffer.concat([answer.body, event]) };
}
