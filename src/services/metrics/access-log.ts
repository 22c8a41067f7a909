/**
 * The access log: one line for each request when it is over, among the other lines of the log and in their format. It holds what the
 * request's note holds (lib/request-note.ts), so neither keys nor prompts, queries or paths that callers write into.
 *
 * `ACCESS_LOG` says what share of the requests that went well is told. Those that did not are always told, unless it is off: the one
 * that is asked about must be there.
 */
import type { Logger } from "pino";
import { infoWriterOf } from "../../lib/log.js";
import { formatNanocredits } from "../../lib/money.js";
import type { RequestEnd, RequestNote } from "../../lib/request-note.js";

const FAILED_STATUS_MIN = 400;
/** Asked every few seconds by whoever watches the gateway: of these only failures are worth a line. */
const WATCHED: ReadonlySet<string | null> = new Set(["/healthz", "/readyz", "/metrics"]);

export class AccessLog {
  private readonly write: (fields: string) => void;

  /** `share`: of 0 to 1; null: no line at all. */
  constructor(
    log: Logger,
    private readonly share: number | null,
  ) {
    this.write = infoWriterOf(log, "request");
  }

  /** Any request, once. */
  requestOver(note: RequestNote, end: RequestEnd): void {
    if (this.share === null) return;
    const hasFailed = end.status >= FAILED_STATUS_MIN || note.code !== null;
    if (!hasFailed && (WATCHED.has(note.route) || (this.share < 1 && Math.random() >= this.share))) return;
    this.write(toFields(note, end));
  }
}

/** Only what there is, as JSON: a line is written for every request, and made in one piece. */
function toFields(note: RequestNote, { method, status, isLeft }: RequestEnd): string {
  const { route, requestId, apiKeyId, code, operation, generationId, model, generations, childCostNanocredits } = note;
  let fields = `,"method":${JSON.stringify(method)},"route":${JSON.stringify(route)},"status":${status}`;
  if (code !== null) fields += `,"code":${JSON.stringify(code)}`;
  if (isLeft) fields += ',"isLeft":true';
  fields += `,"ms":${rounded(performance.now() - note.startedAt)}`;
  if (operation !== null) fields += `,"operation":${JSON.stringify(operation)}`;
  if (model !== null) fields += `,"model":${JSON.stringify(model)}`;
  if (generationId !== null) fields += `,"generationId":${JSON.stringify(generationId)}`;
  if (generations > 0) fields += `,"ownMs":${rounded(note.gatewayMs)},"cost":"${formatNanocredits(note.costNanocredits)}"`;
  if (generations > 1) fields += `,"generations":${generations}`;
  if (childCostNanocredits > 0n) fields += `,"childCost":"${formatNanocredits(childCostNanocredits)}"`;
  if (apiKeyId !== null) fields += `,"keyId":${JSON.stringify(apiKeyId)}`;
  if (requestId !== null) fields += `,"requestId":${JSON.stringify(requestId)}`;
  return fields;
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
