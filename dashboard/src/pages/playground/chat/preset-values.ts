/** Values of presets: settings of the playground as parameters of a chat completion, and back. */
import type { PlaygroundPresetPartsFragment, ReasoningEffort } from "../../../client/generated/graphql.js";
import { chatRequest, NO_SETTINGS, type Settings, toInput } from "./conversation.js";

export interface PresetValues {
  readonly model: string | null;
  readonly systemPrompt: string | null;
  readonly parameters: Readonly<Record<string, unknown>>;
}

const EFFORTS: readonly ReasoningEffort[] = ["NONE", "MINIMAL", "LOW", "MEDIUM", "HIGH", "XHIGH"];

/** Throws for invalid tools. */
export function toValues(model: string | null, settings: Settings): PresetValues {
  const { model: _model, messages: _messages, ...parameters } = chatRequest(toInput("", [], settings)).body;
  return { model, systemPrompt: settings.systemPrompt.trim() === "" ? null : settings.systemPrompt, parameters };
}

export function toSettings({ systemPrompt, parameters }: Pick<PlaygroundPresetPartsFragment, "systemPrompt" | "parameters">): Settings {
  const given = new Map(Object.entries(typeof parameters === "object" && parameters !== null ? parameters : {}));
  const number = (name: string) => {
    const value: unknown = given.get(name);
    return typeof value === "number" ? value : "";
  };
  const [effort, stop, tools, choice] = ["reasoning_effort", "stop", "tools", "tool_choice"].map((name): unknown => given.get(name));
  return {
    ...NO_SETTINGS,
    systemPrompt: systemPrompt ?? "",
    temperature: number("temperature"),
    topP: number("top_p"),
    maxTokens: number("max_tokens"),
    seed: number("seed"),
    presencePenalty: number("presence_penalty"),
    frequencyPenalty: number("frequency_penalty"),
    reasoningEffort: EFFORTS.find((known) => known.toLowerCase() === effort) ?? null,
    stop: Array.isArray(stop) ? stop.join("\n") : typeof stop === "string" ? stop : "",
    tools: Array.isArray(tools) && tools.length > 0 ? JSON.stringify(tools, null, 2) : "",
    toolChoice: typeof choice === "string" ? choice : null,
  };
}

/** Whether two sets have the same values. The gateway does not keep the order of fields. */
export function isSame(one: PresetValues, other: PresetValues): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([name, inner]) => [name, sorted(inner)]),
  );
}
