/** Moderation over OpenAI's wire format. */
import { UPSTREAM_BODY_BYTES_MAX } from "../../limits.js";
import type { ModerationAnswer, ModerationCall, ModerationProvider, ModerationResult } from "../media.js";
import { ProviderError } from "../provider.js";
import { isEventStream, type OpenAiClient, refuse } from "./client.js";
import { toEmbeddedError } from "./errors.js";
import { isRecord, parseObject } from "./json.js";
import { toUsage } from "./usage.js";

export class OpenAiModerationProvider implements ModerationProvider {
  constructor(private readonly client: OpenAiClient) {}

  async moderate(call: ModerationCall): Promise<ModerationAnswer> {
    const response = await this.client.send({
      path: "/moderations",
      accept: "application/json",
      body: JSON.stringify({ ...call.extra, model: call.upstreamModel, input: call.inputs }),
      signal: call.signal,
      isStreamed: false,
    });
    if (isEventStream(response)) throw refuse(response, "The upstream answered a stream although none was asked for.");
    const answer = parseObject(await response.readAll(UPSTREAM_BODY_BYTES_MAX));
    if (answer === null) throw invalid();
    if (answer.error !== undefined && answer.error !== null) throw toEmbeddedError(answer.error, this.client.secrets);
    if (!Array.isArray(answer.results) || answer.results.length === 0) throw invalid();
    const { usage } = answer;
    return {
      results: answer.results.map(toResult),
      usage: isRecord(usage) ? toUsage({ ...usage, completion_tokens: usage.completion_tokens ?? usage.output_tokens ?? 0 }) : null,
      warnings: [],
    };
  }
}

/** A result whose flags cannot be read is no result: nobody may take it for a clean one. */
function toResult(raw: unknown): ModerationResult {
  if (!isRecord(raw) || typeof raw.flagged !== "boolean" || !isRecord(raw.categories)) throw invalid();
  const categories = Object.entries(raw.categories);
  const scores = isRecord(raw.category_scores) ? Object.entries(raw.category_scores) : [];
  // OpenAI's older models answer null for categories that they do not know.
  if (!categories.every(([, value]) => typeof value === "boolean" || value === null)) throw invalid();
  return {
    flagged: raw.flagged,
    categories: Object.fromEntries(categories.map(([name, value]) => [name, value === true])),
    scores: Object.fromEntries(scores.filter((entry): entry is [string, number] => typeof entry[1] === "number")),
    ...(isRecord(raw.category_applied_input_types) && { appliedInputTypes: raw.category_applied_input_types }),
  };
}

function invalid(): ProviderError {
  return new ProviderError("invalid-response", "The upstream's answer holds no moderation results that can be read.");
}
