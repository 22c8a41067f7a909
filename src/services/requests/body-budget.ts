/**
 * Bounds the bytes of request bodies that a process holds at once: in all, per account, and per client address. A body counts from its
 * first byte (the declared length, else bytes received) until its request is answered, because it is held that long. A request beyond a
 * share is refused with a retry time.
 *
 * A body that arrives too slowly is refused, so that idle uploads hold no place.
 *
 * Every body is read under an allowance, by `http/body.ts` and the forms of `http/uploads.ts`.
 */
import type { Caller } from "../../context.js";
import { type AppError, invalidInput, payloadTooLarge, serviceUnavailable } from "../../errors.js";
import { type Indexed, IndexedSet } from "../../fast/indexed-set.js";
import { addressGroupOf } from "../../lib/client-address.js";
import {
  ACCOUNT_BODIES_PART,
  ADDRESS_BODIES_PART,
  ANONYMOUS_ADDRESS_BODIES_PART,
  ANONYMOUS_BODIES_PART,
  ANONYMOUS_BODY_BYTES_MAX,
  BODY_BYTES_PER_SECOND_MIN,
  BODY_GRACE_MS,
  BODY_PACE_LOOK_MS,
  PUBLISHABLE_ADDRESS_BODIES_PART,
  PUBLISHABLE_BODIES_PART,
  PUBLISHABLE_BODY_BYTES_MAX,
} from "./limits.js";

const RETRY_AFTER_SECONDS = 2;

/** Bytes held by bodies that are counted together. */
interface Share {
  readonly name: string;
  /** Where it is found. */
  readonly group: Group;
  bytes: number;
  /** Allowances that count here. */
  users: number;
}

interface Group {
  readonly bytesMax: number;
  /** Shares in use, by account id or address. */
  readonly shares: Map<string, Share>;
}

interface Groups {
  readonly accounts: Group;
  readonly addresses: Group;
  readonly publishable: Group;
  readonly publishableAtAddress: Group;
  readonly anonymous: Group;
  readonly anonymousAtAddress: Group;
}

export interface BodyOptions {
  /** The declared length; null when unknown. */
  readonly declaredBytes: number | null;
  /** The reader's own bound. */
  readonly bytesMax: number;
  /** Called once when the body arrives too slowly; its reader then rejects with the error. */
  readonly onSlow: (error: AppError) => void;
  /** A form with files, or a file. */
  readonly hasFiles?: boolean;
}

export interface BodyPace {
  /** How long it may send nothing at its beginning. */
  readonly graceMs: number;
  /** The lowest rate after that, averaged over the body. */
  readonly bytesPerSecondMin: number;
  readonly lookMs: number;
}

const PACE: BodyPace = { graceMs: BODY_GRACE_MS, bytesPerSecondMin: BODY_BYTES_PER_SECOND_MIN, lookMs: BODY_PACE_LOOK_MS };

export class BodyBudget {
  private bytes = 0;
  private readonly groups: Groups;
  private readonly arriving = new IndexedSet<BodyAllowance>();
  private timer: NodeJS.Timeout | null = null;

  constructor(
    private readonly bytesMax: number,
    private readonly pace = PACE,
  ) {
    const group = (part: number): Group => ({ bytesMax: Math.floor(bytesMax / part), shares: new Map() });
    this.groups = {
      accounts: group(ACCOUNT_BODIES_PART),
      addresses: group(ADDRESS_BODIES_PART),
      publishable: group(PUBLISHABLE_BODIES_PART),
      publishableAtAddress: group(PUBLISHABLE_ADDRESS_BODIES_PART),
      anonymous: group(ANONYMOUS_BODIES_PART),
      anonymousAtAddress: group(ANONYMOUS_ADDRESS_BODIES_PART),
    };
  }

  /** Makes the allowance of one request; release it after the answer. `anonymousBytesMax`: of a body that its signature vouches for. */
  allow(caller: Caller, clientAddress: string, anonymousBytesMax = ANONYMOUS_BODY_BYTES_MAX): BodyAllowance {
    return new BodyAllowance(this, caller, clientAddress, anonymousBytesMax);
  }

  /** For a body that is passed on as it arrives and counted elsewhere: only its pace is checked. */
  allowPassing(): BodyAllowance {
    return new BodyAllowance(this, null, "");
  }

  /** Bytes of all bodies. */
  get heldBytes(): number {
    return this.bytes;
  }

  /** Counts bytes, or throws SERVICE_UNAVAILABLE and counts nothing. */
  take(shares: readonly Share[], bytes: number): void {
    if (this.bytes + bytes > this.bytesMax) throw refusal();
    for (const share of shares) if (share.bytes + bytes > share.group.bytesMax) throw refusal();
    this.bytes += bytes;
    for (const share of shares) share.bytes += bytes;
  }

  giveBack(shares: readonly Share[], bytes: number): void {
    this.bytes -= bytes;
    for (const share of shares) {
      share.bytes -= bytes;
      share.users -= 1;
      if (share.users === 0) share.group.shares.delete(share.name);
    }
  }

  sharesOf(caller: Caller, clientAddress: string): readonly Share[] {
    const { accounts, addresses, publishable, publishableAtAddress, anonymous, anonymousAtAddress } = this.groups;
    const address = addressGroupOf(clientAddress);
    const at = shareOf(addresses, address);
    if (caller.kind === "anonymous") return [shareOf(anonymous, ""), shareOf(anonymousAtAddress, address), at];
    const account = shareOf(accounts, caller.accountId);
    if (caller.kind === "session" || caller.apiKeyType === "secret") return [account, at];
    return [
      account,
      // Publishable keys are public, so they must not use up the share of the account's secret keys.
      shareOf(publishable, caller.accountId),
      shareOf(publishableAtAddress, `${caller.apiKeyId} ${address}`),
      at,
    ];
  }

  expect(allowance: BodyAllowance): void {
    this.arriving.add(allowance);
    this.timer ??= setInterval(() => this.look(), this.pace.lookMs).unref();
  }

  expectNoMore(allowance: BodyAllowance): void {
    this.arriving.delete(allowance);
  }

  private look(): void {
    for (const allowance of this.arriving.all()) allowance.look(this.pace);
    if (this.arriving.size > 0 || this.timer === null) return;
    clearInterval(this.timer);
    this.timer = null;
  }
}

export class BodyAllowance implements Indexed {
  private shares: readonly Share[] = [];
  private countedBytes = 0;
  private cameBytes = 0;
  private beganAt = 0;
  /** Set while the body arrives. */
  private onSlow: BodyOptions["onSlow"] | null = null;
  /** Of `arriving`. */
  setIndex = -1;

  constructor(
    private readonly budget: BodyBudget,
    /** Null: nothing is counted. */
    private readonly caller: Caller | null,
    private readonly clientAddress: string,
    private readonly anonymousBytesMax = ANONYMOUS_BODY_BYTES_MAX,
  ) {}

  /** Begins a body and returns its bound in bytes; throws PAYLOAD_TOO_LARGE or SERVICE_UNAVAILABLE. */
  begin({ declaredBytes, bytesMax, onSlow, hasFiles = false }: BodyOptions): number {
    if (this.caller) this.shares = this.budget.sharesOf(this.caller, this.clientAddress);
    let most = Math.min(bytesMax, bodyBytesMaxOf(this.caller, hasFiles, this.anonymousBytesMax));
    for (const { group } of this.shares) if (group.bytesMax < most) most = group.bytesMax;
    if ((declaredBytes ?? 0) > most) throw payloadTooLarge(most);
    this.count(declaredBytes ?? 0);
    if (this.onSlow === null) this.budget.expect(this);
    this.onSlow = onSlow;
    this.beganAt = performance.now();
    return most;
  }

  /** Counts received bytes. Throws SERVICE_UNAVAILABLE when they were not declared and exceed a share. */
  came(bytes: number): void {
    this.cameBytes += bytes;
    if (this.cameBytes > this.countedBytes) this.count(this.cameBytes - this.countedBytes);
  }

  /** Bytes that have come so far. */
  get bytes(): number {
    return this.cameBytes;
  }

  /** The body is complete, or no longer read. */
  end(): void {
    if (this.onSlow === null) return;
    this.onSlow = null;
    this.budget.expectNoMore(this);
  }

  /** Releases the bytes; idempotent. */
  release(): void {
    this.end();
    this.budget.giveBack(this.shares, this.countedBytes);
    this.countedBytes = 0;
    this.shares = [];
  }

  /** Refuses the body when it arrives too slowly. */
  look({ graceMs, bytesPerSecondMin }: BodyPace): void {
    const elapsedMs = performance.now() - this.beganAt - graceMs;
    if (elapsedMs <= 0 || this.cameBytes * 1000 >= elapsedMs * bytesPerSecondMin) return;
    const { onSlow } = this;
    this.end();
    onSlow?.(tooSlow());
  }

  private count(bytes: number): void {
    if (!this.caller || bytes === 0) return;
    this.budget.take(this.shares, bytes);
    this.countedBytes += bytes;
  }
}

function bodyBytesMaxOf(caller: Caller | null, hasFiles: boolean, anonymousBytesMax: number): number {
  if (caller?.kind === "anonymous") return anonymousBytesMax;
  const isPublishable = caller?.kind === "key" && caller.apiKeyType === "publishable";
  return isPublishable && !hasFiles ? PUBLISHABLE_BODY_BYTES_MAX : Number.POSITIVE_INFINITY;
}

function shareOf(group: Group, name: string): Share {
  let share = group.shares.get(name);
  if (share === undefined) {
    share = { name, group, bytes: 0, users: 0 };
    group.shares.set(name, share);
  }
  share.users += 1;
  return share;
}

function refusal(): AppError {
  const message = "Too many bytes of requests are at work at the moment: send fewer at the same time, or smaller ones.";
  return serviceUnavailable(message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}

function tooSlow(): AppError {
  return invalidInput("The request's body came too slowly.");
}
