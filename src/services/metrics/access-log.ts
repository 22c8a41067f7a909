/**
 * The access log: one line per finished request, in the format of the log. It holds the request's note (lib/request-note.ts), so no keys,
 * prompts, queries or paths with client text.
 *
 * `ACCESS_LOG` is the share of successful requests that are logged. Failed ones are always logged, unless it is off.
 */
import type { Logger } from "pino";
import { infoWriterOf } from "../../lib/log.js";
import { formatNanocredits } from "../../lib/money.js";
import type { RequestEnd, RequestNote } from "../../lib/request-note.js";

const FAILED_STATUS_MIN = 400;
/** Polled every few seconds by monitoring: only failures are logged. */
const WATCHED: ReadonlySet<string | null> = new Set(["/healthz", "/readyz", "/metrics"]);

export class AccessLog {
  private readonly write: (fields: string) => void;

  /** `share`: 0 to 1; null: no lines. `hasAddress`: lines hold the client's address, as far as proxies are trusted. */
  constructor(
    log: Logger,
    private readonly share: number | null,
    private readonly hasAddress = false,
  ) {
    this.write = infoWriterOf(log, "request");
  }

  /** Logs any request, once. */
  requestOver(note: RequestNote, end: RequestEnd): void {
    if (this.share === null) return;
    const hasFailed = end.status >= FAILED_STATUS_MIN || note.code !== null;
    if (!hasFailed && (WATCHED.has(note.route) || (this.share < 1 && Math.random() >= this.share))) return;
    this.write(toFields(note, end, this.hasAddress));
  }
}

/** Present fields only, as JSON: a line is written for every request, in one piece. */
function toFields(note: RequestNote, { method, status, isLeft }: RequestEnd, hasAddress: boolean): string {
  const { route, requestId, apiKeyId, caller, clientAddress, code, operation, generationId, model, generations, childCostNanocredits } =
    note;
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
  if (caller !== null) fields += `,"accountId":${JSON.stringify(caller.accountId)}`;
  if (apiKeyId !== null) fields += `,"keyId":${JSON.stringify(apiKeyId)}`;
  if (requestId !== null) fields += `,"requestId":${JSON.stringify(requestId)}`;
  if (hasAddress && clientAddress !== null) fields += `,"address":${JSON.stringify(clientAddress)}`;
  return fields;
}

function rounded(milliseconds: number): number {
  return Math.round(milliseconds * 100) / 100;
}
