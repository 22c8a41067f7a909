/**
 * Access: who makes a request. Both faces ask here, so that requests of nobody in particular are counted by their client
 * address wherever they arrive, before any work is done for them (decisions "Rate limits").
 */
import type { Caller } from "../context.js";
import { AppError } from "../errors.js";
import type { ApiKeys } from "./api-keys.js";
import type { RateLimits } from "./rate-limits.js";

export class Access {
  constructor(
    private readonly apiKeys: Pick<ApiKeys, "authenticate">,
    private readonly limits: RateLimits,
  ) {}

  /**
   * The caller behind a key; null is nobody. At once for a key that is known, else a promise. Throws or rejects with
   * UNAUTHORIZED for a key that is not good, and with RATE_LIMITED instead of either when there were too many.
   */
  authenticate(key: string | null, clientAddress: string): Caller | Promise<Caller> {
    try {
      const caller = this.apiKeys.authenticate(key);
      if (caller instanceof Promise) return caller.catch((error: unknown) => this.refuse(error, clientAddress));
      return caller.kind === "anonymous" ? this.limits.countAnonymous(clientAddress).then(() => caller) : caller;
    } catch (error) {
      return this.refuse(error, clientAddress);
    }
  }

  /** A wrong key is counted like none: guessing must not be cheaper. */
  private async refuse(error: unknown, clientAddress: string): Promise<never> {
    if (error instanceof AppError && error.code === "UNAUTHORIZED") await this.limits.countAnonymous(clientAddress);
    throw error;
  }
}
