/** The largest plausible usage of a chat, by its request and its delivered output (docs/spec/credits.md#reported-usage). */

import { ChatCount } from "../../../formats/openai-chat/count.js";
import { readChat } from "../../../formats/openai-chat/prompt.js";
import type { ChatBody } from "../../../formats/openai-chat/schema.js";
import { isRecord } from "../../../lib/json.js";
import { CALLER_TOOL_TYPES, canonicalName } from "../../catalog/billed-fields.js";
import type { Model } from "../../catalog/model.js";
import { isJudged, PICTURE_TOKENS_MOST, promptTokensMost, vocabularyMargin } from "../plausible.js";
import type { Candidate } from "../routing/candidate.js";
import { AUDIO_CHARS_PER_TOKEN, type ChatPlan, dataChars } from "./planned.js";

export interface Plausible {
  /** Tokens of the prompt, computed only for a report beyond the plain count. */
  promptMost(): number;
  /** Output tokens, unless more were delivered. */
  readonly outputMost: number;
}

/** No upper bound; the lower bound of delivered output still applies. */
export const UNBOUNDED: Plausible = { promptMost: () => Number.POSITIVE_INFINITY, outputMost: Number.POSITIVE_INFINITY };

/**
 * Null: reports are believed. `cap` is the gateway's token limit on one choice at the upstream; null: none, so the model's limits count.
 */
export function plausibleFor(plan: ChatPlan, candidate: Candidate, cap: number | null): Plausible | null {
  return isJudged(plan, candidate) ? new PlausibleChat(plan, candidate.model, cap) : null;
}

/** The same for any upstream, also one whose reports are believed. */
export function boundsOf(plan: ChatPlan, model: Model, cap: number | null): Plausible {
  return new PlausibleChat(plan, model, cap);
}

class PlausibleChat implements Plausible {
  readonly outputMost: number;

  constructor(
    private readonly plan: ChatPlan,
    private readonly model: Model,
    cap: number | null,
  ) {
    const longest = cap ?? model.maxOutputTokens ?? model.contextLength;
    this.outputMost = longest === null ? Number.POSITIVE_INFINITY : longest * plan.choices + predicted(plan.body);
  }

  promptMost(): number {
    const { plan, model } = this;
    const prompt = new ChatCount();
    readChat(plan.body, prompt);
    if (!isCountable(plan, model, prompt)) return model.contextLength ?? Number.POSITIVE_INFINITY;
    let counted = plan.promptTokens;
    for (const text of prompt.texts) counted += vocabularyMargin(text);
    for (const part of prompt.parts) counted += mediaTokens(part);
    for (const value of prompt.unknowns) counted += charsOf(value);
    return promptTokensMost(counted);
  }
}

/** Vendors bill unused tokens of a prediction as output. */
function predicted({ prediction }: ChatBody): number {
  return prediction == null ? 0 : JSON.stringify(prediction).length;
}

/**
 * Whether the gateway can count the model's input: not with the vendor's own search, tools or stored data, nor with referenced or packed
 * documents, videos and audio. The model's context is the bound then.
 */
function isCountable({ body, model: asked }: ChatPlan, { capabilities }: Model, { parts }: ChatCount): boolean {
  if (capabilities.includes("search") || capabilities.includes("code_exec")) return false;
  const { tools } = body;
  if (Array.isArray(tools) && tools.some((tool) => !isRecord(tool) || !CALLER_TOOL_TYPES.has(String(tool.type)))) return false;
  if (asked.pricedFields.size > 0) {
    const stated = new Set(Object.keys(body).map(canonicalName));
    if ([...asked.pricedFields.keys()].some((name) => stated.has(canonicalName(name)))) return false;
  }
  return parts.every(isCountablePart);
}

type Part = Readonly<Record<string, unknown>>;

function isCountablePart(part: Part): boolean {
  switch (part.type) {
    case "image_url":
      return true;
    case "input_audio":
      return dataChars(part.input_audio) > 0;
    default:
      return false;
  }
}

/** Half of the bound, which is twice the count. */
function mediaTokens(part: Part): number {
  if (part.type === "image_url") return PICTURE_TOKENS_MOST / 2;
  return part.type === "input_audio" ? Math.ceil(dataChars(part.input_audio) / AUDIO_CHARS_PER_TOKEN) : 0;
}

function charsOf(value: unknown): number {
  if (typeof value === "string") return value.length;
  return typeof value === "object" && value !== null ? JSON.stringify(value).length : 0;
}
