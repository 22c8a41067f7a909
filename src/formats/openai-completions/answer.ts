/** Converts a chat's answer, whole or in chunks, to completions. Thoughts have no place in this format, and are left out. */
import { type ChatChunkObject, type ChatCompletion, type ChatDelta, plainText } from "../openai-chat/schema.js";

export interface CompletionChoice {
  readonly index: number;
  readonly text: string;
  readonly logprobs: null;
  readonly finish_reason: "stop" | "length" | "content_filter" | null;
}

/** A whole completion, or a chunk of one. */
export interface TextCompletion {
  readonly id: string;
  readonly object: "text_completion";
  /** Seconds. */
  readonly created: number;
  readonly model: string;
  readonly choices: readonly CompletionChoice[];
  readonly usage?: unknown;
  readonly receipt?: unknown;
}

export interface CompletionFrame {
  readonly id: string;
  /** Seconds. */
  readonly created: number;
  readonly model: string;
  /** Stands before each answer; empty for none. */
  readonly echo: string;
  /** The number that was asked for: an upstream may send more, which are not preceded by the echo. */
  readonly choices: number;
}

export function completionIdOf(generationId: string): string {
  return `cmpl-${generationId.replaceAll("-", "")}`;
}

export function toCompletion(frame: CompletionFrame, completion: ChatCompletion, usage: unknown): TextCompletion {
  const choices = (completion.choices ?? []).map(({ index = 0, message, finish_reason: reason }, position) =>
    toChoice(index, (position < frame.choices ? frame.echo : "") + textOf(message), reason ?? "stop"),
  );
  return { ...completionOf(frame, choices), usage };
}

/** Converts the chunks of one stream. */
export class CompletionChunks {
  /** Choices whose echo has been sent. */
  private readonly begun = new Set<number>();

  constructor(private readonly frame: CompletionFrame) {}

  read({ choices, usage, receipt }: ChatChunkObject): TextCompletion[] {
    const converted = (choices ?? []).flatMap(({ index = 0, delta, finish_reason: reason }) => {
      const text = this.echoOf(index) + textOf(delta);
      return text === "" && reason == null ? [] : [toChoice(index, text, reason)];
    });
    const isReported = usage != null || receipt !== undefined;
    if (converted.length === 0 && !isReported) return [];
    return [
      {
        ...completionOf(this.frame, converted),
        ...(usage != null && { usage }),
        ...(receipt !== undefined && { receipt }),
      },
    ];
  }

  private echoOf(index: number): string {
    if (this.begun.has(index) || this.begun.size >= this.frame.choices) return "";
    this.begun.add(index);
    return this.frame.echo;
  }
}

function completionOf({ id, created, model }: CompletionFrame, choices: readonly CompletionChoice[]): TextCompletion {
  return { id, object: "text_completion", created, model, choices };
}

function toChoice(index: number, text: string, reason: string | null | undefined): CompletionChoice {
  return { index, text, logprobs: null, finish_reason: reason == null ? null : toFinishReason(reason) };
}

function toFinishReason(reason: string): "stop" | "length" | "content_filter" {
  return reason === "length" || reason === "content_filter" ? reason : "stop";
}

function textOf(message: ChatDelta | null | undefined): string {
  return message ? plainText(message.content) + plainText(message.refusal) : "";
}
