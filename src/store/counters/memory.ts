/** Counters of one process, bounded in number: the one that was not asked for longest goes first. */
import { LRUCache } from "lru-cache";
import { RateLimiterMemory, RateLimiterRes } from "rate-limiter-flexible";
import type { Clock } from "../../lib/clock.js";
import { COUNTERS_MAX } from "../../limits.js";
import type { BucketRule, Counters, WindowRule } from "../counters.js";
import { type Bucket, fullBucket, refill, take } from "./bucket.js";

export class MemoryCounters implements Counters {
  private readonly windows = new Map<string, MemoryWindow>();
  private readonly buckets = new LRUCache<string, Bucket>({ max: COUNTERS_MAX });

  constructor(private readonly clock: Clock) {}

  count(rule: WindowRule, name: string): Promise<number> {
    let window = this.windows.get(rule.name);
    if (!window) {
      window = new MemoryWindow(rule);
      this.windows.set(rule.name, window);
    }
    return window.count(name);
  }

  async take(rule: BucketRule, name: string, units: number, needed: number | null): Promise<number> {
    const now = this.clock.now().getTime();
    let bucket = this.buckets.get(name);
    if (!bucket) {
      bucket = fullBucket(rule, now);
      this.buckets.set(name, bucket);
    }
    refill(bucket, rule, now);
    return take(bucket, rule, units, needed);
  }

  close(): void {
    for (const window of this.windows.values()) window.clear();
    this.buckets.clear();
  }
}

/** The library forgets a name when its window is over; the list beside it bounds how many there are until then. */
class MemoryWindow {
  private readonly limiter: RateLimiterMemory;
  private readonly names = new LRUCache<string, true>({
    max: COUNTERS_MAX,
    dispose: (_, name, reason) => {
      if (reason !== "set") void this.limiter.delete(name);
    },
  });

  constructor({ name, max, seconds }: WindowRule) {
    this.limiter = new RateLimiterMemory({ keyPrefix: name, points: max, duration: seconds });
  }

  count(name: string): Promise<number> {
    this.names.set(name, true);
    return toWait(this.limiter.consume(name));
  }

  clear(): void {
    this.names.clear();
  }
}

/** The library rejects with its findings when there were too many, and with an Error when it could not count. */
export async function toWait(counted: Promise<RateLimiterRes>): Promise<number> {
  try {
    await counted;
    return 0;
  } catch (finding) {
    if (finding instanceof RateLimiterRes) return Math.max(1, finding.msBeforeNext);
    throw finding;
  }
}
