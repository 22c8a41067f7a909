/**
 * Adds up the metrics of several processes, which each report as data. Counters and histograms are sums; each gauge states its aggregator.
 */
import type { Registry } from "prom-client";

/** One metric of one process in prom-client's form. */
export type FamilyOfProcess = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>[number];

/** Where prom-client's default would hide a busy process among idle ones, or leave a metric out. */
const AGGREGATORS = new Map<string, FamilyOfProcess["aggregator"]>([
  ["nodejs_eventloop_lag_seconds", "max"],
  ["nodejs_eventloop_lag_min_seconds", "min"],
  ["nodejs_eventloop_lag_max_seconds", "max"],
  ["nodejs_eventloop_lag_p90_seconds", "max"],
  ["nodejs_eventloop_lag_p99_seconds", "max"],
  ["process_start_time_seconds", "min"],
]);

/** Metrics that only grow while their process lives. */
const GROWING: ReadonlySet<unknown> = new Set(["counter", "histogram"]);

export async function toText(processes: readonly FamilyOfProcess[][]): Promise<string> {
  return (await registryOf(processes)).metrics();
}

/** Counters and histograms of ended processes, in one. If a sum fell when a process ends, Prometheus would take it for a restart of all. */
export async function toEnded(processes: readonly FamilyOfProcess[][]): Promise<FamilyOfProcess[]> {
  const growing = processes.map((families) => families.filter(({ type }) => GROWING.has(type)));
  return (await registryOf(growing)).getMetricsAsJSON();
}

async function registryOf(processes: readonly FamilyOfProcess[][]) {
  // Loaded on first use, as a whole: a CommonJS package in a bundle has no named exports.
  const { default: prometheus } = await import("prom-client");
  const aggregated = processes.map((families) =>
    families.map((family) => ({ ...family, aggregator: AGGREGATORS.get(family.name) ?? family.aggregator })),
  );
  return prometheus.AggregatorRegistry.aggregate(aggregated);
}
