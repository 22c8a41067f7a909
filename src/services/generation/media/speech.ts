/**
 * Speech (docs/spec/audio.md#speech): a text read out, whole or as it is made. Billed per character of the
 * text, so its price is known beforehand.
 */
import type { RequestContext } from "../../../context.js";
import { NO_USAGE } from "../../../lib/usage.js";
import { UPSTREAM_BODY_BYTES_MAX } from "../../../limits.js";
import type { MediaFile, SpeechStream } from "../../../providers/media.js";
import { ProviderError } from "../../../providers/provider.js";
import type { Model } from "../../catalog/model.js";
import type { Generations } from "../generations.js";
import { takeGenerationId } from "../plan.js";
import type { Receipt } from "../receipt.js";
import { GenerationStream } from "../stream.js";
import type { Upstreams } from "../upstreams.js";
import { chooseVoice, countCharacters, type SpeechInput } from "./speech-input.js";
import { openSpeech, type PreparedSpeech, type SpokenStream } from "./speech-stream.js";

export interface SpeechDependencies {
  readonly generations: Generations;
  readonly upstreams: Upstreams;
  /** A generation's total, in milliseconds. */
  readonly totalMs: number;
}

export interface SpeechResult {
  readonly file: MediaFile;
  readonly receipt: Receipt;
}

export interface SpeechOptions {
  /** What had no effect. */
  readonly notes?: readonly string[];
  /** Called with the whole of it: when that fails, nothing is charged. */
  readonly beforeCharge?: ((file: MediaFile) => Promise<void>) | undefined;
}

export class Speech {
  constructor(private readonly deps: SpeechDependencies) {}

  /** See SpokenStream. Nothing is thrown here: a refusal is the rejection of `opened`. */
  stream(ctx: RequestContext, input: SpeechInput): SpokenStream {
    const { generations, totalMs } = this.deps;
    const generationId = takeGenerationId(ctx);
    let admitted: { readonly prepared: PreparedSpeech; readonly texts: readonly string[] };
    const stream = new GenerationStream({
      admit: async () => {
        const prepared = this.prepare(ctx, input, generationId);
        const { texts, safety } = await generations.admit(ctx, prepared.plan, prepared.work);
        admitted = { prepared, texts };
        return generations.begin(ctx, { ...prepared.plan, safety }, { isStreamed: true });
      },
      open: (run) => {
        const { prepared, texts } = admitted;
        const call = (model: Model) => prepared.work.call(model, run.cancellation.signal, texts);
        return openSpeech({ run, plan: prepared.plan, call, withhold: withheldOf(input), totalMs });
      },
    });
    const { admitted: isAdmitted, opened, events } = stream;
    return { generationId, admitted: isAdmitted, opened, chunks: events, receipt: () => stream.receipt() };
  }

  /** The whole of it; resolves when the charge is committed. */
  async create(ctx: RequestContext, input: SpeechInput, { notes = [], beforeCharge }: SpeechOptions = {}): Promise<SpeechResult> {
    const { plan, work } = this.prepare(ctx, input);
    const { answer, receipt } = await this.deps.generations.run(ctx, plan, {
      ...work,
      call: async (model, signal, texts) => readWhole(await work.call(model, signal, texts)),
      meter: async (file) => {
        await beforeCharge?.(file);
        return { quantities: plan.expected, source: "estimated" };
      },
      warnings: ({ warnings }) => [...warnings, ...notes],
    });
    return { file: { bytes: answer.bytes, contentType: answer.contentType }, receipt };
  }

  private prepare(ctx: RequestContext, input: SpeechInput, generationId?: string): PreparedSpeech {
    const { model: name, input: text, voice: asked, response_format: format, speed, instructions, stream_format, safe, ...extra } = input;
    const { generations, upstreams } = this.deps;
    const expected = { ...NO_USAGE, characters: countCharacters(text) };
    const plan = generations.plan(ctx, "speech", name, extra, () => expected, generationId);
    const voice = chooseVoice(plan.model, asked);
    return {
      plan,
      work: {
        texts: [text, instructions ?? ""],
        safe,
        call: (model, signal, [spoken = "", manner = ""]) =>
          upstreams.serving(ctx, model, "speech").stream({
            upstreamModel: model.upstreamModel,
            input: spoken,
            voice,
            format: format ?? "mp3",
            speed: speed ?? null,
            instructions: manner === "" ? null : manner,
            extra,
            signal,
          }),
      },
    };
  }
}

const SAMPLE_BYTES = 2;

/**
 * The end of the sound waits for the charge, so its last byte does. Where events carry it, that is the event after the sound, and all that
 * waits is half a sample: whoever plays each event as it comes could do nothing with it.
 */
function withheldOf({ stream_format, response_format }: SpeechInput): (bytes: number) => number {
  if (stream_format !== "sse") return () => 1;
  return response_format === "pcm" ? (bytes) => bytes % SAMPLE_BYTES : () => 0;
}

async function readWhole({ contentType, chunks, warnings }: SpeechStream): Promise<MediaFile & Pick<SpeechStream, "warnings">> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of chunks) {
    parts.push(chunk);
    size += chunk.byteLength;
    if (size > UPSTREAM_BODY_BYTES_MAX) {
      throw new ProviderError("invalid-response", `The upstream's answer is larger than ${UPSTREAM_BODY_BYTES_MAX} bytes.`);
    }
  }
  if (size === 0) throw new ProviderError("invalid-response", "The upstream answered no sound.");
  return { bytes: Buffer.concat(parts, size), contentType, warnings };
}
