/** What is asked of credits for a generation, and what it came to. */
import type { AgentRun, KeyCaller, MaxCost, SessionCaller } from "../../context.js";
import type { BucketName, LedgerRecord } from "../../store/ledger.js";

/** Who pays. */
export interface Payer {
  readonly accountId: string;
  readonly apiKeyId: string | null;
  /** The key has a budget of its own, or draws on another's. */
  readonly hasBudget: boolean;
  /** May be told what the account has. Absent: may not. An agent at work is told nothing of its caller's money: it is somebody else's. */
  readonly seesBalance?: boolean | undefined;
  /** An agent asks for it, within the bound of its run. */
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
  /** Made by the server, unique: the hold's, the charge's and the usage row's id. */
  readonly generationId: string;
  readonly payer: Payer;
  /** Nanocredits: what is held at least. */
  readonly estimate: bigint;
  /** Nanocredits: what is held instead where an agent's run has no more left of its bound. Absent: the estimate. */
  readonly least?: bigint | undefined;
  /** Nanocredits: up to this a tenth of what is free is held where that is more than the estimate. Absent: the estimate is held. */
  readonly most?: bigint | undefined;
  /** Nanocredits: what is free counts as no more than this when a tenth of it is held. Absent: no bound. */
  readonly freeMax?: bigint | undefined;
  /** What its request may be charged in all. Absent: its caller has not said. */
  readonly maxCost?: MaxCost | undefined;
  /** Draws crypto and pack, never tier. */
  readonly paidOnly: boolean;
  readonly isFree: boolean;
  /** It outlives its process: it is held by itself from the start. */
  readonly isLasting?: boolean | undefined;
  /** What is charged should nobody be there to finish it: written when it is asked for, which most generations never need. */
  readonly record: LedgerRecord;
}

export interface Settlement {
  readonly chargedNanocredits: bigint;
  readonly meterSource: BucketName;
}
