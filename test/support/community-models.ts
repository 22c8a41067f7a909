/** Registered models and their owners, written into the database as they would be found there: nothing checks them before. */
import { randomUUID } from "node:crypto";
import { v7 as uuidv7 } from "uuid";
import { createApiKeyText, startOfApiKey } from "../../src/lib/api-key-format.js";
import type { CommunityDirectory } from "../../src/services/community-models/directory.js";
import type { ModelHealthRecords } from "../../src/services/community-models/health.js";
import { communityModelId } from "../../src/services/community-models/record.js";
import type { Prisma } from "../../src/store/generated/prisma/client.js";
import type { BucketName } from "../../src/store/ledger.js";
import type { TestApp } from "./app.js";
import { createTestLedger } from "./ledger.js";
import { secretBoxOf } from "./secrets.js";

export interface Member {
  readonly accountId: string;
  readonly handle: string;
  /** Of every permission. */
  readonly key: string;
  readonly keyId: string;
}

export interface RegisteredRow {
  /** The row's. */
  readonly id: string;
  /** Callable: `community/<handle>/<name>`. */
  readonly modelId: string;
}

/** What a row may state beside its owner; a credential is given in clear, and sealed. */
export type RegisteredFields = Partial<Omit<Prisma.CommunityModelUncheckedCreateInput, "id" | "accountId" | "bearerToken">> & {
  readonly bearerToken?: string | null;
};

export function directoryOf(app: TestApp): CommunityDirectory {
  return app.infrastructure.communityModels;
}

/** An account with a secret key, and credits in a bucket of it. */
export async function createMember(
  app: TestApp,
  { handle = `member-${randomUUID().slice(0, 8)}`, credits = 10, bucket = "pack" as BucketName } = {},
): Promise<Member> {
  const { database } = app;
  const [accountId, keyId, key] = [uuidv7(), uuidv7(), createApiKeyText("sk")];
  const keys = app.infrastructure.keyCache;
  const apiKey = {
    id: keyId,
    hash: new Uint8Array(keys.hash(key)),
    type: "secret" as const,
    name: handle,
    start: startOfApiKey(key),
    permissions: ["profile", "balance", "usage", "keys"],
  };
  await database.prisma.account.create({ data: { id: accountId, handle, isPublisher: true, apiKeys: { create: apiKey } } });
  if (credits > 0) {
    const amount = BigInt(Math.round(credits * 1e9));
    await createTestLedger(database).grant({ id: randomUUID(), accountId, bucket, amount, note: null });
  }
  return { accountId, handle, key, keyId };
}

/** A text model at the app's own upstream, private and free unless stated otherwise. Callable when this resolves. */
export async function registerModel(app: TestApp, owner: Member, fields: RegisteredFields = {}): Promise<RegisteredRow> {
  const { database } = app;
  const box = secretBoxOf(app);
  const id = uuidv7();
  const { bearerToken = "upstream-secret", name = `model-${id.slice(-6)}`, ...stated } = fields;
  const place = { table: "community_model", rowId: id, column: "bearer_token" };
  const data = {
    id,
    accountId: owner.accountId,
    type: "proxy" as const,
    name,
    title: name,
    inputModalities: ["text"],
    outputModalities: ["text"],
    api: "chat_completions" as const,
    url: `${app.upstream.baseUrl}/chat/completions`,
    upstreamModel: `upstream-${name}`,
    ...stated,
    ...(bearerToken !== null && { bearerToken: box.seal(place, bearerToken) }),
  };
  await database.prisma.communityModel.create({ data });
  await announce(app, owner, id);
  return { id, modelId: communityModelId(owner.handle, name) };
}

/** Changes the row as the repository would, and waits until it is called as it is now. */
export async function changeModel(app: TestApp, owner: Member, id: string, data: Prisma.CommunityModelUncheckedUpdateInput): Promise<void> {
  await app.database.prisma.communityModel.update({ where: { id }, data });
  await announce(app, owner, id);
}

export async function deleteModel(app: TestApp, owner: Member, id: string): Promise<void> {
  await app.database.prisma.communityModel.delete({ where: { id } });
  await announce(app, owner, id);
}

async function announce(app: TestApp, { accountId }: Member, modelId: string): Promise<void> {
  app.infrastructure.events.publish("community-model-changed", { accountId, modelId, change: "updated" });
  await directoryOf(app).upToDate();
}

/** The counters of the calls, which are stored at intervals: `flush` stores them now. */
export function healthOf(app: TestApp): ModelHealthRecords {
  return app.infrastructure.modelHealth;
}
