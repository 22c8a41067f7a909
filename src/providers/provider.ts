/**
 * Abilities of an upstream, one interface per modality. A provider knows a wire format, and no accounts, prices or retries: those are in
 * `services/generation`.
 */

import type { PulledIterator } from "../fast/pull.js";
import type { OutputCapField, StatedDialect } from "../formats/openai-chat/dialect.js";
import type { ChatBody, ChatCompletion } from "../formats/openai-chat/schema.js";
import type { ChatChunkBatch } from "../formats/openai-chat/stream.js";
import { withFields } from "../lib/own-values.js";
import type { ReportedUsage } from "../lib/usage.js";
import type {
  EmbeddingProvider,
  ImageProvider,
  ModerationProvider,
  MusicProvider,
  RealtimeProvider,
  RerankProvider,
  SpeechProvider,
  TranscriptionProvider,
  VideoProvider,
} from "./media.js";

/** Ends a call early: an AbortSignal, or something cheaper where few listen. */
export interface CallEnd {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(type: "abort", listener: EndListener): void;
  removeEventListener(type: "abort", listener: EndListener): void;
}

export interface EndListener {
  handleEvent(): void;
}

/** Converts to an AbortSignal for code that needs one. */
export function toSignal(end: CallEnd): AbortSignal {
  if (end instanceof AbortSignal) return end;
  const controller = new AbortController();
  if (end.aborted) controller.abort(end.reason);
  else end.addEventListener("abort", { handleEvent: () => controller.abort(end.reason) });
  return controller.signal;
}

export interface ChatCall {
  /** The upstream's own name for the model; it replaces `body.model`. */
  readonly upstreamModel: string;
  readonly body: ChatBody;
  /** The gateway's own limit on each choice, in tokens, for a request without one; null: not needed. */
  readonly outputTokensMax?: number | null | undefined;
  /** What the operator states about the model's dialect. */
  readonly dialect?: StatedDialect | null | undefined;
  /** Aborted when the client disconnects or the total time is up: the upstream's connection is closed at once. */
  readonly signal: CallEnd;
}

/** The body for the upstream, with the gateway's own limit under the upstream's field name. */
export function boundedBody({ body, outputTokensMax }: ChatCall, field: OutputCapField = "max_completion_tokens"): ChatBody {
  return outputTokensMax == null ? body : withFields(body, { [field]: outputTokensMax });
}

export interface ChatAnswer {
  /** The JSON document of a `chat.completion` as received. */
  readonly bytes: Uint8Array;
  readonly completion: ChatCompletion;
  /** Null without a credible report (negative, fractional, out of range). */
  readonly usage: ReportedUsage | null;
  /** One sentence per option without effect, where the gateway writes the upstream's format. */
  readonly warnings?: readonly string[];
}

export interface ChatBatches {
  [Symbol.asyncIterator](): PulledIterator<ChatChunkBatch>;
}

export interface ChatProvider {
  /** Rejects with a ProviderError, or with the signal's reason when that is aborted. */
  complete(call: ChatCall): Promise<ChatAnswer>;
  /**
   * Resolves when the upstream has accepted the request (a 2xx status and a usable content type); rejects with a ProviderError. The
   * iterable ends after `[DONE]`, or after a finish_reason and the end of the body; otherwise it throws a ProviderError. It reads only when
   * pulled. `return()` closes the connection.
   */
  stream(call: ChatCall): Promise<ChatBatches>;
}

/** All abilities of one upstream over its wire format. */
export interface Provider {
  readonly chat?: ChatProvider;
  readonly image?: ImageProvider;
  readonly video?: VideoProvider;
  readonly speech?: SpeechProvider;
  readonly music?: MusicProvider;
  readonly transcription?: TranscriptionProvider;
  readonly embedding?: EmbeddingProvider;
  readonly moderation?: ModerationProvider;
  readonly rerank?: RerankProvider;
  readonly realtime?: RealtimeProvider;
  /** Refuses new calls, waits for running ones. */
  close(): Promise<void>;
}

export interface UpstreamTimeouts {
  /** Until the connection is established. */
  readonly connectMs: number;
  /** Until the answer's headers, and between two bytes of a stream. */
  readonly idleMs: number;
  /** From the request to the last byte. */
  readonly totalMs: number;
}
