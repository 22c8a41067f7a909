/** Upstreams that do not answer: whether another one may be asked, and what is told of it to the caller, to the model's health, to the operator. */

import type { Logger } from "pino";
import type { KeyCaller, SessionCaller } from "../../context.js";
import { AppError, type ErrorCode, upstreamFailed, upstreamTimedOut } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { REFUSED_CREDENTIAL_LOG_MS } from "../../limits.js";
import { type CallEnd, ProviderError } from "../../providers/provider.js";
import type { Model } from "../catalog/model.js";
import type { BoundedReport } from "./usage-reports.js";

/**
 * The failures that speak against a model. What the caller did wrong, a refusal and a limit do not, nor what is not known to be the
 * upstream's doing.
 */
const FAULTS: ReadonlySet<ErrorCode> = new Set(["UPSTREAM_ERROR", "UPSTREAM_TIMEOUT", "SERVICE_UNAVAILABLE", "INTERNAL_ERROR"]);

/**
 * Tells of a call that ended with `error`, unless it says nothing about the model: `end` is what would have ended it early. True when
 * it speaks against the model.
 */
export function noteFailure(
  healthReporter: HealthReporter,
  caller: KeyCaller | SessionCaller,
  model: Model,
  error: unknown,
  end: CallEnd,
): boolean {
  // What ends a call from here is no doing of the upstream's, but for the time that is up.
  healthReporter.upstreamFailed(model, end.aborted ? end.reason : error);
  const told = end.aborted ? end.reason : toCallerError(error, model);
  if (!(told instanceof AppError)) return false;
  const isFault = end.aborted ? told.code === "UPSTREAM_TIMEOUT" : FAULTS.has(told.code);
  if (isFault) healthReporter.failed(caller, model);
  return isFault;
}

/** What generations tell of the models that they call, each candidate for itself. */
export interface HealthReporter {
  /** The whole answer came, of a model that an account has registered. */
  succeeded(caller: KeyCaller | SessionCaller, model: Model): void;
  /** It was not answered, or not to the end, by no fault of the caller's. */
  failed(caller: KeyCaller | SessionCaller, model: Model): void;
  /** Nobody served a whole generation, by no fault of the caller's: it is in no usage row. `model` is the one that was asked for. */
  generationFailed(caller: KeyCaller | SessionCaller, model: Model): void;
  /** Its upstream failed with that, whoever is to blame. */
  upstreamFailed(model: Model, error: unknown): void;
  /** Its upstream reported more usage than is plausible. */
  usageBounded(model: Model, report: BoundedReport): void;
}

// What a caller is told of an upstream's failure, and whether another upstream may be tried
// (docs/spec/errors.md#upstream-errors, docs/spec/generation.md#fallbacks).

/** The caller's own mistakes, found by the upstream: passed on in its words. */
const CALLER_FAULTS: ReadonlyMap<number, ErrorCode> = new Map([
  [400, "BAD_REQUEST"],
  [413, "PAYLOAD_TOO_LARGE"],
  [415, "UNSUPPORTED_MEDIA_TYPE"],
  [422, "BAD_REQUEST"],
]);
const TIMEOUT_STATUSES = new Set([408, 524]);
const CREDENTIAL_STATUSES = new Set([401, 402, 403]);
const REFUSED_CREDENTIAL =
  "The upstream refused the credential of the model, which is not your key: whoever runs the model has to put it right";
const FALLBACK_STATUSES = new Set([401, 402, 403, 404, 408, 409, 429]);

/** The upstream refuses what the caller has sent. */
export function isCallersFault({ kind, status }: ProviderError): boolean {
  return kind === "status" && CALLER_FAULTS.has(status ?? 500);
}

/**
 * A provider's trouble must never look like the caller's key: everything but the caller's fault is 502 or 504. `served` is whose upstream
 * it was. What happened is said where it is known, in the error's own message.
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
      ...(param !== undefined && { param }),
    });
  }
  const told = { cause: error, details, ...(retryAfterSeconds !== undefined && { retryAfterSeconds }) };
  if (TIMEOUT_STATUSES.has(status)) return upstreamTimedOut("The upstream ran out of time.", told);
  return upstreamFailed(
    isCredentialRefused(error) ? `${REFUSED_CREDENTIAL} (status ${status}).` : `The upstream failed with status ${status}.`,
    told,
  );
}

/** What a caller is told of an upstream's refusal beside our own words, wherever it is told: numbers, and a code out of our own list. */
function upstreamDetails({ status, upstreamCode, retryAfterSeconds }: ProviderError): Readonly<Record<string, unknown>> {
  return {
    upstreamStatus: status ?? 500,
    ...(upstreamCode !== undefined && { upstreamCode }),
    // An event of a stream and a job have no header.
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

/** The credential that the upstream was called with, or the account behind it, is refused: whoever runs the model has to see to that. */
function isCredentialRefused(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.kind === "status" && CREDENTIAL_STATUSES.has(error.status ?? 500);
}

/** Only before the first byte, and never for a request that every upstream would refuse. */
export function mayFallBack(error: unknown): boolean {
  if (!(error instanceof ProviderError)) return false;
  if (error.kind !== "status") return true;
  const status = error.status ?? 500;
  return status >= 500 || FALLBACK_STATUSES.has(status);
}

// What an upstream says, as callers are told it: its own name for a model becomes the id that they know the model by
// (docs/spec/generation.md). Every text of an upstream's that goes on, an error's or a warning's, comes through here.

/** Whoever answered, or was to. */
export type Served = Pick<Model, "id" | "upstreamModel" | "isCommunity">;

const WORD_CHARACTER = /[\p{L}\p{N}]/u;
const LETTERS_ALONE = /^\p{L}+$/u;
const QUOTES: ReadonlySet<string | undefined> = new Set(['"', "'", "`", "‘", "’", "“", "”"]);

/**
 * The name counts where it stands as a word of its own, in any case. One of letters alone (`image`) is also a word of the language: of
 * an operator's model it counts between quotes, of an account's everywhere, because what that is called is its owner's secret.
 */
export function inCallersWords(text: string, { id, upstreamModel: name, isCommunity }: Served): string {
  if (name === id || name === "") return text;
  const mustBeQuoted = !isCommunity && LETTERS_ALONE.test(name);
  const [said, sought] = [toComparable(text), toComparable(name)];
  const offset = toComparable(id).indexOf(sought);
  let told = "";
  let from = 0;
  for (let at = said.indexOf(sought); at !== -1; at = said.indexOf(sought, from)) {
    const end = at + name.length;
    const isWord = !isWordCharacter(text[at - 1]) && !isWordCharacter(text[end]);
    const isQuoted = QUOTES.has(text[at - 1]) && QUOTES.has(text[end]);
    const isWithinId = offset !== -1 && text.startsWith(id, at - offset);
    const isTold = !isWord || isWithinId || (mustBeQuoted && !isQuoted);
    told += text.slice(from, at) + (isTold ? text.slice(at, end) : id);
    from = end;
  }
  return told + text.slice(from);
}

export function allInCallersWords(texts: readonly string[], served: Served): readonly string[] {
  return texts.length === 0 ? texts : texts.map((text) => inCallersWords(text, served));
}

function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && WORD_CHARACTER.test(character);
}

/** Letters whose small form is longer than they are would move what follows them. */
function toComparable(text: string): string {
  const small = text.toLowerCase();
  return small.length === text.length ? small : text;
}

/**
 * An upstream that refuses the gateway's own credential, or the account behind it, is for the operator to put right, and no outage of a
 * model: it is told in the log, the first time and then at most once in a while for each upstream and status, without a word of the
 * upstream's and never the key. What accounts have registered is theirs to see to: their calls and probes are told.
 */
interface Told {
  readonly at: number;
  /** Since it was told. */
  untold: number;
}

export class RefusedCredentials {
  /** By upstream and status: as many as the operator's catalog has upstreams, three times. */
  private readonly told = new Map<string, Told>();

  constructor(
    private readonly log: Logger,
    private readonly clock: Clock,
  ) {}

  /** Of any failed call. */
  note({ id, upstreamId, isCommunity }: Pick<Model, "id" | "upstreamId" | "isCommunity">, error: unknown): void {
    if (isCommunity || !isCredentialRefused(error)) return;
    const name = `${upstreamId} ${error.status}`;
    const now = this.clock.now().getTime();
    const last = this.told.get(name);
    if (last && now - last.at < REFUSED_CREDENTIAL_LOG_MS) {
      last.untold += 1;
      return;
    }
    this.told.set(name, { at: now, untold: 0 });
    const line = { event: "upstream-credential-refused", upstream: upstreamId, status: error.status, model: id };
    this.log.warn({ ...line, untold: last?.untold ?? 0 }, "an upstream refuses the credential that it is called with");
  }
}
