/** Permission checks: the first line of every account method (docs/spec/keys.md#permissions). */
import type * as z from "zod";
import {
  type AccountPermission,
  type Caller,
  isAgentAtWork,
  isManagementKey,
  type KeyCaller,
  type RequestContext,
  type SessionCaller,
} from "../../context.js";
import { type AppError, permissionDenied, unauthenticated } from "../../errors.js";
import { parseInput } from "../requests/input.js";

/** A check that throws UNAUTHORIZED or FORBIDDEN. */
export type Requirement = (ctx: RequestContext) => unknown;

/**
 * Checks permission, then parses input. The order matters: an answer to a caller without permission must not depend on the input. A
 * function as input is called only after the check.
 */
export function parsePermitted<Output>(ctx: RequestContext, requires: Requirement, schema: z.ZodType<Output>, input: unknown): Output {
  requires(ctx);
  return parseInput(schema, typeof input === "function" ? input() : input);
}

/** Admits every caller, with or without credentials, but no agent run: those only generate. */
export function admitAnybody(ctx: RequestContext): void {
  refuseAgents(ctx.caller);
}

/** Requires any key or session, or an agent run. Throws UNAUTHORIZED for an anonymous caller. */
export function requireCaller(ctx: RequestContext): KeyCaller | SessionCaller {
  if (ctx.caller.kind === "anonymous") throw unauthenticated("An API key is required: send it as `Authorization: Bearer <key>`.");
  return ctx.caller;
}

/** Requires any key or session, for account data. Throws FORBIDDEN for an agent run. */
export function requireAccount(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireCaller(ctx);
  refuseAgents(caller);
  return caller;
}

/** `requirePermission` with a fixed permission, for `parsePermitted`. */
export function permissionOf(permission: AccountPermission): Requirement {
  return (ctx) => requirePermission(ctx, permission);
}

export function requirePermission(ctx: RequestContext, permission: AccountPermission): KeyCaller | SessionCaller {
  const caller = requireAccount(ctx);
  if (caller.kind === "key" && !caller.permissions.has(permission)) throw permissionDenied(lackOf([permission]));
  return caller;
}

/** Names the permissions that the calling key lacks, and says how to get a key that has them. */
export function lackOf(permissions: readonly AccountPermission[]): string {
  const field = `accountPermissions: ${JSON.stringify(permissions)}`;
  if (permissions.includes("keys")) {
    return `This key cannot manage the account. Use a key that a signed-in user created with ${field}, or the owner's key.`;
  }
  return `This key was made without ${field}: use one that has it. A key that manages the account can create one (POST /account/keys).`;
}

/** As `requirePermission(ctx, "keys")`, but never for a publishable or a management key (docs/spec/keys.md#permissions). */
export function requireKeyManager(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireKeyMaker(ctx);
  if (isManagementKey(caller))
    throw permissionDenied("A management key only manages API keys. Use a session or a key with the permission keys.");
  return caller;
}

/** For operations on API keys: as `requireKeyManager`, and for management keys (docs/spec/keys.md#management-keys). */
export function requireKeyMaker(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireAccount(ctx);
  if (caller.kind === "key" && caller.apiKeyType !== "secret") throw permissionDenied("Managing keys requires a secret key.");
  return requirePermission(ctx, "keys");
}

/** Requires a signed-in person. Throws FORBIDDEN for every key. */
export function requireSession(ctx: RequestContext): SessionCaller {
  const { caller } = ctx;
  refuseAgents(caller);
  if (caller.kind === "session") return caller;
  throw caller.kind === "key"
    ? permissionDenied("This requires a signed-in session: API keys cannot do it.")
    : unauthenticated("Sign in first.");
}

/** For operations that agent runs may not call. */
export function beyondAgents(): AppError {
  return permissionDenied("A run token of an agent can only generate and list models.");
}

/** An agent run generates for its caller and has no access to the account (docs/spec/agents.md#run-tokens). */
function refuseAgents(caller: Caller): void {
  if (isAgentAtWork(caller)) throw permissionDenied("A run token of an agent cannot access the account.");
}

export function requireOperator(ctx: RequestContext): KeyCaller | SessionCaller {
  const caller = requireKeyManager(ctx);
  if (!caller.isOperator) throw permissionDenied("This requires an operator account.");
  return caller;
}

/** Whether the caller may also read what only operators see, such as the operator's costs. */
export function isOperatorReading({ caller }: Pick<RequestContext, "caller">): boolean {
  if (caller.kind === "anonymous" || !caller.isOperator || isAgentAtWork(caller)) return false;
  return !(isKeyCaller(caller) && caller.apiKeyType === "publishable");
}

/** The account to read: the caller's own, if `requires` admits it, or any for an operator. */
export function readableAccountOf(
  ctx: RequestContext,
  requires: (ctx: RequestContext) => KeyCaller | SessionCaller,
  accountId: string | undefined,
): string {
  if (accountId === undefined || accountId === requireAccount(ctx).accountId) return requires(ctx).accountId;
  requireOperator(ctx);
  return accountId;
}

/** Whether `requireKeyManager` would pass. */
export function isKeyManager({ caller }: RequestContext): boolean {
  if (caller.kind === "anonymous" || caller.run) return false;
  return caller.kind === "session" || (caller.apiKeyType === "secret" && caller.permissions.has("keys") && !isManagementKey(caller));
}

/** Whether `requireOperator` would pass. */
export function isOperator(ctx: RequestContext): boolean {
  return isKeyManager(ctx) && ctx.caller.kind !== "anonymous" && ctx.caller.isOperator;
}

export function isKeyCaller(caller: Caller): caller is KeyCaller {
  return caller.kind === "key";
}
