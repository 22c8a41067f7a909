/**
 * How many bytes of request bodies a process holds at once: in all, of one account, and from one client address. A body is counted
 * from its first byte (what its head declares, else what comes of it) until its request has been answered, because as long is it held:
 * a request that waits at an upstream for minutes keeps its body. Who has used up a part of this is told to come again.
 *
 * A body that comes too slowly is given up, so that nobody keeps a place by sending nothing.
 *
 * Nothing reads a body without an allowance; `http/body.ts` and the forms of `http/uploads.ts` are all that reads.
 */
import type { Caller } from "../../context.js";
import { type AppError, invalidInput, payloadTooLarge, serviceUnavailable } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import { type Listed, Roster } from "../../lib/roster.js";
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

/** What one of those holds whose bodies are counted together. */
interface Share {
  readonly name: string;
  /** Where it is found. */
  readonly group: Group;
  bytes: number;
  /** Allowances that count here. */
  users: number;
}

/** Those who have the same part of all. */
interface Group {
  readonly bytesMax: number;
  /** Those that hold something, by their own names: an account's id, an address. */
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
  /** As declared; null when the length is not known beforehand. */
  readonly declaredBytes: number | null;
  /** What the reader takes. */
  readonly bytesMax: number;
  /** Told once when the body comes too slowly: its reader rejects with that. */
  readonly onSlow: (error: AppError) => void;
  /** A form with files, or a file. */
  readonly hasFiles?: boolean;
}

/** How slowly a body may come. */
export interface BodyPace {
  /** For so long it may be silent at its beginning. */
  readonly graceMs: number;
  /** And then it comes at this rate at least, taken over all of it. */
  readonly bytesPerSecondMin: number;
  readonly lookMs: number;
}

const PACE: BodyPace = { graceMs: BODY_GRACE_MS, bytesPerSecondMin: BODY_BYTES_PER_SECOND_MIN, lookMs: BODY_PACE_LOOK_MS };

export class BodyBudget {
  private bytes = 0;
  private readonly groups: Groups;
  /** Bodies that are still coming. */
  private readonly arriving = new Roster<BodyAllowance>();
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

  /** For the body of one request; release it when that has been answered. */
  allow(caller: Caller, clientAddress: string): BodyAllowance {
    return new BodyAllowance(this, caller, clientAddress);
  }

  /** For a body that goes on to where its place is counted, as it comes: only its pace is looked at. */
  allowPassing(): BodyAllowance {
    return new BodyAllowance(this, null, "");
  }

  /** Of all bodies that are at work. */
  get heldBytes(): number {
    return this.bytes;
  }

  /** Counts so many bytes, or throws SERVICE_UNAVAILABLE and counts nothing. */
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

  /** To be given back. */
  sharesOf(caller: Caller, clientAddress: string): readonly Share[] {
    const { accounts, addresses, publishable, publishableAtAddress, anonymous, anonymousAtAddress } = this.groups;
    const address = addressGroupOf(clientAddress);
    const at = shareOf(addresses, address);
    if (caller.kind === "anonymous") return [shareOf(anonymous, ""), shareOf(anonymousAtAddress, address), at];
    const account = shareOf(accounts, caller.accountId);
    if (caller.kind === "session" || caller.apiKeyType === "secret") return [account, at];
    return [
      account,
      // What everybody can read must not use up what the account's own keys have.
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

export class BodyAllowance implements Listed {
  private shares: readonly Share[] = [];
  private countedBytes = 0;
  private cameBytes = 0;
  private beganAt = 0;
  /** Not null while the body is coming. */
  private onSlow: BodyOptions["onSlow"] | null = null;
  /** Among those that are coming. */
  rosterPlace = -1;

  constructor(
    private readonly budget: BodyBudget,
    /** Null: nothing is counted. */
    private readonly caller: Caller | null,
    private readonly clientAddress: string,
  ) {}

  /** The body begins. Answers how many bytes it may have; throws PAYLOAD_TOO_LARGE or SERVICE_UNAVAILABLE. */
  begin({ declaredBytes, bytesMax, onSlow, hasFiles = false }: BodyOptions): number {
    if (this.caller) this.shares = this.budget.sharesOf(this.caller, this.clientAddress);
    let most = Math.min(bytesMax, bodyBytesMaxOf(this.caller, hasFiles));
    for (const { group } of this.shares) if (group.bytesMax < most) most = group.bytesMax;
    if ((declaredBytes ?? 0) > most) throw payloadTooLarge(most);
    this.count(declaredBytes ?? 0);
    if (this.onSlow === null) this.budget.expect(this);
    this.onSlow = onSlow;
    this.beganAt = performance.now();
    return most;
  }

  /** So much of it has come. Throws SERVICE_UNAVAILABLE when that was not declared and is too much for now. */
  came(bytes: number): void {
    this.cameBytes += bytes;
    if (this.cameBytes > this.countedBytes) this.count(this.cameBytes - this.countedBytes);
  }

  /** Bytes that have come so far. */
  get bytes(): number {
    return this.cameBytes;
  }

  /** All of it has come, or no more of it is read. */
  end(): void {
    if (this.onSlow === null) return;
    this.onSlow = null;
    this.budget.expectNoMore(this);
  }

  /** Nothing of it is held any more. Doing it again changes nothing. */
  release(): void {
    this.end();
    this.budget.giveBack(this.shares, this.countedBytes);
    this.countedBytes = 0;
    this.shares = [];
  }

  /** Gives the body up when it comes too slowly. */
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

function bodyBytesMaxOf(caller: Caller | null, hasFiles: boolean): number {
  if (caller?.kind === "anonymous") return ANONYMOUS_BODY_BYTES_MAX;
  const isPublishable = caller?.kind === "key" && caller.apiKeyType === "publishable";
  return isPublishable && !hasFiles ? PUBLISHABLE_BODY_BYTES_MAX : Number.POSITIVE_INFINITY;
}

/** One more is counted there. */
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
