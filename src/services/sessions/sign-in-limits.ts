/** How often somebody may try to sign in: counted before anything is looked up, by where they are and by whom they say they are. */
import { createHash } from "node:crypto";
import { rateLimited } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import type { Counters, WindowRule } from "../../store/counters.js";

const WINDOW_SECONDS = 60;

export class SignInLimits {
  constructor(
    private readonly counters: Counters,
    private readonly attemptsPerMinute: number,
  ) {}

  /** Rejects with RATE_LIMITED. */
  async countSignIn(clientAddress: string, email: string): Promise<void> {
    await this.count("sign-in address", addressGroupOf(clientAddress));
    await this.count("sign-in email", digestOf(email));
  }

  /** A password is asked for in a session, too. */
  async countPasswordCheck(accountId: string): Promise<void> {
    await this.count("password check", accountId);
  }

  async countSignUp(clientAddress: string): Promise<void> {
    await this.count("sign-up address", addressGroupOf(clientAddress));
  }

  /** A way to GitHub and back. */
  async countStart(clientAddress: string): Promise<void> {
    await this.count("sign-in elsewhere address", addressGroupOf(clientAddress));
  }

  private async count(name: string, who: string): Promise<void> {
    const rule: WindowRule = { name, max: this.attemptsPerMinute, seconds: WINDOW_SECONDS };
    const waitMs = await this.counters.count(rule, who);
    if (waitMs > 0) throw rateLimited("Too many attempts. Wait a moment, then try again.", waitMs / 1000);
  }
}

/** Counters are no place for people's addresses. */
function digestOf(email: string): string {
  return createHash("sha256").update(email).digest("base64url");
}
