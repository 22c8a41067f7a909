/** Opus for mediabunny, which brings encoders of other formats: libopus as WebAssembly, in frames of 20 ms. */
import { type AudioCodec, type AudioSample, CustomAudioEncoder, EncodedPacket, registerEncoder } from "mediabunny";
import OpusScript from "opusscript";

const FRAME_SECONDS = 0.02;
/** Samples that libopus adds at the start, at 48 kHz (RFC 7845, section 5.1). */
const PRE_SKIP = 312;
type SampleRate = (typeof OpusScript.VALID_SAMPLING_RATES)[number];

class OpusEncoder extends CustomAudioEncoder {
  private encoder: OpusScript | null = null;
  private rest = new Int16Array(0);
  private frames = 0;

  static override supports(codec: AudioCodec, config: { sampleRate: number; numberOfChannels: number }): boolean {
    return codec === "opus" && config.numberOfChannels === 1 && isSampleRate(config.sampleRate);
  }

  init(): void {
    const { sampleRate, bitrate } = this.config;
    if (!isSampleRate(sampleRate)) throw new RangeError(`Opus has no sample rate of ${sampleRate}.`);
    this.encoder = new OpusScript(sampleRate, 1, OpusScript.Application.AUDIO);
    if (bitrate !== undefined) this.encoder.setBitrate(bitrate);
  }

  encode(sample: AudioSample): void {
    const added = new Int16Array(sample.numberOfFrames);
    sample.copyTo(added, { planeIndex: 0, format: "s16" });
    const samples = concat(this.rest, added);
    const length = this.frameLength;
    let from = 0;
    for (; from + length <= samples.length; from += length) this.encodeFrame(samples.subarray(from, from + length));
    this.rest = samples.slice(from);
  }

  flush(): void {
    if (this.rest.length === 0) return;
    this.encodeFrame(concat(this.rest, new Int16Array(this.frameLength - this.rest.length)));
    this.rest = new Int16Array(0);
  }

  close(): void {
    this.encoder?.delete();
    this.encoder = null;
  }

  private get frameLength(): number {
    return Math.round(this.config.sampleRate * FRAME_SECONDS);
  }

  private encodeFrame(samples: Int16Array): void {
    if (!this.encoder) throw new Error("The encoder is closed.");
    const bytes = this.encoder.encode(Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength), samples.length);
    const { sampleRate } = this.config;
    const meta = { decoderConfig: { codec: "opus", numberOfChannels: 1, sampleRate, description: identificationHeader(sampleRate) } };
    this.onPacket(new EncodedPacket(new Uint8Array(bytes), "key", this.frames * FRAME_SECONDS, FRAME_SECONDS), meta);
    this.frames += 1;
  }
}

function isSampleRate(rate: number): rate is SampleRate {
  return (OpusScript.VALID_SAMPLING_RATES as readonly number[]).includes(rate);
}

/** RFC 7845, section 5.1, for one channel. */
function identificationHeader(sampleRate: number): Uint8Array {
  const header = Buffer.alloc(19);
  header.write("OpusHead", "ascii");
  header.writeUInt8(1, 8);
  header.writeUInt8(1, 9);
  header.writeUInt16LE(PRE_SKIP, 10);
  header.writeUInt32LE(sampleRate, 12);
  return new Uint8Array(header);
}

function concat(one: Int16Array, other: Int16Array): Int16Array<ArrayBuffer> {
  const both = new Int16Array(one.length + other.length);
  both.set(one);
  both.set(other, one.length);
  return both;
}

export function registerOpusEncoder(): void {
  registerEncoder(OpusEncoder);
}
