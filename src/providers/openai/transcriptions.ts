/** Transcription over OpenAI's wire format: the recording in a form to `/audio/transcriptions`, answered with JSON. */

import { ProviderError } from "../../formats/upstream-error.js";
import { append } from "../../lib/collections.js";
import { isRecord } from "../../lib/json.js";
import { USAGE_AMOUNT_MAX } from "../../lib/usage.js";
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import type { SegmentDecoding, TranscriptionAnswer, TranscriptionCall, TranscriptionProvider, TranscriptSegment } from "../media.js";
import type { OpenAiClient } from "./client.js";

export class OpenAiTranscriptionProvider implements TranscriptionProvider {
  constructor(private readonly client: OpenAiClient) {}

  async transcribe(call: TranscriptionCall): Promise<TranscriptionAnswer> {
    const { contentType, body } = await toRequest(call);
    const response = await this.client.sendWhole({
      path: call.isTranslation ? "/audio/translations" : "/audio/transcriptions",
      contentType,
      body,
      signal: call.signal,
    });
    const answer = fromResponse(this.client.readObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX)));
    if (call.wantsSpeakers) assertSpeakers(answer);
    return answer;
  }
}

export async function toRequest(call: TranscriptionCall): Promise<{ readonly contentType: string; readonly body: Uint8Array }> {
  const form = new FormData();
  const { audio } = call;
  // The model's name precedes the recording, so that an upstream can route early.
  for (const [name, value] of toFields(call)) form.append(name, value);
  form.append("file", new Blob([audio.bytes as Uint8Array<ArrayBuffer>], { type: audio.contentType }), audio.name);
  const encoded = new Response(form);
  return { contentType: encoded.headers.get("content-type") ?? "", body: new Uint8Array(await encoded.arrayBuffer()) };
}

function toFields(call: TranscriptionCall): [name: string, value: string][] {
  const fields: [string, string][] = [["model", call.upstreamModel]];
  if (call.language !== null) fields.push(["language", call.language]);
  if (call.prompt !== null) fields.push(["prompt", call.prompt]);
  if (call.temperature !== null) fields.push(["temperature", String(call.temperature)]);
  fields.push(["response_format", formatOf(call)]);
  if (call.wantsSegments && !call.wantsSpeakers && !call.isTranslation) fields.push(["timestamp_granularities[]", "segment"]);
  if (call.wantsWords) fields.push(["timestamp_granularities[]", "word"]);
  for (const [name, value] of Object.entries(call.extra)) append(fields, toExtraFields(name, value));
  return fields;
}

function formatOf({ wantsSpeakers, wantsSegments, wantsWords }: TranscriptionCall): string {
  if (wantsSpeakers) return "diarized_json";
  return wantsSegments || wantsWords ? "verbose_json" : "json";
}

/** An upstream that ignores the format answers without speakers, which are the point of it. */
function assertSpeakers({ segments }: TranscriptionAnswer): void {
  if (segments?.every(({ speaker }) => speaker !== undefined) !== true)
    throw new ProviderError("invalid-response", "The upstream's answer names no speakers.");
}

/** Flattens lists and objects under the names of OpenAI's clients. */
function toExtraFields(name: string, value: unknown): [string, string][] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value)) return value.flatMap((item) => toExtraFields(`${name}[]`, item));
  if (isRecord(value)) return Object.entries(value).flatMap(([key, item]) => toExtraFields(`${name}[${key}]`, item));
  return [[name, String(value)]];
}

/** `verbose_json`, or the parts of it that are present. */
function fromResponse(answer: Readonly<Record<string, unknown>>): TranscriptionAnswer {
  if (typeof answer.text !== "string") throw new ProviderError("invalid-response", "The upstream's answer holds no text.");
  return {
    text: answer.text,
    language: typeof answer.language === "string" && answer.language !== "" ? answer.language : null,
    durationMs: toMilliseconds(answer.duration) ?? toMilliseconds(isRecord(answer.usage) ? answer.usage.seconds : null),
    segments: toParts(answer.segments, "text", (segment) => ({
      decoding: toDecoding(segment),
      ...(typeof segment.speaker === "string" && { speaker: segment.speaker }),
    })),
    words: toParts(answer.words, "word", () => ({})),
    usage: null,
    warnings: [],
  };
}

function toParts(
  items: unknown,
  textField: "text" | "word",
  toMore: (item: Readonly<Record<string, unknown>>) => Pick<TranscriptSegment, "decoding" | "speaker">,
): readonly TranscriptSegment[] | null {
  if (!Array.isArray(items)) return null;
  return items.flatMap((item) => {
    if (!isRecord(item)) return [];
    const { start, end, [textField]: text } = item;
    return isTime(start) && isTime(end) && typeof text === "string" ? [{ start, end, text, ...toMore(item) }] : [];
  });
}

/** Reads each field by itself: a missing or malformed one does not affect others. */
function toDecoding(segment: Readonly<Record<string, unknown>>): Partial<SegmentDecoding> {
  const { id, seek, tokens, temperature, avg_logprob, compression_ratio, no_speech_prob } = segment;
  return {
    ...(isIndex(id) && { id }),
    ...(isIndex(seek) && { seek }),
    ...(Array.isArray(tokens) && tokens.every(isIndex) && { tokens }),
    ...(isNumber(temperature) && { temperature }),
    ...(isNumber(avg_logprob) && { avg_logprob }),
    ...(isNumber(compression_ratio) && { compression_ratio }),
    ...(isNumber(no_speech_prob) && { no_speech_prob }),
  };
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

function isIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isTime(value: unknown): value is number {
  return isNumber(value) && value >= 0;
}

/** OpenAI reports seconds, some others as text. */
function toMilliseconds(value: unknown): number | null {
  const milliseconds = typeof value === "number" || typeof value === "string" ? Math.round(Number(value) * 1000) : Number.NaN;
  return milliseconds > 0 && milliseconds <= USAGE_AMOUNT_MAX ? milliseconds : null;
}
