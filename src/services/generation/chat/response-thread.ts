/**
 * The responses of one connection (docs/spec/chat.md#websocket). The last one and those that it continues can be named by
 * `previous_response_id`: their items are kept in memory, within a bound, until the connection ends.
 */
import type { RequestContext } from "../../../context.js";
import { AppError } from "../../../errors.js";
import type { FinishedResponse } from "../../../formats/openai-responses/answer.js";
import type { ResponseEvent } from "../../../formats/openai-responses/stream.js";
import { append } from "../../../lib/collections.js";
import { JSON_BODY_BYTES_MAX } from "../../../limits.js";
import type { BodyAllowance, BodyBudget } from "../../requests/body-budget.js";
import { parseInput } from "../../requests/input.js";
import { type ResponseStream, type Responses, responseInput } from "./responses.js";

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
  readonly before: KeptResponse | null;
  readonly items: readonly unknown[];
  readonly bytes: number;
}

/** The events of a response that is not generated: `generate: false` only sends the beginning of a conversation ahead. */
export interface PreparedResponse {
  readonly events: readonly ResponseEvent[];
}

export class ResponseThread {
  private last: KeptResponse | null = null;
  /** Of `last`. */
  private held: BodyAllowance | null = null;

  constructor(
    private readonly responses: Pick<Responses, "stream" | "prepare">,
    private readonly bodies: BodyBudget,
  ) {}

  /** `bytes`: the length of the body as it was sent. Throws BAD_REQUEST, also for a previous response that is not kept. */
  stream(ctx: RequestContext, body: Body, bytes: number): ResponseStream {
    const { pending, input, previousId } = this.read(body, bytes);
    const stream = this.responses.stream(ctx, input, previousId);
    return { ...stream, events: this.watch(ctx, stream.events, pending) };
  }

  /** Checks and keeps the input of `generate: false`, without a charge. Rejects as `stream` does. */
  async prepare(ctx: RequestContext, body: Body, bytes: number): Promise<PreparedResponse> {
    const { pending, input, previousId } = this.read(body, bytes);
    const { events, response } = await this.responses.prepare(ctx, input, previousId);
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
    const items = toItems(input);
    const pending: PendingResponse = { before, items, bytes: (before?.bytes ?? 0) + bytes };
    if (pending.bytes > JSON_BODY_BYTES_MAX) throw tooLong();
    // A first request reads as by HTTP, with the same errors; a later one may add nothing to its conversation.
    const whole = before === null ? input : [...itemsOf(before), ...items];
    return { pending, input: parseInput(responseInput, { ...rest, input: whole, stream: true }), previousId: before?.id ?? null };
  }

  private find(id: unknown): KeptResponse | null {
    if (id === undefined || id === null) return null;
    for (let kept = this.last; kept !== null; kept = kept.before) if (kept.id === id) return kept;
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
  private keep(ctx: RequestContext, { before, items, bytes }: PendingResponse, { id, output }: FinishedResponse): void {
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
