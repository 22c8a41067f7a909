/** A lease in its process's memory, and what single generations have reserved of it (leases.ts). Amounts are nanocredits. */
import { createId } from "../../lib/ids.js";
import { smaller } from "../../lib/money.js";
import type { Buckets, LeasedAmount } from "../../store/ledger.js";

export interface LeasePayer {
  readonly accountId: string;
  readonly apiKeyId: string | null;
}

/** Nanocredits of the three buckets together, in the order in which charges draw them. */
export class Purse implements Buckets {
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

  /** So much of it, tier before crypto before pack; null, and nothing is drawn, when there is less. `paidOnly`: nothing of the tier. */
  draw(amount: bigint, paidOnly: boolean): Purse | null {
    const tier = paidOnly ? 0n : smaller(this.tier, amount);
    const crypto = smaller(this.crypto, amount - tier);
    const pack = amount - tier - crypto;
    if (pack > this.pack) return null;
    const drawn = new Purse(tier, crypto, pack);
    this.subtract(drawn);
    return drawn;
  }
}

/** What a process has set aside of an account, and of a key's budget. Amounts are nanocredits. */
export class Lease {
  readonly id = createId();
  /** What nothing is reserved of. */
  free = new Purse();
  readonly reserved = new Purse();
  /** How many have reserved it, or paid out of it what is not known to be committed. */
  reservations = 0;
  /** What is paid or moved, and not known to be committed. */
  readonly unconfirmed = new Purse();
  /** What account and key could still hold beside, when the lease was last made larger or smaller. */
  outside = 0n;
  /** What is to be free of it when it is made larger. */
  room = 0n;
  /** What was free of it then. */
  roomTaken = 0n;
  /** The database may have a row of it. */
  isThere = false;
  /** It has paid what is not folded yet. */
  isUnfolded = false;
  usedAt = Date.now();
  takenAt = 0;
  /** It is not made larger before. */
  restsUntil = 0;
  /** It grants nothing before: somebody has asked for it. */
  pausedUntil = 0;
  /** What is under way between it and the database. */
  turn: Promise<void> | null = null;
  /** It is about to be given back. */
  isGiving = false;
  /** What waits for it to be made larger. */
  waiting = 0n;

  constructor(
    readonly payer: LeasePayer,
    /** Called when something was given back to one that is paused. */
    private readonly onSpare: (lease: Lease) => void,
  ) {}

  /** What can be held of the account and the key in all, as far as is known. */
  get holdable(): bigint {
    return this.outside + this.free.total;
  }

  /** Null when there is not as much. */
  reserve(amount: bigint, paidOnly: boolean): Reservation | null {
    const held = this.free.draw(amount, paidOnly);
    if (!held) return null;
    this.reserved.add(held);
    this.reservations += 1;
    this.usedAt = Date.now();
    return new Reservation(this, held, paidOnly);
  }

  giveBack(held: Purse): void {
    this.reserved.subtract(held);
    this.free.add(held);
    this.tellSpare();
  }

  /** Something of it may be free that somebody has asked for. */
  tellSpare(): void {
    if (this.pausedUntil > 0) this.onSpare(this);
  }
}

/** What one generation has reserved of a lease. It ends by one of `release`, `pay` and `move`. */
export class Reservation {
  constructor(
    private readonly lease: Lease,
    private held: Purse,
    private readonly paidOnly: boolean,
  ) {}

  get amount(): bigint {
    return this.held.total;
  }

  /** So much more, or nothing and false. */
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

  /** What of which bucket pays for so much, as it would be drawn with nothing of it reserved. Null, and it stays reserved, when the lease has less. */
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
    lease.tellSpare();
    return leased(lease, paid);
  }

  /** All of it leaves the lease, to be a hold of its own. */
  move(): LeasedAmount {
    const { lease, held } = this;
    lease.reserved.subtract(held);
    lease.unconfirmed.add(held);
    return leased(lease, held);
  }

  /** It could not be moved, and has not been. */
  moveBack(): void {
    this.lease.unconfirmed.subtract(this.held);
    this.lease.reserved.add(this.held);
  }
}

function leased({ id: leaseId }: Lease, { tier, crypto, pack }: Purse): LeasedAmount {
  return { leaseId, tier, crypto, pack };
}
