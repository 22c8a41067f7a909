/** Makes keys: their text, HMAC and place in the key tree. */
import { conflict, credentialRefused } from "../../errors.js";
import { createApiKeyText, startOfApiKey } from "../../lib/api-key-format.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import { API_KEY_LEVELS_MAX, API_KEYS_PER_ACCOUNT_MAX } from "../../limits.js";
import type { DatabaseClient } from "../../store/database.js";
import type { ApiKeyModel } from "../../store/generated/prisma/models.js";
import type { ApiKeyCache } from "./api-key-cache.js";
import type { KeyInTree } from "./api-key-limits.js";
import type { ApiKeyRow, ApiKeyRows } from "./api-key-rows.js";
import { ancestorsOf, type KeyRow, worthOf } from "./api-key-tree.js";
import { type KeyDefinition, toJson } from "./key-definition.js";
import { describeRevocation } from "./key-refusals.js";

export type KeyWriter = Pick<DatabaseClient, "apiKey" | "$queryRaw">;

export interface NewKey extends Pick<ApiKeyRow, "name" | "type" | "permissions" | "allowedModels" | "creditBudget" | "redirectUrls"> {
  readonly accountId: string;
  /** Seconds; null: never. */
  readonly expiresIn: number | null;
  readonly origin?: ApiKeyRow["origin"];
  readonly appKeyId?: string | null;
  /** Agreed to with the grant; absent: none. */
  readonly marginPercent?: number;
  readonly resource?: string | null;
  readonly isManagement?: boolean;
  readonly externalId?: string | null;
  /** Of a key with an external id. */
  readonly definition?: KeyDefinition;
  /** The parent key; absent: made by a session. */
  readonly parent?: KeyRow | undefined;
}

export class KeyMaker {
  constructor(
    private readonly keyCache: Pick<ApiKeyCache, "hash">,
    private readonly rows: ApiKeyRows,
    private readonly clock: Clock,
  ) {}

  /** Inserts a key in a transaction that has locked the account, so that the bound on keys holds and the parent is not being revoked. */
  async insert(newKey: NewKey, writer: KeyWriter): Promise<{ apiKey: ApiKeyRow; key: string }> {
    const { allowedModels, creditBudget, expiresIn, permissions, redirectUrls, parent, definition, ...columns } = newKey;
    const text = createApiKeyText(newKey.type === "secret" ? "sk" : "pk");
    // Runs have a bound of their own.
    if (newKey.origin !== "run") await assertRoom(writer, newKey.accountId);
    const ancestorIds = parent ? [...parent.ancestorIds, parent.id] : [];
    if (ancestorIds.length >= API_KEY_LEVELS_MAX) {
      throw conflict(
        `Keys descend from each other in at most ${API_KEY_LEVELS_MAX} levels: make this one with a key above, or as a person.`,
      );
    }
    const row = await writer.apiKey.create({
      data: {
        ...columns,
        id: createId(),
        hash: new Uint8Array(this.keyCache.hash(text)),
        start: startOfApiKey(text),
        permissions: [...permissions],
        restrictsModels: allowedModels !== null,
        allowedModels: [...(allowedModels ?? [])],
        redirectUrls: [...redirectUrls],
        budgetNanocredits: creditBudget,
        expiresAt: expiryIn(expiresIn, this.clock),
        parentId: parent?.id ?? null,
        ancestorIds,
        ...(definition && { definition: toJson(definition) }),
      },
    });
    return { apiKey: await this.rows.one(writer, row), key: text };
  }
}

async function assertRoom({ apiKey }: KeyWriter, accountId: string): Promise<void> {
  const live = await apiKey.count({ where: { accountId, revokedAt: null, origin: { not: "run" } } });
  if (live >= API_KEYS_PER_ACCOUNT_MAX) throw conflict(`An account has at most ${API_KEYS_PER_ACCOUNT_MAX} keys.`);
}

/** `expiresIn` in seconds; null: never. */
export function expiryIn(expiresIn: number | null, clock: Clock): Date | null {
  return expiresIn === null ? null : new Date(clock.now().getTime() + expiresIn * 1000);
}

/** Reads the calling key. Rejects with UNAUTHORIZED when it was revoked after authentication. */
export async function findMaker(database: Pick<DatabaseClient, "apiKey">, apiKeyId: string): Promise<KeyInTree> {
  const maker = await withAncestors(database, await database.apiKey.findUniqueOrThrow({ where: { id: apiKeyId } }));
  if (worthOf(maker.key, maker.ancestors).isRevoked) throw credentialRefused(describeRevocation(maker.key, maker.ancestors));
  return maker;
}

export async function withAncestors(database: Pick<DatabaseClient, "apiKey">, key: ApiKeyModel): Promise<KeyInTree> {
  return { key, ancestors: (await ancestorsOf(database, [key])).get(key.id) ?? [] };
}
