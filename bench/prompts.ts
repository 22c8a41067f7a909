/**
 * The effect of one caller with long prompts on all others: the latency of chats at a fixed rate while that caller
 * sends one after the other, alternately with the same rate without. A prompt blocks the event loop for its longest
 * uninterrupted step.
 */
import { readFileSync } from "node:fs";
import { type Contender, startProgram } from "./contenders.js";
import { type Entry, runRateRound, type Settings, withContenders } from "./scenarios.js";
import { stopProcess } from "./support/process.js";
import { format, median, percentile, toTable } from "./support/statistics.js";

export const PROMPT_CHARS = 400_000;
/** To the p99 of the others, in milliseconds; as much on either database. */
const ADDED_P99_MS_MAX = 5;
const END_MS_MAX = 60_000;

interface PromptsRound {
  /** Every answer's latency in milliseconds. */
  readonly alone: readonly number[];
  readonly beside: readonly number[];
  /** Whole answers to long prompts. */
  readonly prompts: number;
  /** How late the event loop was at most, in milliseconds; null of a contender that does not tell. */
  readonly lagMs: number | null;
}

export interface PromptsOutcome {
  readonly contender: Contender;
  readonly rounds: readonly PromptsRound[];
}

export function measurePrompts(settings: Settings): Promise<readonly PromptsOutcome[]> {
  return withContenders(settings, { chunks: 1, paceMs: 0, delayMs: 0 }, ["json"], async (entries) => {
    for (const entry of entries) await runRound(settings, entry);
    const rounds = entries.map((): PromptsRound[] => []);
    for (let round = 0; round < settings.rounds; round++) {
      for (const [index, entry] of entries.entries()) rounds[index]?.push(await runRound(settings, entry));
    }
    return entries.map(({ contender }, index) => ({ contender, rounds: rounds[index] ?? [] }));
  });
}

async function runRound(settings: Settings, entry: Entry): Promise<PromptsRound> {
  const alone = await runRateRound(settings, entry);
  const caller = startCaller(settings, entry);
  await entry.running.lagMs();
  const beside = await runRateRound(settings, entry);
  const lagMs = await entry.running.lagMs();
  return { alone, beside, lagMs, prompts: await caller.stop() };
}

let callers = 0;

/** Stopping resolves with how many prompts were answered, when the last one is. */
function startCaller({ directory, complain }: Settings, entry: Entry) {
  const { contender, running } = entry;
  const { url, headers, body } = running.target("json");
  const { model } = JSON.parse(body) as { readonly model: string };
  const args = ["--url", url, "--headers", JSON.stringify(headers), "--model", model, "--chars", String(PROMPT_CHARS)];
  callers += 1;
  const started = startProgram("prompter", args, directory, `prompter-${callers}`);
  return {
    stop: async (): Promise<number> => {
      await stopProcess(started, "SIGTERM", END_MS_MAX);
      const told = readFileSync(started.logFile, "utf8");
      const { completed, failures } = JSON.parse(told.trim().split("\n").at(-1) ?? "{}") as { completed: number; failures: number };
      if (failures > 0) complain(`${contender.name}: ${failures} long prompts failed.`);
      entry.completed += completed;
      entry.uncertain += failures;
      return completed;
    },
  };
}

export function promptsTable(outcomes: readonly PromptsOutcome[]): string {
  const rows = outcomes.map(({ contender, rounds }) => {
    const [alone, beside] = [rounds.flatMap((round) => round.alone), rounds.flatMap((round) => round.beside)];
    return [
      contender.name,
      format(rounds.reduce((sum, { prompts }) => sum + prompts, 0)),
      ...[alone, beside].flatMap((latencies) => [50, 99].map((percent) => format(percentile(latencies, percent), 2))),
      format(addedP99(rounds), 2),
      format(median(rounds.flatMap(({ lagMs }) => lagMs ?? [])), 1),
    ];
  });
  const header = ["", "prompts", "p50 ms", "p99 ms", "p50 ms beside", "p99 ms beside", "added p99 ms", "event loop late at most, ms"];
  return toTable(header, rows);
}

export function checkPrompts(outcomes: readonly PromptsOutcome[]): string {
  return outcomes
    .filter(({ contender }) => contender.id.startsWith("sluice"))
    .map(({ contender, rounds }) => {
      const added = addedP99(rounds);
      const said = `${contender.name}, ${format(added, 2)} ms added to the p99 of others by a caller of long prompts`;
      return `${added <= ADDED_P99_MS_MAX ? "met" : "MISSED"}: ${said} (target at most ${ADDED_P99_MS_MAX})`;
    })
    .join("\n");
}

/** Median of the rounds' differences, each of which was measured within seconds. */
function addedP99(rounds: readonly PromptsRound[]): number {
  return median(rounds.map(({ alone, beside }) => percentile(beside, 99) - percentile(alone, 99)));
}
