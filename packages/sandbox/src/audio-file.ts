/** Encodes audio: samples in, bytes of a file out, as early as the format allows. */
import {
  AdtsOutputFormat,
  AppendOnlyStreamTarget,
  AudioSample,
  AudioSampleSource,
  BufferTarget,
  FlacOutputFormat,
  type MetadataTags,
  Mp3OutputFormat,
  OggOutputFormat,
  Output,
  type OutputFormat,
  WavOutputFormat,
} from "mediabunny";
import type { SpeechFormat } from "../../../src/providers/media.js";
import { isSentWhole } from "../../../src/providers/sandbox/media/jobs.js";

export interface Sound {
  readonly format: SpeechFormat;
  readonly sampleRate: number;
  /** Bits a second of lossy formats. */
  readonly bitrate: number;
  readonly tags: MetadataTags;
}

export interface AudioFile {
  add(samples: Int16Array): Promise<void>;
  /** Returns the bytes ready since the last call. */
  take(): Uint8Array;
  /** Afterwards `take` returns the rest. */
  finish(): Promise<void>;
  /** Releases the encoder, finished or not. */
  close(): Promise<void>;
}

type Codec = "mp3" | "opus" | "aac" | "flac" | "pcm-s16";

interface Container {
  readonly codec: Codec;
  readonly make: () => OutputFormat;
  readonly load: () => Promise<void>;
}

const NOTHING_TO_LOAD = async () => undefined;

const CONTAINERS: Readonly<Record<Exclude<SpeechFormat, "pcm">, Container>> = {
  mp3: {
    codec: "mp3",
    make: () => new Mp3OutputFormat({ xingHeader: false }),
    load: async () => (await import("./mp3-encoder.js")).registerMp3Encoder(),
  },
  opus: {
    codec: "opus",
    make: () => new OggOutputFormat({ maximumPageDuration: 1 }),
    load: async () => (await import("./opus-encoder.js")).registerOpusEncoder(),
  },
  aac: { codec: "aac", make: () => new AdtsOutputFormat(), load: loadAacEncoder },
  flac: {
    codec: "flac",
    make: () => new FlacOutputFormat(),
    load: async () => (await import("@mediabunny/flac-encoder")).registerFlacEncoder(),
  },
  // An INFO list holds Latin text only.
  wav: { codec: "pcm-s16", make: () => new WavOutputFormat({ metadataFormat: "id3" }), load: NOTHING_TO_LOAD },
};

const loaded = new Map<string, Promise<void>>();

/** Each encoder is registered once in a thread. */
function loadOnce(name: string, load: () => Promise<void>): Promise<void> {
  const known = loaded.get(name) ?? load();
  loaded.set(name, known);
  return known;
}

export async function loadAacEncoder(): Promise<void> {
  await loadOnce("aac", async () => (await import("@mediabunny/aac-encoder")).registerAacEncoder());
}

export async function openAudioFile(sound: Sound): Promise<AudioFile> {
  if (sound.format === "pcm") return new BareSamples();
  const container = CONTAINERS[sound.format];
  await (sound.format === "aac" ? loadAacEncoder() : loadOnce(sound.format, container.load));
  const file = new EncodedFile(sound, container);
  await file.start();
  return file;
}

/** No container at all: 16-bit little-endian samples, one channel. */
class BareSamples implements AudioFile {
  private parts: Uint8Array[] = [];

  async add(samples: Int16Array): Promise<void> {
    this.parts.push(new Uint8Array(samples.slice().buffer));
  }

  take(): Uint8Array {
    const bytes = join(this.parts);
    this.parts = [];
    return bytes;
  }

  async finish(): Promise<void> {}

  async close(): Promise<void> {}
}

class EncodedFile implements AudioFile {
  private readonly source: AudioSampleSource;
  private readonly output: Output;
  private readonly whole: BufferTarget | null;
  private parts: Uint8Array[] = [];
  private samples = 0;
  private isOver = false;

  constructor(
    private readonly sound: Sound,
    container: Container,
  ) {
    this.whole = isSentWhole(sound.format) ? new BufferTarget() : null;
    const target = this.whole ?? new AppendOnlyStreamTarget(new WritableStream({ write: (part) => void this.parts.push(part.slice()) }));
    this.output = new Output({ format: container.make(), target });
    const isLossless = container.codec === "flac" || container.codec === "pcm-s16";
    this.source = new AudioSampleSource({ codec: container.codec, ...(!isLossless && { bitrate: sound.bitrate }) });
    this.output.addAudioTrack(this.source);
    this.output.setMetadataTags(sound.tags);
  }

  async start(): Promise<void> {
    await this.output.start();
  }

  async add(samples: Int16Array): Promise<void> {
    if (samples.length === 0) return;
    const { sampleRate } = this.sound;
    const data = new Uint8Array(samples.slice().buffer);
    const sample = new AudioSample({ data, format: "s16", numberOfChannels: 1, sampleRate, timestamp: this.samples / sampleRate });
    this.samples += samples.length;
    await this.source.add(sample);
    sample.close();
  }

  take(): Uint8Array {
    const bytes = join(this.parts);
    this.parts = [];
    return bytes;
  }

  async finish(): Promise<void> {
    await this.output.finalize();
    this.isOver = true;
    if (this.whole?.buffer) this.parts.push(new Uint8Array(this.whole.buffer));
  }

  async close(): Promise<void> {
    if (!this.isOver) await this.output.cancel();
    this.isOver = true;
  }
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  const [first] = parts;
  if (parts.length === 1 && first !== undefined) return first;
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}
