/** Speech, music and transcriptions (docs/spec/audio.md) as mutations, and streamed speech as a subscription. */

import type { MusicResult } from "../../services/generation/media/music.js";
import { musicInput, type SpeechResult, speechInput } from "../../services/generation/media/speech.js";
import type { Pieces, SpokenStream } from "../../services/generation/media/speech-stream.js";
import { type TranscriptionResult, toTranscriptText, transcriptionInput } from "../../services/generation/media/transcriptions.js";
import type { Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable, generationEvents } from "../cancellable.js";
import { wishedInput } from "../wishes.js";
import { CreateTranscriptionInput, MusicInput, SpeechInput, toWire } from "./audio-input.js";
import { Receipt } from "./receipts.js";

const CONTENT_TYPE = "The media type of the audio, such as `audio/mpeg`.";

const GeneratedSpeech = builder.objectRef<SpeechResult>("GeneratedSpeech").implement({
  description: "Generated speech.",
  fields: (t) => ({
    audio: t.string({ description: "The audio, as base64.", resolve: ({ file }) => toBase64(file.bytes) }),
    contentType: t.string({ description: CONTENT_TYPE, resolve: ({ file }) => file.contentType }),
  }),
});

const CreateSpeechPayload = builder.objectRef<SpeechResult>("CreateSpeechPayload").implement({
  description: "The result of `createSpeech`.",
  fields: (t) => ({
    speech: t.field({ type: GeneratedSpeech, description: "The generated speech.", resolve: (result) => result }),
    receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }),
  }),
});

builder.mutationField("createSpeech", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateSpeechPayload,
    nullable: true,
    description: "Generates speech from text. Priced by the character. The charge is committed before the audio is returned.",
    args: { input: t.arg({ type: SpeechInput, required: true, description: "The text and the voice." }) },
    resolve: async (_root, { input }, ctx) => {
      const wished = await wishedInput(ctx, input, speechInput, () => toWire(input));
      return ctx.services.speech.create(wished.ctx, wished.input);
    },
  }),
);

const GeneratedMusic = builder.objectRef<MusicResult>("GeneratedMusic").implement({
  description: "Generated music.",
  fields: (t) => ({
    audio: t.string({ description: "The audio, as base64.", resolve: ({ file }) => toBase64(file.bytes) }),
    contentType: t.string({ description: CONTENT_TYPE, resolve: ({ file }) => file.contentType }),
    durationSeconds: t.float({
      nullable: true,
      description: "The length in seconds. Null when the file does not state it.",
      resolve: ({ durationMs }) => (durationMs === null ? null : durationMs / 1000),
    }),
  }),
});

const GenerateMusicPayload = builder.objectRef<MusicResult>("GenerateMusicPayload").implement({
  description: "The result of `generateMusic`.",
  fields: (t) => ({
    music: t.field({ type: GeneratedMusic, description: "The generated music.", resolve: (result) => result }),
    receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }),
  }),
});

builder.mutationField("generateMusic", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerateMusicPayload,
    nullable: true,
    description: "Generates music. Priced by the second of generated audio. The charge is committed before the music is returned.",
    args: { input: t.arg({ type: MusicInput, required: true, description: "The music to generate." }) },
    resolve: async (_root, { input }, ctx) => {
      const wished = await wishedInput(ctx, input, musicInput, () => toWire(input));
      return ctx.services.music.generate(wished.ctx, wished.input);
    },
  }),
);

type SegmentObject = NonNullable<TranscriptionResult["transcript"]["segments"]>[number];

const TranscriptSegment = builder.objectRef<SegmentObject>("TranscriptSegment").implement({
  description: "A segment of a transcript with its times.",
  fields: (t) => ({
    start: t.exposeFloat("start", { description: "The start in seconds from the beginning of the recording." }),
    end: t.exposeFloat("end", { description: "The end in seconds from the beginning of the recording." }),
    text: t.exposeString("text", { description: "The text of the segment." }),
    speaker: t.exposeString("speaker", { nullable: true, description: "The speaker, with DIARIZED_JSON." }),
  }),
});

const Transcription = builder.objectRef<TranscriptionResult>("Transcription").implement({
  description: "A transcript of a recording.",
  fields: (t) => ({
    text: t.string({ description: "The complete text.", resolve: ({ transcript }) => transcript.text }),
    language: t.string({
      nullable: true,
      description: "The language reported by the upstream, or else the requested one.",
      resolve: ({ transcript }) => transcript.language,
    }),
    durationSeconds: t.float({
      description: "The length of the recording in seconds.",
      resolve: ({ transcript }) => transcript.durationMs / 1000,
    }),
    segments: t.field({
      type: [TranscriptSegment],
      nullable: true,
      description: "The segments, with VERBOSE_JSON, DIARIZED_JSON, SRT and VTT, when the upstream reports them.",
      resolve: ({ transcript }) => transcript.segments && [...transcript.segments],
    }),
    words: t.field({
      type: [TranscriptSegment],
      nullable: true,
      description: "The words, when the granularities include WORD and the upstream reports them.",
      resolve: ({ transcript }) => transcript.words && [...transcript.words],
    }),
    formatted: t.string({
      description: "The transcript in the requested format, as POST /v1/audio/transcriptions returns it.",
      resolve: toTranscriptText,
    }),
  }),
});

const CreateTranscriptionPayload = builder.objectRef<TranscriptionResult>("CreateTranscriptionPayload").implement({
  description: "The result of `createTranscription`.",
  fields: (t) => ({
    transcription: t.field({ type: Transcription, description: "The transcript.", resolve: (result) => result }),
    receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }),
  }),
});

builder.mutationField("createTranscription", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateTranscriptionPayload,
    nullable: true,
    description: "Transcribes a recording. Priced by the second. The charge is committed before the text is returned.",
    args: { input: t.arg({ type: CreateTranscriptionInput, required: true, description: "The recording and the options." }) },
    resolve: async (_root, { input: { file, isTranslation, ...input } }, ctx) => {
      const wished = await wishedInput(ctx, input, transcriptionInput, () => toWire(input));
      return ctx.services.transcriptions.create(wished.ctx, file, wished.input, isTranslation ? "translate" : "transcribe");
    },
  }),
);

interface SpeechChunkObject {
  readonly kind: "chunk";
  readonly generationId: string;
  readonly bytes: Uint8Array;
  readonly contentType: string;
}

interface SpeechEndObject {
  readonly kind: "end";
  readonly generationId: string;
  readonly receipt: ReceiptObject;
}

type SpeechEventObject = SpeechChunkObject | SpeechEndObject;

const SpeechEvent = builder.interfaceRef<SpeechEventObject>("SpeechEvent").implement({
  description: "An event of streamed speech: audio chunks, then one final event.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST ID of the usage record that will be stored." }),
  }),
  resolveType: ({ kind }) => (kind === "chunk" ? "SpeechChunk" : "SpeechEnd"),
});

builder.objectRef<SpeechChunkObject>("SpeechChunk").implement({
  description: "The next chunk of audio. All chunks joined are the file.",
  interfaces: [SpeechEvent],
  fields: (t) => ({
    audio: t.string({ description: "The audio, as base64 of this chunk alone.", resolve: ({ bytes }) => toBase64(bytes) }),
    contentType: t.exposeString("contentType", { description: CONTENT_TYPE }),
  }),
});

builder.objectRef<SpeechEndObject>("SpeechEnd").implement({
  description: "The speech is complete and charged.",
  interfaces: [SpeechEvent],
  fields: (t) => ({ receipt: t.expose("receipt", { type: Receipt, description: "The receipt of the generation." }) }),
});

builder.subscriptionField("speech", (t) =>
  t.field({
    type: SpeechEvent,
    description:
      "Generates speech from text and streams the audio. Unsubscribing stops it at once, but the whole text is charged as soon as the model has started.",
    extensions: { endsByItself: true, isForAgents: true },
    args: { input: t.arg({ type: SpeechInput, required: true, description: "The text and the voice." }) },
    subscribe: async (_root, { input }, ctx) => {
      const wished = await wishedInput(ctx, input, speechInput, () => toWire(input));
      return cancellable(wished.ctx, (generation) => openEvents(ctx.services.speech.stream(generation, wished.input), generation.signal));
    },
    resolve: (event) => event,
  }),
);

function openEvents(stream: SpokenStream, signal: AbortSignal): AsyncIterable<SpeechEventObject> {
  const { generationId } = stream;
  return generationEvents<Pieces, ReceiptObject, SpeechEventObject>(
    { batches: stream.chunks, receipt: () => stream.receipt() },
    signal,
    async function* (pieces) {
      const { contentType } = await stream.opened;
      yield { kind: "chunk", generationId, bytes: Buffer.concat(pieces), contentType };
    },
    (receipt) => ({ kind: "end", generationId, receipt }),
  );
}

function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}
