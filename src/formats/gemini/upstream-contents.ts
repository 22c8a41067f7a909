/** A chat's messages as the contents of a Gemini request, for an upstream that speaks the format. */
import { append } from "../../lib/collections.js";
import { isRecord, recordsOf } from "../../lib/json.js";
import { BoundedJson } from "../../lib/json-bounds.js";
import { JSON_BOUNDS } from "../../limits.js";
import { parseObjectArguments } from "../openai-chat/parts.js";
import { repairHistory } from "../openai-chat/repair.js";
import { refuse } from "../upstream-error.js";
import { googleSignatureIn } from "./signed.js";
import { type Part, toUpstreamPart } from "./upstream-parts.js";

type Loose = Readonly<Record<string, unknown>>;

export interface UpstreamContent {
  readonly role: "user" | "model";
  readonly parts: Part[];
}

export interface UpstreamContents {
  readonly instruction: readonly Part[];
  readonly contents: readonly UpstreamContent[];
  readonly warnings: readonly string[];
}

export interface ContentsTraits {
  /** The model refuses a call of the running turn without its signature. */
  readonly demandsSignatures: boolean;
  /** Results of functions may hold files. */
  readonly hasResultParts: boolean;
}

/** Google's value for calls of other models and of clients that drop signatures. */
const NO_SIGNATURE = "skip_thought_signature_validator";

/** Throws a ProviderError of status 400 for content that the format cannot hold. */
export function toUpstreamContents(messages: unknown, traits: ContentsTraits): UpstreamContents {
  const { messages: repaired, warnings } = repairHistory(recordsOf(messages), {
    field: "messages",
    showsMediaApart: !traits.hasResultParts,
  });
  const writer = new UpstreamWriter(traits);
  for (const [index, message] of repaired.entries()) writer.add(message, `messages.${index}`);
  const written = writer.end();
  return { ...written, warnings: [...warnings, ...written.warnings] };
}

class UpstreamWriter {
  private readonly instruction: Part[] = [];
  private readonly contents: UpstreamContent[] = [];
  private readonly warnings = new Set<string>();
  /** Function names by call, because a chat's result only names the call. */
  private readonly names = new Map<string, string>();
  private readonly json = new BoundedJson(JSON_BOUNDS);
  /** Contents before it belong to earlier turns. */
  private turnStart = 0;

  constructor(private readonly traits: ContentsTraits) {}

  add(message: Loose, path: string): void {
    this.warnOfCache(message);
    if (message.role === "system" || message.role === "developer") this.addInstruction(message, path);
    else if (message.role === "assistant") this.push("model", this.toAnswered(message, path));
    else if (message.role === "tool" || message.role === "function") this.push("user", [this.toResult(message, path)]);
    else {
      const parts = this.toShown(message.content, path);
      if (parts.length > 0) this.turnStart = this.contents.length + 1;
      this.push("user", parts);
    }
  }

  end(): UpstreamContents {
    const { contents, instruction, warnings } = this;
    if (this.traits.demandsSignatures) this.fillSignatures();
    // The format demands a content.
    if (contents.length === 0) return { instruction: [], contents: [{ role: "user", parts: instruction }], warnings: [...warnings] };
    return { instruction, contents, warnings: [...warnings] };
  }

  private addInstruction({ content }: Loose, path: string): void {
    if (this.contents.length > 0) this.warnings.add("messages: instructions in the middle of the chat are given to this upstream first.");
    append(this.instruction, this.toShown(content, path));
  }

  /** Contents of one role in a row are one. */
  private push(role: UpstreamContent["role"], parts: Part[]): void {
    if (parts.length === 0) return;
    const last = this.contents.at(-1);
    if (last?.role === role) append(last.parts, parts);
    else this.contents.push({ role, parts });
  }

  private toShown(content: unknown, path: string): Part[] {
    if (typeof content === "string") return content === "" ? [] : [{ text: content }];
    return recordsOf(content).flatMap((part, index): Part[] => {
      this.warnOfCache(part);
      const shown = toUpstreamPart(part, `${path}.content.${index}`);
      return shown === null ? [] : [shown];
    });
  }

  /** Thoughts, the text with its signature, and calls. */
  private toAnswered(message: Loose, path: string): Part[] {
    const { thoughts, textSignature } = this.toThoughts(message);
    const said = this.toShown(message.content, path);
    if (typeof message.refusal === "string" && message.refusal !== "") said.push({ text: message.refusal });
    if (textSignature !== null) {
      const last = said.pop();
      said.push({ ...(last ?? { text: "" }), thoughtSignature: textSignature });
    }
    const calls = recordsOf(message.tool_calls).map((call, index) => this.toCall(call, `${path}.tool_calls.${index}`));
    if (isRecord(message.function_call)) {
      const { name } = message.function_call;
      calls.push(this.toCall({ id: name, function: message.function_call }, `${path}.function_call`));
    }
    return [...thoughts, ...said, ...calls];
  }

  private toThoughts(message: Loose): { readonly thoughts: Part[]; readonly textSignature: string | null } {
    const thoughts: Part[] = [];
    let textSignature: string | null = null;
    for (const detail of recordsOf(message.reasoning_details)) {
      const signature = googleSignatureIn(detail.extra_content);
      if (signature === null) {
        if (isSigned(detail)) this.warnings.add("reasoning_details: signatures of another vendor were left out.");
      } else if (detail.type === "reasoning.encrypted") textSignature = signature;
      else thoughts.push({ text: String(detail.text ?? ""), thought: true, thoughtSignature: signature });
    }
    // Thoughts without a signature tell the model nothing.
    return { thoughts, textSignature };
  }

  private toCall(call: Loose, path: string): Part {
    const called: Loose = isRecord(call.function) ? call.function : {};
    const name = String(called.name ?? "");
    const id = String(call.id ?? name);
    this.names.set(id, name);
    const signature = googleSignatureIn(call.extra_content);
    const args = parseObjectArguments(this.json, called.arguments, `${path}.function.arguments`);
    return { functionCall: { id, name, args }, ...(signature !== null && { thoughtSignature: signature }) };
  }

  private toResult(message: Loose, path: string): Part {
    const id = String(message.tool_call_id ?? message.name ?? "");
    const name = this.names.get(id) ?? (typeof message.name === "string" ? message.name : null);
    if (name === null) throw refuse(`There is no tool call ${JSON.stringify(id)} before this answer to it.`, `${path}.tool_call_id`);
    const shown = this.toShown(message.content, path);
    const texts = shown.flatMap(({ text }) => (typeof text === "string" ? [text] : []));
    const files = shown.filter(({ text }) => text === undefined);
    return { functionResponse: { id, name, response: this.toResponse(texts.join("\n\n")), ...(files.length > 0 && { parts: files }) } };
  }

  /** A result is an object in the format: the one that the text is, or one that holds the text. */
  private toResponse(text: string): Loose {
    if (text.startsWith("{")) {
      try {
        const response = this.json.parse(text);
        if (isRecord(response)) return response;
      } catch {
        // A text after all.
      }
    }
    return { output: text };
  }

  /** Only the first call of a step has a signature. */
  private fillSignatures(): void {
    for (const { role, parts } of this.contents.slice(Math.max(0, this.turnStart - 1))) {
      const first = parts.findIndex(({ functionCall }) => functionCall !== undefined);
      if (role !== "model" || first === -1 || parts[first]?.thoughtSignature !== undefined) continue;
      parts[first] = { ...parts[first], thoughtSignature: NO_SIGNATURE };
      this.warnings.add("messages: the signed thoughts before the last tool calls are missing, so the model goes on without them.");
    }
  }

  private warnOfCache({ cache_control: mark }: Loose): void {
    if (isRecord(mark)) this.warnings.add("cache_control: this upstream decides by itself what it caches.");
  }
}

function isSigned({ signature, data, extra_content: extra }: Loose): boolean {
  return signature != null || data != null || extra != null;
}
