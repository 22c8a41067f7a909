/**
 * Maps status words of vendors' jobs for packages that accept only a closed list: an unknown word becomes the nearest known one, so that a
 * running job continues to be polled (see `../job-status.ts`).
 */

import { parseObject } from "../../formats/upstream-json.js";
import { ownValue, setOwnValue } from "../../lib/own-values.js";
import type { OnUnknownWord } from "../../lib/unknown-words.js";
import { type JobProgress, toJobProgress } from "../job-status.js";

type Fetch = typeof globalThis.fetch;

export interface JobTraits {
  /** Fields with the status; the first one that is a text counts. */
  readonly fields: readonly string[];
  readonly known: readonly string[];
  readonly words: Readonly<Record<JobProgress, string>>;
}

const JSON_TYPE = /^application\/(?:[\w.-]+\+)?json\b/i;

export function withKnownWords(fetch: Fetch, traits: JobTraits, note: OnUnknownWord): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    if (!response.ok || response.body === null || !JSON_TYPE.test(response.headers.get("content-type") ?? "")) return response;
    const bytes = Buffer.from(await response.arrayBuffer());
    const { status, headers } = response;
    return new Response(translate(bytes, traits, note), { status, headers });
  };
}

function translate(bytes: Buffer<ArrayBuffer>, { fields, known, words }: JobTraits, note: OnUnknownWord): BodyInit {
  const answer = parseObject(bytes);
  if (answer === null) return bytes;
  const said = fields.map((field) => ({ field, word: ownValue(answer, field) })).find(({ word }) => typeof word === "string");
  if (said === undefined) return bytes;
  const { field } = said;
  const word = String(said.word);
  if (known.includes(word)) return bytes;
  const progress = toJobProgress(word);
  if (progress === null) note("job-status", word);
  const translated = { ...answer };
  setOwnValue(translated, field, words[progress ?? "running"]);
  return JSON.stringify(translated);
}
