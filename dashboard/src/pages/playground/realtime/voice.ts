/**
 * A realtime session of the browser: the microphone's audio goes to the model, its spoken answers to the loudspeaker, as OpenAI's realtime
 * events on a WebSocket. The cookie of the session opens it.
 */
import { decode, encode, RATE } from "./samples.js";

export interface VoiceOptions {
  readonly model: string;
  readonly instructions: string;
  /** Empty: the model's own. */
  readonly voice: string;
  /** Whether the model finds the pauses and answers by itself. False: it answers after `send`. */
  readonly isHandsFree: boolean;
}

/** Tokens of one answer, by kind. */
export interface VoiceUsage {
  readonly inputTextTokens: number;
  readonly inputAudioTokens: number;
  readonly inputCachedTokens: number;
  readonly outputTextTokens: number;
  readonly outputAudioTokens: number;
}

export interface VoiceEvents {
  readonly onReady: () => void;
  readonly onSpeech: () => void;
  /** A piece of an answer's transcript; `answerId` names the answer. */
  readonly onText: (answerId: string, text: string) => void;
  readonly onAnswered: (usage: VoiceUsage) => void;
  readonly onError: (message: string) => void;
  /** Called once. `wasOpen` is false for a session that the gateway refused. */
  readonly onEnd: (wasOpen: boolean) => void;
}

/** Samples of the microphone that are sent together, about a tenth of a second. */
const FRAME_SAMPLES = 4_096;
const CLOSED_BY_PERSON = 1000;

type Fields = Readonly<Record<string, unknown>>;

export class Voice {
  isTalking = false;
  readonly #socket: WebSocket;
  readonly #context = new AudioContext();
  readonly #playing = new Set<AudioBufferSourceNode>();
  #playUntil = 0;
  #isReady = false;
  #wasOpen = false;
  #isOver = false;

  /** `microphone` is stopped with the session. */
  constructor(
    private readonly microphone: MediaStream,
    private readonly options: VoiceOptions,
    private readonly events: VoiceEvents,
  ) {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const query = new URLSearchParams({ model: options.model });
    this.#socket = new WebSocket(`${scheme}://${location.host}/v1/realtime?${query}`, ["realtime"]);
    this.#socket.addEventListener("open", () => {
      this.#wasOpen = true;
    });
    this.#socket.addEventListener("message", ({ data }) => this.#take(JSON.parse(String(data)) as Fields));
    this.#socket.addEventListener("close", () => this.#end());
    this.#listen();
  }

  /** Ends the person's turn, and requests the answer. */
  send(): void {
    this.isTalking = false;
    this.#say({ type: "input_audio_buffer.commit" });
    this.#say({ type: "response.create" });
  }

  close(): void {
    this.#socket.close(CLOSED_BY_PERSON);
    this.#end();
  }

  #listen(): void {
    const source = this.#context.createMediaStreamSource(this.microphone);
    // Deprecated for audio worklets, which need a script file of their own. A delay of a tenth of a second does no harm here.
    const processor = this.#context.createScriptProcessor(FRAME_SAMPLES, 1, 1);
    processor.addEventListener("audioprocess", ({ inputBuffer }) => {
      if (!this.#isReady || !(this.isTalking || this.options.isHandsFree)) return;
      this.#say({ type: "input_audio_buffer.append", audio: encode(inputBuffer.getChannelData(0), inputBuffer.sampleRate) });
    });
    source.connect(processor);
    // It runs only when connected. Its output is silent.
    processor.connect(this.#context.destination);
  }

  #take(event: Fields): void {
    switch (event.type) {
      case "session.created":
        this.#say({ type: "session.update", session: this.#settings() });
        break;
      case "session.updated":
        if (this.#isReady) break;
        this.#isReady = true;
        this.events.onReady();
        break;
      case "input_audio_buffer.speech_started":
        this.#hush();
        this.events.onSpeech();
        break;
      case "response.output_audio.delta":
        this.#play(String(event.delta));
        break;
      case "response.output_audio_transcript.delta":
      case "response.output_text.delta":
        this.events.onText(String(event.response_id), String(event.delta));
        break;
      case "response.done":
        this.events.onAnswered(usageOf(event.response));
        break;
      case "error":
        this.events.onError(messageOf(event.error));
        break;
    }
  }

  #settings(): Fields {
    const { instructions, voice, isHandsFree } = this.options;
    const format = { type: "audio/pcm", rate: RATE };
    return {
      type: "realtime",
      output_modalities: ["audio"],
      ...(instructions !== "" && { instructions }),
      audio: {
        input: { format, turn_detection: isHandsFree ? { type: "server_vad" } : null },
        output: { format, ...(voice !== "" && { voice }) },
      },
    };
  }

  #play(base64: string): void {
    const samples = decode(base64);
    if (samples.length === 0) return;
    const buffer = this.#context.createBuffer(1, samples.length, RATE);
    buffer.copyToChannel(samples, 0);
    const source = this.#context.createBufferSource();
    source.buffer = buffer;
    source.connect(this.#context.destination);
    this.#playUntil = Math.max(this.#playUntil, this.#context.currentTime);
    source.start(this.#playUntil);
    this.#playUntil += buffer.duration;
    this.#playing.add(source);
    source.addEventListener("ended", () => this.#playing.delete(source));
  }

  /** The person speaks: the rest of the answer is not played. */
  #hush(): void {
    for (const source of this.#playing) source.stop();
    this.#playing.clear();
    this.#playUntil = 0;
  }

  #say(event: Fields): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(event));
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    for (const track of this.microphone.getTracks()) track.stop();
    void this.#context.close();
    this.events.onEnd(this.#wasOpen);
  }
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? message : "The session failed.";
}

function usageOf(response: unknown): VoiceUsage {
  const usage = part(part(response, "usage"));
  const [input, output] = [part(usage, "input_token_details"), part(usage, "output_token_details")];
  const cached = part(input, "cached_tokens_details");
  const count = (fields: Fields, name: string) => Number(fields[name] ?? 0) || 0;
  return {
    inputTextTokens: count(input, "text_tokens") - count(cached, "text_tokens"),
    inputAudioTokens: count(input, "audio_tokens") - count(cached, "audio_tokens"),
    inputCachedTokens: count(input, "cached_tokens"),
    outputTextTokens: count(output, "text_tokens"),
    outputAudioTokens: count(output, "audio_tokens"),
  };
}

/** A part of an event that is an object, else an empty one. */
function part(holder: unknown, name?: string): Fields {
  const found = name === undefined ? holder : (holder as Fields | null)?.[name];
  return typeof found === "object" && found !== null ? (found as Fields) : {};
}
