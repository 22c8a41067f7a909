/** The sandbox's transcription model: it hears nothing, but reads back what sandbox speech wrote into its files (docs/sandbox-models.md). */
import type { TranscriptionAnswer, TranscriptionCall, TranscriptionProvider, TranscriptSegment } from "../media.js";
import { begin, reportTokens, runPaced, type SandboxMedia } from "./media/calls.js";

export function createSandboxTranscriptionProvider(media: SandboxMedia): TranscriptionProvider {
  return { transcribe: (call) => transcribe(media, call) };
}

async function transcribe(media: SandboxMedia, call: TranscriptionCall): Promise<TranscriptionAnswer> {
  const directives = await begin(call.prompt ?? "", "prompt", call.signal, media.timeouts);
  const job = { kind: "transcription", bytes: call.audio.bytes } as const;
  const heard = await runPaced<"transcription">(media, job, directives, call.signal);
  const seconds = heard.durationMs / 1_000;
  const text = directives.text ?? heard.text ?? unknownRecording(seconds);
  const sentences = [...new Intl.Segmenter("en", { granularity: "sentence" }).segment(text)].map(({ segment }) => segment);
  return {
    text,
    language: call.language ?? "en",
    durationMs: heard.durationMs,
    segments: call.wantsSegments ? overTime(sentences, seconds) : null,
    words: call.wantsWords ? overTime(text.split(/(?<=\s)(?=\S)/), seconds) : null,
    // Seconds are what it is billed by, and those are measured.
    usage: Object.keys(directives.tokens).length > 0 ? reportTokens(directives, {}) : null,
    warnings: call.temperature === null ? [] : ["The sandbox does not vary its transcripts: temperature had no effect."],
  };
}

function unknownRecording(seconds: number): string {
  return `This is the Sluice sandbox: it transcribes only what sandbox speech has spoken, and this recording of ${seconds.toFixed(1)} seconds is not its own.`;
}

/** Each part has the share of the time that its letters have of the text. */
function overTime(parts: readonly string[], seconds: number): readonly TranscriptSegment[] {
  const total = parts.reduce((sum, part) => sum + part.length, 0);
  const at = (chars: number) => Math.round((chars / Math.max(1, total)) * seconds * 1_000) / 1_000;
  let chars = 0;
  return parts.flatMap((part) => {
    const start = at(chars);
    chars += part.length;
    const text = part.trim();
    return text === "" ? [] : [{ start, end: at(chars), text }];
  });
}
