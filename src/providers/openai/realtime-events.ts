/** What the events of OpenAI's realtime format say of usage, in its general and its beta form. Everything else passes unread. */
import { NO_USAGE, type UsageQuantities } from "../../lib/usage.js";
import { isRecord } from "./json.js";
import { toUsage } from "./usage.js";

export type RealtimeReading =
  | { readonly kind: "other" }
  /** A piece of an answer. */
  | { readonly kind: "delta"; readonly text: string; readonly audioBytes: number }
  /** An answer has ended. Usage is null when none was reported that can be believed. */
  | { readonly kind: "done"; readonly usage: UsageQuantities | null }
  /** How the audio of answers is encoded from here on. */
  | { readonly kind: "audio"; readonly bytesPerSecond: number };

const OTHER: RealtimeReading = { kind: "other" };
/** 16-bit samples at 24 kHz, which is the default, and telephone audio. */
export const PCM_BYTES_PER_SECOND = 48_000;
const TELEPHONE_BYTES_PER_SECOND = 8_000;

/** Reads an event of an upstream. */
export function readRealtimeEvent(text: string): RealtimeReading {
  const event = parseRealtimeEvent(text);
  const type = event?.type;
  if (!event || typeof type !== "string") return OTHER;
  if (type === "response.done") {
    const response = isRecord(event.response) ? event.response : {};
    return { kind: "done", usage: toRealtimeUsage(response.usage) };
  }
  if (type === "session.created" || type === "session.updated") return readAudioFormat(event.session);
  if (!type.startsWith("response.") || !type.endsWith(".delta") || typeof event.delta !== "string") return OTHER;
  if (type.endsWith("audio.delta")) return { kind: "delta", text: "", audioBytes: base64Bytes(event.delta) };
  return { kind: "delta", text: event.delta, audioBytes: 0 };
}

/** An object with a `type`, or null. */
export function parseRealtimeEvent(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}

/** How many bytes a base64 text stands for. */
export function base64Bytes(text: string): number {
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  return Math.floor((text.length * 3) / 4) - padding;
}

/**
 * As `toUsage`, with realtime's names. What was cached is reported as a part of the text, audio and image tokens: it is taken out
 * of each, so that no token is counted twice.
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

export function addUsage(a: UsageQuantities, b: UsageQuantities): UsageQuantities {
  const sum = { ...NO_USAGE };
  for (const kind of Object.keys(sum) as (keyof UsageQuantities)[]) sum[kind] = a[kind] + b[kind];
  return sum;
}

function less(amount: unknown, part: unknown): unknown {
  return typeof amount === "number" && typeof part === "number" && part >= 0 ? Math.max(0, amount - part) : amount;
}

function readAudioFormat(session: unknown): RealtimeReading {
  if (!isRecord(session)) return OTHER;
  const audio = isRecord(session.audio) && isRecord(session.audio.output) ? session.audio.output.format : undefined;
  const format = isRecord(audio) ? audio.type : session.output_audio_format;
  if (typeof format !== "string") return OTHER;
  return { kind: "audio", bytesPerSecond: /pcm[ua]|g711/.test(format) ? TELEPHONE_BYTES_PER_SECOND : PCM_BYTES_PER_SECOND };
}
