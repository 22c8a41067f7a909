/**
 * The metrics of a gateway of several processes: each tells its own as data, and whoever is scraped adds them up. Counters and histograms
 * are sums; a gauge says itself what becomes of several.
 */
import type { Registry } from "prom-client";

/** One metric of one process, as prom-client has it. */
export type FamilyOfProcess = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>[number];

/** Where prom-client's own way would hide one busy process among idle ones, or leave out what is asked for. */
const AGGREGATORS = new Map<string, FamilyOfProcess["aggregator"]>([
  ["nodejs_eventloop_lag_seconds", "max"],
  ["nodejs_eventloop_lag_min_seconds", "min"],
  ["nodejs_eventloop_lag_max_seconds", "max"],
  ["nodejs_eventloop_lag_p90_seconds", "max"],
  ["nodejs_eventloop_lag_p99_seconds", "max"],
  ["process_start_time_seconds", "min"],
]);

/** What grows as long as its process lives. */
const GROWING: ReadonlySet<unknown> = new Set(["counter", "histogram"]);

/** In Prometheus's text format. */
export async function toText(processes: readonly FamilyOfProcess[][]): Promise<string> {
  return (await registryOf(processes)).metrics();
}

/**
 * What is left to be told of processes that have ended: their counters and histograms in one. A sum that fell when one of them ended would
 * look to Prometheus as if all had begun anew.
 */
export async function toEnded(processes: readonly FamilyOfProcess[][]): Promise<FamilyOfProcess[]> {
  const growing = processes.map((families) => families.filter(({ type }) => GROWING.has(type)));
  return (await registryOf(growing)).getMetricsAsJSON();
}

async function registryOf(processes: readonly FamilyOfProcess[][]) {
  // Loaded when it is asked for, as a whole: of a CommonJS package in a bundle there are no names to import.
  const { default: prometheus } = await import("prom-client");
  const told = processes.map((families) =>
    families.map((family) => ({ ...family, aggregator: AGGREGATORS.get(family.name) ?? family.aggregator })),
  );
  return prometheus.AggregatorRegistry.aggregate(told);
}
