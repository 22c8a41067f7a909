/**
 * What a sound or video file says of itself: whether it is one, and how long it plays. A library reads it, and a file of two kilobytes
 * can have tables that keep any library busy for ever: it is read in a thread of its own, which is ended when it takes too long or
 * too much memory. A thread that did well reads the next file too, and is ended when none comes for a while.
 *
 * An account has one file read at a time, so that nobody's files keep the threads from everybody else's, and only so many wait. What
 * an upstream has made waits in any case: it was paid for.
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

/** Of a thread's own objects; the file's bytes are beside them. */
const HEAP_MB_MAX = 128;
const IDLE_MS = 30_000;

/** Whose file it is, and who brought it. */
export interface InspectedFile {
  readonly accountId: string;
  readonly bytes: Uint8Array;
  /** An upstream has made it: it is read however many wait. */
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
  /** The accounts whose files are being read: each of them one. */
  private readonly reading = new Set<string>();
  /** Whoever has waited longest first. */
  private readonly waiting: Waiting[] = [];
  private readonly idle: Reader[] = [];

  constructor(private readonly timeoutMs = MEDIA_INSPECTION_MS_MAX) {}

  /** Null when the bytes are no file with sound in it that `readAudio` knows, or cannot be read in good time. Rejects with SERVICE_UNAVAILABLE when too many wait. */
  audio(file: InspectedFile): Promise<AudioFacts | null> {
    return this.inspect("audio", file) as Promise<AudioFacts | null>;
  }

  /** Null when the bytes are no MP4, QuickTime or WebM file with a picture in it, or cannot be read in good time. Rejects as above. */
  video(file: InspectedFile): Promise<VideoFacts | null> {
    return this.inspect("video", file) as Promise<VideoFacts | null>;
  }

  /** Ends the threads that wait for files. */
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

  /** The place goes to whoever has waited longest of the accounts that read nothing. */
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

/** Null when the thread has failed or takes too long. */
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
  // What the library prints is no log of ours.
  worker.stdout.resume();
  worker.stderr.resume();
  // Too much memory: its exit follows, and tells whoever waits.
  worker.on("error", () => undefined);
  return { worker };
}
