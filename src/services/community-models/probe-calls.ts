/** The cheapest call of each modality that shows whether an upstream would answer. */
import type { Provider } from "../../providers/provider.js";
import type { Upstream } from "../catalog/model.js";

type Endpoint = NonNullable<Upstream["endpoint"]>;

/** OpenAI's Responses format takes no fewer. */
const RESPONSES_TOKENS_MIN = 16;
/** A tenth of a second is what OpenAI's format takes at least. */
const SILENCE_SAMPLES = 1_600;
const SAMPLE_RATE = 16_000;
const SAMPLE_BYTES = 2;
const WAV_HEAD_BYTES = 44;

/** Rejects as the provider does. Resolves when the answer was one. */
export async function callCheaply(
  offered: Omit<Provider, "close">,
  { api, modality }: Endpoint,
  upstreamModel: string,
  signal: AbortSignal,
): Promise<void> {
  const call = { upstreamModel, signal, extra: {} };
  const nothingAsked = { size: null, seed: null, negativePrompt: null, images: [] };
  switch (modality) {
    case "text": {
      const body = { messages: [{ role: "user", content: "ping" }], max_tokens: api === "responses" ? RESPONSES_TOKENS_MIN : 1 };
      await offered.chat?.complete({ upstreamModel, body, signal });
      return;
    }
    case "embedding":
      await offered.embedding?.embed({ ...call, inputs: ["ping"], isSingle: true, dimensions: null });
      return;
    case "speech": {
      const speech = await offered.speech?.stream({ ...call, input: "Hi", voice: "alloy", format: "mp3", speed: null, instructions: null });
      for await (const _ of speech?.chunks ?? []) return;
      return;
    }
    case "transcription": {
      const audio = { bytes: silence(), contentType: "audio/wav", name: "audio.wav" };
      const asked = { language: null, prompt: null, temperature: null, wantsSegments: false, wantsWords: false };
      await offered.transcription?.transcribe({ ...call, ...asked, audio });
      return;
    }
    // Nothing can be made of an empty prompt.
    case "image": {
      const asked = { prompt: "", count: 1, quality: null, isTransparent: false, format: null, reasoning: null, mask: null };
      await offered.image?.generate({ ...call, ...nothingAsked, ...asked });
      return;
    }
    case "video": {
      const asked = { prompt: "", aspectRatio: null, seconds: null, hasAudio: false, onProgress: () => undefined };
      await offered.video?.generate({ ...call, ...nothingAsked, ...asked });
      return;
    }
    default:
      throw new Error(`Nobody registers a model of modality ${modality}.`);
  }
}

/** WAV, 16-bit mono. */
function silence(): Uint8Array {
  const dataBytes = SILENCE_SAMPLES * SAMPLE_BYTES;
  const wav = Buffer.alloc(WAV_HEAD_BYTES + dataBytes);
  wav.write("RIFF", 0, "latin1");
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write("WAVEfmt ", 8, "latin1");
  wav.writeUInt32LE(16, 16);
  wav.writeUInt16LE(1, 20);
  wav.writeUInt16LE(1, 22);
  wav.writeUInt32LE(SAMPLE_RATE, 24);
  wav.writeUInt32LE(SAMPLE_RATE * SAMPLE_BYTES, 28);
  wav.writeUInt16LE(SAMPLE_BYTES, 32);
  wav.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  wav.write("data", 36, "latin1");
  wav.writeUInt32LE(dataBytes, 40);
  return wav;
}
