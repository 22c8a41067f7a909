/**
 * Seals stored values again with the newest secret, the second half of a rotation of ENCRYPTION_KEY
 * (docs/decisions/encryption-key-rotation.md). It can be interrupted and repeated, and runs beside gateways: a value that changes meanwhile
 * is left to the one who changed it.
 */
import type { Database } from "../../store/database.js";
import { type DeploymentSecrets, readRing, replaceRing, type SettingsDatabase } from "./deployment-secrets.js";
import { keepWrapOf, readWraps } from "./key-ring.js";
import { RESEAL_BATCH } from "./limits.js";
import { SecretBox } from "./secret-box.js";

type Prisma = Database["prisma"];

interface SealedRow {
  readonly id: string;
  readonly sealed: Uint8Array<ArrayBuffer>;
}

interface Counted {
  readonly count: number;
}

interface SealedColumn {
  readonly table: string;
  readonly column: string;
  /** The number of values that another key sealed. */
  count(prisma: Prisma, keyId: Uint8Array<ArrayBuffer>): Promise<Counted[]>;
  /** Rows whose value another key sealed, after an id and in the order of their ids. */
  read(prisma: Prisma, keyId: Uint8Array<ArrayBuffer>, after: string): Promise<SealedRow[]>;
  /** Writes unless the value was changed. Resolves with the number of written rows. */
  write(prisma: Prisma, row: SealedRow, sealed: Uint8Array<ArrayBuffer>): Promise<number>;
}

/** Every column that a SecretBox of the purpose `columns` seals. The key's id is the second to the fifth byte. */
const SEALED_COLUMNS: readonly SealedColumn[] = [
  {
    table: "community_model",
    column: "bearer_token",
    count: (prisma, keyId) => prisma.$queryRaw<Counted[]>`
      SELECT count(*)::int AS count FROM community_model WHERE substring(bearer_token FROM 2 FOR 4) <> ${keyId}`,
    read: (prisma, keyId, after) => prisma.$queryRaw<SealedRow[]>`
      SELECT id, bearer_token AS sealed FROM community_model
      WHERE id > ${after}::uuid AND substring(bearer_token FROM 2 FOR 4) <> ${keyId} ORDER BY id LIMIT ${RESEAL_BATCH}`,
    write: (prisma, row, sealed) => prisma.$executeRaw`
      UPDATE community_model SET bearer_token = ${sealed} WHERE id = ${row.id}::uuid AND bearer_token = ${row.sealed}`,
  },
  {
    table: "webhook_endpoint",
    column: "secret",
    count: (prisma, keyId) => prisma.$queryRaw<Counted[]>`
      SELECT count(*)::int AS count FROM webhook_endpoint WHERE substring(secret FROM 2 FOR 4) <> ${keyId}`,
    read: (prisma, keyId, after) => prisma.$queryRaw<SealedRow[]>`
      SELECT id, secret AS sealed FROM webhook_endpoint
      WHERE id > ${after}::uuid AND substring(secret FROM 2 FOR 4) <> ${keyId} ORDER BY id LIMIT ${RESEAL_BATCH}`,
    write: (prisma, row, sealed) => prisma.$executeRaw`
      UPDATE webhook_endpoint SET secret = ${sealed} WHERE id = ${row.id}::uuid AND secret = ${row.sealed}`,
  },
  {
    table: "webhook_endpoint",
    column: "previous_secret",
    count: (prisma, keyId) => prisma.$queryRaw<Counted[]>`
      SELECT count(*)::int AS count FROM webhook_endpoint WHERE substring(previous_secret FROM 2 FOR 4) <> ${keyId}`,
    read: (prisma, keyId, after) => prisma.$queryRaw<SealedRow[]>`
      SELECT id, previous_secret AS sealed FROM webhook_endpoint
      WHERE id > ${after}::uuid AND substring(previous_secret FROM 2 FOR 4) <> ${keyId} ORDER BY id LIMIT ${RESEAL_BATCH}`,
    write: (prisma, row, sealed) => prisma.$executeRaw`
      UPDATE webhook_endpoint SET previous_secret = ${sealed} WHERE id = ${row.id}::uuid AND previous_secret = ${row.sealed}`,
  },
];

const LEAST_ID = "00000000-0000-0000-0000-000000000000";

export interface ResealReport {
  readonly resealed: number;
  /** Changed meanwhile, which a repetition looks at. */
  readonly left: number;
  /** Sealed with no known secret: their owners have to state them again. */
  readonly unreadable: number;
  /** The previous ENCRYPTION_KEY no longer opens anything. */
  readonly isFinished: boolean;
}

export interface ResealOptions {
  readonly encryptionKey: string;
  readonly secrets: DeploymentSecrets;
  /** Called after each batch. */
  readonly onProgress?: (resealed: number, outdated: number) => void;
}

/** Call when every process seals with the newest secret. */
export async function reseal(
  database: Pick<Database, "prisma">,
  { encryptionKey, secrets, onProgress }: ResealOptions,
): Promise<ResealReport> {
  const box = new SecretBox(secrets.sealing("columns"));
  const { keyId } = box;
  const counted = await Promise.all(SEALED_COLUMNS.map((column) => column.count(database.prisma, keyId)));
  const outdated = counted.flat().reduce((sum, { count }) => sum + count, 0);
  const total = { resealed: 0, left: 0, unreadable: 0 };
  for (const column of SEALED_COLUMNS) {
    let after: string | undefined = LEAST_ID;
    while (after !== undefined) {
      const rows: SealedRow[] = await column.read(database.prisma, keyId, after);
      for (const row of rows) total[await resealRow(database.prisma, column, row, box)] += 1;
      if (rows.length > 0) onProgress?.(total.resealed, outdated);
      after = rows.length < RESEAL_BATCH ? undefined : rows.at(-1)?.id;
    }
  }
  const isFinished = total.left === 0 && (await dropOtherWraps(database, encryptionKey));
  return { ...total, isFinished };
}

async function resealRow(prisma: Prisma, { table, column, write }: SealedColumn, row: SealedRow, box: SecretBox) {
  const place = { table, column, rowId: row.id };
  let text: string;
  try {
    text = box.open(place, row.sealed);
  } catch {
    return "unreadable";
  }
  return (await write(prisma, row, box.seal(place, text))) > 0 ? "resealed" : "left";
}

async function dropOtherWraps(database: SettingsDatabase, encryptionKey: string): Promise<boolean> {
  const stored = await readRing(database);
  const kept = stored === null ? null : keepWrapOf(readWraps(stored), encryptionKey);
  // Another rotation may have ended meanwhile, after which this key opens nothing.
  return stored !== null && kept !== null && replaceRing(database, stored, kept);
}
