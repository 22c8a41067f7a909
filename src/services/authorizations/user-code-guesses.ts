/**
 * How often somebody may be wrong about a user code (RFC 8628 5.1): by account, and by client address for those who have many
 * accounts. A guess is counted before it is looked at, so that a thousand at once are not looked at all, and given back when it was
 * right. Whoever has none left is refused whether the code is right or not.
 */
import type { RequestContext } from "../../context.js";
import { rateLimited } from "../../errors.js";
import { addressGroupOf } from "../../lib/client-address.js";
import type { BucketRule, Counters } from "../../store/counters.js";
import { USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE, USER_CODE_GUESSES_PER_MINUTE } from "./limits.js";

const MINUTES_PER_HOUR = 60;

const PER_ACCOUNT = perMinute(USER_CODE_GUESSES_PER_MINUTE);
const PER_ADDRESS = perMinute(USER_CODE_GUESSES_PER_ADDRESS_PER_MINUTE);

export class UserCodeGuesses {
  constructor(private readonly counters: Counters) {}

  /** What `look` finds; null is a wrong guess. Rejects with RATE_LIMITED. */
  async count<Found>(ctx: RequestContext, accountId: string, look: () => Promise<Found | null>): Promise<Found | null> {
    const account = `user-code:account:${accountId}`;
    const address = `user-code:address:${addressGroupOf(ctx.clientAddress)}`;
    await this.take(PER_ACCOUNT, account);
    await this.take(PER_ADDRESS, address);
    const found = await look();
    if (found !== null)
      await Promise.all([this.counters.take(PER_ACCOUNT, account, -1, null), this.counters.take(PER_ADDRESS, address, -1, null)]);
    return found;
  }

  private async take(rule: BucketRule, name: string): Promise<void> {
    const wait = await this.counters.take(rule, name, 1, 1);
    if (wait > 0) throw rateLimited("Too many wrong codes. Wait a little, and look at the device again.", wait / 1000);
  }
}

function perMinute(guesses: number): BucketRule {
  return { capacity: guesses, perHour: guesses * MINUTES_PER_HOUR };
}
