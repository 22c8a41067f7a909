import type { AgentRun, CallerLimit, KeyCaller, MaxCost, SessionCaller } from "../../context.js";
import type { RequestNote } from "../../lib/request-note.js";
import type { BucketName, LedgerRecord } from "../../store/ledger.js";

export interface Payer {
  readonly accountId: string;
  readonly apiKeyId: string | null;
  /** The key or an ancestor has a budget. */
  readonly hasBudget: boolean;
  /**
   * May see the account's balance. Absent: may not. An agent run never sees its caller's balance, because the agent may belong to another
   * account.
   */
  readonly seesBalance?: boolean | undefined;
  readonly run?: AgentRun | null;
}

export function payerOf(caller: KeyCaller | SessionCaller): Payer {
  const { accountId, run = null } = caller;
  if (caller.kind !== "key") return { accountId, apiKeyId: null, hasBudget: false, seesBalance: run === null, run };
  return {
    accountId,
    apiKeyId: caller.apiKeyId,
    hasBudget: caller.hasBudget,
    seesBalance: run === null && caller.permissions.has("balance"),
    run,
  };
}

export interface ChargeRequest {
  /** Id of the hold, the charge and the usage row. */
  readonly generationId: string;
  readonly payer: Payer;
  /** Nanocredits: the smallest hold. */
  readonly estimate: bigint;
  /** Nanocredits: the hold when an agent run has less than the estimate left. Absent: the estimate. */
  readonly least?: bigint | undefined;
  /**
   * Nanocredits: the hold is a tenth of the available credits, up to this, if that exceeds the estimate. Absent: the
   * estimate.
   */
  readonly most?: bigint | undefined;
  /** Nanocredits: the most of the available credits that counts for that tenth. Absent: no bound. */
  readonly freeMax?: bigint | undefined;
  readonly maxCost?: MaxCost | undefined;
  /** Limits that renew. Absent: none. */
  readonly limits?: readonly CallerLimit[] | undefined;
  /** The canonical id of the requested model, for those limits. */
  readonly model?: string | undefined;
  /** Canonical ids of further models that the caller named. Absent: none. */
  readonly otherModels?: readonly string[] | undefined;
  /** Expected tokens, for those limits. */
  readonly tokens?: number | undefined;
  /** Gets the rates of those limits. */
  readonly note?: Pick<RequestNote, "rates"> | undefined;
  /** Draws crypto and pack, never tier. */
  readonly paidOnly: boolean;
  readonly isFree: boolean;
  /** Gets a separate hold instead of a lease: it outlives its process, or others earn of its charge. */
  readonly needsOwnHold?: boolean | undefined;
  /** For recovery, should the process die; computed on demand, as most generations do not need it. */
  readonly record: LedgerRecord;
}

export interface Settlement {
  readonly chargedNanocredits: bigint;
  readonly meterSource: BucketName;
}
