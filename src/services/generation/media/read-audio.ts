/** What a sound file says of itself. Called in a thread that can be ended: see media-inspector.ts. */
import { ADTS, BufferSource, EncodedPacketSink, FLAC, Input, MATROSKA, MP3, MP4, OGG, QTFF, WAVE, WEBM } from "mediabunny";
import { type GeneratedType, UNKNOWN_TYPE } from "../../../lib/content-types.js";
import { USAGE_AMOUNT_MAX } from "../../../lib/usage.js";
import { claimsTooMuch } from "./mp4-claims.js";

export interface AudioFacts {
  readonly contentType: GeneratedType;
  /** What such files are usually called. */
  readonly extension: string;
  readonly durationMs: number;
}

const FORMATS = [MP3, WAVE, FLAC, OGG, ADTS, MP4, QTFF, WEBM, MATROSKA];
const LOOKED_AT = { metadataOnly: true } as const;

/**
 * Null when the bytes are no file with sound in it: MP3, WAV, FLAC, Ogg (Vorbis, Opus), AAC, MP4 (M4A), QuickTime, WebM or Matroska.
 * The length is that of the packets which are there, whatever the file's head says: recordings that were streamed have none.
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

/** From the beginning, or the first packet where that comes later, to the end of the last. Null: it has none, or more than there can be in so many bytes. */
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

/** By the names that the library gives to formats. */
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
