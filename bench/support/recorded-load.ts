/** Load whose every answer is written down, so that it can be held against the books afterwards. */
import { setTimeout as sleep } from "node:timers/promises";
import { Pool } from "undici";
import { parseNanocredits, toPlainDecimal } from "../../src/lib/money.js";
import type { Workload } from "./documents.js";
import type { Target } from "./load.js";

/** A caller that was refused, or found no server, tries again after this time. */
const RETRY_MS = 25;
const END_MARK = "data: [DONE]";
const TAIL_CHARS = 4_096;

export interface Answer {
  readonly stream: boolean;
  /** `performance.now()`. */
  readonly startedAt: number;
  readonly endedAt: number;
  /** Null: the connection was refused or broke before the headers. */
  readonly status: number | null;
  /** The last byte came: the JSON body's, or `[DONE]`. */
  readonly isWhole: boolean;
  readonly generationId: string | null;
  /** What the answer said that it cost; null when it did not say, or was not whole. */
  readonly costNanocredits: bigint | null;
  readonly retryAfter: string | null;
}

export class RecordedLoad {
  readonly answers: Answer[] = [];
  /** Streams that have begun, of all that were asked for. */
  openedStreams = 0;
  private isStopped = false;
  private readonly pool: Pool;
  private readonly callers: Promise<void>[] = [];

  constructor(private readonly targetOf: (workload: Workload) => Target) {
    this.pool = new Pool(new URL(targetOf("json").url).origin, { connections: 1_024, headersTimeout: 90_000, bodyTimeout: 90_000 });
  }

  /** Callers that ask again as soon as they are answered, until `stop`. */
  start(count: number, stream: boolean): void {
    for (let index = 0; index < count; index++) this.callers.push(this.call(stream));
  }

  /** Callers that ask once. */
  startOnce(count: number, stream: boolean): Promise<readonly Answer[]> {
    return Promise.all(Array.from({ length: count }, () => this.ask(stream)));
  }

  /** Resolves when every answer that is under way has ended. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.callers);
    await this.pool.destroy();
  }

  private async call(stream: boolean): Promise<void> {
    while (!this.isStopped) {
      const answer = await this.ask(stream);
      if (answer.status !== 200) await sleep(RETRY_MS);
    }
  }

  async ask(stream: boolean): Promise<Answer> {
    const { url, headers, body } = this.targetOf(stream ? "sse" : "json");
    const startedAt = performance.now();
    let status: number | null = null;
    let generationId: string | null = null;
    let cost: string | null = null;
    let retryAfter: string | null = null;
    let tail = "";
    let isEnded = false;
    try {
      const answer = await this.pool.request({ path: new URL(url).pathname, method: "POST", headers: { ...headers }, body });
      status = answer.statusCode;
      if (stream && status === 200) this.openedStreams += 1;
      generationId = headerOf(answer.headers["x-generation-id"]);
      cost = headerOf(answer.headers["x-cost"]);
      retryAfter = headerOf(answer.headers["retry-after"]);
      for await (const bytes of answer.body) tail = (tail + String(bytes)).slice(-TAIL_CHARS);
      isEnded = true;
    } catch {
      // The connection broke: the answer is not whole, and its received part is recorded.
    }
    const isWhole = isEnded && status === 200 && (!stream || tail.includes(END_MARK));
    const costNanocredits = isWhole ? toNanocredits(cost ?? lastCost(tail)) : null;
    const recorded = { stream, startedAt, endedAt: performance.now(), status, isWhole, generationId, costNanocredits, retryAfter };
    this.answers.push(recorded);
    return recorded;
  }
}

function headerOf(value: string | string[] | undefined): string | null {
  return typeof value === "string" ? value : null;
}

/** The cost in a stream's last usage. */
function lastCost(tail: string): string | null {
  return [...tail.matchAll(/"cost":([-+.eE\d]+)/g)].at(-1)?.[1] ?? null;
}

function toNanocredits(credits: string | null): bigint | null {
  const decimal = credits === null ? null : toPlainDecimal(Number(credits));
  return decimal === null ? null : parseNanocredits(decimal);
}
