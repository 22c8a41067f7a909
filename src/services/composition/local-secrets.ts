/** Commands against the encryption key: finishing a rotation, and the way out when the key is lost (docs/operating.md#encryption-key). */
import { basename } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { systemClock } from "../../lib/clock.js";
import { StartError } from "../../lib/start-error.js";
import { HEARTBEAT_DEAD_MS } from "../../limits.js";
import type { DatabaseClient } from "../../store/database.js";
import { type LocalDatabase, type LocalSettings, withLocalDatabase } from "../accounts/local-database.js";
import { addOwnerKey } from "../accounts/owner.js";
import { recordLocalAct } from "../audit/audit-log.js";
import { type DeploymentSecrets, hashApiKey, isOpenedBy, openSecrets, overwriteRing } from "../secrets/deployment-secrets.js";
import { type ResealReport, reseal } from "../secrets/reseal.js";
import { SecretBox } from "../secrets/secret-box.js";
import { EndpointSecrets } from "../webhooks/sender.js";

/** A transaction over every key and session of a large deployment. */
const TRANSACTION_MS = 10 * 60_000;
/** Webhook endpoints read at once. */
const ENDPOINTS_AT_ONCE = 500;

/** Of a database, or of a transaction on it. */
type Delegates = Pick<
  DatabaseClient,
  | "$queryRaw"
  | "apiKey"
  | "session"
  | "passwordLink"
  | "authorizationCode"
  | "deviceAuthorization"
  | "communityModel"
  | "webhookEndpoint"
  | "deploymentSetting"
>;

interface Rows {
  readonly prisma: Delegates;
}

export interface ResealCommand {
  readonly log: Logger;
  /** Called with sentences on the progress. */
  readonly say: (text: string) => void;
}

/** Rejects with a StartError that states the remedy. */
export function resealSecrets(settings: LocalSettings, { log, say }: ResealCommand): Promise<ResealReport> {
  return withLocalDatabase(settings, log, async ({ database, encryptionKey, keep }) => {
    const keys = { current: encryptionKey, previous: settings.encryptionKeyPrevious };
    const { secrets } = await openSecrets(database, keys, keep);
    const waitMs = secrets.settledAt - Date.now();
    if (waitMs > 0) {
      say(`Waiting ${Math.ceil(waitMs / 1000)} s, until every running gateway seals with the new secret.`);
      await sleep(waitMs);
    }
    secrets.refresh();
    const onProgress = (resealed: number, outdated: number) => say(`${resealed} of ${outdated} resealed`);
    const report = await reseal(database, { encryptionKey, secrets, onProgress });
    if (report.resealed > 0) await recordLocalAct(database.prisma, { act: "reseal_secrets", after: { ...report } });
    return report;
  });
}

/** The things that only the lost key could read or recognize, counted. */
export interface LostCounts {
  readonly apiKeys: number;
  readonly sessions: number;
  readonly passwordLinks: number;
  readonly authorizations: number;
  readonly upstreamCredentials: number;
  readonly webhookSecrets: number;
}

export interface ForgetOutcome {
  /** To be typed as `--confirm`. */
  readonly name: string;
  readonly counts: LostCounts;
  /** Accounts that can sign in with a password. */
  readonly passwords: number;
  /** The owner's new key, shown once; null: nothing was done yet. */
  readonly ownerKey: string | null;
}

/**
 * Without `confirm` counts the losses. With the name of the database, ends everything that only the lost key could read or recognize, in one
 * transaction, and makes a key ring under the current key. Accounts, balances, usage and passwords stay.
 */
export function forgetSecrets(settings: LocalSettings, confirm: string | null, log: Logger): Promise<ForgetOutcome> {
  return withLocalDatabase(settings, log, async (local) => {
    const { database, encryptionKey } = local;
    await assertIsLost(settings, local);
    const name = await nameOf(settings, database);
    const passwords = await database.prisma.signInMethod.count({ where: { providerId: "credential" } });
    if (confirm === null) return { name, passwords, counts: await countLost(database), ownerKey: null };
    if (confirm !== name) throw new StartError(`--confirm is not the name of this database, which is ${name}. Nothing was changed.`);
    await assertNoGateway(settings, database);
    const { counts, secrets } = await database.prisma.$transaction(
      async (transaction) => {
        const counts = await countLost({ prisma: transaction });
        const secrets = await overwriteRing({ prisma: transaction }, encryptionKey);
        await endLost(transaction, secrets);
        await recordLocalAct(transaction, { act: "forget_secrets", before: { ...counts } });
        return { counts, secrets };
      },
      { timeout: TRANSACTION_MS },
    );
    local.keep();
    const options = { nanocredits: settings.ownerCredits, revokesOthers: false, now: new Date() };
    const { key } = await addOwnerKey(database, local.ledger, { hash: (text) => hashApiKey(secrets.pepper, text) }, options);
    return { name, counts, passwords, ownerKey: key };
  });
}

/** A key that the database was made with is not lost: its rotation loses nothing. */
async function assertIsLost({ encryptionKeyPrevious: previous }: LocalSettings, { database, encryptionKey }: LocalDatabase): Promise<void> {
  if (await isOpenedBy(database, { current: encryptionKey, previous })) {
    throw new StartError("ENCRYPTION_KEY is the one that this database was made with: nothing is lost.");
  }
}

/** A running gateway would go on with the lost key's secrets. */
async function assertNoGateway({ databaseUrl }: LocalSettings, { prisma }: Rows): Promise<void> {
  if (databaseUrl === null) return;
  const [row] = await prisma.$queryRaw<{ count: number }[]>`
    SELECT count(*)::int AS count FROM gateway_process
    WHERE heartbeat_at >= now() - make_interval(secs => ${HEARTBEAT_DEAD_MS / 1000})`;
  if (row?.count) {
    const [gateways, them] = row.count === 1 ? ["A gateway runs", "it"] : [`${row.count} gateways run`, "them"];
    throw new StartError(
      `${gateways} on this database, or ended less than ${HEARTBEAT_DEAD_MS / 1000} s ago: stop ${them}, wait, and run this again.`,
    );
  }
}

async function nameOf({ databaseUrl, dataDir }: LocalSettings, { prisma }: Rows): Promise<string> {
  if (databaseUrl === null) return basename(dataDir);
  const [row] = await prisma.$queryRaw<{ name: string }[]>`SELECT current_database()::text AS name`;
  return row?.name ?? "";
}

async function countLost({ prisma }: Rows): Promise<LostCounts> {
  const now = new Date();
  const expiresAt = { gt: now };
  const [apiKeys, sessions, passwordLinks, codes, devices, upstreamCredentials, webhookSecrets] = await Promise.all([
    prisma.apiKey.count({ where: { revokedAt: null, OR: [{ expiresAt: null }, { expiresAt }] } }),
    prisma.session.count({ where: { expiresAt } }),
    prisma.passwordLink.count({ where: { usedAt: null, expiresAt } }),
    prisma.authorizationCode.count({ where: { usedAt: null, expiresAt } }),
    prisma.deviceAuthorization.count({ where: { apiKeyId: null, expiresAt } }),
    prisma.communityModel.count({ where: { bearerToken: { not: null } } }),
    prisma.webhookEndpoint.count(),
  ]);
  return { apiKeys, sessions, passwordLinks, authorizations: codes + devices, upstreamCredentials, webhookSecrets };
}

/**
 * Revokes, ends and deletes. Upstream credentials stay as they are: a model answers that its owner has to state its credential again.
 * Webhook endpoints get secrets that their owners have not seen, and are off until those rotate them.
 */
async function endLost(prisma: Delegates, secrets: DeploymentSecrets): Promise<void> {
  const now = new Date();
  await prisma.apiKey.updateMany({ where: { revokedAt: null }, data: { revokedAt: now } });
  await prisma.session.deleteMany();
  await prisma.passwordLink.deleteMany();
  await prisma.authorizationCode.deleteMany({ where: { usedAt: null } });
  await prisma.deviceAuthorization.deleteMany({ where: { apiKeyId: null } });
  const endpointSecrets = new EndpointSecrets(new SecretBox(secrets.sealing("columns")), systemClock);
  let after: string | undefined;
  do {
    const endpoints: { id: string }[] = await prisma.webhookEndpoint.findMany({
      ...(after !== undefined && { where: { id: { gt: after } } }),
      select: { id: true },
      orderBy: { id: "asc" },
      take: ENDPOINTS_AT_ONCE,
    });
    for (const { id } of endpoints) {
      const { sealed: secret } = endpointSecrets.create(id);
      const data = { secret, previousSecret: null, previousSecretExpiresAt: null, isEnabled: false, disabledReason: null };
      await prisma.webhookEndpoint.update({ where: { id }, data });
    }
    after = endpoints.length < ENDPOINTS_AT_ONCE ? undefined : endpoints.at(-1)?.id;
  } while (after !== undefined);
}
