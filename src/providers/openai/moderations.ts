/** Moderation over OpenAI's wire format. */

import { toInputUsage } from "../../formats/openai-chat/usage.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { isRecord } from "../../lib/json.js";
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import type { ModerationAnswer, ModerationCall, ModerationProvider, ModerationResult } from "../media.js";
import type { OpenAiClient } from "./client.js";

const UNREADABLE = "The upstream's answer holds no moderation results that can be read.";

export class OpenAiModerationProvider implements ModerationProvider {
  constructor(private readonly client: OpenAiClient) {}

  async moderate(call: ModerationCall): Promise<ModerationAnswer> {
    const json = { ...call.extra, model: call.upstreamModel, input: call.inputs };
    const response = await this.client.sendWhole({ path: "/moderations", json, signal: call.signal });
    const answer = this.client.readObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX), UNREADABLE);
    if (!Array.isArray(answer.results) || answer.results.length === 0) throw invalid();
    return {
      results: answer.results.map(toResult),
      usage: toInputUsage(answer.usage, this.client.onUnknownUsage),
      warnings: [],
    };
  }
}

/** Throws for unreadable flags, which must not pass as a clean result. */
function toResult(raw: unknown): ModerationResult {
  if (!isRecord(raw) || typeof raw.flagged !== "boolean" || !isRecord(raw.categories)) throw invalid();
  const categories = Object.entries(raw.categories);
  const scores = isRecord(raw.category_scores) ? Object.entries(raw.category_scores) : [];
  // OpenAI's older models answer null for categories that they lack.
  if (!categories.every(([, value]) => typeof value === "boolean" || value === null)) throw invalid();
  return {
    flagged: raw.flagged,
    categories: Object.fromEntries(categories.map(([name, value]) => [name, value === true])),
    scores: Object.fromEntries(scores.filter((entry): entry is [string, number] => typeof entry[1] === "number")),
    ...(isRecord(raw.category_applied_input_types) && { appliedInputTypes: raw.category_applied_input_types }),
  };
}

function invalid(): ProviderError {
  return new ProviderError("invalid-response", UNREADABLE);
}
