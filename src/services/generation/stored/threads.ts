/**
 * What a response continues: the stored responses before it, or the items of a conversation. They are read whole, within the bounds of a
 * request's body, and count as one.
 */
import { deriveContext, type RequestContext } from "../../../context.js";
import { AppError, wrongField } from "../../../errors.js";
import { conversationIdOf, type ResponseKeeping, uuidOf } from "../../../formats/openai-responses/answer.js";
import { type StoredItem, toStoredItems } from "../../../formats/openai-responses/stored-items.js";
import { append } from "../../../lib/collections.js";
import { CHAT_MESSAGES_MAX, JSON_BODY_BYTES_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import { requireCaller } from "../../access/permissions.js";
import type { BodyBudget } from "../../requests/body-budget.js";
import { parseInput } from "../../requests/input.js";
import { type ResponseInput, responseInput } from "../chat/responses.js";
import type { ConversationRows } from "./conversation-rows.js";
import { THREAD_RESPONSES_MAX } from "./limits.js";
import { findReadable } from "./owners.js";
import { findReferences } from "./references.js";
import type { StoredResponseRows, ThreadPart, ThreadSize } from "./rows.js";

/** Longer ones are converted in turns of the event loop. */
const LARGE_INPUT_BYTES = 64 * 1024;
/** The code by which OpenAI's clients send the whole conversation again. */
const PREVIOUS_NOT_FOUND = "previous_response_not_found";
const BEGINNING: ThreadSize = { bytes: 0, length: 0 };

/** A request with everything that it continues. */
export interface OpenThread {
  readonly ctx: RequestContext;
  /** With the items before its own. */
  readonly input: ResponseInput;
  readonly own: readonly StoredItem[];
  readonly keeping: ResponseKeeping;
  readonly isStored: boolean;
  /** The response that it continues. */
  readonly previous: string | null;
  readonly conversation: string | null;
  /** Of the stored responses before it. */
  readonly size: ThreadSize;
  /** Call when it is answered. */
  readonly release: () => void;
}

/** Items before those of a request. */
interface History extends Pick<OpenThread, "previous" | "conversation" | "size"> {
  readonly field: "previous_response_id" | "conversation";
  readonly bytes: number;
  readonly read: () => Promise<readonly unknown[]>;
}

export interface ThreadParts {
  readonly database: Database;
  readonly rows: StoredResponseRows;
  readonly conversations: Pick<ConversationRows, "findMeta" | "readItems">;
  readonly bodies: BodyBudget;
  /** Days that responses are kept; 0: they are not stored here. */
  readonly days: number;
}

export class Threads {
  constructor(private readonly parts: ThreadParts) {}

  get isOff(): boolean {
    return this.parts.days === 0;
  }

  /**
   * Rejects with BAD_REQUEST for a response or conversation that is not kept or cannot be read, CONFLICT for one that is not finished,
   * PAYLOAD_TOO_LARGE beyond the bounds of a body.
   */
  async open(ctx: RequestContext, request: ResponseInput): Promise<OpenThread> {
    const caller = requireCaller(ctx);
    this.assertOn(request);
    if (this.isOff) return this.extend(ctx, request, null);
    const { database, rows } = this.parts;
    const references = await findReferences(database, rows, caller, request);
    // The body of a request in the background is held for longer than its connection.
    const bytes = (references?.bytes ?? 0) + (request.background === true ? JSON.stringify(request.input).length : 0);
    const release = this.hold(ctx, bytes);
    try {
      const input = references === null ? request : await references.resolve();
      const thread = await this.extend(ctx, input, await this.find(ctx, input));
      return { ...thread, release: both(thread.release, release) };
    } catch (error) {
      release();
      throw error;
    }
  }

  private async extend(ctx: RequestContext, input: ResponseInput, history: History | null): Promise<OpenThread> {
    const isStored = !this.isOff && input.store !== false;
    const own = isStored || history?.conversation != null ? toStoredItems(input.input) : [];
    const keeping = { isStored, previousId: input.previous_response_id ?? null, isBackground: input.background === true };
    if (history === null) {
      return { ctx, input, own, keeping, isStored, previous: null, conversation: null, size: BEGINNING, release: ignore };
    }
    const { bytes, previous, conversation, size, field } = history;
    const conversationId = conversation === null ? null : conversationIdOf(conversation);
    const release = this.hold(ctx, bytes);
    try {
      const items = await history.read();
      const whole = [...items];
      append(whole, own.length > 0 ? own : toStoredItems(input.input));
      if (whole.length > CHAT_MESSAGES_MAX)
        throw wrongField(field, `continues ${items.length} items; a request has at most ${CHAT_MESSAGES_MAX}. Begin a new conversation`);
      const wide = bytes > LARGE_INPUT_BYTES ? deriveContext(ctx, { reservedId: ctx.reservedId, hasLargeInput: true }) : ctx;
      const parsed = parseInput(responseInput, { ...input, input: whole });
      return { ctx: wide, input: parsed, own, keeping: { ...keeping, conversationId }, isStored, previous, conversation, size, release };
    } catch (error) {
      release();
      throw error;
    }
  }

  /** Without storage, the fields that need it are refused. */
  private assertOn({ previous_response_id: previousId, conversation, background, store }: ResponseInput): void {
    if (previousId != null && conversation != null)
      throw wrongField("conversation", "must be left out beside previous_response_id: a response continues one of them");
    if (background === true && store === false)
      throw wrongField("background", "needs store: true, because the response is retrieved when it is finished");
    if (!this.isOff) return;
    if (previousId != null) throw wrongField("previous_response_id", KEEPS_NOTHING);
    if (conversation != null) throw wrongField("conversation", KEEPS_NOTHING);
    if (background === true) throw wrongField("background", NO_BACKGROUND);
  }

  private async find(ctx: RequestContext, input: ResponseInput): Promise<History | null> {
    const { previous_response_id: previousId, conversation } = input;
    if (previousId != null) return this.continueResponse(ctx, previousId);
    if (conversation == null) return null;
    return this.continueConversation(ctx, typeof conversation === "string" ? conversation : conversation.id);
  }

  private async continueResponse(ctx: RequestContext, id: string): Promise<History> {
    const { database, rows } = this.parts;
    const caller = requireCaller(ctx);
    const row = await findReadable(database, caller, uuidOf(id, "resp"), (uuid) => rows.findMeta(uuid));
    if (row === null) throw previousNotFound("there is no such response, or it has expired");
    if (row.finishedAt === null)
      throw new AppError(
        "CONFLICT",
        "previous_response_id: this response is not finished yet. Retrieve it until it is, then continue it.",
        {
          param: "previous_response_id",
          retryAfterSeconds: 1,
        },
      );
    if (row.threadBytes > JSON_BODY_BYTES_MAX) throw tooLarge("previous_response_id");
    if (row.threadLength >= THREAD_RESPONSES_MAX)
      throw wrongField("previous_response_id", `continues ${THREAD_RESPONSES_MAX} responses already. Begin a new conversation`);
    const read = async () => {
      const parts = await rows.readThread(row.id, caller.accountId);
      if (parts[0]?.previousId !== null) throw previousNotFound("a response before it was deleted, or has expired");
      return itemsOf(parts);
    };
    const size = { bytes: row.threadBytes, length: row.threadLength };
    return { field: "previous_response_id", bytes: row.threadBytes, read, previous: row.id, conversation: null, size };
  }

  private async continueConversation(ctx: RequestContext, id: string): Promise<History> {
    const { database, conversations } = this.parts;
    const row = await findReadable(database, requireCaller(ctx), uuidOf(id, "conv"), (uuid) => conversations.findMeta(uuid));
    if (row === null)
      throw wrongField("conversation", "there is no such conversation, or it has expired. Create one with POST /v1/conversations");
    if (row.itemBytes > JSON_BODY_BYTES_MAX) throw tooLarge("conversation");
    const read = () => conversations.readItems(row.id);
    return { field: "conversation", bytes: row.itemBytes, read, previous: null, conversation: row.id, size: BEGINNING };
  }

  /** Counts the bytes as those of a body. Throws SERVICE_UNAVAILABLE. */
  private hold(ctx: RequestContext, bytes: number): () => void {
    if (bytes === 0) return ignore;
    const allowance = this.parts.bodies.allow(ctx.caller, ctx.clientAddress);
    try {
      allowance.begin({ declaredBytes: bytes, bytesMax: JSON_BODY_BYTES_MAX, onSlow: ignore });
      allowance.end();
    } catch (error) {
      allowance.release();
      throw error;
    }
    return () => allowance.release();
  }
}

export function itemsOf(parts: readonly ThreadPart[]): unknown[] {
  const items: unknown[] = [];
  for (const { items: own, output } of parts) {
    append(items, own);
    append(items, output);
  }
  return items;
}

const KEEPS_NOTHING =
  "must be left out: this gateway keeps no conversations. Send the whole conversation in input: the earlier items, the output items of each answer, then what is new";
const NO_BACKGROUND = "must be false: a response is answered at once. Send stream: true to read it as it is made";

function previousNotFound(why: string): AppError {
  const message = `previous_response_id: ${why}. Send the whole conversation in input, without previous_response_id.`;
  return new AppError("BAD_REQUEST", message, { param: "previous_response_id", details: { reason: PREVIOUS_NOT_FOUND } });
}

function tooLarge(param: string): AppError {
  const message = `${param}: the conversation has more than ${JSON_BODY_BYTES_MAX} bytes. Begin a new one, with a summary of this one.`;
  return new AppError("PAYLOAD_TOO_LARGE", message, { param });
}

function both(one: () => void, other: () => void): () => void {
  return () => {
    one();
    other();
  };
}

function ignore(): void {}
