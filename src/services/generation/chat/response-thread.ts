/**
 * The responses of one connection (docs/spec/chat.md#websocket). A stored response can be named by `previous_response_id` as over HTTP. Of
 * those that are not stored, the last one and those that it continues can: their items are kept in memory, within a bound, until the
 * connection ends.
 */
import type { RequestContext } from "../../../context.js";
import { AppError, wrongField } from "../../../errors.js";
import type { FinishedResponse } from "../../../formats/openai-responses/answer.js";
import type { ResponseEvent } from "../../../formats/openai-responses/stream.js";
import { append } from "../../../lib/collections.js";
import { JSON_BODY_BYTES_MAX } from "../../../limits.js";
import type { BodyAllowance, BodyBudget } from "../../requests/body-budget.js";
import { parseInput } from "../../requests/input.js";
import { type ResponseInput, type ResponseStream, type Responses, responseInput } from "./responses.js";

/** The code by which OpenAI's clients send the whole conversation again. */
const PREVIOUS_NOT_FOUND = "previous_response_not_found";

/** A response whose items can be continued. */
interface KeptResponse {
  readonly id: string;
  /** Its own input and output, without those of the responses before it. */
  readonly items: readonly unknown[];
  /** Of all items up to its own, as JSON. */
  readonly bytes: number;
  readonly before: KeptResponse | null;
}

type Body = Readonly<Record<string, unknown>>;

/** A response about to run: its events, and the input that the next one continues. */
interface PendingResponse {
  /** It continues a stored response, so its own items are not all. */
  readonly isPart: boolean;
  readonly before: KeptResponse | null;
  readonly items: readonly unknown[];
  readonly bytes: number;
}

/** The events of a response that is not generated: `generate: false` only sends the beginning of a conversation ahead. */
export interface PreparedResponse {
  readonly events: readonly ResponseEvent[];
}

/** Runs the responses of a connection; with storage, a stored response is continued by the `previous_response_id` of the input. */
export interface ThreadResponses extends Pick<Responses, "prepare"> {
  readonly isStoring: boolean;
  /** `previousId`: a response whose items are in the input. */
  stream(ctx: RequestContext, input: ResponseInput, previousId: string | null): Promise<ResponseStream>;
}

export class ResponseThread {
  private last: KeptResponse | null = null;
  /** Of `last`. */
  private held: BodyAllowance | null = null;

  constructor(
    private readonly responses: ThreadResponses,
    private readonly bodies: BodyBudget,
  ) {}

  /** `bytes`: the length of the body as it was sent. Rejects with BAD_REQUEST, also for a previous response that is not kept. */
  async stream(ctx: RequestContext, body: Body, bytes: number): Promise<ResponseStream> {
    if (body.background === true) throw wrongField("background", "must be false on a WebSocket: send the request with POST");
    const { pending, input, previousId } = this.read(body, bytes);
    const stream = await this.responses.stream(ctx, input, previousId);
    return { ...stream, events: this.watch(ctx, stream.events, pending) };
  }

  /** Checks and keeps the input of `generate: false`, without a charge. Rejects as `stream` does. */
  async prepare(ctx: RequestContext, body: Body, bytes: number): Promise<PreparedResponse> {
    const { pending, input, previousId } = this.read(body, bytes);
    const { events, response } = await this.responses.prepare(ctx, input, { previousId });
    this.keep(ctx, pending, response);
    return { events };
  }

  /** The connection has ended. */
  close(): void {
    this.held?.release();
    this.held = null;
    this.last = null;
  }

  private read({ type: _, generate: __, stream: ___, previous_response_id: previousId, input, ...rest }: Body, bytes: number) {
    const before = this.find(previousId);
    const stored = before === null && previousId !== undefined && previousId !== null ? { previous_response_id: previousId } : {};
    const items = toItems(input);
    const pending: PendingResponse = { isPart: "previous_response_id" in stored, before, items, bytes: (before?.bytes ?? 0) + bytes };
    if (pending.bytes > JSON_BODY_BYTES_MAX) throw tooLong();
    // A first request reads as by HTTP, with the same errors; a later one may add nothing to its conversation.
    const whole = before === null ? input : [...itemsOf(before), ...items];
    return {
      pending,
      input: parseInput(responseInput, { ...rest, ...stored, input: whole, stream: true }),
      previousId: before?.id ?? null,
    };
  }

  private find(id: unknown): KeptResponse | null {
    if (id === undefined || id === null) return null;
    for (let kept = this.last; kept !== null; kept = kept.before) if (kept.id === id) return kept;
    if (this.responses.isStoring) return null;
    throw notKept();
  }

  private watch(ctx: RequestContext, source: ResponseStream["events"], pending: PendingResponse): ResponseStream["events"] {
    const read = (result: Awaited<ReturnType<typeof source.next>>) => {
      const last = result.done ? undefined : result.value.events.at(-1);
      if (last?.type === "response.completed" || last?.type === "response.incomplete")
        this.keep(ctx, pending, last.response as FinishedResponse);
      return result;
    };
    return {
      next: async () => read(await source.next()),
      return: async (value) => (source.return ? source.return(value) : { done: true, value: undefined }),
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** A conversation beyond a share of the gateway's memory is not kept: its client sends it whole, or gets a clear error. */
  private keep(ctx: RequestContext, { isPart, before, items, bytes }: PendingResponse, { id, output, store }: FinishedResponse): void {
    if (isPart || store === true) return;
    const own = [...items];
    append(own, output);
    const kept = { id, items: own, bytes: bytes + JSON.stringify(output).length, before };
    this.close();
    const held = this.bodies.allow(ctx.caller, ctx.clientAddress);
    try {
      held.begin({ declaredBytes: kept.bytes, bytesMax: JSON_BODY_BYTES_MAX, onSlow: ignore });
      held.end();
    } catch (error) {
      held.release();
      if (!(error instanceof AppError)) throw error;
      return;
    }
    this.held = held;
    this.last = kept;
  }
}

function toItems(input: unknown): readonly unknown[] {
  if (Array.isArray(input)) return input;
  return input === undefined || input === null ? [] : [{ type: "message", role: "user", content: input }];
}

/** All items up to those of a response, in their order. */
function itemsOf(last: KeptResponse): unknown[] {
  const chain: KeptResponse[] = [];
  for (let kept: KeptResponse | null = last; kept !== null; kept = kept.before) chain.push(kept);
  return chain.reverse().flatMap(({ items }) => items);
}

function notKept(): AppError {
  return new AppError(
    "BAD_REQUEST",
    "previous_response_id: is not a response of this connection, or is no longer kept. Send the whole conversation in input, without previous_response_id.",
    { param: "previous_response_id", details: { reason: PREVIOUS_NOT_FOUND } },
  );
}

function tooLong(): AppError {
  return new AppError(
    "PAYLOAD_TOO_LARGE",
    `The conversation is larger than ${JSON_BODY_BYTES_MAX} bytes. Begin a new one, without previous_response_id.`,
  );
}

function ignore(): void {}
