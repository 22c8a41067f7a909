/** A lease in its process's memory, and the reservations of single generations (leases.ts). Amounts are nanocredits. */
import { createId } from "../../lib/ids.js";
import { smaller } from "../../lib/money.js";
import type { Buckets, LeasedAmount } from "../../store/ledger.js";

export interface LeasePayer {
  readonly accountId: string;
  readonly apiKeyId: string | null;
}

/** Nanocredits of the three buckets, in the order in which charges draw them. */
export class BucketBalances implements Buckets {
  constructor(
    public tier = 0n,
    public crypto = 0n,
    public pack = 0n,
  ) {}

  get total(): bigint {
    return this.tier + this.crypto + this.pack;
  }

  add(more: Buckets): void {
    this.tier += more.tier;
    this.crypto += more.crypto;
    this.pack += more.pack;
  }

  subtract(less: Buckets): void {
    this.tier -= less.tier;
    this.crypto -= less.crypto;
    this.pack -= less.pack;
  }

  /** Draws an amount, tier before crypto before pack; null, without drawing, when there is less. `paidOnly`: nothing of the tier. */
  draw(amount: bigint, paidOnly: boolean): BucketBalances | null {
    const tier = paidOnly ? 0n : smaller(this.tier, amount);
    const crypto = smaller(this.crypto, amount - tier);
    const pack = amount - tier - crypto;
    if (pack > this.pack) return null;
    const drawn = new BucketBalances(tier, crypto, pack);
    this.subtract(drawn);
    return drawn;
  }
}

export class Lease {
  readonly id = createId();
  free = new BucketBalances();
  readonly reserved = new BucketBalances();
  /** Number of reservations, and of payments that are not confirmed. */
  reservations = 0;
  /** Payments and moves that are not confirmed as committed. */
  readonly unconfirmed = new BucketBalances();
  /** Credits available to account and key outside of the lease, at its last resize. */
  outside = 0n;
  room = 0n;
  roomTaken = 0n;
  /** The database may have a row of it. */
  isThere = false;
  /** It has payments that are not folded into the account. */
  isUnfolded = false;
  usedAt = Date.now();
  takenAt = 0;
  /** Not enlarged before this time. */
  restsUntil = 0;
  /** Grants nothing before this time, because another payer needs the credits. */
  pausedUntil = 0;
  turn: Promise<void> | null = null;
  isGiving = false;
  /** Amount that waits for an enlargement. */
  waiting = 0n;

  constructor(
    readonly payer: LeasePayer,
    /** Called when a paused lease gets credits back. */
    private readonly onSpare: (lease: Lease) => void,
  ) {}

  /** Credits of account and key that can be held in all, as far as known. */
  get holdable(): bigint {
    return this.outside + this.free.total;
  }

  /** Null when less is unreserved. */
  reserve(amount: bigint, paidOnly: boolean): Reservation | null {
    const held = this.free.draw(amount, paidOnly);
    if (!held) return null;
    this.reserved.add(held);
    this.reservations += 1;
    this.usedAt = Date.now();
    return new Reservation(this, held, paidOnly);
  }

  giveBack(held: BucketBalances): void {
    this.reserved.subtract(held);
    this.free.add(held);
    this.notifySpare();
  }

  notifySpare(): void {
    if (this.pausedUntil > 0) this.onSpare(this);
  }
}

/** The reservation of one generation. Ends by one of `release`, `pay` and `move`. */
export class Reservation {
  constructor(
    private readonly lease: Lease,
    private held: BucketBalances,
    private readonly paidOnly: boolean,
  ) {}

  get amount(): bigint {
    return this.held.total;
  }

  /** False, without a change, when the lease has less. */
  grow(amount: bigint): boolean {
    const more = this.lease.free.draw(amount, this.paidOnly);
    if (!more) return false;
    this.lease.reserved.add(more);
    this.held.add(more);
    return true;
  }

  release(): void {
    this.lease.reservations -= 1;
    this.lease.giveBack(this.held);
  }

  /** Pays an amount, drawn from buckets as if nothing else were reserved. Null, without ending, when the lease has less. */
  pay(amount: bigint): LeasedAmount | null {
    const { lease } = this;
    lease.reserved.subtract(this.held);
    lease.free.add(this.held);
    const paid = lease.free.draw(amount, this.paidOnly);
    if (!paid) {
      lease.free.subtract(this.held);
      lease.reserved.add(this.held);
      return null;
    }
    lease.unconfirmed.add(paid);
    lease.notifySpare();
    return leased(lease, paid);
  }

  /** Moves all of it from the lease to a hold of its own. */
  move(): LeasedAmount {
    const { lease, held } = this;
    lease.reserved.subtract(held);
    lease.unconfirmed.add(held);
    return leased(lease, held);
  }

  moveBack(): void {
    this.lease.unconfirmed.subtract(this.held);
    this.lease.reserved.add(this.held);
  }
}

function leased({ id: leaseId }: Lease, { tier, crypto, pack }: BucketBalances): LeasedAmount {
  return { leaseId, tier, crypto, pack };
}
