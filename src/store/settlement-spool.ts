/**
 * The settlement spool: settlements that the database could not take, on disk under DATA_DIR, one JSON document a line. An incomplete line
 * (the process died, the disk was full) was never acknowledged and is skipped; each line starts with its own line break, so that it does
 * not corrupt the next.
 *
 * A separate file has settlements that the database refuses, which are retried until committed.
 */
import { type FileHandle, mkdir, open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { SPOOL_BYTES_MAX } from "../limits.js";
import type { BucketName, LeasedAmount, SettlementOperation, SettleOperation } from "./ledger.js";
import { syncToDisk } from "./sync-to-disk.js";

export interface RefusedSettlement {
  readonly operation: SettlementOperation;
  /** ISO 8601. */
  readonly refusedAt: string;
  /** The database's message. */
  readonly reason: string;
}

export interface SettlementSpool {
  /** Settlements appended since the last clear, in order. */
  read(): Promise<SettleOperation[]>;
  /** Resolves once it is on disk. */
  append(operation: SettleOperation): Promise<void>;
  /** Empties the spool, unless `isAllowed` then returns false, because of a concurrent append. */
  clear(isAllowed: () => boolean): Promise<void>;
  /** All refused settlements; of two with one id the later. */
  readRefused(): Promise<RefusedSettlement[]>;
  /** Resolves once it is on disk. */
  keepRefused(refused: RefusedSettlement): Promise<void>;
  /** Replaces all refused settlements by the result of `left`, called when it is written. */
  replaceRefused(left: () => readonly RefusedSettlement[]): Promise<void>;
  /** Bytes of the two files on disk. */
  sizes(): Promise<{ readonly settlements: number; readonly refused: number }>;
  close(): Promise<void>;
}

const FOLDER = "spool";
const SETTLEMENTS = "settlements.ndjson";
const REFUSED = "refused.ndjson";

/** Whether a dead process left settlements in its directory's spool. */
export async function hasSettlements(ownPath: string): Promise<boolean> {
  const sizes = await Promise.all([SETTLEMENTS, REFUSED].map((name) => sizeIfThere(join(ownPath, FOLDER, name))));
  return sizes.some((bytes) => bytes > 0);
}

/**
 * Moves a dead process's spool from `from` to `into`, which must not be open. Interrupted, both have it: repeating a settlement changes
 * nothing.
 */
export async function adoptSettlements(from: string, into: string): Promise<void> {
  for (const name of [SETTLEMENTS, REFUSED]) {
    const left = join(from, FOLDER, name);
    const lines = await readIfThere(left);
    if (lines === "") continue;
    await mkdir(join(into, FOLDER), { recursive: true, mode: 0o700 });
    const file = await open(join(into, FOLDER, name), "a", 0o600);
    try {
      await writeDurably(file, Buffer.from(`\n${lines}\n`));
    } finally {
      await file.close();
    }
    syncToDisk(join(into, FOLDER));
    await rm(left);
  }
}

/** `ownPath`: a directory that no other process writes to. */
export async function openSettlementSpool(ownPath: string): Promise<SettlementSpool> {
  const directory = join(ownPath, FOLDER);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, SETTLEMENTS);
  const refusedPath = join(directory, REFUSED);
  const file = await open(path, "a", 0o600);
  syncToDisk(directory);
  let bytes = (await file.stat()).size;
  // Writes run one after another, so that a clear never cuts a line being written.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = turn.then(work, work);
    turn = result.catch(() => undefined);
    return result;
  };

  return {
    read: () => inTurn(async () => parseLines(await readFile(path, "utf8")).map(toSettlement)),
    append: (operation) =>
      inTurn(async () => {
        const line = formatLine(operation, {});
        if (bytes + line.length > SPOOL_BYTES_MAX) throw new Error(`The settlement spool is full (${SPOOL_BYTES_MAX} bytes)`);
        bytes += line.length;
        await writeDurably(file, line);
      }),
    clear: (isAllowed) =>
      inTurn(async () => {
        if (bytes === 0 || !isAllowed()) return;
        await file.truncate(0);
        bytes = 0;
      }),
    readRefused: () => inTurn(async () => parseLines(await readIfThere(refusedPath)).map(toRefused)),
    keepRefused: (refused) =>
      inTurn(async () => {
        const line = formatRefused(refused);
        const kept = await open(refusedPath, "a", 0o600);
        try {
          if ((await kept.stat()).size + line.length > SPOOL_BYTES_MAX) {
            throw new Error(`The file of refused settlements is full (${SPOOL_BYTES_MAX} bytes)`);
          }
          await writeDurably(kept, line);
        } finally {
          await kept.close();
        }
      }),
    replaceRefused: (left) =>
      inTurn(async () => {
        const lines = left().map(formatRefused);
        const next = await open(`${refusedPath}.next`, "w", 0o600);
        try {
          await writeDurably(next, Buffer.concat(lines));
        } finally {
          await next.close();
        }
        await rename(`${refusedPath}.next`, refusedPath);
        syncToDisk(directory);
      }),
    sizes: async () => ({ settlements: bytes, refused: await sizeIfThere(refusedPath) }),
    close: () => inTurn(() => file.close()),
  };
}

async function writeDurably(file: FileHandle, line: Buffer): Promise<void> {
  await file.appendFile(line);
  await file.datasync();
}

function formatLine(operation: SettlementOperation, more: object): Buffer {
  return Buffer.from(
    `\n${JSON.stringify({ ...operation, ...more }, (_, value) => (typeof value === "bigint" ? value.toString() : value))}\n`,
  );
}

function formatRefused({ operation, refusedAt, reason }: RefusedSettlement): Buffer {
  return formatLine(operation, { refusedAt, reason });
}

type StoredLine = Omit<SettleOperation, "kind" | "amount" | "lease"> & {
  readonly kind: SettlementOperation["kind"];
  readonly amount: string;
  readonly lease?: Readonly<Record<"leaseId" | BucketName, string>>;
  /** Refused ones only; the earliest had neither. */
  readonly refusedAt?: string;
  readonly reason?: string;
};

function toSettlement({ kind: _, refusedAt: __, reason: ___, amount, lease, ...stored }: StoredLine): SettleOperation {
  return { ...stored, kind: "settle", amount: BigInt(amount), ...(lease && { lease: toLeasedAmount(lease) }) };
}

function toLeasedAmount({ leaseId, tier, crypto, pack }: NonNullable<StoredLine["lease"]>): LeasedAmount {
  return { leaseId, tier: BigInt(tier), crypto: BigInt(crypto), pack: BigInt(pack) };
}

function toRefused(line: StoredLine): RefusedSettlement {
  const operation: SettlementOperation = { ...toSettlement(line), kind: line.kind };
  return { operation, refusedAt: line.refusedAt ?? new Date().toISOString(), reason: line.reason ?? "" };
}

function parseLines(text: string): StoredLine[] {
  return text.split("\n").flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): StoredLine | null {
  try {
    return line === "" ? null : JSON.parse(line);
  } catch {
    return null;
  }
}

async function readIfThere(path: string): Promise<string> {
  return readFile(path, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return "";
    throw error;
  });
}

async function sizeIfThere(path: string): Promise<number> {
  return stat(path).then(
    ({ size }) => size,
    (error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return 0;
      throw error;
    },
  );
}
