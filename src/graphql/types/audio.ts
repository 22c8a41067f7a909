/** Speech, music and transcriptions (docs/spec/audio.md): as mutations, and speech as it is made as a subscription. */

import { parsePermitted, requireCaller } from "../../services/access/permissions.js";
import { boundedBy } from "../../services/credits/max-cost.js";
import type { MusicResult } from "../../services/generation/media/music.js";
import { musicInput, type SpeechResult, speechInput } from "../../services/generation/media/speech.js";
import type { Pieces, SpokenStream } from "../../services/generation/media/speech-stream.js";
import { type TranscriptionResult, toTranscriptText, transcriptionInput } from "../../services/generation/media/transcriptions.js";
import type { Receipt as ReceiptObject } from "../../services/generation/receipt.js";
import { builder } from "../builder.js";
import { cancellable, generationEvents } from "../cancellable.js";
import { CreateTranscriptionInput, MusicInput, SpeechInput, toWire } from "./audio-input.js";
import { Receipt } from "./chat.js";

const CONTENT_TYPE = "The media type of the sound, such as `audio/mpeg`.";

const GeneratedSpeech = builder.objectRef<SpeechResult>("GeneratedSpeech").implement({
  description: "A text that was read out.",
  fields: (t) => ({
    audio: t.string({ description: "The sound, as base64.", resolve: ({ file }) => toBase64(file.bytes) }),
    contentType: t.string({ description: CONTENT_TYPE, resolve: ({ file }) => file.contentType }),
  }),
});

const CreateSpeechPayload = builder.objectRef<SpeechResult>("CreateSpeechPayload").implement({
  description: "A text that was read out, and what it cost.",
  fields: (t) => ({
    speech: t.field({ type: GeneratedSpeech, description: "The sound.", resolve: (result) => result }),
    receipt: t.expose("receipt", { type: Receipt, description: "What it cost." }),
  }),
});

builder.mutationField("createSpeech", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateSpeechPayload,
    nullable: true,
    description: "Reads a text out. Priced by its characters; the charge is committed before the sound is given.",
    args: { input: t.arg({ type: SpeechInput, required: true, description: "The text to be read out, and how." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.speech.create(
        boundedBy(ctx, input.maxCost),
        parsePermitted(ctx, requireCaller, speechInput, () => toWire(input)),
      ),
  }),
);

const GeneratedMusic = builder.objectRef<MusicResult>("GeneratedMusic").implement({
  description: "A piece of music.",
  fields: (t) => ({
    audio: t.string({ description: "The sound, as base64.", resolve: ({ file }) => toBase64(file.bytes) }),
    contentType: t.string({ description: CONTENT_TYPE, resolve: ({ file }) => file.contentType }),
    durationSeconds: t.float({
      nullable: true,
      description: "How long it is. Null: the file does not tell.",
      resolve: ({ durationMs }) => (durationMs === null ? null : durationMs / 1000),
    }),
  }),
});

const GenerateMusicPayload = builder.objectRef<MusicResult>("GenerateMusicPayload").implement({
  description: "A piece of music, and what it cost.",
  fields: (t) => ({
    music: t.field({ type: GeneratedMusic, description: "The piece.", resolve: (result) => result }),
    receipt: t.expose("receipt", { type: Receipt, description: "What it cost." }),
  }),
});

builder.mutationField("generateMusic", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: GenerateMusicPayload,
    nullable: true,
    description: "Makes a piece of music. Priced by the seconds that came; the charge is committed before it is given.",
    args: { input: t.arg({ type: MusicInput, required: true, description: "The piece to be made." }) },
    resolve: (_root, { input }, ctx) =>
      ctx.services.music.generate(
        boundedBy(ctx, input.maxCost),
        parsePermitted(ctx, requireCaller, musicInput, () => toWire(input)),
      ),
  }),
);

type SegmentObject = NonNullable<TranscriptionResult["transcript"]["segments"]>[number];

const TranscriptSegment = builder.objectRef<SegmentObject>("TranscriptSegment").implement({
  description: "A part of a transcript, and when it was said.",
  fields: (t) => ({
    start: t.exposeFloat("start", { description: "Seconds from the beginning." }),
    end: t.exposeFloat("end", { description: "Seconds from the beginning." }),
    text: t.exposeString("text", { description: "What was said." }),
  }),
});

const Transcription = builder.objectRef<TranscriptionResult>("Transcription").implement({
  description: "What a recording says.",
  fields: (t) => ({
    text: t.string({ description: "All of it.", resolve: ({ transcript }) => transcript.text }),
    language: t.string({
      nullable: true,
      description: "As the upstream tells, else as it was asked for.",
      resolve: ({ transcript }) => transcript.language,
    }),
    durationSeconds: t.float({ description: "Length of the recording.", resolve: ({ transcript }) => transcript.durationMs / 1000 }),
    segments: t.field({
      type: [TranscriptSegment],
      nullable: true,
      description: "With VERBOSE_JSON, SRT and VTT, when the upstream tells.",
      resolve: ({ transcript }) => transcript.segments && [...transcript.segments],
    }),
    words: t.field({
      type: [TranscriptSegment],
      nullable: true,
      description: "With WORD among the granularities, when the upstream tells.",
      resolve: ({ transcript }) => transcript.words && [...transcript.words],
    }),
    formatted: t.string({ description: "As POST /v1/audio/transcriptions answers it.", resolve: toTranscriptText }),
  }),
});

const CreateTranscriptionPayload = builder.objectRef<TranscriptionResult>("CreateTranscriptionPayload").implement({
  description: "A transcript, and what it cost.",
  fields: (t) => ({
    transcription: t.field({ type: Transcription, description: "The transcript.", resolve: (result) => result }),
    receipt: t.expose("receipt", { type: Receipt, description: "What it cost." }),
  }),
});

builder.mutationField("createTranscription", (t) =>
  t.field({
    extensions: { isForAgents: true },
    type: CreateTranscriptionPayload,
    nullable: true,
    description: "Writes down what a recording says. Priced by its seconds; the charge is committed before the text is given.",
    args: { input: t.arg({ type: CreateTranscriptionInput, required: true, description: "The recording to be written down, and how." }) },
    resolve: (_root, { input: { file, ...input } }, ctx) =>
      ctx.services.transcriptions.create(
        boundedBy(ctx, input.maxCost),
        file,
        parsePermitted(ctx, requireCaller, transcriptionInput, () => toWire(input)),
      ),
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
  description: "What happens while a text is read out: chunks, then one end.",
  fields: (t) => ({
    generationId: t.exposeID("generationId", { description: "The REST id of the usage record to come." }),
  }),
  resolveType: ({ kind }) => (kind === "chunk" ? "SpeechChunk" : "SpeechEnd"),
});

builder.objectRef<SpeechChunkObject>("SpeechChunk").implement({
  description: "The next piece of the sound. All of them together are the file.",
  interfaces: [SpeechEvent],
  fields: (t) => ({
    audio: t.string({ description: "Base64, of this piece by itself.", resolve: ({ bytes }) => toBase64(bytes) }),
    contentType: t.exposeString("contentType", { description: CONTENT_TYPE }),
  }),
});

builder.objectRef<SpeechEndObject>("SpeechEnd").implement({
  description: "The speech is finished and charged.",
  interfaces: [SpeechEvent],
  fields: (t) => ({ receipt: t.expose("receipt", { type: Receipt, description: "What it cost." }) }),
});

builder.subscriptionField("speech", (t) =>
  t.field({
    type: SpeechEvent,
    description:
      "Reads a text out and streams the sound. Unsubscribing stops it at once; once a model reads the text, all of it is charged.",
    extensions: { endsByItself: true, isForAgents: true },
    args: { input: t.arg({ type: SpeechInput, required: true, description: "The text to be read out, and how." }) },
    subscribe: (_root, { input }, ctx) => {
      const body = parsePermitted(ctx, requireCaller, speechInput, () => toWire(input));
      return cancellable(boundedBy(ctx, input.maxCost), (generation) =>
        openEvents(ctx.services.speech.stream(generation, body), generation.signal),
      );
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
