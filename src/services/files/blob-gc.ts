/**
 * Deletes expired files, and blobs without a row, left by processes that died between the two writes. Processes may run it concurrently;
 * each has its own blobs.
 */

import type { Logger } from "pino";
import type { Clock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import type { BlobInfo, BlobStore } from "../../store/blobs.js";
import { EXPIRY_SWEEP_MS, ORPHAN_AGE_MS, ORPHAN_SWEEP_MS } from "./limits.js";

const LOOKED_UP_AT_ONCE = 500;

/** A writer of blobs, which knows the ones in use. */
export interface BlobOwner {
  /** The first part of the keys. */
  readonly folder: string;
  findNamed(keys: readonly string[]): Promise<ReadonlySet<string>>;
  /** Deletes expired files; absent: done elsewhere. */
  readonly sweep?: () => Promise<number>;
}

export class BlobGc {
  private readonly sweeps: Repeated;
  private orphansSweptAt = 0;

  constructor(
    private readonly blobs: BlobStore,
    private readonly owners: readonly BlobOwner[],
    private readonly clock: Clock,
    private readonly log: Logger,
    /** Expiring things without blobs. */
    private readonly others: readonly { sweep(): Promise<number> }[] = [],
  ) {
    this.sweeps = new Repeated(() => this.run(), log, "could not remove what has expired; it is tried again");
  }

  start(): void {
    this.sweeps.every(EXPIRY_SWEEP_MS);
  }

  stop(): Promise<void> {
    return this.sweeps.close();
  }

  async sweepExpired(): Promise<number> {
    let removed = 0;
    for (const owner of [...this.owners, ...this.others]) removed += (await owner.sweep?.()) ?? 0;
    return removed;
  }

  async sweepOrphans(): Promise<number> {
    let removed = 0;
    for (const owner of this.owners) {
      for await (const old of this.oldBlobs(owner.folder)) removed += await this.removeUnnamed(owner, old);
    }
    return removed;
  }

  private async run(): Promise<void> {
    await this.sweepExpired();
    if (performance.now() - this.orphansSweptAt < ORPHAN_SWEEP_MS && this.orphansSweptAt > 0) return;
    this.orphansSweptAt = performance.now();
    const orphans = await this.sweepOrphans();
    if (orphans > 0) this.log.warn({ blobs: orphans }, "removed blobs that nothing refers to");
  }

  /** Yields batches. Young blobs are skipped, because a blob is written before its row. */
  private async *oldBlobs(folder: string): AsyncGenerator<string[]> {
    let keys: string[] = [];
    for await (const blob of this.blobs.list(folder)) {
      if (this.isYoung(blob)) continue;
      keys.push(blob.key);
      if (keys.length < LOOKED_UP_AT_ONCE) continue;
      yield keys;
      keys = [];
    }
    if (keys.length > 0) yield keys;
  }

  private async removeUnnamed(owner: BlobOwner, keys: readonly string[]): Promise<number> {
    const named = await owner.findNamed(keys);
    let removed = 0;
    for (const key of keys.filter((candidate) => !named.has(candidate))) {
      const blob = await this.blobs.head(key);
      // Written again meanwhile, so it is in use.
      if (!blob || this.isYoung(blob)) continue;
      await this.blobs.delete(key);
      removed += 1;
    }
    return removed;
  }

  private isYoung({ writtenAt }: BlobInfo): boolean {
    return this.clock.now().getTime() - writtenAt.getTime() < ORPHAN_AGE_MS;
  }
}
