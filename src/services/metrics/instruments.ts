/**
 * Metric instruments as plain numbers, which cost a generation next to nothing (prom-client's counters take a microsecond each, its
 * histograms two). Each is read the way prom-client's registry reads its own.
 */

/** `first` and `max` are for values that are the same in every process. */
export type Aggregator = "sum" | "min" | "max" | "first";

export type Labels = Readonly<Record<string, string>>;

export interface Sample {
  /** Where it differs from the family's. */
  readonly metricName?: string;
  readonly labels: Labels;
  readonly value: number;
}

/** One metric with all its labels, in the form for a scraper. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  /** How the values of several processes are combined. */
  readonly aggregator: Aggregator;
  readonly values: readonly Sample[];
}

export interface Instrument {
  readonly name: string;
  get(): Promise<Family>;
}

export interface Description {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  /** Of a gauge; default `sum`. */
  readonly aggregator?: Aggregator;
}

/**
 * The most series of one metric. Label values come from closed lists, so this is not reached; if it ever is, further values share one
 * series, so that neither the process nor the scraper runs out of memory.
 */
export const SERIES_MAX = 2_000;
const OTHER = "other";

class SeriesByLabels<Series> {
  readonly #all = new Map<string, { readonly labels: Labels; readonly series: Series }>();
  #foreseen = 0;

  constructor(
    private readonly names: readonly string[],
    private readonly make: () => Series,
  ) {}

  at(values: readonly string[]): Series {
    const key = values.length === 1 ? (values[0] ?? "") : values.join("\n");
    return this.#all.get(key)?.series ?? this.add(key, values);
  }

  /** Makes a known series, which does not count as unbounded. */
  foresee(values: readonly string[]): void {
    const count = this.#all.size;
    this.#foreseen += 1;
    this.at(values);
    if (this.#all.size === count) this.#foreseen -= 1;
  }

  get all(): readonly { readonly labels: Labels; readonly series: Series }[] {
    return [...this.#all.values()];
  }

  private add(key: string, values: readonly string[]): Series {
    const others = this.names.map(() => OTHER);
    if (this.#all.size - this.#foreseen >= SERIES_MAX && key !== others.join("\n")) return this.at(others);
    const labels = Object.fromEntries(this.names.map((name, index) => [name, values[index] ?? ""]));
    const series = this.make();
    this.#all.set(key, { labels, series });
    return series;
  }
}

/** A sum that only grows. */
export interface Sum {
  value: number;
}

export class Counter implements Instrument {
  private readonly sums: SeriesByLabels<Sum>;

  constructor(private readonly description: Description) {
    this.sums = new SeriesByLabels(description.labels ?? [], () => ({ value: 0 }));
    // A metric without labels is 0 from the start, not missing.
    if (!description.labels) this.at();
  }

  get name(): string {
    return this.description.name;
  }

  /** The sum for these label values, to add to. */
  at(...values: string[]): Sum {
    return this.sums.at(values);
  }

  /** Makes the series with 0: Prometheus misses the first increment of a series that begins at 1. */
  foresee(...values: string[]): void {
    this.sums.foresee(values);
  }

  async get(): Promise<Family> {
    const { name, help } = this.description;
    return {
      name,
      help,
      type: "counter",
      aggregator: "sum",
      values: this.sums.all.map(({ labels, series }) => ({ labels, value: series.value })),
    };
  }
}

/** A histogram of durations. */
export class Distribution {
  sum = 0;
  count = 0;
  /** Count of values above the previous bound and up to the one of the same index. */
  readonly counts: Float64Array;

  constructor(private readonly bounds: readonly number[]) {
    this.counts = new Float64Array(bounds.length);
  }

  observe(value: number): void {
    this.sum += value;
    this.count += 1;
    const { bounds } = this;
    for (let index = 0; index < bounds.length; index += 1) {
      if (value > (bounds[index] as number)) continue;
      this.counts[index] = (this.counts[index] as number) + 1;
      return;
    }
  }
}

export class Histogram implements Instrument {
  private readonly distributions: SeriesByLabels<Distribution>;

  constructor(
    private readonly description: Description,
    private readonly bounds: readonly number[],
  ) {
    this.distributions = new SeriesByLabels(description.labels ?? [], () => new Distribution(bounds));
    if (!description.labels) this.at();
  }

  get name(): string {
    return this.description.name;
  }

  at(...values: string[]): Distribution {
    return this.distributions.at(values);
  }

  async get(): Promise<Family> {
    const { name, help } = this.description;
    const values = this.distributions.all.flatMap((each) => this.samplesOf(each.labels, each.series));
    return { name, help, type: "histogram", aggregator: "sum", values };
  }

  private samplesOf(labels: Labels, { counts, count, sum }: Distribution): Sample[] {
    const { name } = this.description;
    let total = 0;
    const buckets = this.bounds.map((bound, index) => {
      total += counts[index] ?? 0;
      return { metricName: `${name}_bucket`, labels: { ...labels, le: String(bound) }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { ...labels, le: "+Inf" }, value: count },
      { metricName: `${name}_sum`, labels, value: sum },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** A current amount: a number, or one per label value. */
export type Reading = number | readonly (readonly [value: string, amount: number])[];

const READ_MS_MAX = 1_000;

/** Empty on failure or timeout, so that other metrics of a gateway in trouble need not wait. */
async function withinTime(read: () => Promise<Reading>): Promise<Reading> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<Reading>((resolve) => {
    timer = setTimeout(resolve, READ_MS_MAX, []);
  });
  const reading = await Promise.race([read().catch(() => []), late]);
  clearTimeout(timer);
  return reading;
}

/** Read only when scraped; left out when it cannot be read. */
export class Gauge implements Instrument {
  constructor(
    private readonly description: Description,
    private readonly read: () => Reading | Promise<Reading>,
  ) {}

  get name(): string {
    return this.description.name;
  }

  async get(): Promise<Family> {
    const { name, help, labels: [label = ""] = [], aggregator = "sum" } = this.description;
    const reading = await withinTime(async () => this.read());
    const values =
      typeof reading === "number"
        ? [{ labels: {}, value: reading }]
        : reading.map(([value, amount]) => ({ labels: { [label]: value }, value: amount }));
    return { name, help, type: "gauge", aggregator, values };
  }
}
