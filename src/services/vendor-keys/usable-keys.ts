/**
 * The vendor keys of callers: read with a credential, kept for each account, and dropped in all processes when one changes. Notes how
 * vendors take them.
 */
import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { UsableVendorKey } from "../../context.js";
import { entriesMax } from "../../lib/bounded.js";
import type { Clock } from "../../lib/clock.js";
import { KeptReads } from "../../lib/kept-reads.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { VendorKeyModel } from "../../store/generated/prisma/models.js";
import type { VendorKeyCaller, VendorKeyFinder } from "../access/vendor-key-finder.js";
import type { VendorKeyResult } from "../generation/routing/router.js";
import type { SecretBox } from "../secrets/secret-box.js";
import { VENDOR_KEY_ACCOUNTS_MAX, VENDOR_KEY_NOTE_MS, VENDOR_KEY_NOTES_MAX, VENDOR_KEYS_PER_ACCOUNT_MAX } from "./limits.js";

const SECRET_COLUMN = { table: "vendor_key", column: "secret" } as const;

export function secretPlace(rowId: string) {
  return { ...SECRET_COLUMN, rowId };
}

interface KnownKey extends UsableVendorKey {
  /** Empty: every secret key and session of the account. */
  readonly apiKeyIds: ReadonlySet<string>;
}

export interface UsableKeysDependencies {
  readonly database: Database;
  readonly box: SecretBox;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Logger;
}

export class UsableVendorKeys implements VendorKeyFinder {
  private readonly accounts = new KeptReads(VENDOR_KEY_ACCOUNTS_MAX, (accountId) => this.read(accountId));
  /** When each key was noted last, in milliseconds since 1970. */
  private readonly notedAt = new LRUCache<string, number>(entriesMax(VENDOR_KEY_NOTES_MAX));

  constructor(private readonly deps: UsableKeysDependencies) {
    const { events } = deps;
    events.listen("vendor-keys-changed", ({ accountId }) => this.accounts.forget(accountId));
    events.onDoubt(() => this.accounts.forgetAll());
  }

  async usableBy(accountId: string, { apiKeyIds, isPublic }: VendorKeyCaller): Promise<readonly UsableVendorKey[] | undefined> {
    const all = await this.accounts.get(accountId);
    const usable = all.filter(({ apiKeyIds: named }) => (named.size === 0 ? !isPublic : apiKeyIds.some((id) => named.has(id))));
    return usable.length === 0 ? undefined : usable;
  }

  /**
   * Marks a key that its vendor refuses, or removes the mark when it is accepted again. Does not wait for the database: a mark is for
   * people, and the next call makes it again.
   */
  noteUse({ id, version, isRefused }: UsableVendorKey, result: VendorKeyResult): void {
    if (isRefused === (result !== "ok")) return;
    const now = this.deps.clock.now();
    if (now.getTime() - (this.notedAt.get(id) ?? 0) < VENDOR_KEY_NOTE_MS) return;
    this.notedAt.set(id, now.getTime());
    const refusal = result === "ok" ? { refusal: null, refusedAt: null } : { refusal: result, refusedAt: now };
    this.write(id, version, refusal).catch((error: unknown) =>
      this.deps.log.warn({ err: error }, "could not note how a vendor key was taken"),
    );
  }

  /** A call by an earlier secret says nothing about the present one. */
  private async write(id: string, version: number, refusal: Pick<VendorKeyModel, "refusal" | "refusedAt">): Promise<void> {
    const { database, events } = this.deps;
    const [changed] = await database.prisma.vendorKey.updateManyAndReturn({
      where: { id, version },
      data: refusal,
      select: { accountId: true },
    });
    if (changed) events.publish("vendor-keys-changed", changed);
  }

  private async read(accountId: string): Promise<readonly KnownKey[]> {
    const rows = await this.deps.database.prisma.vendorKey.findMany({
      where: { accountId, isEnabled: true },
      orderBy: [{ createdAt: "asc" }, { id: "asc" }],
      take: VENDOR_KEYS_PER_ACCOUNT_MAX,
    });
    return rows.map((row) => this.toKnown(row));
  }

  private toKnown({ id, vendor, version, use, models, apiKeyIds, refusal, secret }: VendorKeyModel): KnownKey {
    const { box, log } = this.deps;
    const open = () => {
      try {
        return box.open(secretPlace(id), secret);
      } catch (error) {
        log.warn({ err: error, event: "vendor-key-unreadable" }, "a vendor key cannot be opened: its account has to state it again");
        return null;
      }
    };
    return { id, vendor, version, use, models, isRefused: refusal !== null, secret: open, apiKeyIds: new Set(apiKeyIds) };
  }
}
