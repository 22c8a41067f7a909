/**
 * The sandbox's text model (docs/sandbox-models.md): answers chats from fixed rules, and streams or fails like an upstream when the prompt
 * says so.
 */
import { randomUUID } from "node:crypto";
import type { ChatChunkBatch } from "../../formats/openai-chat/stream.js";
import { toChunk } from "../../formats/openai-chat/stream.js";
import { toUsage } from "../../formats/openai-chat/usage.js";
import { ProviderError } from "../../formats/upstream-error.js";
import { type Clock, systemClock } from "../../lib/clock.js";
import { greatest } from "../../lib/collections.js";
import { GENERATION_TIMEOUT_MS, UPSTREAM_CONNECT_TIMEOUT_MS, UPSTREAM_IDLE_TIMEOUT_MS } from "../../limits.js";
import { boundedBody, type ChatAnswer, type ChatCall, type ChatProvider, toSignal, type UpstreamTimeouts } from "../provider.js";
import { answerChat, lastUserText, type SandboxAnswer, type SandboxChoice, toMessage } from "./answer.js";
import { type Directives, parseDirectives } from "./directives.js";
import { cutShort, type SandboxStep, SandboxStream, wait } from "./stream.js";

export interface SandboxOptions {
  readonly clock?: Clock;
  /** Timeouts for prompts that make the sandbox slow or silent. */
  readonly timeouts?: UpstreamTimeouts;
}

const TIMEOUTS: UpstreamTimeouts = {
  connectMs: UPSTREAM_CONNECT_TIMEOUT_MS,
  idleMs: UPSTREAM_IDLE_TIMEOUT_MS,
  totalMs: GENERATION_TIMEOUT_MS,
};
const FINGERPRINT = "sandbox-1";

export function createSandboxChatProvider(options: SandboxOptions = {}): ChatProvider {
  return new SandboxChatProvider(options.clock ?? systemClock, options.timeouts ?? TIMEOUTS);
}

class SandboxChatProvider implements ChatProvider {
  constructor(
    private readonly clock: Clock,
    private readonly timeouts: UpstreamTimeouts,
  ) {}

  async complete(call: ChatCall): Promise<ChatAnswer> {
    const signal = toSignal(call.signal);
    const { directives, answer } = await this.begin(call, signal, this.timeouts.totalMs);
    const chunks = answer.choices.reduce((sum, choice) => sum + choice.thoughts.length + choice.pieces.length, 0);
    const hangs = directives.trouble?.kind === "hang";
    const ms = directives.delayMs + directives.paceMs * Math.max(0, chunks - 1);
    await wait(hangs ? Number.POSITIVE_INFINITY : ms, this.timeouts.totalMs, signal);
    if (directives.trouble?.kind === "cut") throw cutShort();
    if (directives.trouble?.kind === "error") throw midStreamError();
    const completion = {
      ...this.head(call, "chat.completion"),
      choices: answer.choices.map((choice, index) => ({
        index,
        message: toMessage(choice),
        logprobs: null,
        finish_reason: choice.finishReason,
      })),
      ...(answer.usage !== null && { usage: answer.usage }),
    };
    return { bytes: Buffer.from(JSON.stringify(completion)), completion, usage: toUsage(answer.usage) };
  }

  async stream(call: ChatCall): Promise<AsyncIterable<ChatChunkBatch>> {
    const signal = toSignal(call.signal);
    const { directives, answer } = await this.begin(call, signal, this.timeouts.idleMs);
    const { trouble } = directives;
    if (trouble?.kind === "hang" && trouble.afterChunks === null) {
      await wait(Number.POSITIVE_INFINITY, this.timeouts.idleMs, signal);
    }
    const steps = streamSteps(this.head(call, "chat.completion.chunk"), answer, directives);
    return new SandboxStream(steps, signal, this.timeouts);
  }

  /** Reads the prompt, and fails if it says so. */
  private async begin(call: ChatCall, signal: AbortSignal, limitMs: number): Promise<{ directives: Directives; answer: SandboxAnswer }> {
    signal.throwIfAborted();
    const directives = parseDirectives(lastUserText(call.body));
    if (directives.failStatus !== null) {
      await wait(directives.delayMs, limitMs, signal);
      throw failure(directives.failStatus);
    }
    return { directives, answer: answerChat(boundedBody(call), directives) };
  }

  private head(call: ChatCall, object: string): Record<string, unknown> {
    const created = Math.floor(this.clock.now().getTime() / 1_000);
    return { id: `chatcmpl-${randomUUID()}`, object, created, model: call.upstreamModel, system_fingerprint: FINGERPRINT };
  }
}

function failure(status: number): ProviderError {
  const upstreamMessage = `The sandbox was told to fail with status ${status}.`;
  return new ProviderError("status", upstreamMessage, { status, upstreamMessage });
}

function midStreamError(): ProviderError {
  const upstreamMessage = "The sandbox was told to fail in the middle of its answer.";
  return new ProviderError("status", upstreamMessage, { status: 500, upstreamMessage });
}

type Delta = Readonly<Record<string, unknown>>;

function* streamSteps(head: Delta, answer: SandboxAnswer, directives: Directives): Generator<SandboxStep> {
  const send = (index: number, delta: Delta, finishReason: string | null = null): SandboxStep => {
    const choices = [{ index, delta, logprobs: null, finish_reason: finishReason }];
    return { do: "send", chunk: toChunk({ ...head, choices }) };
  };
  const { trouble, delayMs, paceMs } = directives;
  const deltas = interleave(answer.choices);
  const troubleAt = trouble === null ? -1 : Math.min(trouble.afterChunks ?? Math.ceil(deltas.length / 2), deltas.length);

  if (delayMs > 0) yield { do: "wait", ms: delayMs };
  for (const index of answer.choices.keys()) yield send(index, { role: "assistant", content: "" });
  for (const [sent, [index, delta]] of deltas.entries()) {
    if (trouble !== null && sent === troubleAt) yield toStep(trouble.kind);
    if (sent > 0 && paceMs > 0) yield { do: "wait", ms: paceMs };
    yield send(index, delta);
  }
  if (trouble !== null && troubleAt === deltas.length) yield toStep(trouble.kind);
  for (const [index, choice] of answer.choices.entries()) yield send(index, {}, choice.finishReason);
  if (answer.usage !== null) yield { do: "send", chunk: toChunk({ ...head, choices: [], usage: answer.usage }) };
}

function toStep(trouble: "hang" | "cut" | "error"): SandboxStep {
  if (trouble === "hang") return { do: "hang" };
  if (trouble === "error") return { do: "fail", error: midStreamError() };
  return { do: "fail", error: cutShort() };
}

/** The deltas of all choices, in turn, each with its choice's index. */
function interleave(choices: readonly SandboxChoice[]): readonly (readonly [number, Delta])[] {
  const each = choices.map(toDeltas);
  const longest = greatest(
    each.map((deltas) => deltas.length),
    0,
  );
  const all: (readonly [number, Delta])[] = [];
  for (let turn = 0; turn < longest; turn += 1) {
    for (const [index, deltas] of each.entries()) {
      const delta = deltas[turn];
      if (delta !== undefined) all.push([index, delta]);
    }
  }
  return all;
}

function toDeltas(choice: SandboxChoice): readonly Delta[] {
  const thoughts = choice.thoughts.map((piece) => ({ reasoning_content: piece }));
  const pieces = choice.pieces.map((piece) => ({ content: piece }));
  const calls = choice.toolCalls.flatMap(({ id, name, arguments: json }, index) => [
    { tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] },
    ...halves(json).map((part) => ({ tool_calls: [{ index, function: { arguments: part } }] })),
  ]);
  return [...thoughts, ...pieces, ...calls];
}

/** Arguments come in two pieces, as clients must join them. */
function halves(json: string): readonly string[] {
  const middle = Math.ceil(json.length / 2);
  return [json.slice(0, middle), json.slice(middle)].filter((part) => part !== "");
}
