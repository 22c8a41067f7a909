/**
 * All callers of account operations: each key type with each permission, sessions, other accounts, and an anonymous
 * one.
 */
import { v7 as uuidv7 } from "uuid";
import type { AccountPermission } from "../../../src/context.js";
import { createApiKeyText, startOfApiKey } from "../../../src/lib/api-key-format.js";
import type { Database } from "../../../src/store/database.js";
import type { TestApp } from "../../support/app.js";
import { runTokensOf } from "../../support/secrets.js";
import { signUp } from "../../support/sign-in.js";

const PERMISSIONS: readonly AccountPermission[] = ["profile", "balance", "usage", "keys"];

export interface MatrixCaller {
  readonly name: string;
  readonly kind: "nobody" | "secret" | "publishable" | "session" | "agent";
  readonly permissions: ReadonlySet<AccountPermission>;
  /** Of the account that the operations are about, or of another one. */
  readonly isOwn: boolean;
  readonly headers: Readonly<Record<string, string>>;
  /** Of a key of that account. */
  readonly apiKeyId?: string;
  /** Whether it is a key that was granted to an app. */
  readonly isAppsKey?: boolean;
}

export interface Cast {
  readonly accountId: string;
  /** Signed in to that account: prepares what an operation needs, and may do everything that is not an operator's. */
  readonly session: MatrixCaller;
  readonly callers: readonly MatrixCaller[];
}

export function databaseOf(app: TestApp): Database {
  return app.database;
}

/** An account that is no operator's, with a caller of every kind, and another account's three strongest callers. */
export async function createCast(app: TestApp): Promise<Cast> {
  const [own, other] = [await signUp(app), await signUp(app)];
  const session = toSession("own session", own.cookie, true);
  const callers: MatrixCaller[] = [
    { name: "nobody", kind: "nobody", permissions: new Set(), isOwn: false, headers: {} },
    session,
    toSession("other session", other.cookie, false),
    await createAgentAtWork(app, own.accountId),
  ];
  const sets = [[], ...PERMISSIONS.map((permission) => [permission]), PERMISSIONS];
  for (const kind of ["secret", "publishable"] as const) {
    for (const permissions of sets) callers.push(await createCaller(app, own.accountId, kind, permissions, true));
    callers.push(await createCaller(app, other.accountId, kind, PERMISSIONS, false));
  }
  return { accountId: own.accountId, session, callers };
}

function toSession(name: string, cookie: string, isOwn: boolean): MatrixCaller {
  return { name, kind: "session", permissions: new Set(PERMISSIONS), isOwn, headers: { cookie, "sec-fetch-site": "same-origin" } };
}

/** An agent that works for the own account's key with all permissions: nothing on the account is for it. */
async function createAgentAtWork(app: TestApp, accountId: string): Promise<MatrixCaller> {
  const { headers } = await createCaller(app, accountId, "secret", PERMISSIONS, true);
  const { apiKeys } = app.services;
  const caller = await apiKeys.authenticate(headers.authorization?.slice("Bearer ".length) ?? null);
  if (caller.kind !== "key") throw new Error("No key.");
  const token = runTokensOf(app).issue(caller, { parentRequestId: uuidv7(), maxCost: 0n });
  return {
    name: "an agent at work for the own account",
    kind: "agent",
    permissions: new Set(PERMISSIONS),
    isOwn: true,
    headers: { authorization: `Bearer ${token}` },
  };
}

/** Written into the table: no operation makes a publishable key that holds `keys`, and one must be refused all the same. */
async function createCaller(
  app: TestApp,
  accountId: string,
  kind: "secret" | "publishable",
  permissions: readonly AccountPermission[],
  isOwn: boolean,
  appKeyId: string | null = null,
): Promise<MatrixCaller> {
  const [id, isAppsKey] = [uuidv7(), appKeyId !== null];
  const key = createApiKeyText(kind === "secret" ? "sk" : "pk");
  const keyCache = app.infrastructure.keyCache;
  await databaseOf(app).prisma.apiKey.create({
    data: {
      id,
      accountId,
      appKeyId,
      hash: new Uint8Array(keyCache.hash(key)),
      type: kind,
      name: "caller",
      start: startOfApiKey(key),
      permissions: [...permissions],
    },
  });
  const whose = isOwn ? "own" : "other";
  const held = permissions.length === PERMISSIONS.length ? "all" : permissions.join(", ") || "none";
  const name = `${whose} ${kind} key${isAppsKey ? " of an app" : ""} with ${held}`;
  const known = isOwn && { apiKeyId: id };
  return { name, kind, permissions: new Set(permissions), isOwn, headers: { authorization: `Bearer ${key}` }, isAppsKey, ...known };
}

/** A key that a person has granted to an app, with as much as an app may be granted. */
export function createAppsKey(app: TestApp, accountId: string): Promise<MatrixCaller> {
  return createCaller(app, accountId, "secret", ["profile", "balance", "usage"], true, uuidv7());
}
