/**
 * What a flood of refused requests costs the chats of others because of the request log: the throughput of chats beside refused requests
 * at a fixed rate, with the log on and off, in turn (docs/performance.md).
 *
 *   npm run bench:refused
 *   npm run bench:refused -- --rate 5000 --rounds 6 --seconds 5
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPrograms, type Sluice, startSluice, startUpstream } from "./contenders.js";
import { chooseLoadGenerator } from "./support/load.js";
import { runAtFixedRate } from "./support/open-loop.js";
import { findPostgres, type PostgresServer, startPostgres } from "./support/postgres.js";
import { cpuMicroseconds } from "./support/process.js";
import { format, median, medianRatio, toTable } from "./support/statistics.js";

const { values } = parseArgs({
  options: {
    rate: { type: "string", default: "5000" },
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "16" },
  },
});
const [rate, rounds, seconds, connections] = [values.rate, values.rounds, values.seconds, values.connections].map(Number) as [
  number,
  number,
  number,
  number,
];
/** The most of a chat's throughput that the log may take. */
const LOSS_MAX = 0.05;

interface Side {
  readonly name: string;
  readonly sluice: Sluice;
  readonly postgres: PostgresServer | null;
  readonly chatsPerSecond: number[];
  readonly refusedPerSecond: number[];
  /** Processors that the gateway kept busy. */
  readonly cpuShare: number[];
}

const directory = mkdtempSync(join(tmpdir(), "sluice-refused-"));
await buildPrograms();
const upstream = await startUpstream(directory, { chunks: 1, paceMs: 0, delayMs: 0 });
const generator = await chooseLoadGenerator(directory);
const sides: Side[] = [];
try {
  for (const days of [0, 30]) sides.push(await open(days));
  for (let round = -1; round < rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measure(side, round >= 0);
  }
  const [off, on] = sides as [Side, Side];
  console.log(
    toTable(
      ["request log", "chats a second", "refused a second", "processors"],
      sides.map(({ name, chatsPerSecond, refusedPerSecond, cpuShare }) => [
        name,
        format(median(chatsPerSecond)),
        format(median(refusedPerSecond)),
        format(median(cpuShare), 2),
      ]),
    ),
  );
  const loss = 1 - medianRatio(on.chatsPerSecond, off.chatsPerSecond);
  console.log(`${loss <= LOSS_MAX ? "met" : "MISSED"}: the log takes ${format(loss * 100, 1)}% of the chats (at most ${LOSS_MAX * 100}%)`);
} finally {
  for (const { sluice, postgres } of sides) {
    await sluice.shutDown();
    await postgres?.stop();
  }
  await upstream.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function open(days: number): Promise<Side> {
  const name = days === 0 ? "off" : "on";
  const own = join(directory, name);
  mkdirSync(own);
  const binaries = findPostgres();
  const postgres = binaries === null ? null : await startPostgres(binaries);
  const sluice = await startSluice({
    directory: own,
    upstreamPort: upstream.port,
    environment: { REQUEST_LOG_DAYS: String(days), ACCESS_LOG: "off" },
    ...(postgres && { databaseUrl: postgres.url() }),
  });
  return { name, sluice, postgres, chatsPerSecond: [], refusedPerSecond: [], cpuShare: [] };
}

async function measure({ sluice, chatsPerSecond, refusedPerSecond, cpuShare }: Side, isCounted: boolean): Promise<void> {
  const target = sluice.target("json");
  const refused = { ...target, body: '{"messages":[]}' };
  const before = cpuMicroseconds(sluice.pid) ?? 0;
  const begun = performance.now();
  const [chats, flood] = await Promise.all([
    generator.run(target, connections, seconds),
    runAtFixedRate(refused, rate, seconds).then(({ failures }) => ({ failures, seconds: (performance.now() - begun) / 1_000 })),
  ]);
  const tookSeconds = (performance.now() - begun) / 1_000;
  if (!isCounted) return;
  chatsPerSecond.push(chats.completed / chats.seconds);
  refusedPerSecond.push(flood.failures / flood.seconds);
  cpuShare.push(((cpuMicroseconds(sluice.pid) ?? 0) - before) / 1_000_000 / tookSeconds);
}
