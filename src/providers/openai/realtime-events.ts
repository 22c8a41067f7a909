/**
 * Reads usage from events of OpenAI's realtime format, in its general and its beta form. Any event that reports usage is read under any
 * name, so that new billed events do not pass unmetered. Other events are passed on.
 */

import { toUsage } from "../../formats/openai-chat/usage.js";
import { isRecord } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { USAGE_AMOUNT_MAX, type UsageQuantities } from "../../lib/usage.js";
import { UPSTREAM_JSON_BOUNDS } from "../../limits.js";

export type RealtimeReading =
  | { readonly kind: "other" }
  /** The upstream's session, at its start and after each change. */
  | { readonly kind: "session"; readonly session: RealtimeSessionState }
  /** A response has begun. Ids are empty where an upstream sends none. */
  | { readonly kind: "created"; readonly responseId: string }
  /** A piece of a response. */
  | { readonly kind: "delta"; readonly responseId: string; readonly text: string; readonly audioBytes: number }
  /** A response has ended. Usage is null without a credible report. */
  | { readonly kind: "done"; readonly responseId: string; readonly status: string; readonly usage: UsageQuantities | null }
  /** Voice detection: speech begins or ends, in milliseconds of the session's audio. */
  | { readonly kind: "speech"; readonly startMs?: number | undefined; readonly endMs?: number | undefined }
  /** The client's audio buffer became an item of the conversation, or was dropped. */
  | { readonly kind: "committed"; readonly itemId: string }
  | { readonly kind: "cleared" }
  /** A piece of an item's transcript has arrived. */
  | { readonly kind: "transcribing"; readonly itemId: string }
  | { readonly kind: "transcribed"; readonly itemId: string; readonly reportId: string | null; readonly usage: RealtimeUsage | null }
  | { readonly kind: "untranscribed"; readonly itemId: string }
  /** Another event with usage; with the response if it names one. */
  | { readonly kind: "usage"; readonly responseId: string; readonly reportId: string | null; readonly usage: RealtimeUsage }
  /** An event of the client was refused; its id where the upstream repeats it. */
  | { readonly kind: "error"; readonly eventId: string | null };

/** Some models are billed by tokens, others by seconds of audio. */
export type RealtimeUsage =
  | { readonly type: "tokens"; readonly quantities: UsageQuantities }
  | { readonly type: "duration"; readonly milliseconds: number };

export interface RealtimeSessionState {
  /** False for sessions that only transcribe, translate, or have an unknown type. */
  readonly isConversation: boolean;
  /** Null where not reported. */
  readonly isTranscribing: boolean | null;
  readonly inputBytesPerSecond: number | null;
  readonly outputBytesPerSecond: number | null;
}

const OTHER: RealtimeReading = { kind: "other" };
/** 16-bit samples at 24 kHz, which is the default, and telephone audio. */
export const PCM_BYTES_PER_SECOND = 48_000;
const TELEPHONE_BYTES_PER_SECOND = 8_000;
const TRANSCRIPTION = "conversation.item.input_audio_transcription.";
const SESSION_EVENT = /^(?:\w+_)?session\.(?:created|updated)$/;

/** Reads an upstream's event. */
export function readRealtimeEvent(text: string): RealtimeReading {
  const event = parseRealtimeEvent(text);
  const type = event?.type;
  if (!event || typeof type !== "string") return OTHER;
  if (SESSION_EVENT.test(type)) return { kind: "session", session: toSessionState(type, event.session) };
  if (type === "response.done") return toDone(event);
  if (type.startsWith(TRANSCRIPTION)) return readTranscription(type.slice(TRANSCRIPTION.length), event);
  const usage = usageWithin(event);
  if (usage !== null) return { kind: "usage", responseId: responseIdOf(event), reportId: reportIdOf(event), usage };
  switch (type) {
    case "response.created":
      return { kind: "created", responseId: responseIdOf(event) };
    case "input_audio_buffer.speech_started":
      return { kind: "speech", startMs: toMilliseconds(event.audio_start_ms) ?? undefined };
    case "input_audio_buffer.speech_stopped":
      return { kind: "speech", endMs: toMilliseconds(event.audio_end_ms) ?? undefined };
    case "input_audio_buffer.committed":
      return { kind: "committed", itemId: textOf(event.item_id) };
    case "input_audio_buffer.cleared":
      return { kind: "cleared" };
    case "error":
      return { kind: "error", eventId: isRecord(event.error) ? textOf(event.error.event_id) || null : null };
    default:
      return readDelta(type, event);
  }
}

/** Text this short is cheap to parse with any structure. */
const SHORT_CHARS = 64 * 1024;

/** Parses an event; null when it is no object. */
export function parseRealtimeEvent(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value = text.length > SHORT_CHARS ? new BoundedJson(UPSTREAM_JSON_BOUNDS).parse(text) : (JSON.parse(text) as unknown);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/** The decoded size of a base64 text. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  return Math.max(0, Math.floor((text.length * 3) / 4) - padding);
}

/**
 * As `toUsage`, with realtime's names. Cached tokens are reported within text, audio and image tokens, and are subtracted from each, so
 * that no token counts twice.
 */
export function toRealtimeUsage(raw: unknown): UsageQuantities | null {
  if (!isRecord(raw)) return null;
  const input = isRecord(raw.input_token_details) ? raw.input_token_details : {};
  const cached = isRecord(input.cached_tokens_details) ? input.cached_tokens_details : {};
  return toUsage({
    input_tokens: raw.input_tokens,
    output_tokens: raw.output_tokens,
    total_tokens: raw.total_tokens,
    input_tokens_details: {
      ...input,
      audio_tokens: less(input.audio_tokens, cached.audio_tokens),
      image_tokens: less(input.image_tokens, cached.image_tokens),
    },
    output_tokens_details: raw.output_token_details,
  });
}

/** A `usage` object of either type; null unless credible. */
function toReport(raw: unknown): RealtimeUsage | null {
  if (!isRecord(raw)) return null;
  if (raw.type === "duration" || (raw.seconds !== undefined && raw.input_tokens === undefined)) {
    const milliseconds = typeof raw.seconds === "number" ? toMilliseconds(raw.seconds * 1_000) : null;
    return milliseconds === null ? null : { type: "duration", milliseconds };
  }
  const quantities = toRealtimeUsage(raw);
  return quantities && { type: "tokens", quantities };
}

/** Usage of the event itself, or of the object in it. */
function usageWithin(event: Readonly<Record<string, unknown>>): RealtimeUsage | null {
  for (const holder of [event, ...Object.values(event)]) {
    const usage = isRecord(holder) ? toReport(holder.usage) : null;
    if (usage !== null) return usage;
  }
  return null;
}

function toDone(event: Readonly<Record<string, unknown>>): RealtimeReading {
  const response = isRecord(event.response) ? event.response : {};
  const usage = toRealtimeUsage(response.usage ?? event.usage);
  return { kind: "done", responseId: responseIdOf(event), status: textOf(response.status), usage };
}

function readTranscription(name: string, event: Readonly<Record<string, unknown>>): RealtimeReading {
  const itemId = textOf(event.item_id);
  if (name === "failed") return { kind: "untranscribed", itemId };
  const usage = toReport(event.usage);
  if (name === "completed") return { kind: "transcribed", itemId, reportId: reportIdOf(event), usage };
  return usage === null ? { kind: "transcribing", itemId } : { kind: "transcribed", itemId, reportId: reportIdOf(event), usage };
}

function readDelta(type: string, event: Readonly<Record<string, unknown>>): RealtimeReading {
  if (!type.startsWith("response.") || !type.endsWith(".delta") || typeof event.delta !== "string") return OTHER;
  const responseId = responseIdOf(event);
  if (type.endsWith("audio.delta")) return { kind: "delta", responseId, text: "", audioBytes: base64Bytes(event.delta) };
  return { kind: "delta", responseId, text: event.delta, audioBytes: 0 };
}

function responseIdOf(event: Readonly<Record<string, unknown>>): string {
  return textOf(isRecord(event.response) ? event.response.id : event.response_id);
}

/** Identifies a repeated report: by event id, and by its subject, because not every upstream numbers its events. Null without either. */
function reportIdOf({ type, event_id, item_id, content_index }: Readonly<Record<string, unknown>>): string | null {
  return textOf(event_id) === "" ? null : JSON.stringify([type, event_id, item_id, content_index]);
}

function toSessionState(type: string, raw: unknown): RealtimeSessionState {
  const session = isRecord(raw) ? raw : {};
  const audio = isRecord(session.audio) ? session.audio : {};
  const isConversation = type.startsWith("session.") && (session.type ?? "realtime") === "realtime";
  const transcription = isRecord(audio.input) ? audio.input.transcription : session.input_audio_transcription;
  const isNamedSo = session.object === undefined || session.object === null || session.object === "realtime.session";
  return {
    isConversation: isConversation && isNamedSo,
    isTranscribing: transcription === undefined ? null : transcription !== null,
    inputBytesPerSecond: bytesPerSecondOf(audio.input, session.input_audio_format),
    outputBytesPerSecond: bytesPerSecondOf(audio.output, session.output_audio_format),
  };
}

/** Of `audio.input` or `audio.output`, or by the beta form's name; null where not stated. */
function bytesPerSecondOf(side: unknown, beta: unknown): number | null {
  const general = isRecord(side) && isRecord(side.format) ? side.format.type : undefined;
  const format = general ?? beta;
  if (typeof format !== "string") return null;
  return /pcm[ua]|g711/.test(format) ? TELEPHONE_BYTES_PER_SECOND : PCM_BYTES_PER_SECOND;
}

function less(amount: unknown, part: unknown): unknown {
  return typeof amount === "number" && typeof part === "number" && part >= 0 ? Math.max(0, amount - part) : amount;
}

/** A whole number that a usage row can hold, else null. */
function toMilliseconds(value: unknown): number | null {
  return typeof value === "number" && value >= 0 && value <= USAGE_AMOUNT_MAX ? Math.round(value) : null;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
