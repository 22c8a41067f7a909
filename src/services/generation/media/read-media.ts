/**
 * Reads type and length of audio and video files. Called in a thread that can be ended: see media-inspector.ts.
 *
 * Compares claims of tables in MP4 and QuickTime files with the file's size. Two kilobytes can claim four billion samples, and a library
 * that believes them counts to four billion: no table may name more samples than the file has bytes, nor more entries than it has room for.
 * Other formats have no such tables: their packets are counted as they are read.
 */
import { ADTS, BufferSource, EncodedPacketSink, FLAC, Input, MATROSKA, MP3, MP4, OGG, QTFF, WAVE, WEBM } from "mediabunny";
import { type GeneratedType, UNKNOWN_TYPE } from "../../../lib/content-types.js";
import { USAGE_AMOUNT_MAX } from "../../../lib/usage.js";

/** Boxes that contain boxes, anywhere. */
const CONTAINERS: ReadonlySet<string> = new Set(["moov", "trak", "mdia", "minf", "stbl", "edts", "mvex", "moof", "traf", "mfra"]);
/** Deeper than their real nesting. */
const DEPTH_MAX = 16;

class Unbelievable extends Error {}

/** True for a file that must not be given to a library. Other files pass. */
export function claimsTooMuch(bytes: Uint8Array): boolean {
  try {
    new Tables(bytes).look(0, bytes.byteLength, 0);
    return false;
  } catch (error) {
    // A table that ends within its header is truncated.
    if (error instanceof Unbelievable || error instanceof RangeError) return true;
    throw error;
  }
}

class Tables {
  private readonly view: DataView;
  /** Samples claimed by tables of one kind, in all tracks and fragments. */
  private readonly named = new Map<string, number>();

  constructor(private readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  look(start: number, end: number, depth: number): void {
    if (depth > DEPTH_MAX) throw new Unbelievable();
    for (let at = start; at + 8 <= end; ) {
      const box = this.boxAt(at, end);
      if (box === null) return;
      const { type, content, next } = box;
      if (CONTAINERS.has(type)) this.look(content, Math.min(next, end), depth + 1);
      else this.check(type, content, Math.min(next, this.bytes.byteLength));
      at = next;
    }
  }

  private boxAt(at: number, end: number): { readonly type: string; readonly content: number; readonly next: number } | null {
    const type = Buffer.from(this.bytes.subarray(at + 4, at + 8)).toString("latin1");
    const stated = this.view.getUint32(at);
    if (stated !== 1) return stated < 8 && stated !== 0 ? null : { type, content: at + 8, next: stated === 0 ? end : at + stated };
    if (at + 16 > end) return null;
    const size = Number(this.view.getBigUint64(at + 8));
    return size < 16 ? null : { type, content: at + 16, next: at + size };
  }

  /** `at` is the position of the table's version and flags; its fields follow. */
  private check(type: string, at: number, end: number): void {
    switch (type) {
      case "stts":
      case "ctts": {
        const count = this.entries(at + 4, at + 8, end, 8);
        for (let entry = 0; entry < count; entry += 1) this.name(type, this.view.getUint32(at + 8 + entry * 8));
        return;
      }
      case "stsz": {
        const size = this.view.getUint32(at + 4);
        if (size === 0) this.entries(at + 8, at + 12, end, 4);
        this.name(type, this.view.getUint32(at + 8) * Math.max(1, size));
        return;
      }
      case "stz2": {
        const bits = this.view.getUint8(at + 7);
        if (bits === 0) throw new Unbelievable();
        this.entries(at + 8, at + 12, end, bits / 8);
        return;
      }
      case "stsc":
        this.checkChunks(at, end);
        return;
      case "stss":
      case "stco":
        this.entries(at + 4, at + 8, end, 4);
        return;
      case "co64":
        this.entries(at + 4, at + 8, end, 8);
        return;
      case "elst":
        this.entries(at + 4, at + 8, end, 12);
        return;
      case "tfra":
        this.entries(at + 12, at + 16, end, 11);
        return;
      case "trun":
        this.checkRun(at, end);
        return;
    }
  }

  /** Samples per chunk: chunk numbers rise, up to the file's bytes. */
  private checkChunks(at: number, end: number): void {
    const count = this.entries(at + 4, at + 8, end, 12);
    let before = 0;
    for (let entry = 0; entry < count; entry += 1) {
      const first = this.view.getUint32(at + 8 + entry * 12);
      const samples = this.view.getUint32(at + 12 + entry * 12);
      if (first <= before || first > this.bytes.byteLength || samples > this.bytes.byteLength) throw new Unbelievable();
      before = first;
    }
  }

  /** Samples of a fragment: fields that are omitted default to the track's, so an entry may have no bytes. */
  private checkRun(at: number, end: number): void {
    const flags = this.view.getUint32(at) & 0xffffff;
    const head = at + 8 + (flags & 0x1 ? 4 : 0) + (flags & 0x4 ? 4 : 0);
    const fields = [0x100, 0x200, 0x400, 0x800].filter((field) => flags & field).length;
    this.name("trun", this.entries(at + 4, head, end, fields * 4));
  }

  /** The claimed entries; count and first entry must exist. */
  private entries(countAt: number, firstAt: number, end: number, entryBytes: number): number {
    const count = this.view.getUint32(countAt);
    if (count * entryBytes > end - firstAt) throw new Unbelievable();
    return count;
  }

  private name(type: string, samples: number): void {
    const named = (this.named.get(type) ?? 0) + samples;
    if (named > this.bytes.byteLength) throw new Unbelievable();
    this.named.set(type, named);
  }
}

export interface AudioFacts {
  readonly contentType: GeneratedType;
  readonly extension: string;
  readonly durationMs: number;
}

const FORMATS = [MP3, WAVE, FLAC, OGG, ADTS, MP4, QTFF, WEBM, MATROSKA];
const LOOKED_AT = { metadataOnly: true } as const;

/**
 * Null when the bytes are no audio file: MP3, WAV, FLAC, Ogg (Vorbis, Opus), AAC, MP4 (M4A), QuickTime, WebM or Matroska. The length is
 * that of the packets, not of the header, which streamed recordings lack.
 */
export async function readAudio(bytes: Uint8Array): Promise<AudioFacts | null> {
  if (claimsTooMuch(bytes)) return null;
  const input = new Input({ formats: FORMATS, source: new BufferSource(bytes) });
  try {
    if (!(await input.canRead())) return null;
    const track = await input.getPrimaryAudioTrack();
    if (track === null) return null;
    const durationMs = await measure(new EncodedPacketSink(track), bytes.byteLength);
    const format = await input.getFormat();
    const type = TYPES.find(({ name }) => format.name === name) ?? UNKNOWN;
    return durationMs === null ? null : { contentType: type.contentType, extension: type.extension, durationMs };
  } catch {
    return null;
  } finally {
    input.dispose();
  }
}

/** From the start, or a later first packet, to the end of the last. Null: no packets, or more than the bytes allow. */
async function measure(sink: EncodedPacketSink, packetsMax: number): Promise<number | null> {
  let end = 0;
  let packets = 0;
  let packet = await sink.getFirstPacket(LOOKED_AT);
  const beginning = Math.max(0, packet?.timestamp ?? 0);
  while (packet !== null) {
    packets += 1;
    if (packets > packetsMax) return null;
    end = Math.max(end, packet.timestamp + packet.duration);
    packet = await sink.getNextPacket(packet, LOOKED_AT);
  }
  const milliseconds = Math.round((end - beginning) * 1000);
  return milliseconds > 0 && milliseconds <= USAGE_AMOUNT_MAX ? milliseconds : null;
}

/** By the library's names of formats. */
const TYPES: readonly { readonly name: string; readonly contentType: GeneratedType; readonly extension: string }[] = [
  { name: "MP3", contentType: "audio/mpeg", extension: "mp3" },
  { name: "WAVE", contentType: "audio/wav", extension: "wav" },
  { name: "FLAC", contentType: "audio/flac", extension: "flac" },
  { name: "Ogg", contentType: "audio/ogg", extension: "ogg" },
  { name: "ADTS", contentType: "audio/aac", extension: "aac" },
  { name: "MP4", contentType: "audio/mp4", extension: "m4a" },
  { name: "QuickTime File Format", contentType: "audio/mp4", extension: "mp4" },
  { name: "WebM", contentType: "audio/webm", extension: "webm" },
  { name: "Matroska", contentType: "audio/x-matroska", extension: "mka" },
];
const UNKNOWN: Pick<AudioFacts, "contentType" | "extension"> = { contentType: UNKNOWN_TYPE, extension: "bin" };

export interface VideoFacts {
  readonly contentType: "video/mp4" | "video/webm" | "video/quicktime";
  /** Null when the file has no length. */
  readonly durationMs: number | null;
}

/** Null when the bytes are no MP4, QuickTime or WebM file with video. */
export async function readVideo(bytes: Uint8Array): Promise<VideoFacts | null> {
  if (claimsTooMuch(bytes)) return null;
  const input = new Input({ formats: [MP4, QTFF, WEBM], source: new BufferSource(bytes) });
  try {
    if (!(await input.canRead())) return null;
    const track = await input.getPrimaryVideoTrack();
    if (track === null) return null;
    const format = await input.getFormat();
    const contentType = format === MP4 ? "video/mp4" : format === QTFF ? "video/quicktime" : "video/webm";
    // From the first frame to the end of the last: some encoders start after 0.
    const beginning = Math.max(0, await track.getFirstTimestamp());
    const milliseconds = Math.round(((await track.computeDuration()) - beginning) * 1000);
    return { contentType, durationMs: milliseconds > 0 && Number.isSafeInteger(milliseconds) ? milliseconds : null };
  } catch {
    return null;
  } finally {
    input.dispose();
  }
}
