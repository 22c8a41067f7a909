/**
 * Access: who makes a request. Both faces ask here, so that requests of nobody in particular are counted by their client
 * address wherever they arrive, before any work is done for them (decisions "Rate limits").
 */
import type { Caller } from "../context.js";
import { AppError } from "../errors.js";
import type { ApiKeys } from "./api-keys.js";
import type { RateLimits } from "./rate-limits.js";

/** Who is signed in, by the Cookie header of a request; nobody when it holds no session that is good. */
export interface SessionAuthenticator {
  authenticate(cookies: string | undefined): Promise<Caller>;
}

export class Access {
  constructor(
    private readonly apiKeys: Pick<ApiKeys, "authenticate">,
    private readonly sessions: SessionAuthenticator,
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

  /** For pages, which look at no key. Rejects with RATE_LIMITED when nobody in particular asks too often. */
  async identifySession(cookies: string | undefined, clientAddress: string): Promise<Caller> {
    const caller = await this.sessions.authenticate(cookies);
    if (caller.kind === "anonymous") await this.limits.countAnonymous(clientAddress);
    return caller;
  }

  /** A wrong key is counted like none: guessing must not be cheaper. */
  private async refuse(error: unknown, clientAddress: string): Promise<never> {
    if (error instanceof AppError && error.code === "UNAUTHORIZED") await this.limits.countAnonymous(clientAddress);
    throw error;
  }
}
