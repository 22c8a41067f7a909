/**
 * Counters shared through Redis. During an outage each process counts by itself: limits are then multiplied by the number of processes, and
 * no request fails or waits.
 */
import { Redis } from "ioredis";
import type { Logger } from "pino";
import { RateLimiterRedis } from "rate-limiter-flexible";
import {
  BUCKET_UNITS_MAX,
  type BucketHold,
  type BucketRule,
  type Counters,
  HELD_RETRY_MS,
  HOUR_MS,
  REFILL_MS_MAX,
  toWait,
  type WindowRule,
} from "../counters.js";
import { OutageLog, promptOptions } from "../redis-client.js";

/** Longest wait of a request for a count. */
const ANSWER_TIMEOUT_MS = 250;
/** Redis is not called for this long after a missing answer. */
const PAUSE_MS = 1_000;

/** Unspecified: expired holds ended by one call. */
const EXPIRED_A_CALL_MAX = 100;

/**
 * `take` of store/counters.ts, in one step and by Redis's clock, so that processes agree. The first key is the bucket, with its holds by
 * id; the second sorts the ids by expiry. Lua's numbers are doubles, which it writes with only 14 digits unless formatted.
 */
const TAKE_SCRIPT = `
local capacity, perHour, units = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local needed = ARGV[4] ~= '' and tonumber(ARGV[4]) or nil
local hold, ttl = ARGV[5], tonumber(ARGV[6])
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local known = redis.call('hmget', KEYS[1], 'level', 'carry', 'at', 'held')
local level = tonumber(known[1] or capacity)
local carry = tonumber(known[2] or 0)
local at = tonumber(known[3] or now)
local held = tonumber(known[4] or 0)
local elapsed = math.min(math.max(0, now - at), ${REFILL_MS_MAX})
local whole = math.floor(perHour / ${HOUR_MS})
local parts = elapsed * (perHour - whole * ${HOUR_MS}) + carry
local back = math.floor(parts / ${HOUR_MS})
level = math.min(capacity, level + elapsed * whole + back)
carry = level == capacity and 0 or parts - back * ${HOUR_MS}
local function finish(id)
  local amount = tonumber(redis.call('hget', KEYS[1], 'hold:' .. id) or 0)
  level = math.min(capacity, level + amount)
  held = held - amount
  redis.call('hdel', KEYS[1], 'hold:' .. id)
  redis.call('zrem', KEYS[2], id)
end
if held > 0 then
  for _, id in ipairs(redis.call('zrangebyscore', KEYS[2], '-inf', string.format('%.0f', now), 'limit', 0, ${EXPIRED_A_CALL_MAX})) do finish(id) end
  if hold ~= '' then finish(hold) end
end
local wait = 0
if needed and level < needed then
  wait = math.ceil((needed - level) * ${HOUR_MS} / perHour)
  if level + held >= needed then wait = math.min(wait, ${HELD_RETRY_MS}) end
else
  local left = math.max(-${BUCKET_UNITS_MAX}, level - units)
  if hold ~= '' and ttl > 0 and level > left then
    held = held + level - left
    redis.call('hset', KEYS[1], 'hold:' .. hold, string.format('%.0f', level - left))
    redis.call('zadd', KEYS[2], string.format('%.0f', now + ttl), hold)
  end
  level = left
end
redis.call('hset', KEYS[1], 'level', string.format('%.0f', level), 'carry', string.format('%.0f', carry), 'at', string.format('%.0f', math.max(at, now)), 'held', string.format('%.0f', held))
local last = held > 0 and redis.call('zrange', KEYS[2], -1, -1, 'withscores')[2] or now
local idle = math.max(math.ceil((capacity - level) * ${HOUR_MS} / perHour), tonumber(last) - now) + 1000
local expiry = string.format('%.0f', math.min(${REFILL_MS_MAX}, idle))
redis.call('pexpire', KEYS[1], expiry)
redis.call('pexpire', KEYS[2], expiry)
return string.format('%.0f', wait)
`;

interface CountersRedis extends Redis {
  sluiceTake(bucketKey: string, holdsKey: string, ...args: readonly string[]): Promise<string>;
}

export class RedisCounters implements Counters {
  private readonly redis: CountersRedis;
  private readonly prefix: string;
  private readonly windows = new Map<string, RateLimiterRedis>();
  private pausedUntil = 0;
  private readonly outage: OutageLog;

  constructor(
    redisUrl: string,
    private readonly memory: Counters,
    log: Logger,
    answerTimeoutMs = ANSWER_TIMEOUT_MS,
  ) {
    this.redis = new Redis(redisUrl, promptOptions("sluice-counters", answerTimeoutMs)) as CountersRedis;
    this.prefix = `sluice:${this.redis.options.db ?? 0}:limit`;
    this.redis.defineCommand("sluiceTake", { numberOfKeys: 2, lua: TAKE_SCRIPT });
    this.outage = new OutageLog(log, {
      away: "rate limits are counted by each process alone, because Redis does not answer",
      back: "rate limits are shared again",
    });
    this.redis.on("error", (error) => this.outage.trouble(error));
    this.redis.on("ready", () => this.outage.answered());
  }

  count(rule: WindowRule, name: string): Promise<number> {
    return this.ask(
      () => toWait(this.windowOf(rule).consume(name)),
      () => this.memory.count(rule, name),
    );
  }

  take(rule: BucketRule, name: string, units: number, needed: number | null, hold?: BucketHold): Promise<number> {
    return this.ask(
      async () => {
        const key = `${this.prefix}:bucket:${name}`;
        const amounts = [rule.capacity, rule.perHour, units, needed].map((number) => number?.toFixed(0) ?? "");
        return Number(await this.redis.sluiceTake(key, `${key}:holds`, ...amounts, hold?.id ?? "", (hold?.ttlMs ?? 0).toFixed(0)));
      },
      () => this.memory.take(rule, name, units, needed, hold),
    );
  }

  close(): void {
    this.outage.close();
    this.redis.disconnect();
    this.memory.close();
  }

  /** Counts are currently shared by all processes. */
  get isShared(): boolean {
    return this.redis.status === "ready" && Date.now() >= this.pausedUntil;
  }

  private async ask(shared: () => Promise<number>, own: () => Promise<number>): Promise<number> {
    if (!this.isShared) return own();
    try {
      const answer = await shared();
      this.outage.answered();
      return answer;
    } catch (error) {
      this.pausedUntil = Date.now() + PAUSE_MS;
      this.outage.trouble(error);
      return own();
    }
  }

  private windowOf(rule: WindowRule): RateLimiterRedis {
    const known = this.windows.get(rule.name);
    if (known) return known;
    const window = new RateLimiterRedis({
      storeClient: this.redis,
      keyPrefix: `${this.prefix}:${rule.name}`,
      points: rule.max,
      duration: rule.seconds,
    });
    this.windows.set(rule.name, window);
    return window;
  }
}
