/** Bounds concurrent runs per owner and in all; others wait in order of arrival. */
import { rateLimited, serviceUnavailable } from "../../../errors.js";

export interface SlotBounds {
  readonly runsMax: number;
  readonly runsPerOwnerMax: number;
  readonly waitingMax: number;
  readonly waitingPerOwnerMax: number;
}

interface Waiting {
  readonly owner: string;
  readonly go: () => void;
}

export class RunSlots {
  private readonly running = new Map<string, number>();
  private runs = 0;
  private waiting: Waiting[] = [];

  constructor(private readonly bounds: SlotBounds) {}

  /**
   * Resolves with the function that frees the slot, to be called once. Rejects with RATE_LIMITED when too many of the owner's runs wait,
   * SERVICE_UNAVAILABLE when too many wait in all, or the signal's reason.
   */
  async take(owner: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted();
    if (!this.hasTurn(owner)) await this.wait(owner, signal);
    else this.begin(owner);
    return () => this.giveBack(owner);
  }

  private wait(owner: string, signal: AbortSignal): Promise<void> {
    const ofOwner = this.waiting.filter((each) => each.owner === owner).length;
    if (ofOwner >= this.bounds.waitingPerOwnerMax) throw rateLimited("Too many runs of this owner's agents wait for their turn.", 1);
    if (this.waiting.length >= this.bounds.waitingMax) throw serviceUnavailable("Too many runs of agents wait for their turn.");
    return new Promise((resolve, reject) => {
      const waiting: Waiting = {
        owner,
        go: () => {
          signal.removeEventListener("abort", leave);
          this.begin(owner);
          resolve();
        },
      };
      const leave = () => {
        this.waiting = this.waiting.filter((each) => each !== waiting);
        reject(signal.reason);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.waiting.push(waiting);
    });
  }

  private giveBack(owner: string): void {
    this.runs -= 1;
    const left = (this.running.get(owner) ?? 1) - 1;
    if (left === 0) this.running.delete(owner);
    else this.running.set(owner, left);
    const next = this.waiting.find((each) => this.hasTurn(each.owner));
    if (!next) return;
    this.waiting = this.waiting.filter((each) => each !== next);
    next.go();
  }

  private begin(owner: string): void {
    this.runs += 1;
    this.running.set(owner, (this.running.get(owner) ?? 0) + 1);
  }

  private hasTurn(owner: string): boolean {
    return this.runs < this.bounds.runsMax && (this.running.get(owner) ?? 0) < this.bounds.runsPerOwnerMax;
  }
}
