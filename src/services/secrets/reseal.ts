/**
 * Seals stored values again with the newest secret, the second half of a rotation of ENCRYPTION_KEY
 * (docs/decisions/encryption-key-rotation.md). It can be interrupted and repeated, and runs beside gateways: a value that changes meanwhile
 * is left to the one who changed it.
 */
import { LOWEST_UUID } from "../../lib/ids.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import { type DeploymentSecrets, readRing, replaceRing, type SettingsDatabase } from "./deployment-secrets.js";
import { keepWrapOf, readWraps } from "./key-ring.js";
import { RESEAL_BATCH } from "./limits.js";
import { SecretBox } from "./secret-box.js";

type Client = Database["prisma"];

interface SealedRow {
  readonly id: string;
  readonly sealed: Uint8Array<ArrayBuffer>;
}

/** A column that a SecretBox of the purpose `columns` seals. The key's id is the second to the fifth byte. */
class SealedColumn {
  private readonly from: Prisma.Sql;
  private readonly value: Prisma.Sql;

  constructor(
    readonly table: string,
    readonly column: string,
  ) {
    [this.from, this.value] = [Prisma.raw(table), Prisma.raw(column)];
  }

  /** The number of values that another key sealed. */
  async count(prisma: Client, keyId: Uint8Array<ArrayBuffer>): Promise<number> {
    const [row] = await prisma.$queryRaw<{ count: number }[]>`
      SELECT count(*)::int AS count FROM ${this.from} WHERE substring(${this.value} FROM 2 FOR 4) <> ${keyId}`;
    return row?.count ?? 0;
  }

  /** Rows whose value another key sealed, after an id and in the order of their ids. */
  read(prisma: Client, keyId: Uint8Array<ArrayBuffer>, after: string): Promise<SealedRow[]> {
    return prisma.$queryRaw<SealedRow[]>`
      SELECT id, ${this.value} AS sealed FROM ${this.from}
      WHERE id > ${after}::uuid AND substring(${this.value} FROM 2 FOR 4) <> ${keyId} ORDER BY id LIMIT ${RESEAL_BATCH}`;
  }

  /** Writes unless the value was changed. Resolves with the number of written rows. */
  write(prisma: Client, row: SealedRow, sealed: Uint8Array<ArrayBuffer>): Promise<number> {
    return prisma.$executeRaw`
      UPDATE ${this.from} SET ${this.value} = ${sealed} WHERE id = ${row.id}::uuid AND ${this.value} = ${row.sealed}`;
  }
}

const SEALED_COLUMNS: readonly SealedColumn[] = [
  new SealedColumn("community_model", "bearer_token"),
  new SealedColumn("vendor_key", "secret"),
  new SealedColumn("webhook_endpoint", "secret"),
  new SealedColumn("webhook_endpoint", "previous_secret"),
  new SealedColumn("stored_response", "input"),
  new SealedColumn("stored_response", "answer"),
  new SealedColumn("stored_response_events", "events"),
  new SealedColumn("conversation", "metadata"),
  new SealedColumn("conversation_item", "content"),
];

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
  const outdated = counted.reduce((sum, count) => sum + count, 0);
  const total = { resealed: 0, left: 0, unreadable: 0 };
  for (const column of SEALED_COLUMNS) {
    let after: string | undefined = LOWEST_UUID;
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

async function resealRow(prisma: Client, column: SealedColumn, row: SealedRow, box: SecretBox) {
  const place = { table: column.table, column: column.column, rowId: row.id };
  let text: string;
  try {
    text = box.open(place, row.sealed);
  } catch {
    return "unreadable";
  }
  return (await column.write(prisma, row, box.seal(place, text))) > 0 ? "resealed" : "left";
}

async function dropOtherWraps(database: SettingsDatabase, encryptionKey: string): Promise<boolean> {
  const stored = await readRing(database);
  const kept = stored === null ? null : keepWrapOf(readWraps(stored), encryptionKey);
  // Another rotation may have ended meanwhile, after which this key opens nothing.
  return stored !== null && kept !== null && replaceRing(database, stored, kept);
}
