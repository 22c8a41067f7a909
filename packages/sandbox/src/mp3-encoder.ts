/**
 * MP3 for mediabunny: LAME as WebAssembly, in the thread itself. mediabunny's own encoder starts a thread for every file, which takes
 * longer than a sentence.
 */
import { type AudioCodec, type AudioSample, CustomAudioEncoder, EncodedPacket, registerEncoder } from "mediabunny";
import { createMp3Encoder } from "wasm-media-encoders";

/** MPEG-1 and MPEG-2 Layer III: samples of a frame at these rates. */
const FRAME_SAMPLES = new Map([
  [48_000, 1_152],
  [24_000, 576],
]);
const HEADER_BYTES = 4;
const PADDING_BIT = 0b10;

type Lame = Awaited<ReturnType<typeof createMp3Encoder>>;

class Mp3Encoder extends CustomAudioEncoder {
  private lame: Lame | null = null;
  private rest: Uint8Array = new Uint8Array(0);
  private frames = 0;

  static override supports(codec: AudioCodec, config: { sampleRate: number; numberOfChannels: number }): boolean {
    return codec === "mp3" && config.numberOfChannels === 1 && FRAME_SAMPLES.has(config.sampleRate);
  }

  async init(): Promise<void> {
    this.lame = await createMp3Encoder();
    // The sandbox uses only rates that MP3 has.
    this.lame.configure({ sampleRate: this.config.sampleRate, channels: 1, bitrate: this.kilobits as 64 | 128 });
  }

  encode(sample: AudioSample): void {
    const samples = new Float32Array(sample.numberOfFrames);
    sample.copyTo(samples, { planeIndex: 0, format: "f32-planar" });
    if (this.lame) this.hand(this.lame.encode([samples]));
  }

  flush(): void {
    if (this.lame) this.hand(this.lame.finalize());
  }

  close(): void {
    this.lame = null;
  }

  private get kilobits(): number {
    return Math.round((this.config.bitrate ?? 64_000) / 1_000);
  }

  /** Passes on every complete frame. */
  private hand(bytes: Uint8Array): void {
    const all = Buffer.concat([this.rest, bytes]);
    const { sampleRate } = this.config;
    const samples = FRAME_SAMPLES.get(sampleRate) ?? 0;
    const seconds = samples / sampleRate;
    let from = 0;
    while (from + HEADER_BYTES <= all.length) {
      const padding = ((all[from + 2] ?? 0) & PADDING_BIT) === 0 ? 0 : 1;
      const length = Math.floor((samples / 8) * ((this.kilobits * 1_000) / sampleRate)) + padding;
      if (from + length > all.length) break;
      const meta = { decoderConfig: { codec: "mp3", numberOfChannels: 1, sampleRate } };
      this.onPacket(new EncodedPacket(new Uint8Array(all.subarray(from, from + length)), "key", this.frames * seconds, seconds), meta);
      this.frames += 1;
      from += length;
    }
    this.rest = new Uint8Array(all.subarray(from));
  }
}

export function registerMp3Encoder(): void {
  registerEncoder(Mp3Encoder);
}
