/** Who may do what on an account: the first line of every account method (docs/spec/keys.md#permissions). */
import type * as z from "zod";
import type { AccountPermission, Caller, KeyCaller, RequestContext, SessionCaller } from "../../context.js";
import { type AppError, permissionDenied, unauthenticated } from "../../errors.js";
import { parseInput } from "../requests/input.js";

/** One of the checks below: throws UNAUTHORIZED or FORBIDDEN for who may not ask. */
export type Requirement = (ctx: RequestContext) => unknown;

/**
 * Input as the schema has it, of who may send it: they are refused before it is looked at, as no answer to somebody who may not ask
 * depends on what they sent. A function makes it of what came.
 */
export function parsePermitted<Output>(ctx: RequestContext, requires: Requirement, schema: z.ZodType<Output>, input: unknown): Output {
  requires(ctx);
  return parseInput(schema, typeof input === "function" ? input() : input);
}

/** Anybody, with or without credentials; but an agent at work only generates. */
export function admitAnybody(ctx: RequestContext): void {
  refuseAgents(ctx.caller);
}

/** Any key or session, an agent at work for one included; 401 for nobody. */
export function requireCaller(ctx: RequestContext): KeyCaller | SessionCaller {
  if (ctx.caller.kind === "anonymous") throw unauthenticated("An API key is required: send it as `Authorization: Bearer <key>`.");
  return ctx.caller;
}

/** Any key or session, for what is the account's own; 403 for an agent at work. */
export function requireAccount(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireCaller(ctx);
  refuseAgents(caller);
  return caller;
}

/** `requirePermission` of one permission, to be named before a request is looked at. */
export function permissionOf(permission: AccountPermission): Requirement {
  return (ctx) => requirePermission(ctx, permission);
}

/** A session, or a key that holds the permission. */
export function requirePermission(ctx: RequestContext, permission: AccountPermission): KeyCaller | SessionCaller {
  const caller = requireAccount(ctx);
  if (caller.kind === "key" && !caller.permissions.has(permission)) throw permissionDenied(lackOf([permission]));
  return caller;
}

/** What the calling key lacks, by the name under which keys are given it, and how to come by a key that has it. */
export function lackOf(permissions: readonly AccountPermission[]): string {
  const field = `accountPermissions: ${JSON.stringify(permissions)}`;
  if (permissions.includes("keys")) {
    return `This key may not manage the account: it takes a key that a signed-in person has made with ${field}, or the owner's key.`;
  }
  return `This key was made without ${field}: use one that has it. Whoever manages the account's keys can make one (POST /account/keys).`;
}

/** As `requirePermission(ctx, "keys")`, and never a publishable key (docs/spec/keys.md#permissions). */
export function requireKeyManager(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireAccount(ctx);
  if (caller.kind === "key" && caller.apiKeyType !== "secret") throw permissionDenied("Keys are managed with a secret key.");
  return requirePermission(ctx, "keys");
}

/** A signed-in person; 403 for a key, whatever it holds. */
export function requireSession(ctx: RequestContext): SessionCaller {
  const { caller } = ctx;
  refuseAgents(caller);
  if (caller.kind === "session") return caller;
  throw caller.kind === "key" ? permissionDenied("Only a signed-in person may do this, not a key.") : unauthenticated("Sign in first.");
}

/** Of what an agent at work does not reach. */
export function beyondAgents(): AppError {
  return permissionDenied("An agent at work may generate and list models, and nothing else.");
}

/** What an agent does for somebody is generating, and never their account (docs/spec/agents.md#run-tokens). */
function refuseAgents(caller: Caller): void {
  if (caller.kind !== "anonymous" && caller.run) throw permissionDenied("An agent may not use the account that it works for.");
}

export function requireOperator(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireKeyManager(ctx);
  if (!caller.isOperator) throw permissionDenied("Only an operator may do this.");
  return caller;
}

/** Whether `requireKeyManager` would let the caller pass. */
export function isKeyManager({ caller }: RequestContext): boolean {
  if (caller.kind === "anonymous" || caller.run) return false;
  return caller.kind === "session" || (caller.apiKeyType === "secret" && caller.permissions.has("keys"));
}

/** Whether `requireOperator` would let the caller pass. */
export function isOperator(ctx: RequestContext): boolean {
  return isKeyManager(ctx) && ctx.caller.kind !== "anonymous" && ctx.caller.isOperator;
}

export function isKeyCaller(caller: Caller): caller is KeyCaller {
  return caller.kind === "key";
}
