/**
 * Keeps the catalog's local models in sync with the local server (docs/operating.md#configuration, `OLLAMA_BASE_URL`). Polls in the
 * background, never on a generation's path: a server that is down keeps its last list, and is noticed when it is up again.
 */

import { isDeepStrictEqual } from "node:util";
import type { Logger } from "pino";
import { Repeated } from "../../lib/repeated.js";
import { LOCAL_REFRESH_MS, LOCAL_START_WAIT_MS } from "../../limits.js";
import { type LocalModel, LocalModelServer } from "../../providers/ollama.js";
import type { Catalog } from "./catalog.js";
import { serverUrlOf, toLocalSource } from "./local.js";

export class LocalModels {
  private readonly server: LocalModelServer;
  private readonly controller = new AbortController();
  private models: readonly LocalModel[] = [];
  private isAnswering: boolean | null = null;
  private readonly polls: Repeated;

  constructor(
    private readonly baseUrl: string,
    private readonly catalog: Pick<Catalog, "replaceSource">,
    private readonly log: Logger,
    private readonly refreshMs = LOCAL_REFRESH_MS,
  ) {
    this.server = new LocalModelServer(serverUrlOf(baseUrl));
    this.polls = new Repeated(() => this.poll(), log, "the local model server could not be asked");
  }

  /** Resolves after the first answer, or after the longest wait of a start. */
  async start(): Promise<void> {
    this.polls.every(this.refreshMs);
    let waited: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      waited = setTimeout(resolve, LOCAL_START_WAIT_MS);
    });
    await Promise.race([this.refresh(), enough]);
    clearTimeout(waited);
  }

  /** Polls now, unless a poll is under way. Never rejects. */
  refresh(): Promise<void> {
    return this.polls.now();
  }

  async stop(): Promise<void> {
    this.controller.abort(new Error("The service is stopping."));
    await this.polls.close();
    await this.server.close();
  }

  private async poll(): Promise<void> {
    try {
      const models = await this.server.list(this.controller.signal);
      if (this.isAnswering !== true) this.log.info({ baseUrl: this.baseUrl, models: models.length }, "the local model server answers");
      this.isAnswering = true;
      if (isDeepStrictEqual(models, this.models)) return;
      this.catalog.replaceSource(toLocalSource(this.baseUrl, models));
      this.models = models;
    } catch (error) {
      if (this.isAnswering !== false && !this.controller.signal.aborted) {
        this.log.warn({ err: error, baseUrl: this.baseUrl }, "the local model server does not answer; it is asked again");
      }
      this.isAnswering = false;
    }
  }
}
