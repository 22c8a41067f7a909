/** Reads back what sandbox speech said: the words travel with the recording, in its tags. */
import { ALL_FORMATS, BufferSource, Input } from "mediabunny";
import { refuse } from "../refusal.js";
import { SPEECH_ALBUM, type TranscriptionJob, type TranscriptionResult } from "./jobs.js";

export async function listen({ bytes }: TranscriptionJob): Promise<TranscriptionResult> {
  const input = new Input({ source: new BufferSource(bytes), formats: ALL_FORMATS });
  try {
    if (!(await input.canRead())) throw unreadable();
    const track = await input.getPrimaryAudioTrack();
    if (!track) throw refuse("The file holds no sound.", "file");
    const { album, comment } = await input.getMetadataTags();
    const durationMs = Math.max(0, Math.round((await track.computeDuration()) * 1_000));
    return { text: album === SPEECH_ALBUM && comment ? comment : null, durationMs };
  } catch (error) {
    throw error instanceof Error && error.name === "ProviderError" ? error : unreadable(error);
  } finally {
    input.dispose();
  }
}

function unreadable(cause?: unknown): Error {
  const refusal = refuse("The file is no recording in a format that the sandbox can read: MP3, WAV, FLAC, Ogg, AAC, MP4, WebM.", "file");
  refusal.cause = cause;
  return refusal;
}
