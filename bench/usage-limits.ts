/**
 * The processor time of a chat by a key with three budgets that renew and limits of requests and tokens, as a ratio to one by a key without
 * limits. Both keys use one gateway, in turn (docs/performance.md).
 *
 *   npm run bench:usage-limits
 *   npm run bench:usage-limits -- --rounds 10 --seconds 5
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPrograms, startSluice, startUpstream } from "./contenders.js";
import { chooseLoadGenerator, type Target } from "./support/load.js";
import { findPostgres, startPostgres } from "./support/postgres.js";
import { cpuMicroseconds } from "./support/process.js";
import { format, median, medianRatio, toTable } from "./support/statistics.js";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "10" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "16" },
  },
});
const [rounds, seconds, connections] = [values.rounds, values.seconds, values.connections].map(Number) as [number, number, number];
const RATIO_MAX = 1.1;
const LIMITS = [
  { metric: "credits", amount: 100_000, period: "hour" },
  { metric: "credits", amount: 100_000, period: "day", timeZone: "Europe/Berlin" },
  { metric: "credits", amount: 100_000, period: "month", rolling: true },
  { metric: "requests", amount: 10_000_000, minutes: 1, rolling: true },
  { metric: "tokens", amount: 1_000_000_000, minutes: 1, rolling: true },
];

const directory = mkdtempSync(join(tmpdir(), "sluice-usage-limits-"));
await buildPrograms();
const upstream = await startUpstream(directory, { chunks: 1, paceMs: 0, delayMs: 0 });
const generator = await chooseLoadGenerator(directory);
const binaries = findPostgres();
const postgres = binaries === null ? null : await startPostgres(binaries);
const environment = { ACCESS_LOG: "off" };
const sluice = await startSluice({ directory, upstreamPort: upstream.port, environment, ...(postgres && { databaseUrl: postgres.url() }) });
const owner = sluice.target("json");

interface Side {
  readonly name: string;
  readonly target: Target;
  readonly microseconds: number[];
}

try {
  const sides: [Side, Side] = [await sideOf("without limits", []), await sideOf("with limits", LIMITS)];
  for (let round = -2; round < rounds; round += 1) {
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) await measure(side, round >= 0);
  }
  const [without, limited] = sides;
  console.log(
    toTable(
      ["key", "processor time of a chat, µs"],
      sides.map(({ name, microseconds }) => [name, format(median(microseconds), 1)]),
    ),
  );
  const ratio = medianRatio(limited.microseconds, without.microseconds);
  console.log(`${ratio <= RATIO_MAX ? "met" : "MISSED"}: limits take ${format(ratio, 3)} times the processor time (at most ${RATIO_MAX})`);
} finally {
  await sluice.shutDown();
  await postgres?.stop();
  await upstream.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function sideOf(name: string, limits: readonly object[]): Promise<Side> {
  const { id: apiKeyId, key } = await post("/account/keys", { name });
  for (const limit of limits) await post("/account/usage-limits", { apiKeyId, ...limit });
  const others = Object.entries(owner.headers).filter(([header]) => header.toLowerCase() !== "authorization");
  const headers = { ...Object.fromEntries(others), authorization: `Bearer ${key}` };
  return { name, target: { ...owner, headers }, microseconds: [] };
}

async function post(path: string, body: object): Promise<Record<string, string>> {
  const answer = await fetch(new URL(path, owner.url), { method: "POST", headers: owner.headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}: ${await answer.text()}`);
  return (await answer.json()) as Record<string, string>;
}

async function measure({ target, microseconds }: Side, isCounted: boolean): Promise<void> {
  const before = cpuMicroseconds(sluice.pid) ?? 0;
  const { completed, failures } = await generator.run(target, connections, seconds);
  if (failures > 0) throw new Error(`${failures} chats failed`);
  if (isCounted) microseconds.push(((cpuMicroseconds(sluice.pid) ?? 0) - before) / completed);
}
