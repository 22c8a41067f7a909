/** OpenAI's messages as the package's prompt. */
import type {
  LanguageModelV3FilePart,
  LanguageModelV3Message,
  LanguageModelV3Prompt,
  LanguageModelV3TextPart,
  LanguageModelV3ToolResultPart,
  SharedV3ProviderOptions,
} from "@ai-sdk/provider";
import type { ChatBody } from "../../lib/chat-format.js";
import { isRecord } from "../openai/json.js";
import { refuse } from "../refusal.js";
import { toFilePart } from "./files.js";

type Loose = Readonly<Record<string, unknown>>;
type AssistantContent = Extract<LanguageModelV3Message, { role: "assistant" }>["content"];
type ToolResultOutput = LanguageModelV3ToolResultPart["output"];
type ToolResultContent = Extract<ToolResultOutput, { type: "content" }>["value"];

export interface PromptTraits {
  /** Under which the package reads the vendor's own options. */
  readonly optionsName: string;
  readonly hasCacheControl: boolean;
}

export interface Prompt {
  readonly prompt: LanguageModelV3Prompt;
  readonly warnings: readonly string[];
}

/** Throws a ProviderError of status 400 for what no message can say. Instructions come first, wherever they stood. */
export function toPrompt(body: ChatBody, traits: PromptTraits): Prompt {
  return new PromptWriter(traits).write(Array.isArray(body.messages) ? body.messages.filter(isRecord) : []);
}

class PromptWriter {
  private readonly instructions: LanguageModelV3Message[] = [];
  private readonly turns: LanguageModelV3Message[] = [];
  private readonly warnings = new Set<string>();
  /** The tool of each call, because a tool's answer names the call only. */
  private readonly toolNames = new Map<string, string>();

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

  /** Each part on its own, because each may end what is to be cached. */
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
    else for (const part of recordsOf(message.content)) content.push(...this.toUserContent([part], path));
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
    const input = parseArguments(called.arguments, `${path}.function.arguments`);
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
    // An hour comes this far only where it has a price (services/generation/asked-model.ts).
    const { ttl } = value.cache_control;
    const cacheControl = { type: "ephemeral", ...(typeof ttl === "string" && { ttl }) };
    return { providerOptions: { [this.traits.optionsName]: { cacheControl } } };
  }
}

interface Cached {
  readonly providerOptions?: SharedV3ProviderOptions;
}

/** Thoughts of an earlier answer. Only those that come back with what the vendor signed them with are of use to it. */
function toReasoning(message: Loose): AssistantContent {
  const details = recordsOf(message.reasoning_details);
  if (details.length === 0) {
    const text = message.reasoning_content ?? message.reasoning;
    return typeof text === "string" && text !== "" ? [{ type: "reasoning", text }] : [];
  }
  return details.map((detail) => ({ type: "reasoning", text: String(detail.text ?? ""), ...returned(detail.extra_content) }));
}

/** What the vendor gave with a part of its answer, and wants to have back. */
function returned(extra: unknown): Cached {
  return isRecord(extra) ? { providerOptions: extra as SharedV3ProviderOptions } : {};
}

function parseArguments(text: unknown, path: string): unknown {
  if (typeof text !== "string" || text.trim() === "") return {};
  try {
    return JSON.parse(text);
  } catch {
    throw refuse("The arguments of a tool call must be JSON.", path);
  }
}

function toBase64(data: string | Uint8Array): string {
  return typeof data === "string" ? data : Buffer.from(data).toString("base64");
}

function recordsOf(value: unknown): readonly Loose[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
