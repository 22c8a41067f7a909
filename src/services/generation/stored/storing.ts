/**
 * Responses with storage (docs/spec/chat.md#stored-responses): the history of a request is read, and a response is stored once it is
 * charged. Without storage, or with `store: false`, a request passes through.
 */
import type { RequestContext } from "../../../context.js";
import type { ResponseObject } from "../../../formats/openai-responses/answer.js";
import { writeEvents } from "../chat/converted-stream.js";
import type { CompactedResponse, ResponseInput, ResponseStream, ResponseStreamBatch, Responses } from "../chat/responses.js";
import { joinWarnings, type Receipt } from "../receipt.js";
import type { BackgroundResponses, StartedResponse } from "./background.js";
import type { ResponseKeeper } from "./keeper.js";
import { finishedIn, safetyOf } from "./streams.js";
import type { OpenThread, Threads } from "./threads.js";

/** A created response: with its receipt, or one that begins in the background, whose receipt comes later. */
export interface CreatedResponse {
  readonly response: ResponseObject;
  readonly generationId: string;
  readonly receipt: Receipt | null;
}

export interface StoringParts {
  readonly responses: Responses;
  readonly threads: Threads;
  readonly keeper: ResponseKeeper;
  readonly background: BackgroundResponses;
}

export class StoringResponses {
  constructor(private readonly parts: StoringParts) {}

  get isStoring(): boolean {
    return !this.parts.threads.isOff;
  }

  /** As `createNow`, or as `start` when the input has `background`. */
  async create(ctx: RequestContext, input: ResponseInput): Promise<CreatedResponse> {
    if (input.background && !ctx.quoting) return { ...(await this.start(ctx, input)), receipt: null };
    const { response, receipt } = await this.createNow(ctx, input);
    return { response, receipt, generationId: receipt.generationId };
  }

  /** Resolves when the charge is committed and the response stored. */
  async createNow(ctx: RequestContext, input: ResponseInput): Promise<{ readonly response: ResponseObject; readonly receipt: Receipt }> {
    const { responses, threads, keeper } = this.parts;
    const thread = await threads.open(ctx, input);
    try {
      const { response, receipt } = await responses.create(thread.ctx, thread.input, thread.keeping);
      const warnings = await keeper.keep(ctx, thread, response, receipt.safety);
      if (warnings.length === 0) return { response, receipt };
      return { response: asKept(response, thread, warnings), receipt: { ...receipt, warnings: joinWarnings(receipt.warnings, warnings) } };
    } finally {
      thread.release();
    }
  }

  /** Begins a response in the background. Resolves when it is held for. */
  async start(ctx: RequestContext, input: ResponseInput): Promise<StartedResponse> {
    const { threads, background } = this.parts;
    return background.start(await threads.open(ctx, { ...input, background: true }), false);
  }

  /** `previousId`: a response of the connection whose items are in the input. Resolves before anything is called. */
  async stream(ctx: RequestContext, input: ResponseInput, previousId: string | null = null): Promise<ResponseStream> {
    const { responses, threads, background } = this.parts;
    const thread = await threads.open(ctx, input);
    if (input.background && !ctx.quoting) return background.stream(ctx, thread);
    const keeping = previousId === null ? thread.keeping : { ...thread.keeping, previousId };
    try {
      const stream = responses.stream(thread.ctx, thread.input, keeping);
      const isPlain = !thread.isStored && thread.conversation === null && thread.previous === null;
      return isPlain ? stream : this.stored(ctx, stream, thread);
    } catch (error) {
      thread.release();
      throw error;
    }
  }

  /** See Responses. */
  prepare(...args: Parameters<Responses["prepare"]>): ReturnType<Responses["prepare"]> {
    return this.parts.responses.prepare(...args);
  }

  /** Estimates the input tokens of a request and its history, without a charge. */
  countTokens(ctx: RequestContext, input: ResponseInput): Promise<number> {
    return this.withThread(ctx, input, (thread) => this.parts.responses.countTokens(thread.ctx, thread.input));
  }

  /** Has the model summarize a request and its history. */
  compact(ctx: RequestContext, input: ResponseInput): Promise<{ readonly compacted: CompactedResponse; readonly receipt: Receipt }> {
    return this.withThread(ctx, input, (thread) => this.parts.responses.compact(thread.ctx, thread.input));
  }

  private async withThread<Result>(
    ctx: RequestContext,
    input: ResponseInput,
    work: (thread: OpenThread) => Promise<Result>,
  ): Promise<Result> {
    const thread = await this.parts.threads.open(ctx, { ...input, store: false, background: false });
    try {
      return await work(thread);
    } finally {
      thread.release();
    }
  }

  /** Stores the response before its last event, or its delivered part when it ends before. */
  private stored(ctx: RequestContext, stream: ResponseStream, thread: OpenThread): ResponseStream {
    const { keeper } = this.parts;
    const failed: ResponseStream["failed"] = (error) => {
      const events = stream.failed(error);
      const response = stream.brokenOff("failed", error);
      if (response) void safetyOf(stream).then((report) => keeper.keep(ctx, thread, response, report));
      return events;
    };
    return { ...stream, events: new StoredEvents(ctx, stream, thread, keeper), failed };
  }
}

class StoredEvents implements AsyncIterableIterator<ResponseStreamBatch> {
  private isReleased = false;
  /** Its last event was read, or its reader left. */
  private isEnded = false;

  constructor(
    private readonly ctx: RequestContext,
    private readonly stream: ResponseStream,
    private readonly thread: OpenThread,
    private readonly keeper: ResponseKeeper,
  ) {}

  async next(): Promise<IteratorResult<ResponseStreamBatch>> {
    try {
      const result = await this.stream.events.next();
      if (result.done) this.release();
      else if (!this.isEnded) return { done: false, value: await this.pass(result.value) };
      return result;
    } catch (error) {
      this.isEnded = true;
      this.release();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<ResponseStreamBatch>> {
    const isEarly = !this.isEnded;
    this.isEnded = true;
    await this.stream.events.return?.();
    await this.stream.settled?.();
    const response = isEarly ? this.stream.brokenOff("cancelled") : null;
    this.release();
    if (response) await this.keeper.keep(this.ctx, this.thread, response, await safetyOf(this.stream));
    return { done: true, value: undefined };
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  /** The last event leaves when the response is stored. */
  private async pass(batch: ResponseStreamBatch): Promise<ResponseStreamBatch> {
    const last = batch.events.at(-1);
    const response = last === undefined ? null : finishedIn(last);
    if (last === undefined || response === null) return batch;
    this.isEnded = true;
    this.release();
    const warnings = await this.keeper.keep(this.ctx, this.thread, response, await safetyOf(this.stream));
    if (warnings.length === 0) return batch;
    const events = [...batch.events.slice(0, -1), { ...last, response: asKept(response, this.thread, warnings) }];
    return { events, bytes: writeEvents(events) };
  }

  private release(): void {
    if (this.isReleased) return;
    this.isReleased = true;
    this.thread.release();
  }
}

/** A response that is not stored says so, with the reason in its receipt. */
function asKept(response: ResponseObject, { isStored }: OpenThread, warnings: readonly string[]): ResponseObject {
  const receipt = response.receipt as { readonly warnings?: readonly string[] } | undefined;
  const isLost = isStored && warnings.some((warning) => warning.startsWith("store:"));
  return {
    ...response,
    ...(isLost && { store: false }),
    ...(receipt && { receipt: { ...receipt, warnings: joinWarnings(receipt.warnings ?? [], warnings) } }),
  };
}
