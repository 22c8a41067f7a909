/** The state of routes in Redis. Work in the background asks it, and no request waits for it. */
import { Redis } from "ioredis";
import type { Logger } from "pino";
import { OutageLog, promptOptions } from "../redis-client.js";
import type { CountRequest, RouteExchange, RouteStateKind, RouteStates, ShareRequest, StoredRouteState } from "../route-states.js";

/** The longest wait for an answer. */
const ANSWER_TIMEOUT_MS = 500;
/** A process that has not asked for this long has ended. */
const PROCESS_TTL_MS = 15_000;
/** How long an unmet wish for units is seen by the others. */
const WANTED_TTL_MS = 3_000;
/** Saved states are forgotten that long after the last change of any. */
const STATES_TTL_MS = 3_600_000;

/** Notes that a process is alive, and returns the number of those that are. */
const ALIVE_SCRIPT = `
local time = redis.call('time')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('zadd', KEYS[1], string.format('%.0f', now + ${PROCESS_TTL_MS}), ARGV[1])
redis.call('zremrangebyscore', KEYS[1], '-inf', string.format('%.0f', now))
redis.call('pexpire', KEYS[1], ${PROCESS_TTL_MS})
return redis.call('zcard', KEYS[1])
`;

/**
 * The limit is a hash of the units that each process keeps. A process that asks for the first time gets its part of the units that are
 * left: an equal one for each process without a share. One that leaves states a limit of 0, and the units that it has used. KEYS: the
 * limit, its unmet wish, the processes. ARGV: the process, the limit, the kept and the wanted units, the time to live, whether units end
 * with their process.
 */
const SHARE_SCRIPT = `
local me, limit, kept = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local known = redis.call('hgetall', KEYS[1])
local others, holders = 0, 0
for i = 1, #known, 2 do
  if known[i] ~= me then
    if ARGV[6] == '1' and not redis.call('zscore', KEYS[3], known[i]) then
      redis.call('hdel', KEYS[1], known[i])
    else
      others = others + tonumber(known[i + 1])
      holders = holders + 1
    end
  end
end
local free = math.max(0, limit - others - kept)
local wanted, enough = tonumber(ARGV[4]), 0
if wanted then
  enough = wanted
else
  local live = redis.call('zcard', KEYS[3])
  wanted = math.ceil(free / math.max(1, live - holders))
  enough = math.floor(limit / math.max(1, live))
end
local granted = math.min(wanted, free)
if limit == 0 and kept == 0 then
  redis.call('hdel', KEYS[1], me)
  return { 0, 0 }
end
redis.call('hset', KEYS[1], me, string.format('%.0f', kept + granted))
redis.call('pexpire', KEYS[1], ARGV[5])
local wish = redis.call('get', KEYS[2])
if granted < enough then
  redis.call('set', KEYS[2], me, 'PX', ${WANTED_TTL_MS})
elseif wish == me then
  redis.call('del', KEYS[2])
end
return { granted, wish and wish ~= me and 1 or 0 }
`;

/** KEYS: the sum. ARGV: the process, its part, the time to live. */
const COUNT_SCRIPT = `
redis.call('hset', KEYS[1], ARGV[1], ARGV[2])
redis.call('pexpire', KEYS[1], ARGV[3])
local known = redis.call('hgetall', KEYS[1])
local others = 0
for i = 1, #known, 2 do
  if known[i] ~= ARGV[1] then others = others + tonumber(known[i + 1]) end
end
return string.format('%.0f', others)
`;

export class RedisRouteStates implements RouteStates {
  private readonly redis: Redis;
  private readonly prefix: string;
  private readonly outage: OutageLog;
  private isClosed = false;

  constructor(redisUrl: string, log: Logger) {
    this.outage = new OutageLog(log, {
      away: "limits of routes are counted by each process alone, because Redis does not answer",
      back: "limits of routes are shared again",
    });
    this.redis = new Redis(redisUrl, {
      ...promptOptions("sluice-routes", ANSWER_TIMEOUT_MS),
      scripts: {
        sluiceAlive: { numberOfKeys: 1, lua: ALIVE_SCRIPT },
        sluiceShare: { numberOfKeys: 3, lua: SHARE_SCRIPT },
        sluiceCount: { numberOfKeys: 1, lua: COUNT_SCRIPT },
      },
    });
    this.prefix = `sluice:${this.redis.options.db ?? 0}:routes`;
    this.redis.on("error", (error) => this.outage.trouble(error));
    this.redis.on("ready", () => this.outage.answered());
  }

  async exchange(processId: string, shares: readonly ShareRequest[], counts: readonly CountRequest[]): Promise<RouteExchange | null> {
    const processes = this.key("processes");
    const commands: string[][] = [["sluiceAlive", processes, processId]];
    for (const { name, limit, kept, wanted, ttlMs, isFreedAtEnd } of shares) {
      const amounts = [limit, kept, wanted, ttlMs].map((amount) => amount?.toFixed(0) ?? "");
      const keys = [this.key(`share:${name}`), this.key(`wanted:${name}`), processes];
      commands.push(["sluiceShare", ...keys, processId, ...amounts, isFreedAtEnd ? "1" : "0"]);
    }
    for (const { name, own, ttlMs } of counts) {
      commands.push(["sluiceCount", this.key(`count:${name}`), processId, own.toFixed(0), ttlMs.toFixed(0)]);
    }
    const answers = await this.ask(commands);
    if (answers === null) return null;
    const [alive, ...rest] = answers;
    return {
      processes: Math.max(1, Number(alive)),
      shares: rest.slice(0, shares.length).map((answer) => {
        const [granted, isWanted] = answer as readonly number[];
        return { granted: Number(granted), isWanted: isWanted === 1 };
      }),
      counts: rest.slice(shares.length).map(Number),
    };
  }

  async leave(processId: string): Promise<void> {
    await this.ask([["zrem", this.key("processes"), processId]]);
  }

  save(kind: RouteStateKind, id: string, json: string | null): void {
    const key = this.key(kind);
    const change = json === null ? ["hdel", key, id] : ["hset", key, id, json];
    void this.ask([change, ["pexpire", key, String(STATES_TTL_MS)]]);
  }

  async load(kind: RouteStateKind): Promise<readonly StoredRouteState[]> {
    const [states] = (await this.ask([["hgetall", this.key(kind)]])) ?? [];
    return states === undefined ? [] : Object.entries(states as Record<string, string>).map(([id, json]) => ({ id, json }));
  }

  close(): void {
    this.isClosed = true;
    this.outage.close();
    this.redis.disconnect();
  }

  private key(name: string): string {
    return `${this.prefix}:${name}`;
  }

  /** The answers of all commands; null: Redis has not answered each of them. */
  private async ask(commands: string[][]): Promise<readonly unknown[] | null> {
    if (!(await this.whenConnected())) return null;
    try {
      const results = await this.redis.pipeline(commands).exec();
      const answers = (results ?? []).map(([error, answer]) => {
        if (error) throw error;
        return answer;
      });
      this.outage.answered();
      return answers;
    } catch (error) {
      this.outage.trouble(error);
      return null;
    }
  }

  get isConnected(): boolean {
    return this.redis.status === "ready";
  }

  /** Waits for the first connection, for a bounded time. */
  private async whenConnected(): Promise<boolean> {
    const { redis } = this;
    if (redis.status === "ready") return true;
    if (this.outage.isAway || this.isClosed || (redis.status !== "connecting" && redis.status !== "connect")) return false;
    return new Promise((resolve) => {
      const settle = () => {
        clearTimeout(timer);
        redis.off("ready", settle).off("error", settle);
        resolve(redis.status === "ready");
      };
      const timer = setTimeout(settle, ANSWER_TIMEOUT_MS);
      redis.once("ready", settle).once("error", settle);
    });
  }
}
