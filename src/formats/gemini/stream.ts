/**
 * Converts chunks of a chat to answers of a streamed generateContent. A call is sent whole: its pieces wait until the call is complete and
 * something follows it. One per stream; a whole answer passes as one chunk.
 */
import { append } from "../../lib/collections.js";
import { isRecord } from "../../lib/json.js";
import { type ChatChunkChoice, type ChatChunkObject, type ChatDelta, plainText, reasoningIn } from "../openai-chat/schema.js";
import { Signatures } from "../signatures.js";
import {
  type AnswerPart,
  argsOf,
  type Candidate,
  type FinishReason,
  finishReasonOf,
  type GenerateContentAnswer,
  toGroundingChunk,
  toLogprobsResult,
  type UsageMetadata,
} from "./answer.js";
import { toInlineData } from "./media.js";
import { CANDIDATES_MAX } from "./request.js";
import { foreignPartsIn, googleSignatureIn, wrapSignature } from "./signed.js";

export interface AnswerFrame {
  readonly id: string;
  readonly model: string;
  /** The request asks for thoughts; their signatures are sent in any case. */
  readonly includesThoughts: boolean;
}

/** Of the most candidates that a request may ask for. */
const INDICES: ReadonlySet<number> = new Set(Array.from({ length: CANDIDATES_MAX }, (_, index) => index));

export class GeminiAnswers {
  private readonly candidates = new Map<number, CandidateWriter>();
  /** Of a stream's last chunk. */
  private receipt: unknown;

  constructor(private readonly frame: AnswerFrame) {}

  read(chunk: ChatChunkObject): GenerateContentAnswer[] {
    if (chunk.receipt) this.receipt = chunk.receipt;
    const candidates: Candidate[] = [];
    for (const choice of chunk.choices ?? []) {
      const index = choice.index ?? 0;
      if (!INDICES.has(index)) continue;
      const writer = this.writerOf(index);
      const { parts, more } = writer.read(choice);
      if (parts.length > 0 || more !== null) candidates.push({ content: { parts, role: "model" }, index, ...more });
    }
    return candidates.length === 0 ? [] : [this.answer(candidates)];
  }

  /** The last answer, with the rest and the charged usage. */
  end(usage: UsageMetadata | null): GenerateContentAnswer {
    return this.last(usage, new Map());
  }

  /** A whole answer. */
  static whole(frame: AnswerFrame, chunk: ChatChunkObject, usage: UsageMetadata): GenerateContentAnswer {
    const answers = new GeminiAnswers(frame);
    const [first] = answers.read(chunk);
    return answers.last(usage, new Map(first?.candidates.map((candidate) => [candidate.index, candidate])));
  }

  private last(usage: UsageMetadata | null, begun: ReadonlyMap<number, Candidate>): GenerateContentAnswer {
    const writers = this.candidates.size > 0 ? [...this.candidates] : [[0, this.writerOf(0)] as const];
    const candidates = writers.map(([index, writer]): Candidate => {
      const before = begun.get(index);
      const parts = [...(before?.content.parts ?? []), ...writer.end()];
      const content = { parts: parts.length > 0 ? parts : [{ text: "" }], role: "model" } as const;
      return { ...before, content, finishReason: writer.finishReason, index, ...writer.takeGrounding() };
    });
    return {
      ...this.answer(candidates),
      ...(usage !== null && { usageMetadata: usage }),
      ...(this.receipt !== undefined && { receipt: this.receipt }),
    };
  }

  private answer(candidates: readonly Candidate[]): GenerateContentAnswer {
    return { candidates, modelVersion: this.frame.model, responseId: this.frame.id };
  }

  private writerOf(index: number): CandidateWriter {
    const known = this.candidates.get(index);
    if (known) return known;
    const made = new CandidateWriter(this.frame, index);
    this.candidates.set(index, made);
    return made;
  }
}

type Piece = NonNullable<ChatDelta["tool_calls"]>[number] & {
  readonly index?: unknown;
  readonly id?: unknown;
  readonly extra_content?: unknown;
};

interface Call {
  id: string;
  name: string;
  pieces: string[];
  extra: Readonly<Record<string, unknown>> | null;
  isSent: boolean;
}

class CandidateWriter {
  finishReason: FinishReason = "STOP";
  /** In the order in which they began. */
  private readonly calls: Call[] = [];
  private readonly callByIndex = new Map<number, Call>();
  /** Calls before it are sent. */
  private live = 0;
  private readonly signatures = new Signatures();
  /** Google's own signatures of texts. */
  private textSignature: string | null = null;
  private readonly grounding: unknown[] = [];

  constructor(
    private readonly frame: AnswerFrame,
    private readonly index: number,
  ) {}

  read({ delta, finish_reason: reason, logprobs }: ChatChunkChoice) {
    if (reason) this.finishReason = finishReasonOf(reason);
    const parts = delta ? this.readDelta(delta) : [];
    const result = toLogprobsResult(logprobs);
    return { parts, more: result === null ? null : { logprobsResult: result } };
  }

  /** The parts that were not sent. A signature without a call stands in an empty text, as Google's own models end their texts. */
  end(): AnswerPart[] {
    const parts = this.sendCalls(this.calls.length);
    const signature = this.takeSignature() ?? this.textSignature;
    if (signature !== null) parts.push({ text: "", thoughtSignature: signature });
    return parts;
  }

  takeGrounding() {
    return this.grounding.length === 0 ? {} : { groundingMetadata: { groundingChunks: this.grounding } };
  }

  private readDelta(delta: ChatDelta): AnswerPart[] {
    const parts: AnswerPart[] = [];
    const thought = this.frame.includesThoughts ? plainText(reasoningIn(delta)) : "";
    this.readDetails(delta.reasoning_details);
    const texts = [plainText(delta.content), plainText(delta.refusal)].filter((text) => text !== "");
    const images = Array.isArray(delta.images) ? delta.images.flatMap(toImagePart) : [];
    const foreign = foreignPartsIn(delta.extra_content);
    // What follows a call ends it.
    if (thought !== "" || texts.length + images.length + foreign.length > 0) append(parts, this.sendCalls(this.calls.length));
    if (thought !== "") parts.push({ text: thought, thought: true });
    append(parts, foreign);
    for (const text of texts) parts.push({ text });
    append(parts, images);
    if (Array.isArray(delta.annotations)) for (const cited of delta.annotations) this.cite(cited);
    for (const [position, piece] of (delta.tool_calls ?? []).entries()) this.readCall(piece, position);
    return parts;
  }

  private readDetails(details: unknown): void {
    if (!Array.isArray(details)) return;
    const others: unknown[] = [];
    for (const detail of details) {
      const signature = isRecord(detail) && detail.type === "reasoning.encrypted" ? googleSignatureIn(detail.extra_content) : null;
      if (signature === null) others.push(detail);
      else this.textSignature = signature;
    }
    this.signatures.addThoughts(others);
  }

  private cite(annotation: unknown): void {
    const chunk = toGroundingChunk(annotation);
    if (chunk !== null) this.grounding.push(chunk);
  }

  private readCall({ index, id, function: called, custom, extra_content: extra }: Piece, position: number): void {
    const key = typeof index === "number" ? index : position;
    let call = this.callByIndex.get(key);
    if (!call) {
      const made = `call_${this.frame.id}_${this.index}_${this.calls.length}`;
      call = { id: made, name: "", pieces: [], extra: null, isSent: false };
      this.callByIndex.set(key, call);
      this.calls.push(call);
    }
    if (typeof id === "string" && id !== "" && !call.isSent) call.id = id;
    if (call.name === "") call.name = called?.name ?? custom?.name ?? "";
    const more = called?.arguments ?? custom?.input ?? "";
    if (more !== "") call.pieces.push(more);
    if (!isRecord(extra) || Object.keys(extra).length === 0) return;
    if (call.isSent) this.signatures.addCall(call.id, extra);
    else call.extra = extra;
  }

  /** Sends the calls before `until`. */
  private sendCalls(until: number): AnswerPart[] {
    const parts: AnswerPart[] = [];
    for (; this.live < until; this.live += 1) {
      const call = this.calls[this.live];
      if (call === undefined) break;
      call.isSent = true;
      const signature = this.signatureOf(call);
      const functionCall = { id: call.id, name: call.name, args: argsOf(call.pieces.join("")) };
      parts.push({ functionCall, ...(signature !== null && { thoughtSignature: signature }) });
    }
    return parts;
  }

  /** A signature of thoughts stands in the first call behind them. */
  private signatureOf({ id, extra }: Call): string | null {
    const google = googleSignatureIn(extra);
    if (google !== null && this.signatures.isEmpty) return google;
    if (extra !== null) this.signatures.addCall(id, extra);
    return this.takeSignature();
  }

  private takeSignature(): string | null {
    const encoded = this.signatures.take();
    return encoded === null ? null : wrapSignature(encoded);
  }
}

function toImagePart(image: unknown): AnswerPart[] {
  const { image_url: address } = isRecord(image) ? image : {};
  const url = isRecord(address) ? address.url : address;
  const inlineData = typeof url === "string" ? toInlineData(url) : null;
  return inlineData === null ? [] : [{ inlineData }];
}
