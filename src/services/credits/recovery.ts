/**
 * Recovery: holds of a dead process are settled at the metered cost, or released when nothing was delivered; its leases end.
 *
 * A process is dead when its heartbeat is old, or when a newer process runs on its DATA_DIR. Several processes may find the same hold;
 * settling is idempotent. The stored meter is at most a second old, and may be below what the dead process knew: when its own settlement
 * turns up in a spool, it corrects the charge.
 */

import type { Logger } from "pino";
import { systemClock } from "../../lib/clock.js";
import { Repeated } from "../../lib/repeated.js";
import { HEARTBEAT_DEAD_MS, HEARTBEAT_MS, RECOVERY_SWEEP_MS } from "../../limits.js";
import type { Database } from "../../store/database.js";
import type { LeaseLedger, LedgerRecord } from "../../store/ledger.js";
import { ClockDifference } from "./clock-difference.js";
import type { Leases } from "./leases.js";
import type { Settler } from "./settler.js";

const HOLDS_A_SWEEP_MAX = 1_000;

export interface ProcessIdentity {
  readonly processId: string;
  readonly instanceId: string;
}

interface AbandonedHold {
  readonly id: string;
  readonly account_id: string;
  readonly api_key_id: string | null;
  readonly paid_only: boolean;
  readonly metered_nanocredits: bigint;
  readonly record: LedgerRecord;
}

export class HoldRecovery {
  private repeated: readonly Repeated[] = [];
  private readonly clockDifference: ClockDifference;

  constructor(
    private readonly database: Database,
    private readonly settler: Settler,
    private readonly leased: {
      readonly ledger: LeaseLedger;
      readonly leases: Pick<Leases, "ids" | "noteAlive">;
      readonly claims?: { noteAlive(): void };
    },
    private readonly identity: ProcessIdentity,
    private readonly log: Logger,
  ) {
    this.clockDifference = new ClockDifference(systemClock, log);
  }

  /** Marks the predecessor on the same DATA_DIR as dead, and recovers before it resolves. */
  async start(): Promise<void> {
    const { processId, instanceId } = this.identity;
    await this.database.prisma.$transaction([
      this.database.prisma.gatewayProcess.deleteMany({ where: { instanceId } }),
      this.database.prisma.gatewayProcess.create({ data: { id: processId, instanceId } }),
    ]);
    await this.beat();
    await this.sweep();
    this.repeated = [this.repeat(HEARTBEAT_MS, () => this.beat()), this.repeat(RECOVERY_SWEEP_MS, () => this.sweep())];
  }

  /** Stops; other processes may then recover this process's holds. */
  async stop(): Promise<void> {
    await Promise.all(this.repeated.map((each) => each.close()));
    await this.database.prisma.gatewayProcess.deleteMany({ where: { id: this.identity.processId } });
  }

  /** Covers holds of dead processes, and expired ones. Returns their number. */
  async sweep(): Promise<number> {
    const leases = await this.leased.ledger.reclaim(this.leased.leases.ids, HEARTBEAT_DEAD_MS / 1000);
    if (leases > 0) this.log.warn({ leases }, "ended leases of processes that are gone");
    const holds = await this.findAbandoned(await this.findForgotten());
    await Promise.all(holds.map((hold) => this.recover(hold)));
    if (holds.length > 0) this.log.warn({ holds: holds.length }, "recovered holds that nobody answers for any more");
    return holds.length;
  }

  private async recover(hold: AbandonedHold): Promise<void> {
    const identity = { id: hold.id, accountId: hold.account_id, apiKeyId: hold.api_key_id };
    if (hold.metered_nanocredits > 0n) {
      const record: LedgerRecord = { ...hold.record, status: "cancelled", usageSource: "partial" };
      const settlement = { kind: "recover", ...identity, amount: hold.metered_nanocredits, paidOnly: hold.paid_only, record } as const;
      // The settler keeps a settlement that the ledger refuses. Its hold must still be released.
      const isSettled = await this.settler.submit(settlement).then(
        () => true,
        () => false,
      );
      // Nothing can be released while the database is unavailable: the next sweep finds the hold again.
      if ((isSettled && !this.settler.refused.has(hold.id)) || this.settler.isUnavailable) return;
    }
    await this.settler.submit({ kind: "release", ...identity });
  }

  /**
   * Finds holds in this process's name that it does not know: they were committed after a timeout, and after their release. The settler is
   * asked last, because the query includes everything that it began before.
   */
  private async findForgotten(): Promise<string[]> {
    const { processId } = this.identity;
    const own = await this.database.prisma.hold.findMany({ where: { processId }, select: { id: true } });
    return own.map(({ id }) => id).filter((id) => !this.settler.isOpen(id));
  }

  private findAbandoned(forgotten: readonly string[]): Promise<AbandonedHold[]> {
    const deadAfterSeconds = HEARTBEAT_DEAD_MS / 1000;
    return this.database.prisma.$queryRaw<AbandonedHold[]>`
      SELECT h.id, h.account_id, h.api_key_id, h.paid_only, h.metered_nanocredits, h.record
      FROM hold h LEFT JOIN gateway_process p ON p.id = h.process_id
      WHERE p.id IS NULL OR p.heartbeat_at < now() - make_interval(secs => ${deadAfterSeconds}) OR h.expires_at < now()
        OR h.id = ANY (${forgotten}::uuid[])
      ORDER BY h.id LIMIT ${HOLDS_A_SWEEP_MAX}`;
  }

  /** Restores the row when it is gone: another process may have taken a long pause for a death. */
  private async beat(): Promise<void> {
    const { processId, instanceId } = this.identity;
    await this.clockDifference.check(async () => {
      const [row] = await this.database.prisma.$queryRaw<{ readonly now: Date }[]>`
        INSERT INTO gateway_process (id, instance_id) VALUES (${processId}::uuid, ${instanceId}::uuid)
        ON CONFLICT (id) DO UPDATE SET heartbeat_at = now() RETURNING clock_timestamp() AS now`;
      if (!row) throw new Error("The database returned no row of the heartbeat.");
      return row.now;
    });
    this.leased.leases.noteAlive();
    this.leased.claims?.noteAlive();
  }

  private repeat(everyMs: number, work: () => Promise<unknown>): Repeated {
    const attempt = () => (this.settler.isUnavailable ? undefined : work());
    return new Repeated(attempt, this.log, "a periodic task of the ledger failed; it is repeated").every(everyMs);
  }
}
