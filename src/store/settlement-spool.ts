/**
 * The settlement spool: settlements that the database could not take, on disk under DATA_DIR, one JSON document a line.
 * A line that was not written whole (the process died in it, the disk was full) was never acknowledged and is passed over;
 * each line begins with a line break of its own, so that it does not take the next one along.
 */
import { type FileHandle, mkdir, open, readFile } from "node:fs/promises";
import { join } from "node:path";
import { SPOOL_BYTES_MAX } from "../limits.js";
import type { SettlementOperation, SettleOperation } from "./ledger.js";
import { syncToDisk } from "./sync-to-disk.js";

export interface SettlementSpool {
  /** Every settlement that was appended since the last clear, in order. */
  read(): Promise<SettleOperation[]>;
  /** Resolves once it is on the disk. */
  append(operation: SettleOperation): Promise<void>;
  /** Empties the spool, unless `isAllowed` says no when it comes to it: an append may have slipped in. */
  clear(isAllowed: () => boolean): Promise<void>;
  /** Keeps a settlement that the ledger refuses, for a person to look at: it is never dropped. */
  keepRefused(operation: SettlementOperation): Promise<void>;
  close(): Promise<void>;
}

export async function openSettlementSpool(dataDir: string): Promise<SettlementSpool> {
  const directory = join(dataDir, "spool");
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, "settlements.ndjson");
  const refusedPath = join(directory, "refused.ndjson");
  const file = await open(path, "a", 0o600);
  syncToDisk(directory);
  let bytes = (await file.stat()).size;
  // Writers take turns: each waits for the one before, so that a clear never cuts a line that is being written.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = turn.then(work, work);
    turn = result.catch(() => undefined);
    return result;
  };

  return {
    read: () => inTurn(async () => parseLines(await readFile(path, "utf8"))),
    append: (operation) =>
      inTurn(async () => {
        const line = formatLine(operation);
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
    keepRefused: (operation) =>
      inTurn(async () => {
        const refused = await open(refusedPath, "a", 0o600);
        try {
          await writeDurably(refused, formatLine(operation));
        } finally {
          await refused.close();
        }
      }),
    close: () => inTurn(() => file.close()),
  };
}

async function writeDurably(file: FileHandle, line: Buffer): Promise<void> {
  await file.appendFile(line);
  await file.datasync();
}

function formatLine(operation: SettlementOperation): Buffer {
  return Buffer.from(`\n${JSON.stringify({ ...operation, amount: operation.amount.toString() })}\n`);
}

function parseLines(text: string): SettleOperation[] {
  const operations: SettleOperation[] = [];
  for (const line of text.split("\n")) {
    const stored = parseLine(line);
    if (stored) operations.push({ ...stored, amount: BigInt(stored.amount) });
  }
  return operations;
}

function parseLine(line: string): (Omit<SettleOperation, "amount"> & { readonly amount: string }) | null {
  try {
    return line === "" ? null : JSON.parse(line);
  } catch {
    return null;
  }
}
