/** The tables that the benchmark prints, and whether the project's targets were met. */
import type { Contender } from "./contenders.js";
import type { LoadOutcome, MemoryOutcome, RateOutcome, Round } from "./scenarios.js";
import { format, median, medianRatio, percentile, toTable } from "./support/statistics.js";

/** What the project promises on two cores, everything on the same machine (docs/performance.md). */
const BARE_SHARE_MIN = 0.3;
const MEDIA_BARE_SHARE_MIN = 0.6;
const PORTKEY_RATIO_MIN = 6;
const ADDED_P50_MS_MAX = 2;
const SLOW_STREAMS_MB_MAX = 300;

export function loadTable(outcomes: readonly LoadOutcome[]): string {
  const bare = ratesOf(outcomes, "bare");
  const portkey = ratesOf(outcomes, "portkey");
  const header = ["", "requests/s", "p50 ms", "p99 ms", "CPU µs/request", "database CPU µs/request", "peak MB", "x bare", "x Portkey"];
  const rows = outcomes.map(({ contender, rounds, peakMb }) => [
    contender.name,
    format(median(rounds.map((round) => round.requestsPerSecond))),
    format(median(rounds.map((round) => round.p50Ms)), 2),
    format(median(rounds.map((round) => round.p99Ms)), 2),
    format(medianKnown(rounds, "cpuMicroseconds")),
    format(medianKnown(rounds, "databaseCpuMicroseconds")),
    format(peakMb),
    format(medianRatio(rates(rounds), bare), 2),
    format(medianRatio(rates(rounds), portkey), 2),
  ]);
  return toTable(header, rows);
}

export function rateTable(outcomes: readonly RateOutcome[]): string {
  const rows = outcomes.map((outcome) => {
    const all = outcome.rounds.flat();
    const addedP50 = added(outcomes, outcome);
    return [outcome.contender.name, format(percentile(all, 50), 2), format(percentile(all, 99), 2), format(addedP50, 2)];
  });
  return toTable(["", "p50 ms", "p99 ms", "added p50 ms"], rows);
}

export function memoryTable(outcomes: readonly MemoryOutcome[]): string {
  const rows = outcomes.map((outcome) => [
    outcome.contender.name,
    format(outcome.completed),
    format(outcome.idleMb),
    format(outcome.peakMb),
    format(outcome.cpuMicroseconds),
    format(percentile(outcome.firstByteMs, 50), 1),
    format(percentile(outcome.firstByteMs, 99), 1),
  ]);
  return toTable(["", "streams completed", "idle MB", "peak MB", "CPU µs/stream", "first byte p50 ms", "first byte p99 ms"], rows);
}

/** One line for each variant of Sluice and target. */
export const checkTargets = {
  json(outcomes: readonly LoadOutcome[]): string {
    const bare = ratesOf(outcomes, "bare");
    const portkey = ratesOf(outcomes, "portkey");
    return ofSluice(outcomes, ({ contender, rounds }) => [
      verdict(contender, "of the bare pass-through's requests a second", medianRatio(rates(rounds), bare), "at least", BARE_SHARE_MIN, 2),
      verdict(contender, "times Portkey's requests a second", medianRatio(rates(rounds), portkey), "at least", PORTKEY_RATIO_MIN, 2),
    ]);
  },
  media(outcomes: readonly LoadOutcome[]): string {
    const bare = ratesOf(outcomes, "bare");
    return ofSluice(outcomes, ({ contender, rounds }) => [
      verdict(contender, "of the bare pass-through's throughput", medianRatio(rates(rounds), bare), "at least", MEDIA_BARE_SHARE_MIN, 2),
    ]);
  },
  rate(outcomes: readonly RateOutcome[]): string {
    return ofSluice(outcomes, (outcome) => [
      verdict(outcome.contender, "ms added to p50", added(outcomes, outcome), "under", ADDED_P50_MS_MAX, 2),
    ]);
  },
  memory(outcomes: readonly MemoryOutcome[]): string {
    return ofSluice(outcomes, ({ contender, peakMb }) => [verdict(contender, "MB at most", peakMb, "under", SLOW_STREAMS_MB_MAX, 0)]);
  },
};

/** Median of the rounds' differences of p50 to the upstream alone, which was measured next to it. */
function added(outcomes: readonly RateOutcome[], outcome: RateOutcome): number {
  const direct = outcomes.find(({ contender }) => contender.id === "upstream");
  return median(outcome.rounds.map((round, index) => percentile(round, 50) - percentile(direct?.rounds[index] ?? [], 50)));
}

function rates(rounds: readonly Round[]): readonly number[] {
  return rounds.map((round) => round.requestsPerSecond);
}

function ratesOf(outcomes: readonly LoadOutcome[], id: Contender["id"]): readonly number[] {
  return rates(outcomes.find(({ contender }) => contender.id === id)?.rounds ?? []);
}

function medianKnown(rounds: readonly Round[], field: "cpuMicroseconds" | "databaseCpuMicroseconds"): number {
  return median(rounds.flatMap((round) => (round[field] === null ? [] : [round[field]])));
}

function ofSluice<Outcome extends { readonly contender: Contender }>(
  outcomes: readonly Outcome[],
  lines: (outcome: Outcome) => readonly string[],
): string {
  return outcomes
    .filter(({ contender }) => contender.id.startsWith("sluice"))
    .flatMap(lines)
    .join("\n");
}

function verdict(
  contender: Contender,
  what: string,
  value: number | null,
  sense: "at least" | "under",
  bound: number,
  digits: number,
): string {
  const target = `target ${sense} ${bound}`;
  if (value === null || Number.isNaN(value)) return `not measured: ${contender.name}, ${what} (${target})`;
  const isMet = sense === "at least" ? value >= bound : value < bound;
  return `${isMet ? "met" : "MISSED"}: ${contender.name}, ${format(value, digits)} ${what} (${target})`;
}
