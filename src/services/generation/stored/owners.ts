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

/**
 * Never for another account. An agent run and a key read their own. A secret key with the permission `usage` that no app was granted reads
 * all of the account.
 */
export async function mayRead(database: Database, caller: KeyCaller | SessionCaller, owner: Owner): Promise<boolean> {
  if (owner.accountId !== caller.accountId) return false;
  if (caller.run) return owner.runId === caller.run.parentRequestId;
  if (caller.kind === "session" || owner.apiKeyId === caller.apiKeyId) return true;
  return caller.apiKeyType === "secret" && caller.permissions.has("usage") && !(await isGrantedToApp(database, caller.apiKeyId));
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
