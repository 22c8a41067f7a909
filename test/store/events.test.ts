import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import { type Logger, pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { type EventsOptions, openEvents } from "../../src/store/events/open.js";
import { createMemoryEvents, type EventChannel, type EventChannels, type Events } from "../../src/store/events.js";
import { eventually } from "../support/eventually.js";
import { type FaultProxy, startFaultProxy } from "../support/fault-proxy.js";
import { isPostgresInstalled, POSTGRES_ABSENT, startPostgres, type TestPostgres } from "../support/postgres.js";
import { isRedisInstalled, REDIS_ABSENT, startRedis, type TestRedis } from "../support/redis.js";

interface LogLine {
  readonly level: number;
  readonly msg: string;
}

function capture(): { log: Logger; lines: LogLine[]; warnings(): string[] } {
  const lines: LogLine[] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines, warnings: () => lines.filter(({ level }) => level >= 40).map(({ msg }) => msg) };
}

/** What arrives on a channel from now on. */
function record<C extends EventChannel>(events: Events, channel: C): EventChannels[C][] {
  const heard: EventChannels[C][] = [];
  events.listen(channel, (payload) => heard.push(payload));
  return heard;
}

function countGaps(events: Events): { count: number } {
  const gaps = { count: 0 };
  events.onGap(() => {
    gaps.count += 1;
  });
  return gaps;
}

/** The warnings so far at each doubt. */
function recordDoubts(process: Process): number[] {
  const doubts: number[] = [];
  process.events.onDoubt(() => doubts.push(process.warnings().length));
  return doubts;
}

/** One process's events, with its own way to the server. */
interface Process extends ReturnType<typeof capture> {
  readonly events: Events;
  /** Breaks its connections and keeps it from making others. */
  cut(): Promise<void>;
  heal(): void;
  /** Its connections stand and say nothing; new ones work. */
  silence(): Promise<void>;
  close(): Promise<void>;
}

interface Transport {
  start(): Promise<void>;
  open(): Promise<Process>;
  /** Sends a text where the processes listen. */
  sendRaw(text: string): Promise<void>;
  stop(): Promise<void>;
}

const noDatabase: EventsOptions["database"] = {
  isExclusive: true,
  isPooled: false,
  openSession: () => {
    throw new Error("no database was to be used");
  },
};

function redisTransport(): Transport {
  let redis: TestRedis | null = null;
  return {
    start: async () => {
      redis = await startRedis();
    },
    open: async () => {
      const proxy = await startFaultProxy({ port: redis?.port ?? 0 });
      const captured = capture();
      const events = await openEvents({ redisUrl: `redis://127.0.0.1:${proxy.port}`, database: noDatabase, log: captured.log });
      return { ...captured, events, ...faultsOf(proxy), close: () => events.close().then(() => proxy.close()) };
    },
    sendRaw: async (text) => {
      const client = new Redis(redis?.url ?? "");
      await client.publish("sluice:0:events", text);
      client.disconnect();
    },
    stop: async () => redis?.stop(),
  };
}

function faultsOf(proxy: FaultProxy): Pick<Process, "cut" | "heal" | "silence"> {
  return {
    cut: async () => {
      proxy.refuse();
      proxy.resetAll();
    },
    heal: () => proxy.heal(),
    silence: async () => proxy.blackHole(),
  };
}

function postgresTransport(): Transport {
  let postgres: TestPostgres | null = null;
  let opened = 0;
  const frozen: number[] = [];
  const administer = async (sql: string, values: string[] = []) => {
    const client = new pg.Client({ connectionString: postgres?.url });
    await client.connect();
    return client.query<{ pid: number }>(sql, values).finally(() => client.end());
  };
  return {
    start: async () => {
      postgres = await startPostgres();
    },
    open: async () => {
      opened += 1;
      const name = `process-${opened}`;
      let isCut = false;
      const openSession = () => {
        const pool = new pg.Pool({
          connectionString: isCut ? "postgresql://postgres@127.0.0.1:1/none" : postgres?.url,
          application_name: name,
          max: 1,
        });
        pool.on("error", () => undefined);
        return pool;
      };
      const captured = capture();
      const events = await openEvents({
        redisUrl: null,
        database: { isExclusive: false, isPooled: false, openSession },
        log: captured.log,
      });
      const ownBackends = "FROM pg_stat_activity WHERE application_name = $1";
      return {
        ...captured,
        events,
        cut: async () => {
          isCut = true;
          await administer(`SELECT pg_terminate_backend(pid) ${ownBackends}`, [name]);
        },
        heal: () => {
          isCut = false;
        },
        silence: async () => {
          const { rows } = await administer(`SELECT pid ${ownBackends}`, [name]);
          for (const { pid } of rows) process.kill(pid, "SIGSTOP");
          frozen.push(...rows.map(({ pid }) => pid));
        },
        close: () => events.close(),
      };
    },
    sendRaw: async (text) => {
      await administer("SELECT pg_notify('sluice_events', $1)", [text]);
    },
    stop: async () => {
      // A frozen backend would never end, nor let the server end.
      for (const pid of frozen) process.kill(pid, "SIGCONT");
      await postgres?.stop();
    },
  };
}

describe("events in memory", () => {
  it("have been heard when publish returns", () => {
    const events = createMemoryEvents(capture().log);
    const heard = record(events, "api-key-changed");

    events.publish("api-key-changed", changed("k1"));

    expect(heard).toEqual([changed("k1")]);
  });

  it("are not heard by a listener that has left", () => {
    const events = createMemoryEvents(capture().log);
    const heard: unknown[] = [];
    const leave = events.listen("balance-changed", (payload) => heard.push(payload));

    events.publish("balance-changed", { accountId: "a1" });
    leave();
    events.publish("balance-changed", { accountId: "a2" });

    expect(heard).toEqual([{ accountId: "a1" }]);
  });

  it("reach a listener of one account only for that account", () => {
    const events = createMemoryEvents(capture().log);
    const heard: unknown[] = [];
    events.listenToAccount("usage-recorded", "a1", (payload) => heard.push(payload));

    events.publish("usage-recorded", { accountId: "a2", usageId: "u2" });
    events.publish("usage-recorded", { accountId: "a1", usageId: "u1" });
    events.publish("balance-changed", { accountId: "a1" });

    expect(heard).toEqual([{ accountId: "a1", usageId: "u1" }]);
  });

  it("do not fail the publisher, nor other listeners, when a listener throws", () => {
    const { log, lines } = capture();
    const events = createMemoryEvents(log);
    events.listen("balance-changed", () => {
      throw new Error("a listener's own fault");
    });
    const heard = record(events, "balance-changed");

    events.publish("balance-changed", { accountId: "a1" });

    expect(heard).toHaveLength(1);
    expect(lines).toMatchObject([{ msg: "a listener failed", event: "balance-changed", err: { message: "a listener's own fault" } }]);
  });

  it("are what a database of one process has without Redis", async () => {
    const events = await openEvents({ redisUrl: null, database: noDatabase, log: capture().log });

    expect(() => events.publish("balance-changed", { accountId: "a1" })).not.toThrow();
    await events.close();
  });
});

describe.each([
  { name: `Redis${isRedisInstalled ? "" : ` (skipped: ${REDIS_ABSENT})`}`, isInstalled: isRedisInstalled, transport: redisTransport() },
  {
    name: `PostgreSQL${isPostgresInstalled ? "" : ` (skipped: ${POSTGRES_ABSENT})`}`,
    isInstalled: isPostgresInstalled,
    transport: postgresTransport(),
  },
])("events through $name", ({ isInstalled, transport }) => {
  const opened: Process[] = [];
  const open = async () => {
    const process = await transport.open();
    opened.push(process);
    return process;
  };

  if (isInstalled) {
    beforeAll(() => transport.start());
    afterEach(async () => {
      await Promise.all(opened.splice(0).map((process) => process.close()));
    });
    afterAll(() => transport.stop());
  }

  it.skipIf(!isInstalled)("reach this process at once and every other one soon, each once", async () => {
    const [a, b] = [await open(), await open()];
    const heardByA = record(a.events, "api-key-changed");
    const heardByB = record(b.events, "api-key-changed");

    a.events.publish("api-key-changed", changed("from a"));
    expect(heardByA).toEqual([changed("from a")]);
    await eventually(() => expect(heardByB).toHaveLength(1));
    // An echo of the first would be here before the answer to it.
    b.events.publish("api-key-changed", changed("from b"));
    await eventually(() => expect(heardByA).toContainEqual(changed("from b")));

    expect(heardByA).toEqual([changed("from a"), changed("from b")]);
    expect(heardByB).toEqual([changed("from a"), changed("from b")]);
  });

  it.skipIf(!isInstalled)("all arrive, in order, when there are thousands", async () => {
    const [a, b] = [await open(), await open()];
    const heard = record(b.events, "usage-recorded");
    const told = Array.from({ length: 5_000 }, (_, index) => ({
      accountId: "0192f0c1-2345-7abc-8def-0123456789ab",
      usageId: `0192f0c1-2345-7abc-8def-${index.toString().padStart(12, "0")}`,
    }));

    for (const payload of told) a.events.publish("usage-recorded", payload);
    await eventually(() => expect(heard).toHaveLength(told.length));

    expect(heard).toEqual(told);
  });

  it.skipIf(!isInstalled)("are delivered as far as they are understood", async () => {
    const b = await open();
    const heard = [record(b.events, "api-key-changed"), record(b.events, "usage-recorded"), record(b.events, "balance-changed")];

    await transport.sendRaw("not JSON");
    await transport.sendRaw("null");
    await transport.sendRaw('{"events":"none"}');
    const events = [
      ["from-a-newer-version", { a: 1 }],
      ["toString", {}],
      "balance-changed",
      ["balance-changed"],
      ["balance-changed", { accountId: 7 }],
      ["usage-recorded", { accountId: "a1" }],
      ["usage-recorded", { accountId: "a1", usageId: "u1", alsoNew: true }],
    ];
    await transport.sendRaw(JSON.stringify({ from: "elsewhere", events, alsoNew: true }));
    await eventually(() => expect(heard[1]).not.toHaveLength(0));

    expect(heard).toEqual([[], [{ accountId: "a1", usageId: "u1" }], []]);
    expect(b.warnings()).toEqual([]);
  });

  it.skipIf(!isInstalled)("deliver at the end an event that was published just before it", async () => {
    const [a, b] = [await open(), await open()];
    const heard = record(b.events, "usage-recorded");

    a.events.publish("usage-recorded", { accountId: "a1", usageId: "last" });
    await a.events.close();
    await eventually(() => expect(heard).toEqual([{ accountId: "a1", usageId: "last" }]));

    expect(() => a.events.publish("usage-recorded", { accountId: "a1", usageId: "too late" })).not.toThrow();
  });

  it.skipIf(!isInstalled)("go on in a process that is cut off, which learns of the gap and tells key changes when it is back", async () => {
    const [a, b] = [await open(), await open()];
    const gaps = countGaps(a.events);
    const doubts = recordDoubts(a);
    const heardByA = record(a.events, "api-key-changed");
    const heardByB = record(b.events, "api-key-changed");
    await a.cut();
    await eventually(() => expect(a.warnings()).toHaveLength(1));

    a.events.publish("api-key-changed", changed("while away"));
    expect(heardByA).toEqual([changed("while away")]);
    expect(gaps.count).toBe(0);
    // At once, and again as long as it lasts.
    expect(doubts.length).toBeGreaterThan(0);
    await eventually(() => expect(doubts.length).toBeGreaterThan(1));
    a.heal();
    await eventually(() => expect(heardByB).toHaveLength(1));

    expect(heardByB).toEqual([changed("while away")]);
    expect(gaps.count).toBe(1);
    expect(a.warnings()).toHaveLength(1);
    // A listener that was notified of the gap gets everything from then on.
    b.events.publish("api-key-changed", changed("after"));
    await eventually(() => expect(heardByA).toContainEqual(changed("after")));
  });

  it.skipIf(!isInstalled)("for display are bounded while they cannot be sent, those for caches are all kept", async () => {
    const [a, b] = [await open(), await open()];
    const heardUsage = record(b.events, "usage-recorded");
    const heardKeys = record(b.events, "api-key-changed");
    await a.cut();
    await eventually(() => expect(a.warnings()).toHaveLength(1));

    a.events.publish("api-key-changed", changed("first of all"));
    for (let index = 0; index < 12_000; index += 1) a.events.publish("usage-recorded", { accountId: "a1", usageId: String(index) });
    a.heal();
    await eventually(() => expect(heardUsage.at(-1)?.usageId).toBe("11999"));

    expect(heardKeys).toEqual([changed("first of all")]);
    expect(heardUsage.length).toBeLessThanOrEqual(10_000);
    expect(heardUsage.length).toBeGreaterThanOrEqual(9_000);
    expect(heardUsage[0]?.usageId).toBe(String(12_000 - heardUsage.length));
    expect(a.warnings().filter((message) => message.includes("left out"))).toHaveLength(1);
  });

  it.skipIf(!isInstalled)("are delivered again after an idle connection has gone silent", async () => {
    const [a, b] = [await open(), await open()];
    const gaps = countGaps(b.events);
    const doubts = recordDoubts(b);
    await b.silence();

    await eventually(() => expect(b.warnings()).toHaveLength(1));
    // Long before the connection was given up.
    expect(doubts).toContain(0);
    b.heal();
    await eventually(() => expect(gaps.count).toBe(1));

    const heard = record(b.events, "api-key-changed");
    a.events.publish("api-key-changed", changed("k1"));
    await eventually(() => expect(heard).toEqual([changed("k1")]));
  });

  it.skipIf(!isInstalled)("for caches are repeated when the connection under them has gone silent", async () => {
    const [a, b] = [await open(), await open()];
    const heard = record(a.events, "api-key-changed");
    await b.silence();

    b.events.publish("api-key-changed", changed("k1"));
    await eventually(() => expect(b.warnings()).not.toHaveLength(0));
    b.heal();

    await eventually(() => expect(heard).toContainEqual(changed("k1")));
  });
});

describe.skipIf(!isRedisInstalled)("events through a Redis of several tenants", () => {
  it("let the process start, and keep the password out of the log", async () => {
    const redis = await startRedis({ password: "the right one" });
    onTestFinished(() => redis?.stop());
    const { log, lines, warnings } = capture();
    const redisUrl = `redis://someone:not-the-password@127.0.0.1:${redis?.port}`;
    const events = await openEvents({ redisUrl, database: noDatabase, log });
    onTestFinished(() => events.close());
    const heard = record(events, "balance-changed");

    events.publish("balance-changed", { accountId: "a1" });

    expect(heard).toHaveLength(1);
    expect(warnings()).toHaveLength(1);
    expect(JSON.stringify(lines)).toContain("WRONGPASS");
    expect(JSON.stringify(lines)).not.toContain("not-the-password");
  });

  it("stay within the number of a database", async () => {
    const redis = await startRedis();
    onTestFinished(() => redis?.stop());
    const open = (number: number) => openEvents({ redisUrl: `${redis?.url}/${number}`, database: noDatabase, log: capture().log });
    const [one, alsoOne, two] = [await open(1), await open(1), await open(2)];
    onTestFinished(() => Promise.all([one.close(), alsoOne.close()]).then(() => undefined));
    const heard = record(alsoOne, "balance-changed");

    two.publish("balance-changed", { accountId: "of another deployment" });
    await two.close();
    one.publish("balance-changed", { accountId: "of this one" });
    await eventually(() => expect(heard).not.toHaveLength(0));

    expect(heard).toEqual([{ accountId: "of this one" }]);
  });
});

describe("events without the configured Redis", () => {
  it("stay in this process until it is there", async () => {
    const unused = createServer().listen(0, "127.0.0.1");
    await once(unused, "listening");
    const address = unused.address();
    const port = typeof address === "object" ? address?.port : 0;
    unused.close();
    const { log, warnings } = capture();
    const events = await openEvents({ redisUrl: `redis://127.0.0.1:${port}`, database: noDatabase, log });
    onTestFinished(() => events.close());
    const heard = record(events, "balance-changed");

    events.publish("balance-changed", { accountId: "a1" });

    expect(heard).toHaveLength(1);
    expect(warnings()).toHaveLength(1);
  });
});

describe("a cache that events must keep up to date", () => {
  it("is dropped or read again while they may not arrive", () => {
    const sources = fileURLToPath(new URL("../../src/services/", import.meta.url));
    // It queues messages for display.
    const exempt = [join("webhooks", "notices.ts")];
    const forgetful = readdirSync(sources, { recursive: true, encoding: "utf8" }).filter((name) => {
      if (!name.endsWith(".ts") || exempt.includes(name)) return false;
      const text = readFileSync(join(sources, name), "utf8");
      const isKept = /\.listen\("(?:api-key-changed|session-changed|community-model-changed|account-renamed)"/.test(text);
      return isKept && !text.includes(".onDoubt(");
    });

    expect(forgetful).toEqual([]);
  });
});

function changed(apiKeyId: string) {
  return { accountId: "of the key", apiKeyId, change: "updated" };
}
