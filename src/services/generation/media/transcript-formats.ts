/** A transcript as each `response_format` has it. */
import type { SegmentDecoding, TranscriptionAnswer, TranscriptSegment } from "../../../providers/media.js";

export type Transcript = Pick<TranscriptionAnswer, "text" | "language" | "segments" | "words"> & {
  /** Length of the recording. */
  readonly durationMs: number;
};

/**
 * Unspecified: what a segment's upstream did not tell of its decoding. Strict clients read no segment that lacks a field, so each has a
 * value that none of OpenAI's own tests for a bad transcript takes offence at.
 */
const UNTOLD: Omit<SegmentDecoding, "id"> = {
  seek: 0,
  tokens: [],
  temperature: 0,
  avg_logprob: 0,
  compression_ratio: 1,
  no_speech_prob: 0,
};

/** OpenAI's `verbose_json`, with every field that its description requires. */
export function toVerboseJson(transcript: Transcript): Record<string, unknown> {
  const { text, language, durationMs, segments, words } = transcript;
  return {
    task: "transcribe",
    language: language ?? "unknown",
    duration: durationMs / 1000,
    text,
    ...(segments !== null && { segments: segments.map(toVerboseSegment) }),
    ...(words !== null && { words: words.map(({ start, end, text: word }) => ({ word, start, end })) }),
    usage: { type: "duration", seconds: durationMs / 1000 },
  };
}

function toVerboseSegment({ start, end, text, decoding }: TranscriptSegment, index: number): Record<string, unknown> {
  const { id = index, seek, tokens, temperature, avg_logprob, compression_ratio, no_speech_prob } = { ...UNTOLD, ...decoding };
  return { id, seek, start, end, text, tokens, temperature, avg_logprob, compression_ratio, no_speech_prob };
}

export function toSrt(transcript: Transcript): string {
  return captions(transcript)
    .map(({ start, end, text }, index) => `${index + 1}\n${timeOf(start, ",")} --> ${timeOf(end, ",")}\n${text}\n\n`)
    .join("");
}

export function toVtt(transcript: Transcript): string {
  const cues = captions(transcript).map(({ start, end, text }) => `${timeOf(start, ".")} --> ${timeOf(end, ".")}\n${escapeCue(text)}\n\n`);
  return `WEBVTT\n\n${cues.join("")}`;
}

/** One caption for the whole when the upstream told no times. A blank line within a caption would end it. */
function captions({ text, segments, durationMs }: Transcript): readonly TranscriptSegment[] {
  const timed = segments !== null && segments.length > 0 ? segments : [{ start: 0, end: durationMs / 1000, text }];
  return timed
    .map((segment) => ({ ...segment, end: Math.max(segment.start, segment.end), text: withoutBlankLines(segment.text) }))
    .filter((segment) => segment.text !== "");
}

function withoutBlankLines(text: string): string {
  return text.trim().replace(/\s+/g, (space) => (space.includes("\n") ? "\n" : space));
}

/** WebVTT gives a meaning to these. */
function escapeCue(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

/** 3661.5 to `01:01:01,500`. */
function timeOf(seconds: number, separator: "," | "."): string {
  const milliseconds = Math.round(seconds * 1000);
  const two = (value: number) => String(Math.floor(value)).padStart(2, "0");
  const clock = `${two(milliseconds / 3_600_000)}:${two((milliseconds / 60_000) % 60)}:${two((milliseconds / 1000) % 60)}`;
  return `${clock}${separator}${String(milliseconds % 1000).padStart(3, "0")}`;
}
