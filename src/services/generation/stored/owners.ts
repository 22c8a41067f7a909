/** Who may read and continue stored responses and conversations (docs/spec/chat.md#stored-responses). */
import type { KeyCaller, SessionCaller } from "../../../context.js";
import type { Database } from "../../../store/database.js";

/** Who stored something. */
export interface Owner {
  readonly accountId: string;
  /** Null: a session. */
  readonly apiKeyId: string | null;
  /** The generation of the agent, in a run of one; else null. */
  readonly runId: string | null;
}

export function ownerOf(caller: KeyCaller | SessionCaller): Owner {
  return {
    accountId: caller.accountId,
    apiKeyId: caller.kind === "key" ? caller.apiKeyId : null,
    runId: caller.run?.parentRequestId ?? null,
  };
}

export type MayRead = (owner: Owner) => Promise<boolean>;

/**
 * Whether a caller may read what an owner stored. Never for another account. An agent run and a key read their own. A secret key with the
 * permission `usage` that no app was granted reads all of the account; the key is looked up at most once.
 */
export function readerFor(database: Database, caller: KeyCaller | SessionCaller): MayRead {
  let granted: Promise<boolean> | undefined;
  return async (owner) => {
    if (owner.accountId !== caller.accountId) return false;
    if (caller.run) return owner.runId === caller.run.parentRequestId;
    if (caller.kind === "session" || owner.apiKeyId === caller.apiKeyId) return true;
    if (caller.apiKeyType !== "secret" || !caller.permissions.has("usage")) return false;
    granted ??= isGrantedToApp(database, caller.apiKeyId);
    return !(await granted);
  };
}

/** The row of an id, by `find`; null when there is none that the caller may read. A null id is malformed. */
export async function findReadable<Row extends Owner>(
  database: Database,
  caller: KeyCaller | SessionCaller,
  uuid: string | null,
  find: (uuid: string) => Promise<Row | null>,
): Promise<Row | null> {
  const row = uuid === null ? null : await find(uuid);
  return row !== null && (await readerFor(database, caller)(row)) ? row : null;
}

/** Also for a key that descends from such a key. */
export async function isGrantedToApp({ prisma }: Database, apiKeyId: string): Promise<boolean> {
  const key = await prisma.apiKey.findUnique({ where: { id: apiKeyId }, select: { appKeyId: true, origin: true, ancestorIds: true } });
  if (!key || isGranted(key)) return true;
  if (key.ancestorIds.length === 0) return false;
  const ancestors = await prisma.apiKey.findMany({ where: { id: { in: key.ancestorIds } }, select: { appKeyId: true, origin: true } });
  return ancestors.some(isGranted);
}

function isGranted({ appKeyId, origin }: { readonly appKeyId: string | null; readonly origin: string }): boolean {
  return appKeyId !== null || origin !== "created";
}
