/**
 * Detects type and length of audio and video files. A file of two kilobytes can have tables that keep any library busy forever, so files
 * are read in a thread that is ended when it takes too much time or memory. A thread is reused, and ended when idle.
 *
 * Each account has one file read at a time, so that its files do not block those of others, and a bounded number of waiting ones. Outputs
 * of upstreams are not bounded: they were paid for.
 */
import { Worker } from "node:worker_threads";
import { serviceUnavailable } from "../../../errors.js";
import { resolveWorkerFile } from "../../../lib/worker-file.js";
import {
  MEDIA_INSPECTION_MS_MAX,
  MEDIA_INSPECTIONS_MAX,
  MEDIA_INSPECTIONS_WAITING_MAX,
  MEDIA_INSPECTIONS_WAITING_PER_ACCOUNT_MAX,
} from "../../../limits.js";
import type { AudioFacts, VideoFacts } from "./read-media.js";

export interface InspectionRequest {
  readonly kind: "audio" | "video";
  readonly bytes: Uint8Array;
}

/** Of a thread's own objects, without the file's bytes. */
const HEAP_MB_MAX = 128;
const IDLE_MS = 30_000;

export interface InspectedFile {
  readonly accountId: string;
  readonly bytes: Uint8Array;
  /** An upstream's output: read however many wait. */
  readonly isAnswer?: boolean;
}

interface Reader {
  readonly worker: Worker;
  idleTimer?: NodeJS.Timeout;
}

interface Waiting {
  readonly accountId: string;
  readonly begin: () => void;
}

export class MediaInspector {
  private readonly reading = new Set<string>();
  private readonly waiting: Waiting[] = [];
  private readonly idle: Reader[] = [];

  constructor(private readonly timeoutMs = MEDIA_INSPECTION_MS_MAX) {}

  /**
   * Null when the bytes are no audio file that `readAudio` knows, or cannot be read in time. Rejects with SERVICE_UNAVAILABLE when too many
   * wait.
   */
  audio(file: InspectedFile): Promise<AudioFacts | null> {
    return this.inspect("audio", file) as Promise<AudioFacts | null>;
  }

  /** Null when the bytes are no MP4, QuickTime or WebM file with video, or cannot be read in time. Rejects as above. */
  video(file: InspectedFile): Promise<VideoFacts | null> {
    return this.inspect("video", file) as Promise<VideoFacts | null>;
  }

  async close(): Promise<void> {
    await Promise.all(this.idle.splice(0).map((reader) => this.end(reader)));
  }

  private async inspect(kind: InspectionRequest["kind"], file: InspectedFile): Promise<AudioFacts | VideoFacts | null> {
    await this.takeTurn(file);
    try {
      const reader = this.idle.pop() ?? (await startReader());
      return await this.read(reader, { kind, bytes: file.bytes });
    } finally {
      this.reading.delete(file.accountId);
      this.callNext();
    }
  }

  private async takeTurn({ accountId, isAnswer = false }: InspectedFile): Promise<void> {
    if (this.mayRead(accountId)) {
      this.reading.add(accountId);
      return;
    }
    if (!isAnswer) this.assertMayWait(accountId);
    await new Promise<void>((begin) => this.waiting.push({ accountId, begin }));
  }

  private assertMayWait(accountId: string): void {
    const own = this.waiting.filter((other) => other.accountId === accountId).length;
    if (own >= MEDIA_INSPECTIONS_WAITING_PER_ACCOUNT_MAX) {
      throw serviceUnavailable("Too many files of this account wait to be looked at.");
    }
    if (this.waiting.length >= MEDIA_INSPECTIONS_WAITING_MAX) throw serviceUnavailable("Too many files wait to be looked at.");
  }

  private mayRead(accountId: string): boolean {
    return this.reading.size < MEDIA_INSPECTIONS_MAX && !this.reading.has(accountId);
  }

  /** Gives the slot to the longest waiting file of an account without one being read. */
  private callNext(): void {
    const index = this.waiting.findIndex(({ accountId }) => this.mayRead(accountId));
    const [next] = index === -1 ? [] : this.waiting.splice(index, 1);
    if (!next) return;
    this.reading.add(next.accountId);
    next.begin();
  }

  private async read(reader: Reader, request: InspectionRequest): Promise<AudioFacts | VideoFacts | null> {
    clearTimeout(reader.idleTimer);
    const answer = await ask(reader.worker, request, this.timeoutMs);
    if (answer === null) await this.end(reader);
    else this.keep(reader);
    return answer?.facts ?? null;
  }

  private keep(reader: Reader): void {
    reader.idleTimer = setTimeout(() => {
      this.idle.splice(this.idle.indexOf(reader), 1);
      void this.end(reader);
    }, IDLE_MS).unref();
    this.idle.push(reader);
  }

  private async end({ worker, idleTimer }: Reader): Promise<void> {
    clearTimeout(idleTimer);
    await worker.terminate();
  }
}

/** Null when the thread fails or takes too long. */
function ask(worker: Worker, request: InspectionRequest, timeoutMs: number): Promise<{ facts: AudioFacts | VideoFacts | null } | null> {
  return new Promise((resolve) => {
    const conclude = (answer: { facts: AudioFacts | VideoFacts | null } | null) => {
      clearTimeout(timer);
      worker.off("message", onMessage).off("exit", onExit).unref();
      resolve(answer);
    };
    const onMessage = (facts: AudioFacts | VideoFacts | null) => conclude({ facts });
    const onExit = () => conclude(null);
    const timer = setTimeout(onExit, timeoutMs);
    worker.ref();
    worker.on("message", onMessage).on("exit", onExit);
    worker.postMessage(request);
  });
}

async function startReader(): Promise<Reader> {
  const worker = new Worker(await resolveWorkerFile("services/generation/media/inspect-media-worker"), {
    name: "inspect-media",
    resourceLimits: { maxOldGenerationSizeMb: HEAP_MB_MAX },
    stdout: true,
    stderr: true,
  });
  // Output of libraries is dropped.
  worker.stdout.resume();
  worker.stderr.resume();
  // Out of memory: the exit that follows settles the waiting call.
  worker.on("error", () => undefined);
  return { worker };
}
