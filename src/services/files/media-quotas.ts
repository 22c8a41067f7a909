/**
 * Storage quotas of accounts on the media host, and free disk space (docs/spec/media.md#quotas). A quota counts files that the account
 * uploaded first, and uploads to the blob store from the moment their address is issued, as it may be used. Bytes that another account
 * already stored count for no one again. Answers kept for repeated requests, stored responses and conversations count with their bytes, but not
 * as files.
 */
import type { RequestContext } from "../../context.js";
import { AppError, serviceUnavailable } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { type Database, type DatabaseClient, lockName } from "../../store/database.js";
import { requireAccount, requireCaller } from "../access/permissions.js";
import { DISK_LOOK_BYTES } from "./limits.js";

export interface MediaQuotaSettings {
  /** Per account. */
  readonly bytesMax: number;
  readonly filesMax: number;
  /** Bytes that must stay free on the disk. */
  readonly freeBytesMin: number;
}

export interface MediaQuota {
  readonly usedBytes: number;
  readonly limitBytes: number;
  readonly files: number;
  readonly limitFiles: number;
}

export type MediaTransaction = Pick<DatabaseClient, "$queryRaw" | "mediaObject">;

interface Used {
  readonly bytes: bigint;
  readonly files: bigint;
}

/** Reserved disk space for arriving bytes. */
export interface PromisedSpace {
  /** Passes content through; throws SERVICE_UNAVAILABLE when the disk fills up for any reason. */
  watch(content: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array>;
  /** Call when the bytes are stored, or never will be. */
  end(): void;
}

export class MediaQuotas {
  /** Reserved bytes that have not arrived. */
  private promisedBytes = 0;

  constructor(
    private readonly database: Database,
    private readonly settings: MediaQuotaSettings,
    /** Of the disk for files. */
    private readonly freeBytes: () => Promise<number>,
    private readonly clock: Clock,
  ) {}

  /** The quota of the caller's account. Any key may read it, as uploaders need to know. */
  async get(ctx: RequestContext): Promise<MediaQuota> {
    const { accountId } = requireAccount(ctx);
    const { bytes, files } = await this.usedBy(accountId, this.database.prisma);
    const { bytesMax, filesMax } = this.settings;
    return { usedBytes: Number(bytes), limitBytes: bytesMax, files: Number(files), limitFiles: filesMax };
  }

  /** Throws PAYLOAD_TOO_LARGE when a file of that size does not fit. Ignores concurrent uploads: for a reservation use `reserve`. */
  async assertRoom(accountId: string, sizeBytes: number): Promise<void> {
    this.assertFits(await this.usedBy(accountId, this.database.prisma), sizeBytes);
  }

  /** Call before generating a file of unknown size, which is then stored at any size. Throws as above and as below. */
  async assertNotFull(ctx: RequestContext): Promise<void> {
    const { accountId } = requireCaller(ctx);
    await this.assertSpace(0);
    await this.assertRoom(accountId, 1);
  }

  /** Runs `write`, which adds a file of that size, if it fits; one at a time per account. Throws as above. */
  reserve<Result>(accountId: string, sizeBytes: number, write: (transaction: MediaTransaction) => Promise<Result>): Promise<Result> {
    return this.database.prisma.$transaction(async (transaction) => {
      // Not a lock of the account's row, which charges wait for.
      await lockName(transaction, `media-quota ${accountId}`);
      this.assertFits(await this.usedBy(accountId, transaction), sizeBytes);
      return write(transaction);
    });
  }

  /** Bytes left of the quota, at least 0. */
  async bytesLeft(accountId: string): Promise<number> {
    return this.leftOf(await this.usedBy(accountId, this.database.prisma));
  }

  /** False when the disk would be too full afterwards. */
  async hasSpace(sizeBytes: number): Promise<boolean> {
    return (await this.freeBytes()) - this.promisedBytes - sizeBytes >= this.settings.freeBytesMin;
  }

  /** Reserves space for a file of at most that size, which concurrent requests see. Throws as below. */
  async promiseSpace(sizeBytes: number): Promise<PromisedSpace> {
    let left = sizeBytes;
    this.promisedBytes += left;
    const take = (bytes: number) => {
      const taken = Math.min(bytes, left);
      left -= taken;
      this.promisedBytes -= taken;
    };
    const end = () => take(left);
    try {
      await this.assertSpace(0);
    } catch (error) {
      end();
      throw error;
    }
    return { watch: (content) => this.watchSpace(content, take), end };
  }

  /** Throws SERVICE_UNAVAILABLE when the disk would be too full afterwards. */
  async assertSpace(sizeBytes: number): Promise<void> {
    if (await this.hasSpace(sizeBytes)) return;
    throw serviceUnavailable("There is no room for files at the moment.", { retryAfterSeconds: 60 });
  }

  private async *watchSpace(content: AsyncIterable<Uint8Array>, take: (bytes: number) => void): AsyncGenerator<Uint8Array> {
    let unlooked = 0;
    for await (const piece of content) {
      take(piece.byteLength);
      unlooked += piece.byteLength;
      if (unlooked >= DISK_LOOK_BYTES) {
        unlooked = 0;
        await this.assertSpace(0);
      }
      yield piece;
    }
  }

  private assertFits(used: Used, sizeBytes: number): void {
    const { bytesMax, filesMax } = this.settings;
    if (Number(used.files) >= filesMax) throw overQuota(`The account has ${used.files} files of at most ${filesMax}.`);
    const left = this.leftOf(used);
    if (sizeBytes > left) throw overQuota(`The account's files may have ${bytesMax} bytes together, of which ${left} are left.`);
  }

  private leftOf({ bytes }: Used): number {
    return Math.max(0, this.settings.bytesMax - Number(bytes));
  }

  private async usedBy(accountId: string, client: Pick<MediaTransaction, "$queryRaw">): Promise<Used> {
    const rows = await client.$queryRaw<Used[]>`
      SELECT coalesce(sum(bytes), 0)::bigint AS bytes, coalesce(sum(files), 0)::bigint AS files
      FROM (
        SELECT sum(size_bytes) AS bytes, count(*) AS files FROM media_file
        WHERE account_id = ${accountId}::uuid AND expires_at > ${this.clock.now()}
        UNION ALL
        SELECT sum(size_bytes), count(*) FROM media_object WHERE account_id = ${accountId}::uuid
        UNION ALL
        SELECT sum(size_bytes), 0 FROM idempotent_request WHERE account_id = ${accountId}::uuid AND expires_at > ${this.clock.now()}
        UNION ALL
        SELECT sum(size_bytes), 0 FROM stored_response WHERE account_id = ${accountId}::uuid AND expires_at > ${this.clock.now()}
        UNION ALL
        SELECT sum(size_bytes), 0 FROM stored_response_events WHERE account_id = ${accountId}::uuid AND expires_at > ${this.clock.now()}
        UNION ALL
        SELECT sum(size_bytes), 0 FROM conversation WHERE account_id = ${accountId}::uuid AND expires_at > ${this.clock.now()}
      ) AS kept`;
    return rows[0] as Used;
  }
}

/** Unspecified: not about money, so not 402. */
function overQuota(message: string): AppError {
  return new AppError("PAYLOAD_TOO_LARGE", `${message} Delete some, or wait until they expire.`);
}
