/** Reads the lists of upstreams that state when models are retired: twice a day in each process, never on a generation's path. */
import type { Logger } from "pino";
import { Repeated } from "../../lib/repeated.js";
import { readRetirementDates } from "../../providers/retirement-dates.js";
import type { Catalog } from "./catalog.js";
import { RETIREMENTS_FIRST_READ_MS, RETIREMENTS_READ_MS } from "./limits.js";
import type { Upstream } from "./model.js";
import { Retirements, type StatedRetirements } from "./retirements.js";

/** Vendors whose lists state dates. */
const STATING_VENDORS: ReadonlySet<string> = new Set(["openai", "mistral", "openrouter"]);

export class RetirementReader {
  private retirements: Retirements;
  private readonly controller = new AbortController();
  private readonly reads: Repeated;
  private first: NodeJS.Timeout | undefined;

  constructor(
    stated: StatedRetirements,
    private readonly catalog: Pick<Catalog, "retire" | "upstreams">,
    private readonly log: Logger,
  ) {
    this.retirements = new Retirements(stated);
    catalog.retire(this.retirements);
    this.reads = new Repeated(() => this.run(), log, "the lists of upstreams could not be read");
  }

  start(): void {
    this.reads.every(RETIREMENTS_READ_MS);
    this.first = setTimeout(() => void this.reads.now(), RETIREMENTS_FIRST_READ_MS).unref();
  }

  async close(): Promise<void> {
    clearTimeout(this.first);
    this.controller.abort(new Error("The service is stopping."));
    await this.reads.close();
  }

  /** Reads every list once. One that cannot be read keeps its former dates. */
  async run(): Promise<void> {
    for (const upstream of this.catalog.upstreams.values()) {
      if (upstream.vendor === undefined || !STATING_VENDORS.has(upstream.vendor)) continue;
      if (this.controller.signal.aborted) return;
      await this.read(upstream).catch((error: unknown) =>
        this.log.info(
          { err: error, upstream: upstream.id },
          "an upstream's list of models could not be read: its dates of retirement stay",
        ),
      );
    }
  }

  private async read(upstream: Upstream): Promise<void> {
    const dates = await readRetirementDates(upstream, this.controller.signal);
    this.retirements = this.retirements.with(upstream.id, dates);
    this.catalog.retire(this.retirements);
  }
}
