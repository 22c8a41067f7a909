/** An answer of generateContent, as an upstream gives it, as a `chat.completion`. */
import { randomUUID } from "node:crypto";
import { isRecord, recordsOf } from "../../lib/json.js";
import type { ChatCompletion } from "../openai-chat/schema.js";
import { ProviderError } from "../upstream-error.js";
import { foreignPartsIn, toGoogleExtra, toSignedDetail } from "./signed.js";
import { toChatUsage } from "./upstream-usage.js";

type Loose = Readonly<Record<string, unknown>>;

const FILTERED: ReadonlySet<unknown> = new Set([
  ...["SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT"],
  ...["IMAGE_RECITATION", "MODEL_ARMOR"],
]);
/** The model's output was no answer. */
const FAILED: ReadonlySet<unknown> = new Set([
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
  "TOO_MANY_TOOL_CALLS",
  "MALFORMED_RESPONSE",
]);
const REASON_CHARS_MAX = 64;

/** Throws when the upstream gave up: a partial answer is not returned. */
export function toFinish(reason: string, hasCalls: boolean): Loose {
  if (FAILED.has(reason)) {
    throw new ProviderError("status", "The upstream gave up on its answer.", {
      status: 502,
      upstreamMessage: reason.slice(0, REASON_CHARS_MAX),
    });
  }
  if (FILTERED.has(reason)) return { finish_reason: "content_filter", native_finish_reason: reason.slice(0, REASON_CHARS_MAX) };
  if (reason === "MAX_TOKENS") return { finish_reason: "length" };
  return { finish_reason: hasCalls ? "tool_calls" : "stop" };
}

/** The reason of a prompt that was refused, which has no candidates; null for other answers. */
export function blockReasonOf({ promptFeedback: feedback, candidates }: Loose): string | null {
  if (recordsOf(candidates).length > 0 || !isRecord(feedback)) return null;
  return typeof feedback.blockReason === "string" ? feedback.blockReason : null;
}

/** Throws a ProviderError for another answer than candidates. */
export function toCompletion(answer: Loose): ChatCompletion {
  const candidates = recordsOf(answer.candidates);
  const blocked = blockReasonOf(answer);
  if (candidates.length === 0 && blocked === null)
    throw new ProviderError("invalid-response", "The upstream's answer holds no candidates.");
  const usage = toChatUsage(answer.usageMetadata);
  const refused = { index: 0, message: { role: "assistant", content: "", refusal: null }, finish_reason: "content_filter" };
  return {
    ...toHead(answer),
    object: "chat.completion",
    choices: blocked === null ? candidates.map(toChoice) : [{ ...refused, native_finish_reason: blocked.slice(0, REASON_CHARS_MAX) }],
    ...(usage !== null && { usage }),
  };
}

/** Common first fields, also of chunks. */
export function toHead({ responseId, modelVersion }: Loose): { readonly id: string; readonly created: number; readonly model: string } {
  return {
    id: typeof responseId === "string" ? responseId : "",
    created: Math.floor(Date.now() / 1_000),
    model: typeof modelVersion === "string" ? modelVersion : "",
  };
}

function toChoice(candidate: Loose, position: number) {
  const { finishReason: reason, index = position } = candidate;
  if (typeof reason !== "string" || reason === "")
    throw new ProviderError("invalid-response", "The upstream's answer does not say why it ended.");
  const read = new PartsReader();
  const deltas = partsOf(candidate).flatMap((part) => read.read(part));
  const text = deltas.map(({ content }) => (typeof content === "string" ? content : "")).join("");
  const reasoning = deltas.map(({ reasoning_content: thought }) => (typeof thought === "string" ? thought : "")).join("");
  const details = deltas.flatMap(({ reasoning_details: own }) => recordsOf(own));
  const images = deltas.flatMap(({ images: own }) => recordsOf(own));
  const calls = deltas.flatMap(({ tool_calls: own }) => recordsOf(own)).map(({ index: _, ...call }) => call);
  const foreign = deltas.flatMap(({ extra_content: extra }) => foreignPartsIn(extra));
  const annotations = annotationsOf(candidate);
  return {
    index: typeof index === "number" ? index : position,
    message: {
      role: "assistant",
      content: text === "" && calls.length > 0 ? null : text,
      refusal: null,
      ...(reasoning !== "" && { reasoning_content: reasoning }),
      ...(details.length > 0 && { reasoning_details: details }),
      ...(calls.length > 0 && { tool_calls: calls }),
      ...(annotations.length > 0 && { annotations }),
      ...(images.length > 0 && { images }),
      ...(foreign.length > 0 && { extra_content: { google: { parts: foreign } } }),
    },
    logprobs: toLogprobs(candidate.logprobsResult),
    ...toFinish(reason, calls.length > 0),
  };
}

export function partsOf({ content }: Loose): readonly Loose[] {
  return isRecord(content) ? recordsOf(content.parts) : [];
}

/** Reads the parts of one candidate as deltas of a chat. */
export class PartsReader {
  calls = 0;
  private thoughts = 0;

  read(part: Loose): Loose[] {
    const { text, thought, functionCall: called, inlineData: file } = part;
    const signature = typeof part.thoughtSignature === "string" && part.thoughtSignature !== "" ? part.thoughtSignature : null;
    if (isRecord(called)) return [this.toCall(called, signature)];
    if (isRecord(file) && typeof file.data === "string") {
      const url = `data:${String(file.mimeType)};base64,${file.data}`;
      return [{ images: [{ type: "image_url", image_url: { url } }] }, ...this.signed(signature)];
    }
    if (typeof text !== "string") return [...toForeign(part), ...this.signed(signature)];
    if (thought !== true) return [...(text === "" ? [] : [{ content: text }]), ...this.signed(signature)];
    const deltas: Loose[] = text === "" ? [] : [{ reasoning_content: text }];
    if (signature === null) return deltas;
    const detail = { type: "reasoning.text", index: this.thoughts++, text, extra_content: toGoogleExtra(signature) };
    return [...deltas, { reasoning_details: [detail] }];
  }

  private signed(signature: string | null): Loose[] {
    return signature === null ? [] : [{ reasoning_details: [{ ...toSignedDetail(signature), index: this.thoughts++ }] }];
  }

  private toCall({ id, name, args }: Loose, signature: string | null): Loose {
    const call = {
      index: this.calls++,
      id: typeof id === "string" && id !== "" ? id : `call_${randomUUID()}`,
      type: "function",
      function: { name: String(name ?? ""), arguments: JSON.stringify(args ?? {}) },
      ...(signature !== null && { extra_content: toGoogleExtra(signature) }),
    };
    return { tool_calls: [call] };
  }
}

/** Parts of tools that Google runs, which a chat holds unread. */
function toForeign({ thoughtSignature: _, ...part }: Loose): Loose[] {
  return Object.keys(part).length === 0 ? [] : [{ extra_content: { google: { parts: [part] } } }];
}

/** Cited pages. Places in the text are left out, because Google counts them in bytes. */
export function annotationsOf({ groundingMetadata: grounding, citationMetadata: citations }: Loose): Loose[] {
  const chunks = isRecord(grounding) ? recordsOf(grounding.groundingChunks) : [];
  const pages = chunks.flatMap(({ web, retrievedContext, maps }) => [web, retrievedContext, maps].filter(isRecord));
  const sources = isRecord(citations) ? recordsOf(citations.citationSources) : [];
  return [...pages, ...sources].flatMap(({ uri, title }) => {
    if (typeof uri !== "string" || uri === "") return [];
    const cited = { url: uri, title: typeof title === "string" && title !== "" ? title : uri, start_index: 0, end_index: 0 };
    return [{ type: "url_citation", url_citation: cited }];
  });
}

export function toLogprobs(result: unknown): Loose | null {
  if (!isRecord(result)) return null;
  const top = recordsOf(result.topCandidates);
  const content = recordsOf(result.chosenCandidates).map((chosen, index) => ({
    ...toLogprob(chosen),
    top_logprobs: recordsOf(top[index]?.candidates).map(toLogprob),
  }));
  return content.length === 0 ? null : { content, refusal: null };
}

function toLogprob({ token, logProbability }: Loose): Loose {
  const text = typeof token === "string" ? token : "";
  return { token: text, logprob: typeof logProbability === "number" ? logProbability : 0, bytes: [...Buffer.from(text)] };
}
