/** One step of a prompt agent: its model answers, whole or as a stream, in words or with tool calls. */
import type { RequestContext } from "../../context.js";
import type { ChatDelta } from "../../formats/openai-chat/schema.js";
import type { ChatCompletions } from "../generation/chat/chat.js";
import type { ChatCompletionInput } from "../generation/chat/plan.js";

export interface ToolCall {
  readonly id: string;
  readonly name: string;
  /** JSON, as the model wrote it. */
  readonly arguments: string;
  /** The call as received, sent back to the model: some upstreams need their own fields again. */
  readonly raw: Readonly<Record<string, unknown>>;
}

export interface StepAnswer {
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  readonly finishReason: string | null;
}

/** Yields deltas for the caller as they arrive, and returns the step's answer. */
export type RunStep = (ctx: RequestContext, input: ChatCompletionInput) => AsyncGenerator<readonly ChatDelta[], StepAnswer>;

export function runWholeStep(chat: ChatCompletions): RunStep {
  return async function* (ctx, input) {
    const { completion } = await chat.create(ctx, input);
    const step = new StepReader();
    const [choice] = completion.choices ?? [];
    const shown = step.read(choice?.message ?? {}, choice?.finish_reason);
    if (shown) yield [shown];
    return step.answer();
  };
}

/** Returning early ends the model's stream. */
export function runStreamedStep(chat: ChatCompletions): RunStep {
  return async function* (ctx, input) {
    const { events } = chat.stream(ctx, { ...input, stream: true });
    const step = new StepReader();
    for await (const { chunks } of events) {
      const shown = chunks.flatMap(({ choices }): readonly ChatDelta[] => {
        const [choice] = choices ?? [];
        const delta = choice ? step.read(choice.delta ?? {}, choice.finish_reason) : null;
        return delta ? [delta] : [];
      });
      if (shown.length > 0) yield shown;
    }
    return step.answer();
  };
}

/** Fields of a message or delta that are part of the agent's answer. */
const SHOWN = ["content", "refusal", "reasoning_content", "reasoning"] as const;

class StepReader {
  private text = "";
  private finishReason: string | null = null;
  private readonly calls = new Map<number, Record<string, unknown>>();

  /** The part for the caller; null for none. */
  read(delta: ChatDelta, finishReason: string | null | undefined): ChatDelta | null {
    this.finishReason = finishReason ?? this.finishReason;
    for (const [position, call] of (delta.tool_calls ?? []).entries()) this.readCall({ ...call }, position);
    const content = textOf(delta.content);
    this.text += content;
    const shown = SHOWN.map((name) => [name, name === "content" ? content : delta[name]] as const).filter(
      ([, value]) => typeof value === "string" && value !== "",
    );
    return shown.length > 0 ? Object.fromEntries(shown) : null;
  }

  answer(): StepAnswer {
    const calls = [...this.calls].sort(([one], [other]) => one - other).map(([index, call]) => toToolCall(call, index));
    return { text: this.text, toolCalls: calls, finishReason: this.finishReason };
  }

  /** Pieces of a call have its index; arguments arrive in parts. */
  private readCall(piece: Record<string, unknown>, position: number): void {
    const { index, function: called, ...more } = piece;
    const at = typeof index === "number" ? index : position;
    const known = this.calls.get(at) ?? {};
    const before = functionOf(known.function);
    const added = functionOf(called);
    const stated = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined && value !== null && value !== ""));
    this.calls.set(at, {
      ...known,
      ...stated,
      function: { ...before, ...added, name: added.name || before.name, arguments: before.arguments + added.arguments },
    });
  }
}

interface CalledFunction {
  readonly [field: string]: unknown;
  readonly name: string;
  readonly arguments: string;
}

function functionOf(value: unknown): CalledFunction {
  const called = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  const { name, arguments: json } = called;
  const text = typeof json === "string" ? json : json === undefined || json === null ? "" : JSON.stringify(json);
  return { ...called, name: typeof name === "string" ? name : "", arguments: text };
}

function toToolCall(call: Readonly<Record<string, unknown>>, index: number): ToolCall {
  const id = typeof call.id === "string" && call.id !== "" ? call.id : `call_${index}`;
  const called = functionOf(call.function);
  return { id, name: called.name, arguments: called.arguments, raw: { ...call, id, type: "function" } };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part: unknown) => (typeof part === "object" && part !== null && "text" in part ? textOf(part.text) : "")).join("");
}
