/** Speech and transcription. The packages return speech whole, so it begins when it is finished. */
import type { SpeechModelV3, TranscriptionModelV3 } from "@ai-sdk/provider";
import { ProviderError, refuse } from "../../formats/upstream-error.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import {
  SPEECH_CONTENT_TYPES,
  type SpeechCall,
  type SpeechProvider,
  type SpeechStream,
  type TranscriptionAnswer,
  type TranscriptionCall,
  type TranscriptionProvider,
  type TranscriptSegment,
} from "../media.js";
import { type AiSdkClient, statedOptions, toWarnings } from "./client.js";
import type { SpeechTraits, TranscriptionTraits } from "./vendor.js";

/** Passed on in pieces, for back-pressure. */
const PIECE_BYTES = 64 * 1024;

export class AiSdkSpeechProvider implements SpeechProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: SpeechTraits,
  ) {}

  stream(call: SpeechCall): Promise<SpeechStream> {
    return this.client.call(call.signal, async (models, { signal }) => {
      if (!models.speechModel) throw refuse("This upstream has no speech models.", "model");
      const warnings: string[] = [];
      const options = this.toOptions(call, warnings);
      const result = await models.speechModel(call.upstreamModel).doGenerate({ ...options, abortSignal: signal });
      const bytes = typeof result.audio === "string" ? Buffer.from(result.audio, "base64") : result.audio;
      if (bytes.length === 0) throw new ProviderError("invalid-response", "The upstream answered no sound.");
      return {
        contentType: SPEECH_CONTENT_TYPES[call.format],
        chunks: inPieces(bytes),
        warnings: [...warnings, ...toWarnings(result.warnings)],
      };
    });
  }

  private toOptions(call: SpeechCall, warnings: string[]): Parameters<SpeechModelV3["doGenerate"]>[0] {
    const { formats, voices = {}, hasVoiceInModel, takesInstructions, takesSpeed } = this.traits;
    const { optionsName } = this.client.vendor;
    const outputFormat = formats[call.format];
    if (outputFormat === undefined) {
      const known = Object.keys(formats).join(", ");
      throw refuse(`This upstream has no ${call.format}: ask for ${known}.`, "response_format");
    }
    if (hasVoiceInModel && call.voice !== call.upstreamModel) warnings.push("voice: this upstream's voice is part of the model's name.");
    if (call.speed !== null && !takesSpeed) warnings.push("speed: this upstream has no such option.");
    if (call.instructions !== null && !takesInstructions) warnings.push("instructions: this upstream has no such option.");
    return {
      text: call.input,
      outputFormat,
      ...(!hasVoiceInModel && { voice: ownValue(voices, call.voice) ?? call.voice }),
      ...(call.speed !== null && takesSpeed && { speed: call.speed }),
      ...(call.instructions !== null && takesInstructions && { instructions: call.instructions }),
      providerOptions: { [optionsName]: statedOptions(call.extra, optionsName) as Record<string, never> },
    };
  }
}

async function* inPieces(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

type Result = Awaited<ReturnType<TranscriptionModelV3["doGenerate"]>>;

export class AiSdkTranscriptionProvider implements TranscriptionProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: TranscriptionTraits,
  ) {}

  transcribe(call: TranscriptionCall): Promise<TranscriptionAnswer> {
    return this.client.call(call.signal, async (models, { signal }) => {
      if (!models.transcriptionModel) throw refuse("This upstream has no transcription models.", "model");
      if (call.isTranslation) throw refuse("This model does not translate recordings: use one of an upstream in OpenAI's format.", "model");
      if (call.wantsSpeakers) throw refuse("This model does not name speakers: choose another response_format.", "response_format");
      const warnings: string[] = [];
      const { optionsName } = this.client.vendor;
      const own = { ...this.ownOptions(call, warnings), ...statedOptions(call.extra, optionsName) };
      const result = await models.transcriptionModel(call.upstreamModel).doGenerate({
        audio: call.audio.bytes,
        mediaType: call.audio.contentType,
        providerOptions: { [optionsName]: own as Record<string, never> },
        abortSignal: signal,
      });
      return { ...this.toAnswer(result, call, warnings), usage: null };
    });
  }

  private ownOptions(call: TranscriptionCall, warnings: string[]): Record<string, unknown> {
    const { language, detectLanguage, prompt, options } = this.traits;
    const own: Record<string, unknown> = { ...options };
    if (call.language === null) Object.assign(own, detectLanguage);
    else if (language === undefined) warnings.push("language: this upstream finds it out by itself.");
    else setOwnValue(own, language, call.language);
    if (call.prompt !== null && prompt === undefined) warnings.push("prompt: this upstream has no such option.");
    else if (call.prompt !== null && prompt !== undefined) setOwnValue(own, prompt, call.prompt);
    if (call.temperature !== null) warnings.push("temperature: this upstream has no such option.");
    return own;
  }

  private toAnswer(result: Result, call: TranscriptionCall, warnings: string[]) {
    const { pieces, hasDuration } = this.traits;
    const found: TranscriptSegment[] = result.segments.map(({ startSecond: start, endSecond: end, text }) => ({ start, end, text }));
    if (pieces === "segments" && call.wantsWords) warnings.push("timestamp_granularities: this upstream tells the times of segments only.");
    const words = pieces === "words" ? found.filter(({ text }) => text.trim() !== "") : null;
    const { durationInSeconds } = result;
    return {
      text: result.text,
      language: result.language ?? call.language,
      durationMs: hasDuration && durationInSeconds !== undefined ? Math.round(durationInSeconds * 1_000) : null,
      segments: words === null ? found : toSegments(words),
      words,
      warnings: [...warnings, ...toWarnings(result.warnings)],
    };
  }
}

/** Two lines of a subtitle. */
const SEGMENT_CHARS_MAX = 84;
const PAUSE_SECONDS = 0.8;

/** Builds segments from words: they end with a sentence, at a pause, or when they are long. */
function toSegments(words: readonly TranscriptSegment[]): TranscriptSegment[] {
  const segments: TranscriptSegment[] = [];
  for (const word of words) {
    const last = segments.at(-1);
    const isNext = last !== undefined && word.start - last.end < PAUSE_SECONDS && !/[.?!]$/.test(last.text);
    if (last !== undefined && isNext && last.text.length + word.text.length < SEGMENT_CHARS_MAX) {
      segments[segments.length - 1] = { start: last.start, end: word.end, text: `${last.text} ${word.text}` };
    } else segments.push(word);
  }
  return segments;
}
