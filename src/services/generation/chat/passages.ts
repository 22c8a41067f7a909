/** Reads the passages of a chat for safety features: everything that the model reads, and everything else that is sent upstream. */
import type { ChatReader, Holder } from "../../../formats/openai-chat/prompt.js";
import { isRecord } from "../../../lib/json.js";
import { ownValue, setOwnValue } from "../../../lib/own-values.js";
import type { Passages } from "../../safety/passages.js";

/** Signatures of reasoning, which are invalid after a redaction. */
const SIGNATURES = ["signature", "extra_content"] as const;
const THOUGHTS: ReadonlySet<string> = new Set(["text", "summary"]);
/** They name a tool. */
const CHOICES: ReadonlySet<string> = new Set(["tool_choice", "function_call"]);

/** Reads a copy of the chat, into which redactions are written. */
export class ChatPassages implements ChatReader {
  private messages = 0;
  private isInMessage = false;

  constructor(
    private readonly into: Passages,
    /** The request field whose parts stand in for a message's; null: a chat. */
    private readonly field: string | null = null,
  ) {}

  beginMessage(): void {
    this.isInMessage = true;
    this.messages += 1;
  }

  endMessages(): void {
    this.isInMessage = false;
  }

  role(): void {
    // An enum.
  }

  author(name: string, holder: Holder, key: string): void {
    this.into.field(this.paramOf(key), name, holder, key);
  }

  text(text: string, holder: Holder, key: string): void {
    this.into.text(this.paramOf(key), text, (after) => setOwnValue(holder as Record<string, unknown>, key, after));
  }

  beginCall(): void {
    // Name and arguments follow.
  }

  name(name: string, holder: Holder, key: string): void {
    this.into.field(this.paramOf(key), name, holder, key, true);
  }

  media(part: Readonly<Record<string, unknown>>, key: string): void {
    this.into.media(this.paramOf(key), ownValue(part, key), part, key);
  }

  label(value: unknown, holder: Holder, key: string): void {
    if (key === "reasoning_details" && Array.isArray(value)) this.thoughts(value);
    else this.into.field(this.paramOf(key), value, holder, key, CHOICES.has(key));
  }

  unknown(value: unknown, holder: Holder, key: string): void {
    this.into.field(this.paramOf(key), value, holder, key);
  }

  declarations(declared: readonly unknown[], _holder: Holder, key: string): void {
    for (const [index, each] of declared.entries()) this.into.declaration(`${key}.${index}`, each, declared, index);
  }

  schema(format: Readonly<Record<string, unknown>>, holder: Holder, key: string): void {
    if (format.type === "json_schema") this.into.declaration(key, format, holder, key);
    else this.into.field(key, format, holder, key);
  }

  /** Drops the signature of redacted reasoning. */
  private thoughts(details: readonly unknown[]): void {
    const param = this.paramOf("reasoning_details");
    for (const [index, detail] of details.entries()) {
      if (!isRecord(detail)) this.into.field(param, detail, details, index);
      else for (const name of Object.keys(detail)) this.thought(param, detail as Record<string, unknown>, name);
    }
  }

  private thought(param: string, detail: Record<string, unknown>, name: string): void {
    const value = ownValue(detail, name);
    if (typeof value !== "string" || !THOUGHTS.has(name)) {
      this.into.field(param, value, detail, name);
      return;
    }
    this.into.text(param, value, (after) => {
      setOwnValue(detail, name, after);
      for (const signature of SIGNATURES) delete detail[signature];
    });
  }

  private paramOf(key: string): string {
    if (this.field !== null) return `${this.field}.${key}`;
    return this.isInMessage ? `messages.${this.messages - 1}.${key}` : key;
  }
}
