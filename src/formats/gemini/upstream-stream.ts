/** Answers of a streamed generateContent, from an upstream, as `chat.completion.chunk`s. */
import { isRecord, recordsOf } from "../../lib/json.js";
import type { SseEvent } from "../../lib/sse.js";
import { hasErrorContent, type Secrets, toEmbeddedError } from "../openai-chat/errors.js";
import { type ChatChunk, isForeign, type StreamFormat, toChunk } from "../openai-chat/stream.js";
import { type OnUnknownNames, toUsage } from "../openai-chat/usage.js";
import { warnedChunk } from "../openai-chat/warned-events.js";
import { ProviderError } from "../upstream-error.js";
import { parseObject } from "../upstream-json.js";
import { annotationsOf, blockReasonOf, PartsReader, partsOf, toFinish, toHead, toLogprobs } from "./upstream-answer.js";
import { toChatUsage } from "./upstream-usage.js";

type Loose = Readonly<Record<string, unknown>>;

interface Choice {
  readonly reader: PartsReader;
  /** Addresses that were cited already: each answer repeats those before it. */
  readonly cited: Set<unknown>;
  finish: Loose | null;
  hasBegun: boolean;
}

/** Choices of one answer. */
const CHOICES_MAX = 128;

export class AnswerStreamEvents implements StreamFormat {
  private head = toHead({});
  private hasWarned = false;
  private usage: unknown = null;
  private readonly choices = new Map<number, Choice>();

  constructor(
    private readonly secrets: Secrets,
    /** About the request; the first chunk has them. */
    private readonly warnings: readonly string[] = [],
    private readonly onUnknownNames?: OnUnknownNames,
  ) {}

  /** The format has no last event. */
  get isWhole(): boolean {
    return this.choices.size > 0 && [...this.choices.values()].every(({ finish }) => finish !== null);
  }

  take(event: SseEvent, batch: ChatChunk[]): boolean {
    if (isForeign(event) || event.data === "") return false;
    const answer = parseObject(event.bytes, event.data);
    if (answer === null) throw new ProviderError("invalid-response", "The upstream's stream holds an event that is not a JSON object.");
    if (hasErrorContent(answer.error)) throw toEmbeddedError(answer.error, this.secrets);
    const head = toHead(answer);
    this.head = { ...head, id: head.id || this.head.id, model: head.model || this.head.model };
    if (isRecord(answer.usageMetadata)) this.usage = answer.usageMetadata;
    const blocked = blockReasonOf(answer);
    if (blocked !== null) this.choiceOf(0).finish ??= { finish_reason: "content_filter", native_finish_reason: blocked };
    const before = batch.length;
    for (const [position, candidate] of recordsOf(answer.candidates).entries()) this.readCandidate(candidate, position, batch);
    const last = batch.length > before ? batch.pop() : undefined;
    if (last) batch.push({ ...last, ...this.reportSoFar() });
    return false;
  }

  /** Each answer reports the usage so far, so an answer that is cut is charged for its input. Clients do not get this report. */
  private reportSoFar(): Pick<ChatChunk, "usage" | "report"> | null {
    const report = toChatUsage(this.usage);
    const usage = toUsage(report);
    return usage === null ? null : { usage, report };
  }

  end(batch: ChatChunk[]): void {
    for (const [index, choice] of this.choices) this.say(batch, index, choice, {}, choice.finish ?? {});
    const usage = toChatUsage(this.usage, this.onUnknownNames);
    if (usage !== null) batch.push(toChunk({ ...this.head, object: "chat.completion.chunk", choices: [], usage }));
  }

  private readCandidate(candidate: Loose, position: number, batch: ChatChunk[]): void {
    const index = typeof candidate.index === "number" ? candidate.index : position;
    if (!(index >= 0 && index < CHOICES_MAX)) return;
    const choice = this.choiceOf(index);
    for (const part of partsOf(candidate)) for (const delta of choice.reader.read(part)) this.say(batch, index, choice, delta);
    const annotations = annotationsOf(candidate).filter(({ url_citation: cited }) => isNew(choice.cited, cited));
    if (annotations.length > 0) this.say(batch, index, choice, { annotations });
    const logprobs = toLogprobs(candidate.logprobsResult);
    if (logprobs !== null) this.say(batch, index, choice, {}, { logprobs });
    const { finishReason: reason } = candidate;
    if (typeof reason === "string" && reason !== "") choice.finish = toFinish(reason, choice.reader.calls > 0);
  }

  private choiceOf(index: number): Choice {
    const known = this.choices.get(index);
    if (known) return known;
    const made: Choice = { reader: new PartsReader(), cited: new Set(), finish: null, hasBegun: false };
    this.choices.set(index, made);
    return made;
  }

  private say(batch: ChatChunk[], index: number, choice: Choice, delta: Loose, more: Loose = {}): void {
    const whole = choice.hasBegun ? delta : { role: "assistant", ...delta };
    choice.hasBegun = true;
    const choices = [{ index, delta: whole, logprobs: null, finish_reason: null, ...more }];
    const chunk = { ...this.head, object: "chat.completion.chunk", choices };
    batch.push(this.hasWarned ? toChunk(chunk) : warnedChunk(chunk, this.warnings));
    this.hasWarned = true;
  }
}

function isNew(cited: Set<unknown>, citation: unknown): boolean {
  const url = isRecord(citation) ? citation.url : null;
  if (cited.has(url)) return false;
  cited.add(url);
  return true;
}
