/**
 * What a sound or video file says of itself: whether it is one, and how long it plays. A library reads it, and a file of two kilobytes
 * can have tables that keep any library busy for ever: it is read in a thread of its own, which is ended when it takes too long or
 * too much memory. A thread that did well reads the next file too, and is ended when none comes for a while.
 */
import { Worker } from "node:worker_threads";
import { resolveWorkerFile } from "../../lib/worker-file.js";
import { MEDIA_INSPECTION_MS_MAX, MEDIA_INSPECTIONS_MAX } from "../../limits.js";
import type { AudioFacts } from "./read-audio.js";
import type { VideoFacts } from "./read-video.js";

export interface InspectionRequest {
  readonly kind: "audio" | "video";
  readonly bytes: Uint8Array;
}

/** Of a thread's own objects; the file's bytes are beside them. */
const HEAP_MB_MAX = 128;
const IDLE_MS = 30_000;

interface Reader {
  readonly worker: Worker;
  idleTimer?: NodeJS.Timeout;
}

export class MediaInspector {
  private running = 0;
  private readonly waiting: (() => void)[] = [];
  private readonly idle: Reader[] = [];

  constructor(private readonly timeoutMs = MEDIA_INSPECTION_MS_MAX) {}

  /** Null when the bytes are no file with sound in it that `readAudio` knows, or cannot be read in good time. */
  audio(bytes: Uint8Array): Promise<AudioFacts | null> {
    return this.inspect({ kind: "audio", bytes }) as Promise<AudioFacts | null>;
  }

  /** Null when the bytes are no MP4, QuickTime or WebM file with a picture in it, or cannot be read in good time. */
  video(bytes: Uint8Array): Promise<VideoFacts | null> {
    return this.inspect({ kind: "video", bytes }) as Promise<VideoFacts | null>;
  }

  /** Ends the threads that wait for files. */
  async close(): Promise<void> {
    await Promise.all(this.idle.splice(0).map((reader) => this.end(reader)));
  }

  private async inspect(request: InspectionRequest): Promise<AudioFacts | VideoFacts | null> {
    if (this.running >= MEDIA_INSPECTIONS_MAX) await new Promise<void>((resolve) => this.waiting.push(resolve));
    else this.running += 1;
    try {
      const reader = this.idle.pop() ?? (await startReader());
      return await this.read(reader, request);
    } finally {
      // The place goes to whoever has waited longest.
      const next = this.waiting.shift();
      if (next) next();
      else this.running -= 1;
    }
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
  const worker = new Worker(await resolveWorkerFile("services/generation/inspect-media-worker"), {
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
