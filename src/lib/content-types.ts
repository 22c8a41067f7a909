/**
 * What bytes may be called. An upstream says of its answer what it likes, and a browser believes it: so the content type of what a
 * model or a person made is one of this list, and never a text of somebody else's.
 */

/** Types that a browser shows, plays or saves, and runs nothing of. */
export const GENERATED_TYPES = [
  "application/octet-stream",
  "text/plain",
  "text/event-stream",
  "image/png",
  "image/jpeg",
  "image/webp",
  "image/gif",
  "image/avif",
  "video/mp4",
  "video/webm",
  "video/quicktime",
  "audio/mpeg",
  "audio/wav",
  "audio/flac",
  "audio/ogg",
  "audio/opus",
  "audio/aac",
  "audio/mp4",
  "audio/webm",
  "audio/x-matroska",
  "audio/pcm",
] as const;
export type GeneratedType = (typeof GENERATED_TYPES)[number];

/** Of bytes of which nothing else is known: a browser saves them. */
export const UNKNOWN_TYPE = "application/octet-stream" satisfies GeneratedType;

/** What the gateway's own routes call their answers beside that. */
const OWN_TYPES = [
  "application/json; charset=utf-8",
  "application/x-subrip; charset=utf-8",
  "text/css; charset=utf-8",
  "text/csv; charset=utf-8; header=present",
  "text/event-stream; charset=utf-8",
  "text/html; charset=utf-8",
  "text/javascript; charset=utf-8",
  "text/plain; charset=utf-8",
  "text/plain; version=0.0.4; charset=utf-8",
  "text/vtt; charset=utf-8",
] as const;
export type AnswerType = GeneratedType | (typeof OWN_TYPES)[number];

const ANSWER_TYPES: ReadonlySet<string> = new Set([...GENERATED_TYPES, ...OWN_TYPES]);

const BY_NAME: ReadonlyMap<string, GeneratedType> = new Map<string, GeneratedType>([
  ...GENERATED_TYPES.map((type) => [type, type] as const),
  ["image/jpg", "image/jpeg"],
  ["image/pjpeg", "image/jpeg"],
  ["image/apng", "image/png"],
  ["video/x-m4v", "video/mp4"],
  ["audio/mp3", "audio/mpeg"],
  ["audio/x-mp3", "audio/mpeg"],
  ["audio/x-mpeg", "audio/mpeg"],
  ["audio/x-wav", "audio/wav"],
  ["audio/wave", "audio/wav"],
  ["audio/vnd.wave", "audio/wav"],
  ["audio/x-flac", "audio/flac"],
  ["audio/x-aac", "audio/aac"],
  ["audio/aacp", "audio/aac"],
  ["audio/m4a", "audio/mp4"],
  ["audio/x-m4a", "audio/mp4"],
  ["audio/matroska", "audio/x-matroska"],
  ["application/ogg", "audio/ogg"],
]);

/** The type of the list that somebody means; null when it is none of it. */
export function generatedTypeOf(said: string): GeneratedType | null {
  return BY_NAME.get(bareMediaType(said)) ?? null;
}

/** As above; what is none of the list is of no type that anybody knows. */
export function closedTypeOf(said: string): GeneratedType {
  return generatedTypeOf(said) ?? UNKNOWN_TYPE;
}

/** The whole header of an answer that was stored, as far as we would answer with it today. */
export function storedAnswerTypeOf(stored: string): string {
  return ANSWER_TYPES.has(stored) ? stored : UNKNOWN_TYPE;
}

/** `Image/PNG; foo=bar` to `image/png`. */
export function bareMediaType(contentType: string): string {
  return (contentType.split(";", 1)[0] ?? "").trim().toLowerCase();
}
