/** Fills a preset into a request (docs/spec/presets.md#use): its fields stand where the request has none. Pure. */
import { wrongField } from "../../errors.js";
import { isRecord } from "../../lib/json.js";
import { ownValue } from "../../lib/own-values.js";

/** The format of the body that is filled. */
export type PresetFormat = "chat" | "responses" | "messages";

export interface FilledPreset {
  readonly name: string;
  /** Null: the default. */
  readonly model: string | null;
  readonly systemPrompt: string | null;
  /** Fields of a chat-completions request. */
  readonly parameters: Readonly<Record<string, unknown>>;
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
};

const PRESET_PREFIX = "@preset/";

/** `@preset/support` to `support`; null: not the name of a preset in that form. */
export function presetIn(name: unknown): string | null {
  return typeof name === "string" && name.startsWith(PRESET_PREFIX) ? name.slice(PRESET_PREFIX.length) : null;
}

/** Throws BAD_REQUEST for a preset with a parameter that the format lacks. */
export function fillPreset(body: Fields, preset: FilledPreset, format: PresetFormat): Fields {
  const { preset: _, ...stated } = body;
  const filled = new Map(Object.entries(stated));
  const fill = (name: string, value: unknown) => {
    if (filled.get(name) == null) filled.set(name, value);
  };
  if (presetIn(stated.model) !== null) filled.delete("model");
  if (preset.model !== null) fill("model", preset.model);
  for (const [name, value] of Object.entries(preset.parameters)) {
    // One limit of the answer, by either name.
    if (name === "max_tokens" && format === "chat" && ownValue(stated, "max_completion_tokens") != null) continue;
    const named = format === "chat" ? name : NAMES[format].get(name);
    if (named === undefined)
      throw wrongField(
        "preset",
        `${preset.name} states ${name}, which this format has no field for here. Use it with POST /v1/chat/completions`,
      );
    fill(named, named === "stop_sequences" && typeof value === "string" ? [value] : value);
  }
  if (preset.systemPrompt !== null) fillSystemPrompt(filled, preset.systemPrompt, format);
  return Object.fromEntries(filled);
}

function fillSystemPrompt(filled: Map<string, unknown>, prompt: string, format: PresetFormat): void {
  const field = format === "responses" ? "instructions" : "system";
  if (format !== "chat") {
    if (filled.get(field) == null) filled.set(field, prompt);
    return;
  }
  const messages = filled.get("messages");
  if (!Array.isArray(messages)) return;
  const hasOwn = messages.some((message) => isRecord(message) && (message.role === "system" || message.role === "developer"));
  if (!hasOwn) filled.set("messages", [{ role: "system", content: prompt }, ...messages]);
}
