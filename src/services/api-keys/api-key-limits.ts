/**
 * Limits of a key, given its ancestors and the key that sets them (docs/spec/keys.md#key-tree). A limit that is absent or null is that of
 * the ancestors.
 */
import { type AccountPermission, type ApiKeyType, type Caller, isManagementKey } from "../../context.js";
import { AppError, invalidInput, permissionDenied } from "../../errors.js";
import { isKeyCaller, lackOf } from "../access/permissions.js";
import { type KeyRow, type KeyTerms, type KeyWorth, worthOf } from "./api-key-tree.js";
import type { CreateApiKeyInput } from "./api-keys-input.js";

/** Limits of a request; null sets none. */
export interface StatedLimits {
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly creditBudget?: bigint | null | undefined;
  readonly expiresAt?: Date | null | undefined;
}

export type IdOf = (name: string) => string;

export interface KeyInTree {
  readonly key: KeyRow;
  readonly ancestors: readonly KeyRow[];
}

type Limit = keyof StatedLimits;
type Refuse = (limit: Limit, why: string) => AppError;

/** Input field of each limit. */
const PARAMS = { allowedModels: "allowedModels", creditBudget: "creditBudget", expiresAt: "expiresIn" } as const;

/**
 * Throws FORBIDDEN, naming the field, for a permission or limit beyond those of the calling key. `maker` is that key's effective limits.
 */
export function assertMayMake(maker: KeyWorth, permissions: readonly AccountPermission[], stated: StatedLimits, idOf: IdOf): void {
  const lacking = permissions.filter((name) => !maker.permissions.includes(name));
  if (lacking.length > 0) {
    throw new AppError("FORBIDDEN", `${lackOf(lacking)} A key gives no permission that it lacks.`, { param: "accountPermissions" });
  }
  assertWithin(maker, stated, idOf, refuseToKey);
}

/**
 * Throws FORBIDDEN for a change of `target` that the calling key `own` may not make, and BAD_REQUEST for one that an ancestor of `target`
 * does not allow. `own` is null for a session.
 */
export function assertMayChange(own: KeyInTree | null, target: KeyInTree, stated: StatedLimits, idOf: IdOf): void {
  const { key, ancestors } = target;
  if (own?.key.id === key.id) throw permissionDenied("A key cannot change itself.");
  if (own?.key.ancestorIds.includes(key.id)) throw permissionDenied("A key cannot change a key that it descends from.");
  if (own && !key.ancestorIds.includes(own.key.id)) assertNotWidened(own, key, stated, idOf);
  const parent = ancestors.at(-1);
  if (!parent) return;
  const refuse = own ? refuseToKey : refuseToPerson;
  assertWithin(worthOf(parent, ancestors.slice(0, -1)), stated, idOf, refuse);
}

/** Throws BAD_REQUEST for an ancestor of the calling key, or that key itself: revoking a key revokes its descendants. */
export function assertMayRevoke(caller: Caller, own: KeyRow | null, id: string): void {
  if (isKeyCaller(caller) && caller.apiKeyId === id) {
    throw invalidInput("The key that authenticates the request cannot be revoked.", "id");
  }
  if (own?.ancestorIds.includes(id)) {
    throw invalidInput("The key that authenticates the request descends from this one, which it therefore cannot revoke.", "id");
  }
}

/**
 * Refuses a wider limit for a key that is no descendant of the calling one. Such a key draws on its own budget, so a limited key could
 * spend it and raise it again without end; it may not raise it at all. It may give models and time up to its own.
 */
function assertNotWidened(own: KeyInTree, target: KeyTerms, stated: StatedLimits, idOf: IdOf): void {
  const limits = worthOf(own.key, own.ancestors);
  const { creditBudget } = stated;
  if (limits.creditBudget !== null && creditBudget !== undefined) {
    const { budgetNanocredits: budget, spentNanocredits: spent } = target;
    const isRaised = budget !== null && (creditBudget === null || creditBudget > budget - spent);
    if (isRaised) throw refuseToKey("creditBudget", "has a budget: it cannot raise that of a key that it has not made");
  }
  if (limits.modelLists.length > 0 && stated.allowedModels === null) throw refuseToKey("allowedModels", ONLY_SOME_MODELS);
  if (limits.expiresAt !== null && stated.expiresAt === null) throw refuseToKey("expiresAt", EXPIRES);
  assertWithin(limits, { allowedModels: stated.allowedModels, expiresAt: stated.expiresAt }, idOf, refuseToKey);
}

const ONLY_SOME_MODELS = "is restricted to some models: the other key must name a subset of them";
const HAS_A_BUDGET = "has a budget: the other key's must not be larger than what remains of it";
const EXPIRES = "expires: the other key must not outlive it";

function assertWithin(limits: KeyWorth, stated: StatedLimits, idOf: IdOf, refuse: Refuse): void {
  const { allowedModels, creditBudget, expiresAt } = stated;
  const lists = limits.modelLists.map((list) => new Set(list.map(idOf)));
  if (allowedModels?.some((name) => lists.some((ids) => !ids.has(idOf(name))))) throw refuse("allowedModels", ONLY_SOME_MODELS);
  if (limits.creditBudget !== null && creditBudget != null && creditBudget > limits.creditBudget)
    throw refuse("creditBudget", HAS_A_BUDGET);
  if (limits.expiresAt !== null && expiresAt != null && expiresAt > limits.expiresAt) throw refuse("expiresAt", EXPIRES);
}

function refuseToKey(limit: Limit, why: string): AppError {
  return new AppError("FORBIDDEN", `The calling key ${why}.`, { param: PARAMS[limit] });
}

function refuseToPerson(limit: Limit, why: string): AppError {
  return invalidInput(`The key that has made it ${why}.`, PARAMS[limit]);
}

/**
 * Drops `keys` unless a session asks; a publishable key never holds it (docs/spec/keys.md#permissions). A management key always does. Throws
 * FORBIDDEN for a management key that a key asks for, and BAD_REQUEST for a publishable one.
 */
export function grantablePermissions({ accountPermissions, isManagement, type }: CreateApiKeyInput, caller: Caller): AccountPermission[] {
  const granted = new Set(accountPermissions ?? []);
  if (isManagement && caller.kind !== "session") {
    throw new AppError("FORBIDDEN", "Only a signed-in person creates management keys.", { param: "isManagement" });
  }
  if (isManagement && type !== "secret") throw invalidInput("A management key is a secret key.", "isManagement");
  if (isManagement) granted.add("keys");
  if (caller.kind !== "session") granted.delete("keys");
  return [...granted];
}

/** Keys that the caller may list and change: those below it for a management key, else all of the account. */
export function managedBy(caller: Caller): { readonly ancestorIds?: { readonly has: string } } {
  return isManagementKey(caller) ? { ancestorIds: { has: caller.apiKeyId } } : {};
}

/** Whether `managedBy` has the key. */
export function mayManage(caller: Caller, { ancestorIds }: Pick<KeyRow, "ancestorIds">): boolean {
  return !isManagementKey(caller) || ancestorIds.includes(caller.apiKeyId);
}

/** Only app keys have redirect URLs. */
export function registrableUrls(type: ApiKeyType, urls: readonly string[]): readonly string[] {
  if (type === "publishable" || urls.length === 0) return urls;
  throw invalidInput("Redirect URLs are registered with a publishable key, which is what apps show.", "redirectUrls");
}
