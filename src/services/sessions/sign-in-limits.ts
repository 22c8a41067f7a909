/**
 * Limits of sign-in attempts (docs/spec/sessions.md#sign-in), counted before any look-up: by client address and by e-mail address. Attempts
 * beyond the limit are delayed, not refused, because a stranger who knows an e-mail address could otherwise lock its owner out: each client
 * address has its own turn every few seconds, which attempts from elsewhere do not take (docs/decisions/sign-in-slows-down.md).
 */
import { createHash } from "node:crypto";
import type { RequestContext } from "../../context.js";
import { type AppError, rateLimited } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import type { SignInPace } from "../../lib/settings.js";
import { pause } from "../../providers/free-steps.js";
import { type BucketRule, type Counters, HOUR_MS, type WindowRule } from "../../store/counters.js";
import { SIGN_IN_WAITING_MAX, SIGN_IN_WAITS_MAX } from "./limits.js";

const WINDOW_SECONDS = 60;

type Attempt = Pick<RequestContext, "clientAddress" | "signal">;

export class SignInLimits {
  private readonly waiting = new Map<string, number>();
  private waitingInAll = 0;

  constructor(
    private readonly counters: Counters,
    private readonly attemptsPerMinute: number,
    private readonly pace: SignInPace,
    private readonly sleep: (ms: number, signal: AbortSignal) => Promise<void> = pause,
  ) {}

  /**
   * Resolves when the password may be checked. Rejects with RATE_LIMITED when too many attempts wait, and with the signal's reason when the
   * client disconnects.
   */
  async countSignIn(attempt: Attempt, email: string): Promise<void> {
    const address = addressGroupOf(attempt.clientAddress);
    const person = digestOf(email);
    const { addressTurnMs, emailTurnMs } = this.pace;
    if ((await this.count("sign-in address", address)) > 0) await this.takeTurn(attempt, `sign-in:${address}`, addressTurnMs);
    if ((await this.count("sign-in email", person)) > 0) await this.takeTurn(attempt, `sign-in:${address}:${person}`, emailTurnMs);
  }

  /** Counts a password check within a session. Rejects with RATE_LIMITED, which cannot lock a signed-in person out. */
  async countPasswordCheck(accountId: string): Promise<void> {
    await this.limit("password check", accountId);
  }

  async countSignUp(clientAddress: string): Promise<void> {
    await this.limit("sign-up address", addressGroupOf(clientAddress));
  }

  async countStart(clientAddress: string): Promise<void> {
    await this.limit("sign-in elsewhere address", addressGroupOf(clientAddress));
  }

  private async limit(name: string, who: string): Promise<void> {
    const waitMs = await this.count(name, who);
    if (waitMs > 0) throw tooManyAttempts(waitMs);
  }

  /** Milliseconds until the window ends; 0 within the limit. */
  private count(name: string, who: string): Promise<number> {
    const rule: WindowRule = { name, max: this.attemptsPerMinute, seconds: WINDOW_SECONDS };
    return this.counters.count(rule, who);
  }

  /** Takes a turn in the shared counters, so that there is one for all processes of a deployment. */
  private async takeTurn(attempt: Attempt, name: string, turnMs: number): Promise<void> {
    const rule: BucketRule = { capacity: 1, perHour: Math.round(HOUR_MS / turnMs) };
    let waitMs = await this.counters.take(rule, name, 1, 1);
    if (waitMs === 0) return;
    const leave = this.enter(addressGroupOf(attempt.clientAddress), waitMs);
    try {
      for (let waits = 0; waitMs > 0; waits += 1) {
        if (waits === SIGN_IN_WAITS_MAX) throw tooManyAttempts(waitMs);
        await this.sleep(waitMs, attempt.signal);
        waitMs = await this.counters.take(rule, name, 1, 1);
      }
    } finally {
      leave();
    }
  }

  private enter(address: string, waitMs: number): () => void {
    const before = this.waiting.get(address) ?? 0;
    if (before >= this.pace.waitingPerAddressMax || this.waitingInAll >= SIGN_IN_WAITING_MAX) throw tooManyAttempts(waitMs);
    this.waiting.set(address, before + 1);
    this.waitingInAll += 1;
    return () => {
      const left = (this.waiting.get(address) ?? 1) - 1;
      if (left === 0) this.waiting.delete(address);
      else this.waiting.set(address, left);
      this.waitingInAll -= 1;
    };
  }
}

function tooManyAttempts(waitMs: number): AppError {
  return rateLimited("Too many attempts. Wait a moment, then try again.", waitMs / 1000);
}

/** Counters must not hold e-mail addresses. */
function digestOf(email: string): string {
  return createHash("sha256").update(email).digest("base64url");
}
