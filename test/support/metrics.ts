/** Metrics as a scraper reads them. */

export interface MetricSample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Scrape {
  readonly samples: readonly MetricSample[];
  /** By the name of the metric. */
  readonly helps: ReadonlyMap<string, string>;
  /** The sum of the samples with these labels, and any others. */
  sum(name: string, labels?: Readonly<Record<string, string>>): number;
}

/** Throws at a line that is not in Prometheus's text format. */
export function parseMetrics(text: string): Scrape {
  const helps = new Map<string, string>();
  const samples: MetricSample[] = [];
  for (const line of text.split("\n")) {
    const [, helped, help] = /^# HELP (\S+) (.*)$/.exec(line) ?? [];
    if (helped !== undefined) helps.set(helped, help ?? "");
    if (line === "" || line.startsWith("#")) continue;
    const [, name, labels = "", value] = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`Not a sample: ${line}`);
    samples.push({ name, labels: parseLabels(labels), value: Number(value?.replace("Inf", "Infinity")) });
  }
  const sum: Scrape["sum"] = (name, labels = {}) =>
    samples
      .filter((sample) => sample.name === name && Object.entries(labels).every(([label, value]) => sample.labels[label] === value))
      .reduce((total, { value }) => total + value, 0);
  return { samples, helps, sum };
}

function parseLabels(text: string): Record<string, string> {
  const pairs = [...text.matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|$)/g)];
  if (pairs.map(([pair]) => pair).join("") !== text) throw new Error(`Not labels: ${text}`);
  return Object.fromEntries(
    pairs.map(([, name, value]) => [name, value?.replace(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter))]),
  );
}
