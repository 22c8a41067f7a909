/**
 * External ids: a key of a name that a provisioning tool chose is created once (docs/spec/keys.md#external-ids). Its definition is its terms
 * as they were last stated, by the creation or a later change: a budget that was spent from, or time that has passed, is no other definition.
 */
import { AppError } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { formatNanocredits } from "../../lib/money.js";
import type { DatabaseClient } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";
import type { IdOf } from "./api-key-limits.js";

/** JSON. Lists are sorted, models are canonical ids, amounts are decimal credits. */
export interface KeyDefinition {
  readonly name: string;
  readonly type: string;
  readonly allowedModels: readonly string[] | null;
  readonly creditBudget: string | null;
  readonly expiresIn: number | null;
  readonly accountPermissions: readonly string[];
  readonly redirectUrls: readonly string[];
  readonly isManagement: boolean;
}

const FIELDS = [
  ...(["name", "type", "allowedModels", "creditBudget", "expiresIn", "accountPermissions", "redirectUrls", "isManagement"] as const),
] satisfies readonly (keyof KeyDefinition)[];

/** Undefined: not stated. */
export interface StatedTerms {
  readonly name?: string | undefined;
  readonly type?: string | undefined;
  readonly allowedModels?: readonly string[] | null | undefined;
  readonly creditBudget?: bigint | null | undefined;
  readonly expiresIn?: number | null | undefined;
  readonly accountPermissions?: readonly string[] | undefined;
  readonly redirectUrls?: readonly string[] | null | undefined;
  readonly isManagement?: boolean | undefined;
}

const NOT_STATED: KeyDefinition = {
  ...{ name: "", type: "secret", allowedModels: null, creditBudget: null, expiresIn: null },
  ...{ accountPermissions: [], redirectUrls: [], isManagement: false },
};

/** The definition with these changes; `before` is null for a new key. */
export function defineKey(before: unknown, stated: StatedTerms, idOf: IdOf): KeyDefinition {
  const known: KeyDefinition = isRecord(before) ? { ...NOT_STATED, ...before } : NOT_STATED;
  const { allowedModels, creditBudget, expiresIn, accountPermissions, redirectUrls } = stated;
  return {
    name: stated.name ?? known.name,
    type: stated.type ?? known.type,
    allowedModels: allowedModels === undefined ? known.allowedModels : allowedModels && sorted(allowedModels.map(idOf)),
    creditBudget: creditBudget === undefined ? known.creditBudget : creditBudget === null ? null : formatNanocredits(creditBudget),
    expiresIn: expiresIn === undefined ? known.expiresIn : expiresIn,
    accountPermissions: accountPermissions === undefined ? known.accountPermissions : sorted(accountPermissions),
    redirectUrls: redirectUrls === undefined ? known.redirectUrls : sorted(redirectUrls ?? []),
    isManagement: stated.isManagement ?? known.isManagement,
  };
}

/** The key of that external id in the account, if it is not revoked. */
export async function findByExternalId({ apiKey }: Pick<DatabaseClient, "apiKey">, accountId: string, externalId: string) {
  return apiKey.findFirst({ where: { accountId, externalId, revokedAt: null } });
}

/** Throws CONFLICT for a key whose definition is another one, naming its fields, and for one that has expired. */
export function assertSameDefinition(found: ApiKeyModel, wanted: KeyDefinition, idOf: IdOf, now: Date): void {
  const known = defineKey(found.definition, {}, idOf);
  const differing = FIELDS.filter((name) => JSON.stringify(known[name]) !== JSON.stringify(wanted[name]));
  const details = { apiKeyId: found.id, differing };
  if (differing.length > 0) {
    throw taken(
      `A key with this externalId exists with another ${differing.join(", ")}: change that key by its ID, or revoke it.`,
      details,
    );
  }
  if (found.expiresAt !== null && found.expiresAt <= now) {
    throw taken("The key with this externalId has expired: give it time by its ID, or revoke it.", details);
  }
}

export function toJson(definition: KeyDefinition): Prisma.InputJsonObject {
  return { ...definition };
}

export function taken(message: string, details?: Readonly<Record<string, unknown>>): AppError {
  return new AppError("CONFLICT", message, { param: "externalId", ...(details && { details }) });
}

function sorted(values: readonly string[]): string[] {
  return [...new Set(values)].sort();
}
