/** Turns usage by time and model into stacks of a chart. Smaller models are combined, and empty periods are filled in. */
import type { Stack } from "./chart.js";

export interface TimeSum {
  readonly from: string | null;
  readonly modelId: string | null;
  /** Name of the series. Without one it is the model. */
  readonly name?: string;
  readonly requests: number;
  readonly cost: string;
}

export interface Times {
  /** Start of the first stack, in milliseconds since 1970. */
  readonly first: number;
  /** Milliseconds of one stack. */
  readonly step: number;
  readonly count: number;
}

const MODELS_SHOWN = 7;

export function toStacks(
  sums: readonly TimeSum[],
  { first, step, count }: Times,
  shown: "cost" | "requests",
  noun: "model" | "key" = "model",
): { readonly stacks: readonly Stack[]; readonly series: readonly string[] } {
  const others = `Other ${noun}s`;
  const amountOf = (sum: TimeSum) => (shown === "cost" ? Number(sum.cost) : sum.requests);
  const within = sums.filter(({ from }) => from !== null && Date.parse(from) >= first);
  const totals = new Map<string, number>();
  for (const sum of within) totals.set(nameOf(sum), (totals.get(nameOf(sum)) ?? 0) + amountOf(sum));
  const largest = [...totals].sort(([, one], [, other]) => other - one).map(([name]) => name);
  const named = new Set(largest.length > MODELS_SHOWN + 1 ? largest.slice(0, MODELS_SHOWN) : largest);
  const stacks = Array.from({ length: count }, (_, index) => ({
    from: new Date(first + index * step).toISOString(),
    values: new Map<string, number>(),
  }));
  for (const sum of within) {
    const values = stacks[Math.floor((Date.parse(sum.from ?? "") - first) / step)]?.values;
    const name = named.has(nameOf(sum)) ? nameOf(sum) : others;
    values?.set(name, (values.get(name) ?? 0) + amountOf(sum));
  }
  return { stacks, series: [...named, ...(largest.length > named.size ? [others] : [])] };
}

function nameOf({ modelId, name }: TimeSum): string {
  return name ?? modelId ?? "Removed models";
}
