/**
 * Warns about misspelt fields: unknown fields are passed on to the upstream, which usually ignores them, so `temprature` would have no
 * effect without notice. A name one edit from a known one is still passed on, with a warning that suggests the known one. One list of names
 * per format: fields that the gateway reads, other fields of OpenAI's format, and other vendors' names that resemble them. A new field of a
 * schema must be added to its list (test/rest/warnings.test.ts).
 */
import { distance } from "fastest-levenshtein";
import { BILLED_FIELDS, canonicalName } from "./billed-fields.js";
import type { Modality } from "./modality.js";

/** Unspecified: unknown fields of a body that are compared, the longest names, and names too short to compare. */
const COMPARED_MAX = 32;
const NAME_CHARS_MAX = 40;
const NAME_CHARS_MIN = 4;
const TOLD_MAX = 8;

type Fields = Readonly<Record<string, unknown>>;

const NONE: readonly string[] = [];

interface Names {
  readonly exact: ReadonlySet<string>;
  readonly canonical: ReadonlyMap<string, string>;
  readonly billed: ReadonlyMap<string, unknown>;
}

function names(modality: Modality, ...lists: readonly string[]): Names {
  const all = lists.flatMap((list) => list.split(" "));
  return {
    exact: new Set(all),
    canonical: new Map(all.map((name) => [canonicalName(name), name])),
    billed: BILLED_FIELDS[modality],
  };
}

/** Fields that the gateway reads and other fields of OpenAI's format, billed ones included. */
export const FORMAT_FIELDS: Readonly<Record<Modality, string>> = {
  text:
    "model messages stream stream_options n seed max_tokens max_completion_tokens presence_penalty frequency_penalty stop logprobs " +
    "top_logprobs tools tool_choice parallel_tool_calls functions function_call response_format logit_bias modalities audio prediction " +
    "temperature top_p user safety_identifier metadata reasoning_effort verbosity prompt_cache_key prompt_cache_retention service_tier " +
    "store web_search_options provider_options safe",
  image:
    "model prompt n response_format quality seed nologo enhance safe negative_prompt transparent background reasoning output_format stream " +
    "size image mask user style moderation output_compression input_fidelity partial_images provider_options",
  video: "model prompt seconds size input_reference aspectRatio audio seed negative_prompt enhance safe user provider_options",
  speech: "model input voice response_format speed instructions stream_format provider_options safe",
  music: "model prompt duration response_format seed provider_options safe",
  transcription:
    "model file language prompt temperature response_format timestamp_granularities stream include chunking_strategy " +
    "known_speaker_names known_speaker_references provider_options safe",
  embedding: "model input encoding_format dimensions user provider_options safe",
  realtime: "model",
  moderation: "model input safe",
  rerank: "model query documents top_n return_documents max_tokens_per_doc max_chunks_per_doc rank_fields truncation safe",
};

const SAMPLING = "top_k top_a min_p typical_p repetition_penalty";
const REASONING = "reasoning reasoning_format include_reasoning thinking think enable_thinking thinking_budget";
const CACHED = "cache_control";

/** By modality; exported for the test that walks the schemas. */
export const FIELD_NAMES: Readonly<Record<Modality, Names>> = {
  text: names("text", FORMAT_FIELDS.text, "stop_token_ids min_tokens num_ctx format options", SAMPLING, CACHED, REASONING),
  image: names("image", FORMAT_FIELDS.image, "images guidance guidance_scale"),
  video: names("video", FORMAT_FIELDS.video, FORMAT_FIELDS.image, "duration width height images guidance guidance_scale"),
  speech: names("speech", FORMAT_FIELDS.speech, "voices language lang"),
  music: names("music", FORMAT_FIELDS.music, "input voice speed instructions"),
  transcription: names("transcription", FORMAT_FIELDS.transcription, "diarize hotwords vad_filter"),
  embedding: names("embedding", FORMAT_FIELDS.embedding, "input_type truncate truncation task normalize prompt"),
  realtime: names("realtime", FORMAT_FIELDS.realtime),
  moderation: names("moderation", FORMAT_FIELDS.moderation),
  rerank: names("rerank", FORMAT_FIELDS.rerank),
};

export const RESPONSE_NAMES = names(
  "text",
  "model input instructions stream stream_options max_output_tokens top_logprobs tools tool_choice parallel_tool_calls max_tool_calls text",
  "truncation previous_response_id conversation prompt background store include context_management client_metadata moderation seed stop",
  "presence_penalty frequency_penalty temperature top_p user safety_identifier metadata provider_options safe",
  "prompt_cache_key prompt_cache_retention reasoning_effort verbosity",
  SAMPLING,
  CACHED,
  REASONING,
);

/** One sentence for each. */
export function misspeltFields(modality: Modality, fields: Fields): readonly string[] {
  return misspelt(FIELD_NAMES[modality], fields);
}

export function misspeltChatFields(body: Fields): readonly string[] {
  return misspelt(FIELD_NAMES.text, body);
}

export function misspeltResponseFields(body: Fields): readonly string[] {
  return misspelt(RESPONSE_NAMES, body);
}

/** On the path of every generation: known names cost one look-up. */
function misspelt(known: Names, fields: Fields): readonly string[] {
  let warnings: string[] | null = null;
  let compared = 0;
  for (const field of Object.keys(fields)) {
    if (known.exact.has(field)) continue;
    compared += 1;
    if (compared > COMPARED_MAX) break;
    const meant = nameMeant(known, field);
    if (meant === null) continue;
    warnings ??= [];
    warnings.push(`${field}: unknown; did you mean ${meant}?`);
    if (warnings.length === TOLD_MAX) break;
  }
  return warnings ?? NONE;
}

/** The known name that a field probably means; null without a close one. */
function nameMeant({ exact, canonical, billed }: Names, field: string): string | null {
  if (field.length > NAME_CHARS_MAX || field.length < NAME_CHARS_MIN) return null;
  // Lists in a form.
  if (field.endsWith("[]") && exact.has(field.slice(0, -2))) return null;
  const written = canonicalName(field);
  if (billed.has(written)) return null;
  const same = canonical.get(written);
  if (same !== undefined) return same;
  for (const [name, meant] of canonical) if (name.length >= NAME_CHARS_MIN && isSlip(written, name)) return meant;
  return null;
}

/** One letter added, missing or changed, or two swapped. */
function isSlip(written: string, name: string): boolean {
  const edits = Math.abs(written.length - name.length) > 1 ? 2 : distance(written, name);
  if (edits !== 2 || written.length !== name.length) return edits <= 1;
  let at = 0;
  while (written[at] === name[at]) at += 1;
  return written[at] === name[at + 1] && written[at + 1] === name[at];
}
