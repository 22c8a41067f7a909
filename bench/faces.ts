/**
 * Messages against chats, on one gateway: a conversation in Anthropic's format passed to an upstream of that format, and the same as a chat
 * to an upstream of OpenAI's, whole and streamed, in turn (docs/performance.md).
 *
 *   npm run bench:faces
 *   npm run bench:faces -- --rounds 6 --seconds 5
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPrograms, startSluice, startUpstream } from "./contenders.js";
import { chooseLoadGenerator, type Target } from "./support/load.js";
import { messagesRequest } from "./support/messages.js";
import { findPostgres, startPostgres } from "./support/postgres.js";
import { cpuMicroseconds } from "./support/process.js";
import { format, median, medianRatio, toTable } from "./support/statistics.js";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "6" },
    seconds: { type: "string", default: "5" },
    connections: { type: "string", default: "16" },
  },
});
const [rounds, seconds, connections] = [values.rounds, values.seconds, values.connections].map(Number) as [number, number, number];
/** The least of a chat's throughput that a message passed through has. */
const RATIO_MIN = 0.9;

interface Side {
  readonly name: string;
  readonly target: Target;
  readonly perSecond: number[];
  /** Microseconds of the gateway's processor time for each answer: comparable also beside other work on the machine. */
  readonly cpu: number[];
}

const directory = mkdtempSync(join(tmpdir(), "sluice-faces-"));
mkdirSync(join(directory, "gateway"));
await buildPrograms();
const upstream = await startUpstream(directory, { chunks: 20, paceMs: 0, delayMs: 0 });
const generator = await chooseLoadGenerator(directory);
const binaries = findPostgres();
const postgres = binaries === null ? null : await startPostgres(binaries);
const sluice = await startSluice({
  directory: join(directory, "gateway"),
  upstreamPort: upstream.port,
  environment: { ACCESS_LOG: "off" },
  ...(postgres && { databaseUrl: postgres.url() }),
});
try {
  const pairs = (["json", "sse"] as const).map((workload): readonly [Side, Side] => {
    const chat = sluice.target(workload);
    const messages = { ...chat, url: chat.url.replace("/v1/chat/completions", "/v1/messages"), body: messagesRequest(workload === "sse") };
    const kind = workload === "sse" ? "streamed" : "whole";
    return [
      { name: `chat, ${kind}`, target: chat, perSecond: [], cpu: [] },
      { name: `messages, ${kind}`, target: messages, perSecond: [], cpu: [] },
    ];
  });
  for (let round = -1; round < rounds; round += 1) {
    for (const pair of pairs) for (const side of round % 2 === 0 ? pair : pair.toReversed()) await measure(side, round >= 0);
  }
  console.log(
    toTable(
      ["", "a second", "us of processor time each"],
      pairs.flat().map(({ name, perSecond, cpu }) => [name, format(median(perSecond)), format(median(cpu))]),
    ),
  );
  for (const [chat, messages] of pairs) {
    const ratio = medianRatio(messages.perSecond, chat.perSecond);
    console.log(
      `${messages.name}: ${format(medianRatio(chat.cpu, messages.cpu), 2)} of the answers of ${chat.name} for the same processor time`,
    );
    console.log(
      `${ratio >= RATIO_MIN ? "met" : "MISSED"}: ${messages.name} at ${format(ratio, 2)} of ${chat.name} (at least ${RATIO_MIN})`,
    );
  }
} finally {
  await sluice.shutDown();
  await postgres?.stop();
  await upstream.stop();
  rmSync(directory, { recursive: true, force: true });
}

async function measure({ name, target, perSecond, cpu }: Side, isCounted: boolean): Promise<void> {
  const before = cpuMicroseconds(sluice.pid) ?? 0;
  const { completed, seconds: took, failures } = await generator.run(target, connections, seconds);
  if (failures > 0) throw new Error(`${failures} requests of "${name}" failed.`);
  if (!isCounted) return;
  perSecond.push(completed / took);
  cpu.push(((cpuMicroseconds(sluice.pid) ?? 0) - before) / completed);
}
