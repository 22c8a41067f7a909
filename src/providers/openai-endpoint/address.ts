/** The addresses under which a media API may be registered: its base, or one of its endpoints. */
import { ownValue } from "../../lib/own-values.js";
import { withoutTrailing } from "../../lib/trim-end.js";

/** Endings that a full endpoint may have, as OpenAI names them. */
const ENDINGS: Readonly<Record<string, readonly string[]>> = {
  image: ["/images/generations", "/images/edits"],
  speech: ["/audio/speech"],
  transcription: ["/audio/transcriptions"],
  embedding: ["/embeddings"],
};

/** What stands before the endpoint's own path, the query kept: `https://host/v1/images/edits?v=2` to `https://host/v1?v=2`. */
export function toBaseUrl(address: string, modality: string): string {
  const url = new URL(address);
  const path = withoutTrailing(url.pathname, "/");
  const ending = ownValue(ENDINGS, modality)?.find((known) => path.toLowerCase().endsWith(known));
  url.pathname = ending === undefined ? path : path.slice(0, -ending.length);
  return url.href;
}
