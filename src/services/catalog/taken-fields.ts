/**
 * Fields that vendors of the bundled catalog get: those that this gateway reads, those of OpenAI's format, and those listed here, each
 * known to be free. Vendors may add billed fields at any time, so others are refused (docs/spec/credits.md#billed-fields). An entry of
 * `MODELS_FILE` may allow more (`passFields`).
 */
import { type AppError, invalidInput } from "../../errors.js";
import { closest } from "../../lib/issue-words.js";
import type { BundledVendor } from "./bundled-vendors.js";
import { FORMAT_FIELDS } from "./field-names.js";
import type { Modality } from "./modality.js";
import type { Model } from "./model.js";
import type { Route } from "./route.js";

type FreeFields = Readonly<Partial<Record<Modality, string>>>;

/** Sampling and the form of reasoning, from each vendor's API reference in November 2026. */
const FREE_FIELDS: Readonly<Record<BundledVendor, FreeFields>> = {
  openai: {},
  anthropic: { text: "top_k" },
  gemini: { text: "top_k" },
  mistral: { text: "safe_prompt random_seed prompt_mode", embedding: "output_dimension output_dtype" },
  groq: { text: "reasoning_format include_reasoning disable_tool_validation documents citation_options" },
  deepseek: { text: "thinking" },
  xai: {},
  moonshot: { text: "thinking" },
  zai: { text: "thinking do_sample request_id user_id tool_stream" },
  cerebras: { text: "reasoning_format clear_thinking disable_reasoning min_tokens" },
  cohere: { text: "top_k" },
  elevenlabs: {},
  deepgram: {},
  replicate: {},
  fal: {},
  openrouter: {
    text: "top_k top_a min_p repetition_penalty reasoning include_reasoning usage structured_outputs cache_control thinking safe_prompt",
  },
};

/** Session and response of OpenAI's realtime format, general and beta. */
const REALTIME_FIELDS =
  "type object id expires_at instructions input conversation metadata modalities output_modalities voice audio input_audio_format " +
  "output_audio_format input_audio_transcription input_audio_noise_reduction turn_detection tools tool_choice parallel_tool_calls " +
  "temperature speed max_output_tokens max_response_output_tokens truncation include reasoning";

/** Characters of a client's text in an error message. */
const QUOTED_CHARS_MAX = 64;
const CLOSEST = { namesOf: (name: string) => [name], count: 1, charsMax: QUOTED_CHARS_MAX } as const;

const takenBy = new Map<string, ReadonlySet<string>>();

function takenOf(vendor: BundledVendor, modality: Modality): ReadonlySet<string> {
  const key = `${vendor} ${modality}`;
  const known = takenBy.get(key);
  if (known) return known;
  const lists = [FORMAT_FIELDS[modality], FREE_FIELDS[vendor][modality] ?? "", modality === "realtime" ? REALTIME_FIELDS : ""];
  const taken = new Set(lists.flatMap((list) => list.split(" ")).filter((name) => name !== ""));
  takenBy.set(key, taken);
  return taken;
}

/** Whether the upstream of a model's route may get a field of that name, which is not billed. */
export function isTaken({ modality, passFields }: Pick<Model, "modality" | "passFields">, { vendor }: Route, name: string): boolean {
  return vendor === null || passFields.has(name) || takenOf(vendor, modality).has(name);
}

/** Whether some route may get it. A loop, because every field of every request comes here. */
export function isTakenBySome(model: Pick<Model, "modality" | "passFields" | "routes">, name: string): boolean {
  for (const route of model.routes) if (isTaken(model, route, name)) return true;
  return false;
}

/** `at` is the path of a nested field. */
export function refuseUntaken({ id, routes, modality }: Pick<Model, "id" | "routes" | "modality">, name: string, at = name): AppError {
  const [{ vendor }] = routes;
  const quoted = JSON.stringify(name.length > QUOTED_CHARS_MAX ? `${name.slice(0, QUOTED_CHARS_MAX)}…` : name);
  const [near] = vendor === null ? [] : closest([...takenOf(vendor, modality)], name, CLOSEST);
  return invalidInput(
    `The field ${quoted} is not passed to the vendor of ${id}, because it might change the price. Did you mean ${near}? ` +
      "An operator can allow the field in the catalog (passFields of the model).",
    at.length > QUOTED_CHARS_MAX ? at.slice(0, QUOTED_CHARS_MAX) : at,
  );
}
