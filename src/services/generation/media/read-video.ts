/** What a video file says of itself. Called in a thread that can be ended: see media-inspector.ts. */
import { BufferSource, Input, MP4, QTFF, WEBM } from "mediabunny";
import { claimsTooMuch } from "./mp4-claims.js";

export interface VideoFacts {
  readonly contentType: "video/mp4" | "video/webm" | "video/quicktime";
  /** Null when the file does not tell. */
  readonly durationMs: number | null;
}

/** Null when the bytes are no MP4, QuickTime or WebM file with a picture in it. */
export async function readVideo(bytes: Uint8Array): Promise<VideoFacts | null> {
  if (claimsTooMuch(bytes)) return null;
  const input = new Input({ formats: [MP4, QTFF, WEBM], source: new BufferSource(bytes) });
  try {
    if (!(await input.canRead())) return null;
    const track = await input.getPrimaryVideoTrack();
    if (track === null) return null;
    const format = await input.getFormat();
    const contentType = format === MP4 ? "video/mp4" : format === QTFF ? "video/quicktime" : "video/webm";
    // From the first picture to the end of the last: some encoders begin after 0.
    const beginning = Math.max(0, await track.getFirstTimestamp());
    const milliseconds = Math.round(((await track.computeDuration()) - beginning) * 1000);
    return { contentType, durationMs: milliseconds > 0 && Number.isSafeInteger(milliseconds) ? milliseconds : null };
  } catch {
    return null;
  } finally {
    input.dispose();
  }
}
