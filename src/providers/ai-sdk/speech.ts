/** Speech. The packages give it whole, so it begins when it is finished. */
import type { SpeechModelV3 } from "@ai-sdk/provider";
import { ownValue } from "../../lib/own-values.js";
import { SPEECH_CONTENT_TYPES, type SpeechCall, type SpeechProvider, type SpeechStream } from "../media.js";
import { ProviderError } from "../provider.js";
import { refuse } from "../refusal.js";
import { type AiSdkClient, statedOptions, toWarnings } from "./client.js";
import type { SpeechTraits } from "./vendor.js";

/** Handed on in pieces, so that a slow reader is felt. */
const PIECE_BYTES = 64 * 1024;

export class AiSdkSpeechProvider implements SpeechProvider {
  constructor(
    private readonly client: AiSdkClient,
    private readonly traits: SpeechTraits,
  ) {}

  stream(call: SpeechCall): Promise<SpeechStream> {
    return this.client.call(call.signal, async (models, { signal }) => {
      if (!models.speechModel) throw refuse("This upstream does not speak.", "model");
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
