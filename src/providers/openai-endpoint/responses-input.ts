/** The messages of a chat as the items of the Responses format: a turn's calls and a tool's answers are items of their own there. */

import { isRecord } from "../openai/json.js";
import { refuse } from "../refusal.js";

type Loose = Readonly<Record<string, unknown>>;

export interface ResponsesInput {
  /** What the chat begins with, when that is the system's. */
  readonly instructions: string | null;
  readonly input: readonly Loose[];
  readonly warnings: readonly string[];
}

/** Throws a ProviderError of status 400 for a part of a message that no item can hold. */
export function toInput(messages: unknown): ResponsesInput {
  const writer = new InputWriter();
  const all = recordsOf(messages);
  // An input of nothing is none.
  const instructions = all.length > 1 ? instructionsOf(all[0]) : null;
  for (const [index, message] of all.entries()) {
    if (index > 0 || instructions === null) writer.add(message, `messages.${index}`);
  }
  return { instructions, input: writer.items, warnings: [...writer.warnings] };
}

class InputWriter {
  readonly items: Loose[] = [];
  readonly warnings = new Set<string>();
  /** Calls of the older form have no ids of their own. */
  private unnamedCalls = 0;
  /** Calls of tools that take plain text. */
  private readonly customCalls = new Set<unknown>();

  add(message: Loose, path: string): void {
    const { role, content } = message;
    if (message.name !== undefined && role !== "function") this.warnings.add("messages.name: this upstream knows no names.");
    if (role === "assistant") this.addTurn(message, path);
    else if (role === "tool") this.addOutput(message.tool_call_id, content, path);
    else if (role === "function") this.addOutput(this.unnamedId(), content, path);
    else this.items.push({ role: String(role), content: toContent(content, path) });
  }

  private addTurn(message: Loose, path: string): void {
    const { content, refusal, tool_calls: calls, function_call: called } = message;
    if (message.reasoning_content != null || message.reasoning != null) {
      this.warnings.add("messages.reasoning_content: earlier thoughts are not given to this upstream.");
    }
    const parts = typeof content === "string" ? textsOf(content) : recordsOf(content).map((part, index) => toSaidPart(part, path, index));
    if (typeof refusal === "string" && refusal !== "") parts.push({ type: "refusal", refusal });
    if (parts.length > 0) this.items.push({ type: "message", role: "assistant", content: parts });
    for (const call of recordsOf(calls)) {
      if (isRecord(call.custom)) this.customCalls.add(call.id);
      this.items.push(toCall(call));
    }
    if (!isRecord(called)) return;
    this.unnamedCalls += 1;
    this.items.push(toCall({ id: this.unnamedId(), function: called }));
  }

  private addOutput(callId: unknown, content: unknown, path: string): void {
    const parts = recordsOf(content);
    const isText = parts.every(({ type }) => type === "text");
    const output = isText && Array.isArray(content) ? parts.map(({ text }) => String(text ?? "")).join("") : toContent(content, path);
    const type = this.customCalls.has(callId) ? "custom_tool_call_output" : "function_call_output";
    this.items.push({ type, call_id: String(callId ?? ""), output });
  }

  private unnamedId(): string {
    return `call_${this.unnamedCalls}`;
  }
}

function instructionsOf(first: Loose | undefined): string | null {
  const isInstruction = first?.role === "system" || first?.role === "developer";
  return isInstruction && typeof first?.content === "string" ? first.content : null;
}

function textsOf(text: string): Loose[] {
  return text === "" ? [] : [{ type: "output_text", text }];
}

function toCall(call: Loose): Loose {
  const called: Loose = isRecord(call.function) ? call.function : {};
  const callId = String(call.id ?? "");
  if (isRecord(call.custom)) return { type: "custom_tool_call", call_id: callId, name: call.custom.name, input: call.custom.input ?? "" };
  return { type: "function_call", call_id: callId, name: String(called.name ?? ""), arguments: String(called.arguments ?? "") };
}

function toContent(content: unknown, path: string): string | Loose[] {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  return recordsOf(content).map((part, index) => toPart(part, `${path}.content.${index}`));
}

/** A part of what was said to the model. */
function toPart(part: Loose, path: string): Loose {
  switch (part.type) {
    case "text":
      return { type: "input_text", text: part.text };
    case "refusal":
      return { type: "input_text", text: part.refusal };
    case "image_url": {
      const image = isRecord(part.image_url) ? part.image_url : { url: part.image_url };
      return { type: "input_image", image_url: image.url, detail: image.detail ?? "auto" };
    }
    case "input_audio":
      return { type: "input_audio", input_audio: part.input_audio };
    case "file":
      return { type: "input_file", ...(isRecord(part.file) ? part.file : {}) };
    default:
      throw refuse(`This model's upstream takes no content of type ${JSON.stringify(part.type)}.`, `${path}.type`);
  }
}

/** A part of what the model said. */
function toSaidPart(part: Loose, path: string, index: number): Loose {
  if (part.type === "text") return { type: "output_text", text: part.text };
  if (part.type === "refusal") return { type: "refusal", refusal: part.refusal };
  throw refuse(`An assistant's message holds no content of type ${JSON.stringify(part.type)}.`, `${path}.content.${index}.type`);
}

function recordsOf(value: unknown): readonly Loose[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}
