/** The tables that the benchmark prints, and whether the project's targets were met. */
import type { Contender, PeerId } from "./contenders.js";
import { PEERS } from "./peers.js";
import type { Load, LoadOutcome, MemoryOutcome, RateOutcome, Round } from "./scenarios.js";
import type { Flushes } from "./support/flushes.js";
import { format, median, medianRatio, percentile, toTable } from "./support/statistics.js";

/**
 * What the project promises on two cores, everything on the same machine (docs/performance.md), of Sluice on PostgreSQL; the embedded
 * database, which works on the same two cores, may cost half as much again.
 */
const EMBEDDED_SHARE = 2 / 3;
/** Of the bare pass-through's requests a second, by connections: with few of them everybody waits for the disk. */
const JSON_BARE_SHARE_MIN: ReadonlyMap<number, number> = new Map([
  [32, 0.25],
  [256, 0.45],
]);
const SSE_BARE_SHARE_MIN = 0.55;
const CPU_RATIO_MAX = 2.2;
/** Times another gateway's requests a second. */
const PEER_RATIO_MIN: Readonly<Record<PeerId, number>> = { portkey: 5, "one-api": 6, litellm: 40 };
/** By the upstream's delay in milliseconds. */
const ADDED_P50_MS_MAX: ReadonlyMap<number, number> = new Map([
  [0, 1.2],
  [20, 1.5],
]);
/** Of the bare pass-through's throughput, on either database. */
const MEDIA_BARE_SHARE_MIN = { image: 0.7, speech: 0.8 };
const SLOW_STREAMS_ADDED_MB_MAX = 60;

const LOAD_HEADER = [
  "",
  "requests/s",
  "p50 ms",
  "p99 ms",
  "CPU µs/request",
  "CPU x bare",
  "database CPU µs/request",
  "flush ms",
  "operations/flush",
  "peak MB",
  "x bare",
];

export function loadTable(outcomes: readonly LoadOutcome[]): string {
  const bare = ratesOf(outcomes, "bare");
  const peers = peersOf(outcomes);
  const rows = outcomes.map((outcome) => {
    const { contender, rounds, peakMb } = outcome;
    const flushes = flushesOf(rounds);
    return [
      contender.name,
      format(median(rounds.map((round) => round.requestsPerSecond))),
      format(median(rounds.map((round) => round.p50Ms)), 2),
      format(median(rounds.map((round) => round.p99Ms)), 2),
      format(median(knownOf(rounds, "cpuMicroseconds"))),
      format(cpuRatio(outcomes, outcome), 2),
      format(median(knownOf(rounds, "databaseCpuMicroseconds"))),
      format(flushes && (flushes.seconds * 1_000) / flushes.count, 2),
      format(flushes && flushes.operations / flushes.count, 1),
      format(peakMb),
      format(medianRatio(rates(rounds), bare), 2),
      ...peers.map((peer) => format(medianRatio(rates(rounds), ratesOf(outcomes, peer.id)), 2)),
    ];
  });
  return toTable([...LOAD_HEADER, ...peers.map(({ shortName }) => `x ${shortName}`)], rows);
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
    format(outcome.startCpuMicroseconds === null ? null : outcome.startCpuMicroseconds / 1_000),
    format(outcome.idleMb),
    format(outcome.peakMb),
    format(outcome.cpuMicroseconds),
    format(percentile(outcome.firstByteMs, 50), 1),
    format(percentile(outcome.firstByteMs, 99), 1),
  ]);
  return toTable(
    ["", "streams completed", "restart CPU ms", "idle MB", "peak MB", "CPU µs/stream", "first byte p50 ms", "first byte p99 ms"],
    rows,
  );
}

/** One line for each variant of Sluice and target. */
export const checkTargets = {
  load(outcomes: readonly LoadOutcome[], { workload, connections }: Load): string {
    const bare = ratesOf(outcomes, "bare");
    return ofSluice(outcomes, (outcome) => {
      const { contender } = outcome;
      const ratio = medianRatio(rates(outcome.rounds), bare);
      const share = (least: number, what: string) =>
        verdict(contender, `${what} at ${connections} connections`, ratio, { sense: "at least", bound: least, digits: 2 });
      if (workload === "image" || workload === "speech")
        return [share(MEDIA_BARE_SHARE_MIN[workload], "of the bare pass-through's throughput")];

      const least = workload === "sse" ? SSE_BARE_SHARE_MIN : JSON_BARE_SHARE_MIN.get(connections);
      const lines = least === undefined ? [] : [share(least * shareOf(contender), "of the bare pass-through's requests a second")];
      if (workload === "sse") return lines;
      const cpu = { sense: "at most", bound: CPU_RATIO_MAX / shareOf(contender), digits: 2 } as const;
      const beside = peersOf(outcomes).map(({ id, shortName }) => {
        const what = `times the requests a second of ${shortName} at ${connections} connections`;
        const target = { sense: "at least", bound: PEER_RATIO_MIN[id] * shareOf(contender), digits: 2 } as const;
        return verdict(contender, what, medianRatio(rates(outcome.rounds), ratesOf(outcomes, id)), target);
      });
      return [
        ...lines,
        verdict(
          contender,
          `times the bare pass-through's CPU for each request at ${connections} connections`,
          cpuRatio(outcomes, outcome),
          cpu,
        ),
        ...beside,
      ];
    });
  },
  rate(outcomes: readonly RateOutcome[], delayMs: number): string {
    const most = ADDED_P50_MS_MAX.get(delayMs);
    if (most === undefined) return "";
    return ofSluice(outcomes, (outcome) => {
      const { contender } = outcome;
      const target = { sense: "at most", bound: most / shareOf(contender), digits: 2 } as const;
      return [verdict(contender, "ms added to p50", added(outcomes, outcome), target)];
    });
  },
  memory(outcomes: readonly MemoryOutcome[]): string {
    return ofSluice(outcomes, ({ contender, idleMb, peakMb }) => {
      const grown = idleMb === null || peakMb === null ? null : peakMb - idleMb;
      return [verdict(contender, "MB added by the streams", grown, { sense: "at most", bound: SLOW_STREAMS_ADDED_MB_MAX, digits: 0 })];
    });
  },
};

function shareOf(contender: Contender): number {
  return contender.id === "sluice" ? EMBEDDED_SHARE : 1;
}

/** Median of the rounds' differences of p50 to the upstream alone, which was measured next to it. */
function added(outcomes: readonly RateOutcome[], outcome: RateOutcome): number {
  const direct = outcomes.find(({ contender }) => contender.id === "upstream");
  return median(outcome.rounds.map((round, index) => percentile(round, 50) - percentile(direct?.rounds[index] ?? [], 50)));
}

function peersOf(outcomes: readonly LoadOutcome[]) {
  return PEERS.filter(({ id }) => outcomes.some(({ contender }) => contender.id === id));
}

function rates(rounds: readonly Round[]): readonly number[] {
  return rounds.map((round) => round.requestsPerSecond);
}

function ratesOf(outcomes: readonly LoadOutcome[], id: Contender["id"]): readonly number[] {
  return rates(outcomes.find(({ contender }) => contender.id === id)?.rounds ?? []);
}

/** CPU for each request, as a multiple of the bare pass-through's in the same round. */
function cpuRatio(outcomes: readonly LoadOutcome[], { rounds }: LoadOutcome): number {
  const bare = outcomes.find(({ contender }) => contender.id === "bare")?.rounds ?? [];
  return medianRatio(knownOf(rounds, "cpuMicroseconds"), knownOf(bare, "cpuMicroseconds"));
}

/** It is known of every round, or of none. */
function knownOf(rounds: readonly Round[], field: "cpuMicroseconds" | "databaseCpuMicroseconds"): readonly number[] {
  return rounds.flatMap((round) => round[field] ?? []);
}

/** All of the rounds together; null of a contender that has none. */
function flushesOf(rounds: readonly Round[]): Flushes | null {
  const known = rounds.flatMap(({ flushes }) => flushes ?? []);
  if (known.length === 0) return null;
  return known.reduce((sum, each) => ({
    count: sum.count + each.count,
    seconds: sum.seconds + each.seconds,
    operations: sum.operations + each.operations,
  }));
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

interface Bound {
  readonly sense: "at least" | "at most";
  readonly bound: number;
  readonly digits: number;
}

function verdict(contender: Contender, what: string, value: number | null, { sense, bound, digits }: Bound): string {
  const target = `target ${sense} ${format(bound, digits)}`;
  if (value === null || Number.isNaN(value)) return `not measured: ${contender.name}, ${what} (${target})`;
  const isMet = sense === "at least" ? value >= bound : value <= bound;
  return `${isMet ? "met" : "MISSED"}: ${contender.name}, ${format(value, digits)} ${what} (${target})`;
}
