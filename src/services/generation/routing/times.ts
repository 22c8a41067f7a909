/** Measured times of routes: decayed medians of the last samples, with the medians of other processes among them. */
import { LRUCache } from "lru-cache";
import { entriesMax } from "../../../lib/bounded.js";
import type { Clock } from "../../../lib/clock.js";
import type { Route } from "../../catalog/route.js";
import { callIdOf, ROUTE_STATES_MAX } from "./health.js";

/** Unspecified: samples of a route, their age, and the least time between two announcements of its medians. */
const SAMPLES_MAX = 31;
const AGE_MS_MAX = 600_000;
const TOLD_MS = 2_000;
/** Unspecified: the weight of a sample, as a part of that of the next one. */
const DECAY = 0.85;

/** Milliseconds; null: not measured. */
export interface TimesOfRoute {
  /** To the first piece of a stream, or to a whole answer. */
  readonly firstMs: number | null;
  /** For each token of output. */
  readonly tokenMs: number | null;
}

export interface TimesChange extends TimesOfRoute {
  readonly id: string;
}

interface Sample {
  readonly at: number;
  readonly ms: number;
}

interface Measured {
  readonly first: Sample[];
  readonly token: Sample[];
  toldAt: number;
}

export class RouteTimes {
  private readonly measured = new LRUCache<string, Measured>(entriesMax(ROUTE_STATES_MAX));

  constructor(
    private readonly clock: Clock,
    private readonly onChange: (change: TimesChange) => void = () => undefined,
  ) {}

  of(route: Route): TimesOfRoute {
    const known = this.measured.get(callIdOf(route));
    if (!known) return { firstMs: null, tokenMs: null };
    const now = this.clock.now().getTime();
    return { firstMs: medianOf(known.first, now), tokenMs: medianOf(known.token, now) };
  }

  /** Milliseconds since 1970 of its last sample; 0: none. */
  measuredAtOf(route: Route): number {
    const known = this.measured.get(callIdOf(route));
    return Math.max(known?.first.at(-1)?.at ?? 0, known?.token.at(-1)?.at ?? 0);
  }

  noteFirst(route: Route, ms: number): void {
    this.note(callIdOf(route), ms, null);
    this.tell(callIdOf(route));
  }

  /** `tokens` of output in that time. */
  noteTokens(route: Route, ms: number, tokens: number): void {
    if (tokens > 0) this.note(callIdOf(route), null, ms / tokens);
  }

  /** Of another process: its medians are one sample each. `at`: milliseconds since 1970, default now. */
  learn({ id, firstMs, tokenMs }: TimesChange, at?: number): void {
    this.note(id, firstMs, tokenMs, at);
  }

  private note(id: string, firstMs: number | null, tokenMs: number | null, at = this.clock.now().getTime()): void {
    let known = this.measured.get(id);
    if (!known) {
      known = { first: [], token: [], toldAt: at - TOLD_MS };
      this.measured.set(id, known);
    }
    if (firstMs !== null) add(known.first, { at, ms: firstMs });
    if (tokenMs !== null) add(known.token, { at, ms: tokenMs });
  }

  private tell(id: string): void {
    const now = this.clock.now().getTime();
    const known = this.measured.get(id);
    if (!known || now - known.toldAt < TOLD_MS) return;
    known.toldAt = now;
    this.onChange({ id, firstMs: medianOf(known.first, now), tokenMs: medianOf(known.token, now) });
  }
}

function add(samples: Sample[], sample: Sample): void {
  samples.push(sample);
  if (samples.length > SAMPLES_MAX) samples.shift();
}

/** The median by weight, where the newest sample weighs most: five samples of another size move it. */
function medianOf(samples: readonly Sample[], now: number): number | null {
  const recent = samples.filter(({ at }) => now - at < AGE_MS_MAX);
  const weighed = recent.map(({ ms }, index) => ({ ms, weight: DECAY ** (recent.length - 1 - index) }));
  weighed.sort((one, other) => one.ms - other.ms);
  let rest = weighed.reduce((sum, { weight }) => sum + weight, 0) / 2;
  for (const { ms, weight } of weighed) {
    rest -= weight;
    if (rest < 0) return ms;
  }
  return weighed.at(-1)?.ms ?? null;
}
