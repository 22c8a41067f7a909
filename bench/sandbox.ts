/**
 * What agents that mean harm do to everybody else: the latency of chats at a fixed rate while as many hostile runs go on as the gateway
 * allows, against the same rate while there are none, in turn.
 */
import { setMaxListeners } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { Agent, request } from "undici";
import { v7 as uuidv7 } from "uuid";
import { CODE_RUNS_PER_OWNER_MAX } from "../src/services/agents/limits.js";
import { codeRunsMax } from "../src/services/agents/sandbox/sandbox-runner.js";
import { openDatabase } from "../src/store/database.js";
import { type Sluice, startSluice, startUpstream } from "./contenders.js";
import { runAtFixedRate } from "./support/open-loop.js";
import { format, median, medianRatio, percentile, toTable } from "./support/statistics.js";

/** Each as the body of an agent, and what the gateway must answer. */
const ATTACKS = {
  "endless loop": { body: "for (;;) {}", status: 504 },
  "memory of objects": { body: "const kept = []; for (;;) kept.push({ a: [] })", status: 502 },
  "memory of buffers": { body: "const kept = []; for (;;) kept.push(new Uint8Array(2 ** 24).fill(1))", status: 502 },
  "gigabytes of output": { body: "for (;;) console.log('x'.repeat(2 ** 20))", status: 502 },
} as const;
type Attack = keyof typeof ATTACKS;
const ATTACK_NAMES = Object.keys(ATTACKS) as Attack[];

const RATIO_MAX = 2;
const RUNS = codeRunsMax();
const OWNERS = Math.ceil(RUNS / CODE_RUNS_PER_OWNER_MAX);
/** Until the machine is as busy as it will be. */
const SETTLE_MS = 1_000;

export interface SandboxOutcome {
  readonly attack: Attack;
  /** p50 and p99 in milliseconds, one of each round. */
  readonly idle: readonly Latency[];
  readonly attacked: readonly Latency[];
  readonly runs: number;
}

interface Latency {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

interface SandboxSettings {
  readonly directory: string;
  readonly rounds: number;
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly complain: (problem: string) => void;
}

export async function measureSandbox(settings: SandboxSettings): Promise<readonly SandboxOutcome[]> {
  const directory = join(settings.directory, "sandbox");
  mkdirSync(directory);
  const upstream = await startUpstream(directory, { chunks: 1, paceMs: 0, delayMs: 0 });
  const options = { directory, upstreamPort: upstream.port };
  const first = await startSluice(options);
  await first.shutDown();
  const agents = await registerAgents(join(directory, "data"));
  const sluice = await startSluice({ ...options, ownerKey: first.ownerKey });
  try {
    await measure(sluice, settings);
    const outcomes: SandboxOutcome[] = [];
    for (const attack of ATTACK_NAMES) outcomes.push(await compare(sluice, attack, agents[attack], settings));
    return outcomes;
  } finally {
    await sluice.shutDown();
    await upstream.stop();
  }
}

export function sandboxTable(outcomes: readonly SandboxOutcome[]): string {
  const of = (latencies: readonly Latency[], name: keyof Latency) => format(median(latencies.map((each) => each[name])), 2);
  const rows = outcomes.map(({ attack, idle, attacked, runs }) => [
    attack,
    format(runs),
    of(idle, "p50Ms"),
    of(attacked, "p50Ms"),
    of(idle, "p99Ms"),
    of(attacked, "p99Ms"),
    format(ratioOf({ idle, attacked }), 2),
  ]);
  return toTable(["", "runs", "idle p50 ms", "attacked p50 ms", "idle p99 ms", "attacked p99 ms", "p99 ratio"], rows);
}

export function checkSandbox(outcomes: readonly SandboxOutcome[]): string {
  return outcomes
    .map((outcome) => {
      const ratio = ratioOf(outcome);
      return `${ratio <= RATIO_MAX ? "met" : "MISSED"}: ${outcome.attack}: ${format(ratio, 2)} times the idle p99 (at most ${RATIO_MAX})`;
    })
    .join("\n");
}

function ratioOf({ idle, attacked }: Pick<SandboxOutcome, "idle" | "attacked">): number {
  return medianRatio(
    attacked.map(({ p99Ms }) => p99Ms),
    idle.map(({ p99Ms }) => p99Ms),
  );
}

async function compare(sluice: Sluice, attack: Attack, agents: readonly string[], settings: SandboxSettings): Promise<SandboxOutcome> {
  const [idle, attacked]: [Latency[], Latency[]] = [[], []];
  let runs = 0;
  for (let round = 0; round < settings.rounds; round++) {
    idle.push(await measure(sluice, settings));
    const running = beginAttack(sluice, attack, agents, settings.complain);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    attacked.push(await measure(sluice, settings));
    runs += await running.stop();
  }
  return { attack, idle, attacked, runs };
}

async function measure(sluice: Sluice, { requestsPerSecond, seconds, complain }: SandboxSettings): Promise<Latency> {
  const { latenciesMs, failures } = await runAtFixedRate(sluice.target("json"), requestsPerSecond, seconds);
  if (failures > 0) complain(`${failures} chats beside agents failed.`);
  return { p50Ms: percentile(latenciesMs, 50), p99Ms: percentile(latenciesMs, 99) };
}

/** Keeps as many runs going as there may be. Stopping tells how many have ended, each as it should. */
function beginAttack(sluice: Sluice, attack: Attack, agents: readonly string[], complain: (problem: string) => void) {
  const leave = new AbortController();
  setMaxListeners(0, leave.signal);
  const client = new Agent({ connections: RUNS });
  let ended = 0;
  const keepRunning = async (model: string): Promise<void> => {
    while (!leave.signal.aborted) {
      const answer = await request(`http://127.0.0.1:${sluice.port}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${sluice.ownerKey}`, "content-type": "application/json" },
        body: JSON.stringify({ model, messages: [{ role: "user", content: "Hello" }] }),
        dispatcher: client,
        signal: leave.signal,
        headersTimeout: 0,
      });
      const text = await answer.body.text();
      ended += 1;
      if (answer.statusCode !== ATTACKS[attack].status) complain(`${attack} was answered ${answer.statusCode}: ${text.slice(0, 300)}`);
    }
  };
  const all = Array.from({ length: RUNS }, (_, index) =>
    keepRunning(agents[index % agents.length] ?? "").catch((error: unknown) => {
      if (!leave.signal.aborted) complain(`${attack} could not be asked for: ${String(error)}`);
    }),
  );
  return {
    stop: async () => {
      leave.abort();
      await Promise.all(all);
      await client.destroy();
      return ended;
    },
  };
}

/** One public agent of every owner for each attack, by callable id. */
async function registerAgents(dataDir: string): Promise<Record<Attack, readonly string[]>> {
  const database = await openDatabase({ databaseUrl: null, dataDir, log: pino({ level: "error" }) });
  const agents = Object.fromEntries(ATTACK_NAMES.map((attack) => [attack, [] as string[]])) as Record<Attack, string[]>;
  for (let owner = 0; owner < OWNERS; owner++) {
    const [accountId, handle] = [uuidv7(), `attacker-${owner}`];
    await database.prisma.account.create({ data: { id: accountId, handle } });
    for (const attack of ATTACK_NAMES) {
      const name = attack.replaceAll(" ", "-");
      const bundle = `export default async () => {${ATTACKS[attack].body}};`;
      await database.prisma.communityModel.create({
        data: {
          id: uuidv7(),
          accountId,
          type: "code_agent",
          name,
          title: attack,
          visibility: "public",
          inputModalities: ["text"],
          outputModalities: ["text"],
          agent: { create: { repository: "https://git.example/attacker/agent", deployedCommitSha: "0".repeat(40), bundle } },
        },
      });
      agents[attack].push(`community/${handle}/${name}`);
    }
  }
  await database.close();
  return agents;
}
