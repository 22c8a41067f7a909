/** OpenAI's messages as the package's prompt. */
import type {
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3TextPart,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import {
  base64Of,
  fileUrlOf,
  parseArguments,
  readAudio,
  readMedia,
  SHOWN_TYPES,
  urlOf,
  VIDEO_TYPES,
} from "../../formats/openai-chat/parts.js";
import { repairHistory } from "../../formats/openai-chat/repair.js";
import type { ChatBody } from "../../formats/openai-chat/schema.js";
import { refuse } from "../../formats/upstream-error.js";
import { append } from "../../lib/collections.js";
import { isRecord, recordsOf } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { JSON_BOUNDS } from "../../limits.js";

// Files in a chat: OpenAI's content parts as the package's file parts.

const TYPES = { ...SHOWN_TYPES, ...VIDEO_TYPES };

/**
 * `image_url`, `input_audio`, `file` and `video_url`. Throws a ProviderError of status 400 for a part that the upstream does not accept.
 */
function toFilePart(part: Loose, path: string): LanguageModelV3FilePart {
  switch (part.type) {
    case "image_url":
      return toPart(urlOf(part.image_url), "image/jpeg", `${path}.image_url`);
    case "video_url":
      return toPart(urlOf(part.video_url), "video/mp4", `${path}.video_url`);
    case "input_audio":
      return toAudioPart(part.input_audio, path);
    case "file":
      return toDocumentPart(part.file, path);
    default:
      throw refuse(`This upstream takes no content of type ${JSON.stringify(part.type)}.`, `${path}.type`);
  }
}

function toAudioPart(audio: unknown, path: string): LanguageModelV3FilePart {
  return { type: "file", ...readAudio(audio, `${path}.input_audio.data`) };
}

function toDocumentPart(file: unknown, path: string): LanguageModelV3FilePart {
  const field = `${path}.file.file_data`;
  const { filename } = isRecord(file) ? file : {};
  const part = toPart(fileUrlOf(file, field), "application/pdf", field);
  return typeof filename === "string" ? { ...part, filename } : part;
}

function toPart(url: string, assumedType: string, path: string): LanguageModelV3FilePart {
  const media = readMedia(url, { assumedType, types: TYPES, path });
  return { type: "file", data: "content" in media ? base64Of(media.content) : media.address, mediaType: media.mediaType };
}

type Loose = Readonly<Record<string, unknown>>;
type AssistantContent = Extract<LanguageModelV3Message, { role: "assistant" }>["content"];
type ToolResultOutput = LanguageModelV3ToolResultPart["output"];
type ToolResultContent = Extract<ToolResultOutput, { type: "content" }>["value"];

export interface PromptTraits {
  /** The package's name for the vendor's own options. */
  readonly optionsName: string;
  readonly hasCacheControl: boolean;
}

export interface Prompt {
  readonly prompt: LanguageModelV3Prompt;
  readonly warnings: readonly string[];
}

/** Throws a ProviderError of status 400 for content that a message cannot hold. Instructions come first, wherever they were. */
export function toPrompt(body: ChatBody, traits: PromptTraits): Prompt {
  // Outputs of tools hold pictures in this form.
  const { messages, warnings } = repairHistory(recordsOf(body.messages), { field: "messages", showsMediaApart: false });
  const { prompt, warnings: others } = new PromptWriter(traits).write(messages);
  return { prompt, warnings: [...warnings, ...others] };
}

class PromptWriter {
  private readonly instructions: LanguageModelV3Message[] = [];
  private readonly turns: LanguageModelV3Message[] = [];
  private readonly warnings = new Set<string>();
  /** Tool names by call, because a tool's answer only names the call. */
  private readonly toolNames = new Map<string, string>();
  private readonly json = new BoundedJson(JSON_BOUNDS);

  constructor(private readonly traits: PromptTraits) {}

  write(messages: readonly Loose[]): Prompt {
    for (const [index, message] of messages.entries()) this.addMessage(message, `messages.${index}`);
    return { prompt: [...this.instructions, ...this.turns], warnings: [...this.warnings] };
  }

  private addMessage(message: Loose, path: string): void {
    const options = this.cacheOptions(message);
    if (message.role === "system" || message.role === "developer") {
      if (this.turns.length > 0) this.warnings.add("messages: instructions in the middle of the chat are given to this upstream first.");
      this.addInstructions(message, options);
    } else if (message.role === "assistant") {
      this.turns.push({ role: "assistant", content: this.toAssistantContent(message, path), ...options });
    } else if (message.role === "tool" || message.role === "function") {
      this.turns.push({ role: "tool", content: [this.toToolResult(message, path)], ...options });
    } else {
      this.turns.push({ role: "user", content: this.toUserContent(message.content, path), ...options });
    }
  }

  /** Keeps parts separate, because each may end the cached prefix. */
  private addInstructions(message: Loose, options: Cached): void {
    if (typeof message.content === "string") {
      this.instructions.push({ role: "system", content: message.content, ...options });
      return;
    }
    const parts = recordsOf(message.content);
    for (const part of parts) {
      const own = this.cacheOptions(part);
      this.instructions.push({ role: "system", content: String(part.text ?? ""), ...options, ...own });
    }
  }

  private toUserContent(content: unknown, path: string): (LanguageModelV3TextPart | LanguageModelV3FilePart)[] {
    if (typeof content === "string") return [{ type: "text", text: content }];
    return recordsOf(content).map((part, index) => {
      const options = this.cacheOptions(part);
      if (part.type === "text" || part.type === "refusal")
        return { type: "text", text: String(part.text ?? part.refusal ?? ""), ...options };
      return { ...toFilePart(part, `${path}.content.${index}`), ...options };
    });
  }

  private toAssistantContent(message: Loose, path: string): AssistantContent {
    const content: AssistantContent = [...toReasoning(message)];
    if (typeof message.content === "string" && message.content !== "") content.push({ type: "text", text: message.content });
    else for (const part of recordsOf(message.content)) append(content, this.toUserContent([part], path));
    if (typeof message.refusal === "string" && message.refusal !== "") content.push({ type: "text", text: message.refusal });
    for (const [index, call] of recordsOf(message.tool_calls).entries()) content.push(this.toToolCall(call, `${path}.tool_calls.${index}`));
    if (isRecord(message.function_call)) {
      const { name } = message.function_call;
      content.push(this.toToolCall({ id: name, function: message.function_call }, `${path}.function_call`));
    }
    return content;
  }

  private toToolCall(call: Loose, path: string): AssistantContent[number] {
    const called: Loose = isRecord(call.function) ? call.function : {};
    const toolName = String(called.name ?? "");
    const toolCallId = String(call.id ?? toolName);
    this.toolNames.set(toolCallId, toolName);
    const input = parseArguments(this.json, called.arguments, `${path}.function.arguments`);
    return { type: "tool-call", toolCallId, toolName, input, ...returned(call.extra_content) };
  }

  private toToolResult(message: Loose, path: string): LanguageModelV3ToolResultPart {
    const toolCallId = String(message.tool_call_id ?? message.name ?? "");
    const toolName = this.toolNames.get(toolCallId) ?? (typeof message.name === "string" ? message.name : null);
    if (toolName === null)
      throw refuse(`There is no tool call ${JSON.stringify(toolCallId)} before this answer to it.`, `${path}.tool_call_id`);
    return { type: "tool-result", toolCallId, toolName, output: this.toOutput(message.content, path) };
  }

  private toOutput(content: unknown, path: string): ToolResultOutput {
    if (!Array.isArray(content)) return { type: "text", value: typeof content === "string" ? content : "" };
    const value: ToolResultContent = this.toUserContent(content, path).map((part) => {
      if (part.type === "text") return { type: "text", text: part.text };
      const { data, mediaType } = part;
      return data instanceof URL ? { type: "file-url", url: data.href, mediaType } : { type: "file-data", data: toBase64(data), mediaType };
    });
    return { type: "content", value };
  }

  private cacheOptions(value: Loose): Cached {
    if (!isRecord(value.cache_control)) return {};
    if (!this.traits.hasCacheControl) {
      this.warnings.add("cache_control: this upstream decides by itself what it caches.");
      return {};
    }
    // One hour is passed on only where it has a price (services/catalog/billed-fields.ts).
    const { ttl } = value.cache_control;
    const cacheControl = { type: "ephemeral", ...(typeof ttl === "string" && { ttl }) };
    return { providerOptions: { [this.traits.optionsName]: { cacheControl } } };
  }
}

interface Cached {
  readonly providerOptions?: SharedV3ProviderOptions;
}

/** Reasoning of an earlier answer; only useful with the vendor's signature. */
function toReasoning(message: Loose): AssistantContent {
  const details = recordsOf(message.reasoning_details);
  if (details.length === 0) {
    const text = message.reasoning_content ?? message.reasoning;
    return typeof text === "string" && text !== "" ? [{ type: "reasoning", text }] : [];
  }
  return details.map((detail) => ({ type: "reasoning", text: String(detail.text ?? ""), ...returned(detail.extra_content) }));
}

/** Metadata of a part that the vendor needs back. */
function returned(extra: unknown): Cached {
  return isRecord(extra) ? { providerOptions: extra as SharedV3ProviderOptions } : {};
}

function toBase64(data: string | Uint8Array): string {
  return typeof data === "string" ? data : Buffer.from(data).toString("base64");
}
