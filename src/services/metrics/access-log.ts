/**
 * The access log: one line for each request when it is over, among the other lines of the log and in their format. It holds what the
 * request's note holds (lib/request-note.ts), so neither keys nor prompts, queries or paths that callers write into.
 *
 * `ACCESS_LOG` says what share of the requests that went well is told. Those that did not are always told, unless it is off: the one
 * that is asked about must be there.
 */
import type { Logger } from "pino";
import { formatNanocredits } from "../../lib/money.js";
import type { RequestEnd, RequestNote } from "../../lib/request-note.js";

const FAILED_STATUS_MIN = 400;
/** Asked every few seconds by whoever watches the gateway: of these only failures are worth a line. */
const WATCHED: ReadonlySet<string | null> = new Set(["/healthz", "/readyz", "/metrics"]);

export class AccessLog {
  /** `share`: of 0 to 1; null: no line at all. */
  constructor(
    private readonly log: Logger,
    private readonly share: number | null,
  ) {}

  /** Any request, once. */
  requestOver(note: RequestNote, end: RequestEnd): void {
    if (this.share === null) return;
    const hasFailed = end.status >= FAILED_STATUS_MIN || note.code !== null;
    if (!hasFailed && (WATCHED.has(note.route) || (this.share < 1 && Math.random() >= this.share))) return;
    this.log.info(toLine(note, end), "request");
  }
}

/** Only what there is. */
function toLine(note: RequestNote, { method, status, isLeft }: RequestEnd): object {
  const { route, requestId, apiKeyId, code, operation, generationId, model, generations, childCostNanocredits } = note;
  return {
    method,
    route,
    status,
    ...(code !== null && { code }),
    ...(isLeft && { isLeft }),
    ms: rounded(performance.now() - note.startedAt),
    ...(operation !== null && { operation }),
    ...(model !== null && { model }),
    ...(generationId !== null && { generationId }),
    ...(generations > 0 && { ownMs: rounded(note.gatewayMs), cost: formatNanocredits(note.costNanocredits) }),
    ...(generations > 1 && { generations }),
    ...(childCostNanocredits > 0n && { childCost: formatNanocredits(childCostNanocredits) }),
    ...(apiKeyId !== null && { keyId: apiKeyId }),
    ...(requestId !== null && { requestId }),
  };
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
