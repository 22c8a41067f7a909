/**
 * What an upstream can do for us, one interface per modality. A provider knows a wire format and nothing of accounts,
 * prices or retries: those live in `services/generation`.
 */
import type { ChatBody, ChatChunkObject, ChatCompletion } from "../lib/chat-format.js";
import type { ReportedUsage } from "../lib/usage.js";
import type {
  EmbeddingProvider,
  ImageProvider,
  ModerationProvider,
  MusicProvider,
  RealtimeProvider,
  SpeechProvider,
  TranscriptionProvider,
  VideoProvider,
} from "./media.js";
import type { UpstreamCode } from "./upstream-code.js";

export interface ChatCall {
  /** The upstream's own name for the model; it replaces `body.model`. */
  readonly upstreamModel: string;
  readonly body: ChatBody;
  /** The gateway's own bound to each choice, in tokens, of a request that states none; null: none is needed. */
  readonly outputTokensMax?: number | null | undefined;
  /** Aborted when the caller has gone or the total time is up: the upstream's connection is closed at once. */
  readonly signal: AbortSignal;
}

/** The body as the upstream is to have it: with the gateway's own bound, by the name that the upstream knows it by. */
export function boundedBody({ body, outputTokensMax }: ChatCall, field: OutputCapField = "max_completion_tokens"): ChatBody {
  return outputTokensMax == null ? body : { ...body, [field]: outputTokensMax };
}

/** The older name, which every other server of OpenAI's format knows, and the one that OpenAI's own reasoning models insist on. */
export type OutputCapField = "max_tokens" | "max_completion_tokens";

export interface ChatAnswer {
  /** The JSON document of a `chat.completion`, as it came. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  /** Null when the upstream reported none, or none that can be believed (negative, fractional, out of range). */
  readonly usage: ReportedUsage | null;
  /** One sentence for each option that had no effect, where the gateway itself writes the upstream's format. */
  readonly warnings?: readonly string[];
}

/** One `chat.completion.chunk`. */
export interface ChatChunk {
  readonly object: ChatChunkObject;
  /** The whole event as it goes on to the caller: `data: <json>\n\n`. */
  readonly bytes: Uint8Array;
  readonly usage: ReportedUsage | null;
  /** On the first chunk, as in a ChatAnswer. */
  readonly warnings?: readonly string[];
}

/** What one read from the upstream brought: forwarded in one write. */
export type ChatChunkBatch = readonly ChatChunk[];

export interface ChatProvider {
  /** Rejects with a ProviderError, or with the signal's reason when that is aborted. */
  complete(call: ChatCall): Promise<ChatAnswer>;
  /**
   * Resolves when the upstream has accepted the request (a 2xx status and a usable content type); rejects with a
   * ProviderError. The iterable ends after `[DONE]`, or after a finish_reason and the end of the body; it throws a
   * ProviderError on anything else, and stops reading when it is not pulled. `return()` closes the connection.
   */
  stream(call: ChatCall): Promise<AsyncIterable<ChatChunkBatch>>;
}

/** Everything that one upstream can do over its wire format. */
export interface Provider {
  readonly chat?: ChatProvider;
  readonly image?: ImageProvider;
  readonly video?: VideoProvider;
  readonly speech?: SpeechProvider;
  readonly music?: MusicProvider;
  readonly transcription?: TranscriptionProvider;
  readonly embedding?: EmbeddingProvider;
  readonly moderation?: ModerationProvider;
  readonly realtime?: RealtimeProvider;
  /** Refuses new calls, waits for running ones. */
  close(): Promise<void>;
}

export type ProviderErrorKind =
  /** It could not be reached: no connection was made. */
  | "network"
  /** It was reached, and hung up without having answered anything. */
  | "closed"
  /** Nothing, or nothing more, within the time allowed. */
  | "timeout"
  /** The upstream answered with an error status, or with an error event in a stream. */
  | "status"
  /** The upstream answered something that is not its wire format, or too much of it. */
  | "invalid-response"
  /** Its answer began and ended early: it said no more, or its connection broke. */
  | "cut";

export interface ProviderErrorOptions {
  /** The upstream's HTTP status, with kind `status`. */
  readonly status?: number;
  /** Of a time-out: some of the answer had come. */
  readonly hasBegun?: boolean;
  /** The upstream's own words, secrets redacted: shown to the caller only when the request itself was at fault. */
  readonly upstreamMessage?: string;
  /** The upstream's name for the parameter at fault. */
  readonly upstreamParam?: string;
  readonly upstreamCode?: UpstreamCode;
  /** When the upstream says that it may be asked again: 1 to a day. */
  readonly retryAfterSeconds?: number;
  readonly cause?: unknown;
}

/**
 * `message` is told to callers, but for the kind `status`: one sentence that says what happened as far as it is known here, in our
 * words, with nothing in it that the upstream wrote. Whatever else there is to know is the `cause`.
 */
export class ProviderError extends Error {
  override readonly name = "ProviderError";
  readonly status: number | undefined;
  readonly hasBegun: boolean;
  readonly upstreamMessage: string | undefined;
  readonly upstreamParam: string | undefined;
  readonly upstreamCode: UpstreamCode | undefined;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    readonly kind: ProviderErrorKind,
    message: string,
    options: ProviderErrorOptions = {},
  ) {
    super(message, { cause: options.cause });
    this.status = options.status;
    this.hasBegun = options.hasBegun ?? false;
    this.upstreamMessage = options.upstreamMessage;
    this.upstreamParam = options.upstreamParam;
    this.upstreamCode = options.upstreamCode;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}

/** Where requests of one upstream go, and how long they may take. */
export interface UpstreamTimeouts {
  /** Until the connection stands. */
  readonly connectMs: number;
  /** Until the answer's headers, and between two bytes of a stream. */
  readonly idleMs: number;
  /** From the request to the last byte. */
  readonly totalMs: number;
}
