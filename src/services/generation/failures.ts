/** Failures of upstreams: whether a fallback may be tried, and their reports to the caller, the model's health and the operator. */

import type { Logger } from "pino";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { AppError, type ErrorCode, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import { ProviderError } from "../../formats/upstream-error.js";
import type { Clock } from "../../lib/clock.js";
import { LogLimit } from "../../lib/log-limit.js";
import { REFUSED_CREDENTIAL_LOG_MS } from "../../limits.js";
import type { CallEnd } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { Route, RouteVendorKey } from "../catalog/route.js";
import type { AttemptCode, Candidate } from "./routing/candidate.js";
import type { BoundedReport } from "./usage-reports.js";

/** Failures that count against a model. The caller's errors, refusals and limits do not, nor failures that may not be the upstream's. */
const FAULTS: ReadonlySet<ErrorCode> = new Set(["UPSTREAM_ERROR", "UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR"]);

/**
 * Reports a call that failed with `error`, unless it says nothing about the model; `end` may have ended it early. True when it counts
 * against the model.
 */
export function noteFailure(
  healthReporter: HealthReporter,
  caller: KeyCaller | SessionCaller,
  candidate: Candidate,
  error: unknown,
  end: CallEnd,
): boolean {
  // An abort of ours is not the upstream's fault, except for a timeout.
  healthReporter.upstreamFailed(candidate, end.aborted ? end.reason : error);
  const reported = end.aborted ? end.reason : toCallerError(error, candidate);
  if (!(reported instanceof AppError)) return false;
  const isFault = end.aborted ? reported.code === "UPSTREAM_TIMEOUT" : FAULTS.has(reported.code);
  if (isFault) healthReporter.failed(caller, candidate.model);
  return isFault;
}

export interface HealthReporter {
  succeeded(caller: KeyCaller | SessionCaller, model: Model): void;
  /** A call failed or broke off through no fault of the caller. */
  failed(caller: KeyCaller | SessionCaller, model: Model): void;
  /** A whole generation failed through no fault of the caller; it has no usage row. `model` is the requested one. */
  generationFailed(caller: KeyCaller | SessionCaller, model: Model): void;
  upstreamFailed(candidate: Candidate, error: unknown): void;
  /** Its upstream failed with that error; the caller may be at fault. */
  usageBounded(candidate: Candidate, report: BoundedReport): void;
}

// Maps an upstream's failure to the caller's error, and decides about fallbacks (docs/spec/errors.md#upstream-errors,
// docs/spec/generation.md#fallbacks).

/** The caller's errors as found by the upstream, passed on with its message. */
const CALLER_FAULTS: ReadonlyMap<number, ErrorCode> = new Map([
  [400, "BAD_REQUEST"],
  [413, "PAYLOAD_TOO_LARGE"],
  [415, "UNSUPPORTED_MEDIA_TYPE"],
  [422, "BAD_REQUEST"],
]);
const TIMEOUT_STATUSES = new Set([408, 524]);
const CREDENTIAL_STATUSES = new Set([401, 402, 403]);
const REFUSED_CREDENTIAL =
  "The upstream refused the credential of the model, which is not your key: the operator of the model has to correct it";
const FALLBACK_STATUSES = new Set([401, 402, 403, 404, 408, 409, 429]);

export function isCallersFault({ kind, status }: ProviderError): boolean {
  return kind === "status" && CALLER_FAULTS.has(status ?? 500);
}

/**
 * An upstream's failure must not look like one of the caller's key: all but the caller's errors are 502 or 504. `served` is the model that
 * was called. The message comes from the error itself.
 */
export function toCallerError(error: unknown, served: Served): unknown {
  if (!(error instanceof ProviderError)) return error;
  switch (error.kind) {
    case "network":
    case "closed":
      return upstreamFailed(error.message, { cause: error });
    case "timeout":
      return upstreamTimedOut(error.message, { cause: error, isFinal: error.hasBegun });
    case "invalid-response":
    case "cut":
      return upstreamFailed(error.message, { cause: error, isFinal: true });
    case "status":
      return toStatusError(error, served);
  }
}

function toStatusError(error: ProviderError, served: Served): AppError {
  const { status = 500, upstreamParam: param, retryAfterSeconds } = error;
  const details = upstreamDetails(error);
  const code = CALLER_FAULTS.get(status);
  if (code) {
    const said = inCallersWords(error.upstreamMessage ?? "it gave no reason", served);
    return new AppError(code, `The upstream refused the request: ${said}`, {
      cause: error,
      details,
      summary: `The upstream refused the request with status ${status}.`,
      ...(param !== undefined && { param }),
    });
  }
  const options = { cause: error, details, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  if (TIMEOUT_STATUSES.has(status)) return upstreamTimedOut("The upstream ran out of time.", options);
  const { vendorKey } = served.route;
  if (vendorKey && isCredentialRefused(error)) return upstreamFailed(refusedVendorKey(vendorKey, status), options);
  return upstreamFailed(
    isCredentialRefused(error) ? `${REFUSED_CREDENTIAL} (status ${status}).` : `The upstream failed with status ${status}.`,
    options,
  );
}

function refusedVendorKey({ key: { id, vendor } }: RouteVendorKey, status: number): string {
  const instead = `Give the vendor key ${id} a new secret: PATCH /account/vendor-keys/${id}, or the mutation updateVendorKey.`;
  return `The vendor ${vendor} refused the vendor key of your account (status ${status}). ${instead}`;
}

/** Details of an upstream's refusal for callers: numbers, and a code from our own list. */
function upstreamDetails({ status, upstreamCode, retryAfterSeconds }: ProviderError): Readonly<Record<string, unknown>> {
  return {
    upstreamStatus: status ?? 500,
    ...(upstreamCode !== undefined && { upstreamCode }),
    // Stream events and jobs have no headers.
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/** The gateway's credential, or the account behind it, was refused, which the operator has to fix. */
function isCredentialRefused(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.kind === "status" && CREDENTIAL_STATUSES.has(error.status ?? 500);
}

const STATUS_CODES: ReadonlyMap<number, AttemptCode> = new Map([
  [401, "credential_refused"],
  [402, "payment_required"],
  [403, "credential_refused"],
  [404, "not_found"],
  [408, "timeout"],
  [429, "rate_limited"],
  [524, "timeout"],
]);

/** Why an attempt ended, for receipts. */
export function attemptCodeOf(error: unknown): AttemptCode {
  if (error instanceof AppError) return error.code === "UPSTREAM_TIMEOUT" ? "timeout" : "failed";
  if (!(error instanceof ProviderError)) return "failed";
  switch (error.kind) {
    case "network":
    case "closed":
      return "unreachable";
    case "timeout":
      return "timeout";
    case "invalid-response":
    case "cut":
      return "invalid_answer";
    case "status":
      return STATUS_CODES.get(error.status ?? 500) ?? (isCallersFault(error) ? "refused" : "failed");
  }
}

/** Only before the first byte, and never for a request that every upstream would refuse. */
export function mayFallBack(error: unknown): boolean {
  if (!(error instanceof ProviderError)) return false;
  if (error.kind !== "status") return true;
  const status = error.status ?? 500;
  return status >= 500 || FALLBACK_STATUSES.has(status);
}

// Replaces the upstream's model name in its messages by the id that callers use (docs/spec/generation.md). All text of
// upstreams that is passed on goes through here.

export interface Served {
  readonly model: Pick<Model, "id" | "isCommunity">;
  readonly route: Pick<Route, "upstreamModel" | "vendorKey">;
}

const WORD_CHARACTER = /[\p{L}\p{N}]/u;
const LETTERS_ALONE = /^\p{L}+$/u;
const QUOTES: ReadonlySet<string | undefined> = new Set(['"', "'", "`", "‘", "’", "“", "”"]);

/**
 * Replaces the name as a whole word, in any case. A name of letters only (`image`) is also an ordinary word: for an operator's model it is
 * replaced between quotes only, for a community model everywhere, because that name is its owner's secret.
 */
export function inCallersWords(text: string, { model: { id, isCommunity }, route: { upstreamModel: name } }: Served): string {
  if (name === id || name === "") return text;
  const mustBeQuoted = !isCommunity && LETTERS_ALONE.test(name);
  const [said, sought] = [toComparable(text), toComparable(name)];
  const offset = toComparable(id).indexOf(sought);
  let translated = "";
  let from = 0;
  for (let at = said.indexOf(sought); at !== -1; at = said.indexOf(sought, from)) {
    const end = at + name.length;
    const isWord = !isWordCharacter(text[at - 1]) && !isWordCharacter(text[end]);
    const isQuoted = QUOTES.has(text[at - 1]) && QUOTES.has(text[end]);
    const isWithinId = offset !== -1 && text.startsWith(id, at - offset);
    const isKept = !isWord || isWithinId || (mustBeQuoted && !isQuoted);
    translated += text.slice(from, at) + (isKept ? text.slice(at, end) : id);
    from = end;
  }
  return translated + text.slice(from);
}

export function allInCallersWords(texts: readonly string[], served: Served): readonly string[] {
  return texts.length === 0 ? texts : texts.map((text) => inCallersWords(text, served));
}

function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && WORD_CHARACTER.test(character);
}

/** Keeps letters whose lower case has another length, which would shift positions. */
function toComparable(text: string): string {
  const small = text.toLowerCase();
  return small.length === text.length ? small : text;
}

/**
 * Logs refusals of the gateway's own credential for the operator: the first one, then at most one per interval for each upstream and
 * status, without the upstream's text and without the key. Owners of community models see theirs in calls and probes, and accounts those of their
 * vendor keys.
 */
export class RefusedCredentials {
  private readonly limit: LogLimit;

  constructor(
    private readonly log: Logger,
    clock: Clock,
  ) {
    this.limit = new LogLimit(clock, REFUSED_CREDENTIAL_LOG_MS);
  }

  note({ model: { id, isCommunity }, route: { upstreamId, keyId, vendorKey } }: Candidate, error: unknown): void {
    if (isCommunity || vendorKey || !isCredentialRefused(error)) return;
    const suppressed = this.limit.admit(`${keyId} ${error.status}`);
    if (suppressed === null) return;
    const line = { event: "upstream-credential-refused", upstream: upstreamId, key: keyId, status: error.status, model: id };
    this.log.warn({ ...line, suppressed }, "an upstream refuses the credential that it is called with");
  }
}
