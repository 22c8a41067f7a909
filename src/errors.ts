/**
 * The one error that the platform throws on purpose. It knows no transport: the faces map its code (docs/spec/errors.md). `message` is for
 * the client; `cause` is private and only logged.
 */

import { summarize } from "./lib/error-summary.js";

export const ERROR_CODES = [
  "BAD_REQUEST",
  "CONTENT_BLOCKED",
  "UNAUTHORIZED",
  "INSUFFICIENT_BALANCE",
  "KEY_BUDGET_EXHAUSTED",
  "MAX_COST_EXCEEDED",
  "FORBIDDEN",
  "ACCOUNT_SUSPENDED",
  "NOT_FOUND",
  "METHOD_NOT_ALLOWED",
  "CONFLICT",
  "PAYLOAD_TOO_LARGE",
  "UNSUPPORTED_MEDIA_TYPE",
  "MISDIRECTED_REQUEST",
  "UPGRADE_REQUIRED",
  "RATE_LIMITED",
  "INTERNAL_ERROR",
  "UPSTREAM_ERROR",
  "SERVICE_UNAVAILABLE",
  "UPSTREAM_TIMEOUT",
] as const;
export type ErrorCode = (typeof ERROR_CODES)[number];

/** Faults of the input: by dotted path of the field, and of the whole. */
export interface ValidationDetails {
  readonly fieldErrors: Readonly<Record<string, readonly string[]>>;
  readonly formErrors: readonly string[];
}

export interface AppErrorOptions {
  /** The wrong request parameter, dotted: `messages.0.role`. */
  readonly param?: string;
  readonly details?: ValidationDetails | Readonly<Record<string, unknown>>;
  /** Whole seconds until the client may retry. */
  readonly retryAfterSeconds?: number;
  /** The allowed methods, with METHOD_NOT_ALLOWED. */
  readonly allow?: readonly string[];
  /** True once an upstream has begun work: a retry would pay twice. */
  readonly isFinal?: boolean;
  /** With INTERNAL_ERROR: not the gateway's fault, and the message is for the client; otherwise the error's details are hidden. */
  readonly isExpected?: boolean;
  /** The message without texts of clients and upstreams, for records that are kept. Absent: it is made of the message. */
  readonly summary?: string;
  /** With UNAUTHORIZED: a credential was presented and refused; otherwise there was none. */
  readonly isCredentialRefused?: boolean;
  /** Private: logged, never answered. */
  readonly cause?: unknown;
}

export class AppError extends Error {
  override readonly name = "AppError";
  readonly param: string | undefined;
  readonly details: AppErrorOptions["details"];
  readonly retryAfterSeconds: number | undefined;
  readonly allow: readonly string[] | undefined;
  readonly isFinal: boolean;
  readonly isExpected: boolean;
  readonly isCredentialRefused: boolean;
  readonly summary: string;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options: AppErrorOptions = {},
  ) {
    super(message, { cause: options.cause });
    this.param = options.param;
    this.details = options.details;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.allow = options.allow;
    this.isFinal = options.isFinal ?? false;
    this.isExpected = options.isExpected ?? false;
    this.isCredentialRefused = options.isCredentialRefused ?? false;
    this.summary = options.summary ?? (code === "BAD_REQUEST" ? summarize(message, options.param) : message);
  }
}

export function invalidInput(message: string, param?: string): AppError {
  if (param === undefined) return new AppError("BAD_REQUEST", message, { details: { fieldErrors: {}, formErrors: [message] } });
  return new AppError("BAD_REQUEST", message, { param, details: { fieldErrors: { [param]: [message] }, formErrors: [] } });
}

/** An error of one field, "file: is required", in the form of schema errors (services/requests/input.ts). */
export function wrongField(param: string, problem: string): AppError {
  return new AppError("BAD_REQUEST", `${param}: ${problem}`, { param, details: { fieldErrors: { [param]: [problem] }, formErrors: [] } });
}

export function unauthenticated(message: string): AppError {
  return new AppError("UNAUTHORIZED", message);
}

/** For a presented credential: the message names the fault without repeating it. */
export function credentialRefused(message: string): AppError {
  return new AppError("UNAUTHORIZED", message, { isCredentialRefused: true });
}

/** Of every credential of a suspended account. */
export function accountSuspended(): AppError {
  return new AppError(
    "ACCOUNT_SUSPENDED",
    "This account is suspended: its keys and sessions are refused. Ask the operator of this gateway to restore it.",
  );
}

/** True for a refusal of the credential itself, by which open connections end. */
export function isCredentialEnded(error: unknown): error is AppError {
  return error instanceof AppError && (error.code === "UNAUTHORIZED" || error.code === "ACCOUNT_SUSPENDED");
}

export function permissionDenied(message: string): AppError {
  return new AppError("FORBIDDEN", message);
}

/** Also for things of another account, whose existence stays hidden. */
export function notFound(what: string): AppError {
  return new AppError("NOT_FOUND", `No such ${what}.`);
}

/** `retryAfterSeconds` is for conflicts that pass by themselves; clients may then retry. */
export function conflict(message: string, retryAfterSeconds?: number): AppError {
  return new AppError("CONFLICT", message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds });
}

export function payloadTooLarge(bytesMax: number): AppError {
  return new AppError("PAYLOAD_TOO_LARGE", `The body is larger than ${bytesMax} bytes.`);
}

export function rateLimited(message: string, retryAfterSeconds: number, details?: Readonly<Record<string, unknown>>): AppError {
  return new AppError("RATE_LIMITED", message, {
    retryAfterSeconds: Math.max(1, Math.ceil(retryAfterSeconds)),
    ...(details && { details }),
  });
}

export function upstreamFailed(message: string, options: AppErrorOptions = {}): AppError {
  return new AppError("UPSTREAM_ERROR", message, options);
}

export function upstreamTimedOut(message: string, options: AppErrorOptions = {}): AppError {
  return new AppError("UPSTREAM_TIMEOUT", message, options);
}

/** An agent that threw or gave no answer (docs/spec/agents.md#code-agents); details are only for its owner. */
export function agentFailed(): AppError {
  return new AppError("INTERNAL_ERROR", "The agent failed.", { isFinal: true, isExpected: true });
}

export function serviceUnavailable(message: string, options: AppErrorOptions = {}): AppError {
  return new AppError("SERVICE_UNAVAILABLE", message, { retryAfterSeconds: 1, ...options });
}
