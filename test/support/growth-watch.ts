/** Measures growth in a worker thread, and ends the worker when one run takes longer than any polynomial would. */
import { once } from "node:events";
import { rm } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { Worker } from "node:worker_threads";
import { compile } from "./compile.js";
import { MEASURABLE_MS, processorMsSoFar } from "./growth.js";

export type GrowthSubject =
  | { readonly kind: "pattern"; readonly source: string; readonly flags: string }
  | { readonly kind: "reader"; readonly name: string };

export type GrowthReport =
  | { readonly kind: "ready" }
  | { readonly kind: "begun"; readonly shown: string }
  | { readonly kind: "ended"; readonly slowness: string | null };

/** The size before was not measurable, and the cube of a step is 64. */
const RUN_LIMIT_MS = 100 * MEASURABLE_MS;
const LOOK_INTERVAL_MS = 50;

interface GrowthWorker {
  readonly thread: Worker;
  /** How many runs the thread has begun. */
  readonly runs: Int32Array;
}

export class GrowthWatch {
  private worker: GrowthWorker | null = null;

  private constructor(
    private readonly program: string,
    private readonly folder: string,
  ) {}

  static async open(): Promise<GrowthWatch> {
    const { program, folder } = await compile(fileURLToPath(new URL("programs/growth-worker.ts", import.meta.url)));
    return new GrowthWatch(program, folder);
  }

  /** Why the time of a subject is not linear, or null when it is. */
  async slownessOf(subject: GrowthSubject): Promise<string | null> {
    this.worker ??= await startWorker(this.program);
    const { thread, runs } = this.worker;
    const slowness = await watch(thread, runs, () => thread.postMessage(subject));
    if (slowness.isEndless) await this.end();
    return slowness.text;
  }

  async close(): Promise<void> {
    await this.end();
    await rm(this.folder, { recursive: true, force: true });
  }

  private async end(): Promise<void> {
    await this.worker?.thread.terminate();
    this.worker = null;
  }
}

async function startWorker(program: string): Promise<GrowthWorker> {
  const runs = new Int32Array(new SharedArrayBuffer(4));
  const thread = new Worker(program, { workerData: runs });
  await once(thread, "message");
  return { thread, runs };
}

/** Resolves with the worker's answer, or when a run has taken more processor time than it may. */
function watch(thread: Worker, runs: Int32Array, begin: () => void): Promise<{ text: string | null; isEndless: boolean }> {
  return new Promise((resolve, reject) => {
    let shown = "";
    let seen = 0;
    let since = processorMsSoFar();
    const end = () => {
      clearInterval(looking);
      thread.off("message", read).off("error", fail);
    };
    const read = (report: GrowthReport) => {
      if (report.kind === "begun") shown = report.shown;
      if (report.kind !== "ended") return;
      end();
      resolve({ text: report.slowness, isEndless: false });
    };
    const looking = setInterval(() => {
      const begun = Atomics.load(runs, 0);
      if (begun !== seen) {
        seen = begun;
        since = processorMsSoFar();
      } else if (processorMsSoFar() - since > RUN_LIMIT_MS) {
        end();
        resolve({ text: `${shown} takes exponential time`, isEndless: true });
      }
    }, LOOK_INTERVAL_MS);
    const fail = (error: Error) => {
      end();
      reject(error);
    };
    thread.on("message", read).on("error", fail);
    begin();
  });
}
