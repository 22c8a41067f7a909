/**
 * The sandbox's realtime model (docs/sandbox-models.md): an in-process session of OpenAI's realtime events that repeats its input. Text is
 * answered as text, or as a tone for each word when audio is requested; audio is returned unchanged, and its transcript is its length.
 * Usage is counted exactly, to test billing.
 */
import { randomUUID } from "node:crypto";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";
import { TextQueue } from "../../lib/text-queue.js";
import { countTextTokens } from "../../lib/tokenizer.js";
import { REALTIME_WAITING_BYTES_MAX } from "../../limits.js";
import type { RealtimeCall, RealtimeConnection, RealtimeProvider } from "../media.js";
import { PCM_BYTES_PER_SECOND, parseRealtimeEvent } from "../openai/realtime-events.js";

/** Words as tones: 16-bit samples at 24 kHz, a tenth of a second for each word. */
const SAMPLES_PER_SECOND = 24_000;
const SAMPLES_PER_WORD = SAMPLES_PER_SECOND / 10;
const LOUDNESS = 6_000;
/** A minute at most. */
const WORDS_MAX = 600;
/** A pentatonic scale, in hertz. */
const PITCHES = [262, 294, 330, 392, 440] as const;

/** Deterministic. Each tone fades in and out, to avoid clicks. */
export function toneOf(words: string): Buffer {
  const all = words.split(/\s+/).filter(Boolean).slice(0, WORDS_MAX);
  const samples = Buffer.alloc(all.length * SAMPLES_PER_WORD * 2);
  for (const [index, word] of all.entries()) {
    const pitch = PITCHES[word.length % PITCHES.length] ?? PITCHES[0];
    for (let step = 0; step < SAMPLES_PER_WORD; step += 1) {
      const swell = Math.sin((Math.PI * step) / SAMPLES_PER_WORD);
      const value = LOUDNESS * swell * Math.sin((2 * Math.PI * pitch * step) / SAMPLES_PER_SECOND);
      samples.writeInt16LE(Math.round(value), (index * SAMPLES_PER_WORD + step) * 2);
    }
  }
  return samples;
}

/** The size of OpenAI's own buffer. */
const BUFFER_BYTES_MAX = 15 * 1024 * 1024;
/** A tenth of a second. */
const DELTA_BYTES = PCM_BYTES_PER_SECOND / 10;
const INPUT_TOKENS_PER_SECOND = 10;
const OUTPUT_TOKENS_PER_SECOND = 20;

type Fields = Readonly<Record<string, unknown>>;

/** The last input, to be repeated. */
interface Heard {
  readonly text: string;
  readonly audio: Buffer | null;
}

interface Tokens {
  text: number;
  audio: number;
}

export function createSandboxRealtimeProvider(): RealtimeProvider {
  return { connect: async (call) => new SandboxRealtimeConnection(call) };
}

class SandboxRealtimeConnection implements RealtimeConnection {
  readonly events: TextQueue;
  private session: Record<string, unknown>;
  private buffer: Buffer[] = [];
  private bufferBytes = 0;
  private heard: Heard = { text: "", audio: null };
  /** All content so far, which every response reads. */
  private readonly context: Tokens = { text: 0, audio: 0 };
  private reading: Promise<void> = Promise.resolve();
  private onRead: () => void = () => undefined;
  private readonly onAbort = () => this.events.end(this.signal.reason);
  private readonly signal: AbortSignal;
  private readonly isBeta: boolean;

  constructor({ signal, isBeta, upstreamModel }: RealtimeCall) {
    signal.throwIfAborted();
    this.signal = signal;
    this.isBeta = isBeta;
    this.events = new TextQueue(REALTIME_WAITING_BYTES_MAX, {
      pause: () => {
        this.reading = new Promise((resolve) => {
          this.onRead = resolve;
        });
      },
      resume: () => this.onRead(),
    });
    signal.addEventListener("abort", this.onAbort, { once: true });
    const format = { type: "audio/pcm", rate: 24_000 };
    this.session = {
      id: newId("sess"),
      object: "realtime.session",
      type: "realtime",
      model: upstreamModel,
      ...(isBeta
        ? { modalities: ["text", "audio"], input_audio_format: "pcm16", output_audio_format: "pcm16", voice: "alloy" }
        : { output_modalities: ["audio"], audio: { input: { format }, output: { format, voice: "alloy" } } }),
      instructions: "",
    };
    this.say("session.created", { session: this.session });
  }

  async send(text: string): Promise<void> {
    const event = parseRealtimeEvent(text);
    if (!event) this.refuse(undefined, "An event is a JSON object.");
    else this.take(event);
    await this.reading;
  }

  close(): void {
    this.signal.removeEventListener("abort", this.onAbort);
    this.events.end();
    this.onRead();
  }

  private take(event: Fields): void {
    switch (event.type) {
      case "session.update":
        this.update(event);
        break;
      case "input_audio_buffer.append":
        this.append(event);
        break;
      case "input_audio_buffer.clear":
        this.takeBuffer();
        this.say("input_audio_buffer.cleared", {});
        break;
      case "input_audio_buffer.commit":
        this.commit(event);
        break;
      case "conversation.item.create":
        this.create(event);
        break;
      case "response.create":
        this.respond(isRecord(event.response) ? event.response : {});
        break;
      case "response.cancel":
        this.refuse(event, "No response is under way.");
        break;
      default:
        this.refuse(event, `The sandbox does not know the event ${JSON.stringify(event.type ?? null).slice(0, 100)}.`, "type");
    }
  }

  private update(event: Fields): void {
    if (!isRecord(event.session)) {
      this.refuse(event, "session must be an object.", "session");
      return;
    }
    this.session = merged(this.session, event.session);
    this.say("session.updated", { session: this.session });
  }

  private takeBuffer(): Buffer {
    const audio = Buffer.concat(this.buffer);
    this.buffer = [];
    this.bufferBytes = 0;
    return audio;
  }

  private append(event: Fields): void {
    const bytes = typeof event.audio === "string" ? Buffer.from(event.audio, "base64") : null;
    if (bytes === null) this.refuse(event, "audio must be base64.", "audio");
    else if (this.bufferBytes + bytes.length > BUFFER_BYTES_MAX) this.refuse(event, "The audio buffer is full.", "audio");
    else {
      this.buffer.push(bytes);
      this.bufferBytes += bytes.length;
    }
  }

  private commit(event: Fields): void {
    if (this.bufferBytes === 0) {
      this.refuse(event, "The audio buffer is empty.");
      return;
    }
    const audio = this.takeBuffer();
    this.hear({ text: "", audio });
    const id = newId("item");
    this.say("input_audio_buffer.committed", { item_id: id, previous_item_id: null });
    this.sayItem({ id, type: "message", role: "user", status: "completed", content: [{ type: "input_audio", transcript: null }] });
    if (this.isTranscribing) this.transcribe(id, audio.length / PCM_BYTES_PER_SECOND);
  }

  private get isTranscribing(): boolean {
    const { audio, input_audio_transcription: ofBeta } = this.session;
    return isRecord(ofBeta) || (isRecord(audio) && isRecord(audio.input) && isRecord(audio.input.transcription));
  }

  /** The transcript says only the length of the input. */
  private transcribe(itemId: string, seconds: number): void {
    const place = { item_id: itemId, content_index: 0 };
    const transcript = `${seconds.toFixed(1)} seconds of sound`;
    this.say("conversation.item.input_audio_transcription.delta", { ...place, delta: transcript });
    const usage = { type: "duration", seconds };
    this.say("conversation.item.input_audio_transcription.completed", { ...place, transcript, usage });
  }

  private create(event: Fields): void {
    const { item } = event;
    if (!isRecord(item) || typeof item.type !== "string") {
      this.refuse(event, "item must be an object with a type.", "item");
      return;
    }
    const parts = (Array.isArray(item.content) ? item.content : []).filter(isRecord);
    const text = parts.map((part) => (typeof part.text === "string" ? part.text : "")).join("");
    const sounds = parts.flatMap((part) => (typeof part.audio === "string" ? [Buffer.from(part.audio, "base64")] : []));
    this.hear({
      text: text || (typeof item.output === "string" ? item.output : ""),
      audio: sounds.length > 0 ? Buffer.concat(sounds) : null,
    });
    this.sayItem({ status: "completed", ...item, id: typeof item.id === "string" ? item.id : newId("item"), object: "realtime.item" });
  }

  private hear(heard: Heard): void {
    this.heard = heard;
    this.context.text += countTextTokens(heard.text);
    this.context.audio += audioTokens(heard.audio?.length ?? 0, INPUT_TOKENS_PER_SECOND);
  }

  private respond(asked: Fields): void {
    const isSpoken = this.modalitiesOf(asked).includes("audio");
    const { text, audio } = this.heard;
    const words = audio && text === "" ? "I heard you." : `You said: ${text}`;
    const sound = isSpoken ? (audio ?? toneOf(words)) : null;
    const response = { id: newId("resp"), object: "realtime.response", conversation_id: "conv_sandbox" };
    const item = { id: newId("item"), object: "realtime.item", type: "message", role: "assistant" };
    const place = { response_id: response.id, item_id: item.id, output_index: 0, content_index: 0 };
    const input = {
      ...this.context,
      text: this.context.text + countTextTokens(String(asked.instructions ?? this.session.instructions ?? "")),
    };
    const output: Tokens = { text: countTextTokens(words), audio: audioTokens(sound?.length ?? 0, OUTPUT_TOKENS_PER_SECOND) };

    this.say("response.created", { response: { ...response, status: "in_progress", output: [], usage: null } });
    this.say("response.output_item.added", {
      response_id: response.id,
      output_index: 0,
      item: { ...item, status: "in_progress", content: [] },
    });
    const textEvent = sound ? this.named("output_audio_transcript") : this.named("output_text");
    for (const word of words
      .trimEnd()
      .split(/(?<=\S)(?=\s)/)
      .filter(Boolean))
      this.say(`response.${textEvent}.delta`, { ...place, delta: word });
    for (let at = 0; sound && at < sound.length; at += DELTA_BYTES) {
      const delta = sound.subarray(at, at + DELTA_BYTES).toString("base64");
      this.say(`response.${this.named("output_audio")}.delta`, { ...place, delta });
    }
    if (sound) this.say(`response.${this.named("output_audio")}.done`, place);
    this.say(`response.${textEvent}.done`, { ...place, ...(sound ? { transcript: words } : { text: words }) });
    const content = [sound ? { type: this.named("output_audio"), transcript: words } : { type: this.named("output_text"), text: words }];
    const done = { ...item, status: "completed", content };
    this.say("response.output_item.done", { response_id: response.id, output_index: 0, item: done });
    this.say("response.done", { response: { ...response, status: "completed", output: [done], usage: toWireUsage(input, output) } });
    this.context.text += output.text;
    this.context.audio += output.audio;
  }

  private modalitiesOf(asked: Fields): readonly unknown[] {
    const found = [asked.output_modalities, asked.modalities, this.session.output_modalities, this.session.modalities].find(Array.isArray);
    return found ?? ["audio"];
  }

  /** Events of answers have shorter names in the beta form. */
  private named(name: string): string {
    return this.isBeta ? name.replace(/^output_/, "") : name;
  }

  private sayItem(item: Fields): void {
    const names = this.isBeta ? ["created"] : ["added", "done"];
    for (const name of names) this.say(`conversation.item.${name}`, { previous_item_id: null, item });
  }

  private refuse(event: Fields | undefined, message: string, param: string | null = null): void {
    const error = { type: "invalid_request_error", code: "invalid_value", message, param, event_id: event?.event_id ?? null };
    this.say("error", { error });
  }

  private say(type: string, fields: Fields): void {
    this.events.push(JSON.stringify({ type, event_id: newId("event"), ...fields }));
  }
}

/** Merges changes field by field: `audio.output` survives a change of `audio.input`. */
function merged(before: Fields, after: Fields): Record<string, unknown> {
  const changed = Object.entries(after).map(([name, value]) => {
    const known = ownValue(before, name);
    return [name, isRecord(value) && isRecord(known) ? merged(known, value) : value] as const;
  });
  return { ...before, ...Object.fromEntries(changed) };
}

function newId(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll("-", "").slice(0, 21)}`;
}

function audioTokens(bytes: number, tokensPerSecond: number): number {
  return Math.ceil((bytes / PCM_BYTES_PER_SECOND) * tokensPerSecond);
}

function toWireUsage(input: Tokens, output: Tokens): object {
  const [inputTokens, outputTokens] = [input.text + input.audio, output.text + output.audio];
  return {
    total_tokens: inputTokens + outputTokens,
    input_tokens: inputTokens,
    output_tokens: outputTokens,
    input_token_details: { text_tokens: input.text, audio_tokens: input.audio, image_tokens: 0, cached_tokens: 0 },
    output_token_details: { text_tokens: output.text, audio_tokens: output.audio },
  };
}
