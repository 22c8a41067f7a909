/** The package's answer as a `chat.completion`. */
import { randomUUID } from "node:crypto";
import type {
  LanguageModelV3Content,
  LanguageModelV3FinishReason,
  LanguageModelV3GenerateResult,
  SharedV3ProviderMetadata,
} from "@ai-sdk/provider";
import type { ChatCompletion } from "../../formats/openai-chat/schema.js";
import { ProviderError } from "../../formats/upstream-error.js";

type Loose = Readonly<Record<string, unknown>>;

export function fromResponse(
  result: LanguageModelV3GenerateResult,
  model: string,
  usage: Loose | null,
  warnings: readonly string[],
): ChatCompletion {
  const { response } = result;
  return {
    id: response?.id ?? `chatcmpl-${randomUUID()}`,
    object: "chat.completion",
    created: Math.floor((response?.timestamp?.getTime() ?? Date.now()) / 1_000),
    model: response?.modelId ?? model,
    choices: [{ index: 0, message: toMessage(result.content), logprobs: null, finish_reason: toFinishReason(result.finishReason) }],
    ...(usage !== null && { usage }),
    ...(warnings.length > 0 && { warnings }),
  };
}

/** Throws when the upstream gave up: a partial answer is not returned. */
export function toFinishReason({ unified, raw }: LanguageModelV3FinishReason): string {
  switch (unified) {
    case "length":
      return "length";
    case "content-filter":
      return "content_filter";
    case "tool-calls":
      return "tool_calls";
    case "error":
      throw new ProviderError("status", "The upstream gave up on its answer.", {
        status: 502,
        upstreamMessage: raw ?? "It gave no reason.",
      });
    default:
      return "stop";
  }
}

function toMessage(content: readonly LanguageModelV3Content[]): Record<string, unknown> {
  const text = content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("");
  const thoughts = content.filter((part) => part.type === "reasoning");
  const calls = content.flatMap((part) => (part.type === "tool-call" && part.providerExecuted !== true ? [part] : []));
  const sources = content.flatMap((part) => toAnnotation(part) ?? []);
  const images = content.flatMap((part) => toImage(part) ?? []);
  const reasoning = thoughts.map((part) => part.text).join("");
  const signed = thoughts.some((part) => part.providerMetadata !== undefined);
  return {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    refusal: null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(signed && { reasoning_details: thoughts.map((part, index) => toReasoningDetail(index, part.text, part.providerMetadata)) }),
    ...(calls.length > 0 && {
      tool_calls: calls.map(({ toolCallId, toolName, input, providerMetadata }) => ({
        id: toolCallId,
        type: "function",
        function: { name: toolName, arguments: input },
        ...toExtraContent(providerMetadata),
      })),
    }),
    ...(sources.length > 0 && { annotations: sources }),
    ...(images.length > 0 && { images }),
  };
}

/** Reasoning with the vendor's signature: clients send it back unchanged. */
export function toReasoningDetail(index: number, text: string, metadata: SharedV3ProviderMetadata | undefined): Record<string, unknown> {
  return { type: "reasoning.text", index, text, ...toExtraContent(metadata) };
}

/** Metadata that the vendor needs back with this part, under the name in Gemini's own OpenAI-format API. */
export function toExtraContent(metadata: SharedV3ProviderMetadata | undefined): { extra_content?: SharedV3ProviderMetadata } {
  return metadata === undefined ? {} : { extra_content: metadata };
}

/** A source of the answer; null for other parts. */
export function toAnnotation(part: { readonly type: string }): Record<string, unknown> | null {
  if (!isSource(part)) return null;
  return { type: "url_citation", url_citation: { url: part.url, title: part.title ?? part.url, start_index: 0, end_index: 0 } };
}

function isSource(part: { readonly type: string }): part is { readonly type: "source"; readonly url: string; readonly title?: string } {
  return part.type === "source" && "url" in part;
}

/** An image in the answer; null for other parts. */
export function toImage(part: { readonly type: string }): Record<string, unknown> | null {
  if (!isFile(part)) return null;
  const base64 = typeof part.data === "string" ? part.data : Buffer.from(part.data).toString("base64");
  return { type: "image_url", image_url: { url: `data:${part.mediaType};base64,${base64}` } };
}

function isFile(part: {
  readonly type: string;
}): part is { readonly type: "file"; readonly mediaType: string; readonly data: string | Uint8Array } {
  return part.type === "file";
}
