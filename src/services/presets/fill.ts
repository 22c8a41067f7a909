/** Fills a preset into a request (docs/spec/presets.md#use): its fields stand where the request has none. Pure. */
import { type AppError, wrongField } from "../../errors.js";
import { withCamelNames } from "../../formats/gemini/field-names.js";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";

/** The format of the body that is filled. */
export type PresetFormat = "chat" | "responses" | "messages" | "completions" | "gemini";

export interface FilledPreset {
  readonly name: string;
  /** Null: the default. */
  readonly model: string | null;
  readonly systemPrompt: string | null;
  /** Fields of a chat-completions request. */
  readonly parameters: Readonly<Record<string, unknown>>;
  /** In the form of a request. Null: no wishes. */
  readonly provider: unknown;
  /** Tried after the model. */
  readonly models: readonly string[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Names of the parameters in the other formats. Parameters without one are refused. */
const NAMES: Readonly<Record<Exclude<PresetFormat, "chat">, ReadonlyMap<string, string>>> = {
  responses: new Map([
    ["temperature", "temperature"],
    ["top_p", "top_p"],
    ["max_tokens", "max_output_tokens"],
  ]),
  messages: new Map([
    ["temperature", "temperature"],
    ["top_p", "top_p"],
    ["max_tokens", "max_tokens"],
    ["stop", "stop_sequences"],
  ]),
  completions: new Map(
    ["temperature", "top_p", "max_tokens", "seed", "presence_penalty", "frequency_penalty", "stop"].map((name) => [name, name]),
  ),
  gemini: new Map([
    ["temperature", "temperature"],
    ["top_p", "topP"],
    ["max_tokens", "maxOutputTokens"],
    ["seed", "seed"],
    ["presence_penalty", "presencePenalty"],
    ["frequency_penalty", "frequencyPenalty"],
    ["stop", "stopSequences"],
  ]),
};
/** Fields that are lists in the other formats. */
const LISTS: ReadonlySet<string> = new Set(["stop_sequences", "stopSequences"]);

const PRESET_PREFIX = "@preset/";

/** `@preset/support` to `support`; null: not the name of a preset in that form. */
export function presetIn(name: unknown): string | null {
  return typeof name === "string" && name.startsWith(PRESET_PREFIX) ? name.slice(PRESET_PREFIX.length) : null;
}

/** Throws BAD_REQUEST for a preset with a part that the format has no field for. */
export function fillPreset(body: Fields, preset: FilledPreset, format: PresetFormat): Fields {
  const { preset: _, ...stated } = format === "gemini" ? (withCamelNames(body) as Fields) : body;
  const filled = new Map(Object.entries(stated));
  if (presetIn(stated.model) !== null) filled.delete("model");
  if (preset.model !== null && filled.get("model") == null) filled.set("model", preset.model);
  if (preset.provider !== null && filled.get("provider") == null) filled.set("provider", preset.provider);
  if (preset.models.length > 0 && filled.get("models") == null) filled.set("models", preset.models);
  if (format === "gemini") fillConfig(filled, preset);
  else fillParameters(filled, stated, preset, format);
  if (preset.systemPrompt !== null) fillSystemPrompt(filled, preset.systemPrompt, preset, format);
  return Object.fromEntries(filled);
}

/** Gemini has the parameters in an object of their own. One that is not an object is refused where it is read. */
function fillConfig(filled: Map<string, unknown>, preset: FilledPreset): void {
  const stated = filled.get("generationConfig") ?? {};
  if (!isRecord(stated)) return;
  const config = new Map(Object.entries(stated));
  fillParameters(config, stated, preset, "gemini");
  if (config.size > 0) filled.set("generationConfig", Object.fromEntries(config));
}

function fillParameters(filled: Map<string, unknown>, stated: Fields, preset: FilledPreset, format: PresetFormat): void {
  for (const [name, value] of Object.entries(preset.parameters)) {
    // One limit of the answer, by either name.
    if (name === "max_tokens" && format === "chat" && ownValue(stated, "max_completion_tokens") != null) continue;
    const named = format === "chat" ? name : NAMES[format].get(name);
    if (named === undefined) throw hasNoField(preset, name);
    if (filled.get(named) == null) filled.set(named, LISTS.has(named) && typeof value === "string" ? [value] : value);
  }
}

function hasNoField({ name }: FilledPreset, part: string): AppError {
  return wrongField("preset", `${name} states ${part}, which this format has no field for here. Use it with POST /v1/chat/completions`);
}

function fillSystemPrompt(filled: Map<string, unknown>, prompt: string, preset: FilledPreset, format: PresetFormat): void {
  if (format === "completions") throw hasNoField(preset, "a system prompt");
  if (format === "chat") {
    fillSystemMessage(filled, prompt);
    return;
  }
  const [field, value] = SYSTEM_FIELDS[format](prompt);
  if (filled.get(field) == null) filled.set(field, value);
}

const SYSTEM_FIELDS: Readonly<Record<"responses" | "messages" | "gemini", (prompt: string) => readonly [string, unknown]>> = {
  responses: (prompt) => ["instructions", prompt],
  messages: (prompt) => ["system", prompt],
  gemini: (prompt) => ["systemInstruction", { parts: [{ text: prompt }] }],
};

function fillSystemMessage(filled: Map<string, unknown>, prompt: string): void {
  const messages = filled.get("messages");
  if (!Array.isArray(messages)) return;
  const hasOwn = messages.some((message) => isRecord(message) && (message.role === "system" || message.role === "developer"));
  if (!hasOwn) filled.set("messages", [{ role: "system", content: prompt }, ...messages]);
}
