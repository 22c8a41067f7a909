/**
 * Stores responses after their charge. An answer is never lost because it could not be stored: it goes out with a warning instead, and says
 * `store: false`.
 */
import type { Logger } from "pino";
import type { RequestContext } from "../../../context.js";
import { type ResponseObject, uuidOf } from "../../../formats/openai-responses/answer.js";
import { requireCaller } from "../../access/permissions.js";
import type { Safety, SafetyReport } from "../../safety/safety.js";
import type { ConversationRows } from "./conversation-rows.js";
import { STORED_RESPONSE_BYTES_MAX } from "./limits.js";
import { ownerOf } from "./owners.js";
import { redact, type StoredTexts } from "./redaction.js";
import type { NewResponse, StoredContent, StoredResponseRows } from "./rows.js";
import type { OpenThread } from "./threads.js";

const FULL = "store: the response was not stored, because the storage of the account is full. Delete stored responses or files.";
const TOO_LARGE = `store: the response was not stored, because it has more than ${STORED_RESPONSE_BYTES_MAX} bytes with its input.`;
const FAILED = "store: the response was not stored, because of an error of the gateway. It cannot be retrieved or continued by its id.";
const NOT_ADDED = "conversation: the items of this response were not added to the conversation, because of an error of the gateway.";
const NO_CONVERSATION = "conversation: the items of this response were not added to the conversation, because it was deleted.";
const CONVERSATION_FULL =
  "conversation: the items of this response were not added to the conversation, because the storage of the account is full. Delete stored responses or files.";

/** Room in the storage quotas of accounts. */
export interface StorageRoom {
  /** Null: there is no room for so many bytes. `conclude` it when they are written, or never will be. */
  take(accountId: string, bytes: number): Promise<TakenRoom | null>;
  /** The account has deleted something. */
  freed(accountId: string): void;
}

export interface TakenRoom {
  readonly conclude: () => void;
}

export interface KeeperParts {
  readonly rows: StoredResponseRows;
  readonly conversations: Pick<ConversationRows, "append">;
  readonly room: StorageRoom;
  readonly safety: Pick<Safety, "check">;
  readonly log: Logger;
}

export class ResponseKeeper {
  /** Writes under way. */
  private readonly pending = new Set<Promise<unknown>>();

  constructor(private readonly parts: KeeperParts) {}

  /** Stores a finished response and extends its conversation. Never rejects: resolves with warnings of omissions. */
  keep(ctx: RequestContext, thread: OpenThread, response: ResponseObject, report: SafetyReport | null): Promise<readonly string[]> {
    const keeping = this.store(ctx, thread, response, report);
    this.pending.add(keeping);
    return keeping.finally(() => this.pending.delete(keeping));
  }

  /** Resolves when everything is stored. */
  async close(): Promise<void> {
    while (this.pending.size > 0) await Promise.allSettled(this.pending);
  }

  /** Room for so many bytes in the account's quota; null: there is none. */
  takeRoom(accountId: string, bytes: number): Promise<TakenRoom | null> {
    return this.parts.room.take(accountId, bytes);
  }

  async redact(ctx: RequestContext, report: SafetyReport | null, texts: StoredTexts): Promise<StoredTexts> {
    return redact(this.parts.safety, ctx, report, texts);
  }

  /** Adds the items of a finished response to its conversation. Never rejects: resolves with warnings. */
  async extend(thread: Pick<OpenThread, "conversation">, accountId: string, { items, response }: StoredTexts): Promise<readonly string[]> {
    const { conversation } = thread;
    if (conversation === null || (response.status !== "completed" && response.status !== "incomplete")) return [];
    const added = [...items, ...response.output];
    let room: TakenRoom | null = null;
    try {
      room = await this.parts.room.take(accountId, JSON.stringify(added).length);
      if (room === null) return [CONVERSATION_FULL];
      return (await this.parts.conversations.append(conversation, added)) ? [] : [NO_CONVERSATION];
    } catch (error) {
      this.parts.log.error({ err: error }, "could not extend a conversation");
      return [NOT_ADDED];
    } finally {
      room?.conclude();
    }
  }

  private async store(
    ctx: RequestContext,
    thread: OpenThread,
    response: ResponseObject,
    report: SafetyReport | null,
  ): Promise<readonly string[]> {
    const { accountId } = requireCaller(ctx);
    if (!thread.isStored && thread.conversation === null) return [];
    let texts: StoredTexts;
    try {
      texts = await this.redact(ctx, report, { items: thread.own, response });
    } catch (error) {
      this.parts.log.warn({ err: error }, "could not redact a response for its storage");
      return [FAILED];
    }
    const stored = thread.isStored ? await this.add(ctx, thread, texts) : [];
    return [...stored, ...(await this.extend(thread, accountId, texts))];
  }

  private async add(ctx: RequestContext, thread: OpenThread, { items, response }: StoredTexts): Promise<readonly string[]> {
    const content = toContent({ items, response });
    const bytes = content.input.length + content.answer.length;
    if (bytes > STORED_RESPONSE_BYTES_MAX) return [TOO_LARGE];
    let room: TakenRoom | null = null;
    try {
      room = await this.takeRoom(requireCaller(ctx).accountId, bytes);
      if (room === null) return [FULL];
      await this.parts.rows.add(toNewResponse(ctx, thread, response, content), response.status);
      return [];
    } catch (error) {
      this.parts.log.error({ err: error }, "could not store a response");
      return [FAILED];
    } finally {
      room?.conclude();
    }
  }
}

export function toContent({ items, response }: StoredTexts): StoredContent {
  return { input: JSON.stringify(items), answer: JSON.stringify(response) };
}

export function toNewResponse(
  ctx: RequestContext,
  { previous, conversation, size }: Pick<OpenThread, "previous" | "conversation" | "size">,
  { id, model }: ResponseObject,
  content: StoredContent,
  { isBackground = false, hasEvents = false } = {},
): NewResponse {
  const uuid = uuidOf(id, "resp");
  if (uuid === null) throw new Error("A response has an id of the gateway.");
  const place = { id: uuid, previousId: previous, conversationId: conversation, thread: size };
  return { ...ownerOf(requireCaller(ctx)), ...place, model, isBackground, hasEvents, content };
}
