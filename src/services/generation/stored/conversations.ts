/** Conversations (docs/spec/chat.md#conversations): items that responses share and extend. */
import * as z from "zod";
import type { RequestContext } from "../../../context.js";
import { AppError, notFound, wrongField } from "../../../errors.js";
import { uuidOf } from "../../../formats/openai-responses/answer.js";
import { inputItem, metadata } from "../../../formats/openai-responses/request.js";
import { type StoredItem, toStoredItem } from "../../../formats/openai-responses/stored-items.js";
import { CHAT_MESSAGES_MAX, JSON_BODY_BYTES_MAX } from "../../../limits.js";
import type { Database } from "../../../store/database.js";
import { requireCaller } from "../../access/permissions.js";
import type { ConversationMeta, ConversationObject, ConversationRows } from "./conversation-rows.js";
import type { StorageRoom } from "./keeper.js";
import { CONVERSATION_ITEMS_AT_ONCE_MAX } from "./limits.js";
import { findReadable, ownerOf } from "./owners.js";
import { type ItemList, type ItemsQuery, toList } from "./stored-responses.js";

const items = z.array(inputItem).max(CONVERSATION_ITEMS_AT_ONCE_MAX);

export const createConversationInput = z.looseObject({ items: items.nullish(), metadata: metadata.nullish() });
export type CreateConversationInput = z.output<typeof createConversationInput>;
export const updateConversationInput = z.looseObject({ metadata });
export type UpdateConversationInput = z.output<typeof updateConversationInput>;
export const addItemsInput = z.looseObject({ items: items.min(1) });
export type AddItemsInput = z.output<typeof addItemsInput>;

export interface ConversationsParts {
  readonly database: Database;
  readonly rows: ConversationRows;
  readonly room: StorageRoom;
  /** Days that conversations are kept; 0: they are not stored here. */
  readonly days: number;
}

export class Conversations {
  constructor(private readonly parts: ConversationsParts) {}

  /** Throws PAYLOAD_TOO_LARGE when the account's storage is full, BAD_REQUEST where nothing is stored. */
  async create(ctx: RequestContext, input: CreateConversationInput): Promise<ConversationObject> {
    const caller = requireCaller(ctx);
    if (this.parts.days === 0) throw new AppError("BAD_REQUEST", KEEPS_NOTHING);
    const stored = (input.items ?? []).map(toStoredItem);
    const pairs = input.metadata ?? {};
    const id = await this.within(caller.accountId, [pairs, stored], () => this.parts.rows.create(ownerOf(caller), pairs, stored));
    return this.read(id);
  }

  /** Throws NOT_FOUND, as all methods below. */
  async get(ctx: RequestContext, id: string): Promise<ConversationObject> {
    return this.read((await this.find(ctx, id)).id);
  }

  async update(ctx: RequestContext, id: string, input: UpdateConversationInput): Promise<ConversationObject> {
    const { id: uuid } = await this.find(ctx, id);
    await this.parts.rows.setMetadata(uuid, input.metadata);
    return this.read(uuid);
  }

  async delete(ctx: RequestContext, id: string): Promise<{ readonly id: string }> {
    const { id: uuid, accountId } = await this.find(ctx, id);
    await this.parts.rows.remove(uuid);
    this.parts.room.freed(accountId);
    return { id };
  }

  async addItems(ctx: RequestContext, id: string, input: AddItemsInput): Promise<ItemList> {
    const { id: uuid, accountId, itemCount, itemBytes } = await this.find(ctx, id);
    const stored = input.items.map(toStoredItem);
    if (itemCount + stored.length > CHAT_MESSAGES_MAX)
      throw wrongField("items", `the conversation has ${itemCount} items of at most ${CHAT_MESSAGES_MAX}. Begin a new one`);
    if (itemBytes + JSON.stringify(stored).length > JSON_BODY_BYTES_MAX)
      throw wrongField("items", `the conversation has ${itemBytes} bytes of at most ${JSON_BODY_BYTES_MAX}. Begin a new one`);
    const added = await this.within(accountId, stored, () => this.parts.rows.append(uuid, stored));
    if (added === null) throw this.missing();
    return toList(added, added.length);
  }

  /** Throws BAD_REQUEST for an unknown `after`. */
  async listItems(ctx: RequestContext, id: string, { after, order, limit }: ItemsQuery): Promise<ItemList> {
    const { id: uuid } = await this.find(ctx, id);
    const page = await this.parts.rows.readPage(uuid, { after, order, take: limit + 1 });
    if (page === null) throw wrongField("after", "must be the id of an item of this conversation");
    return toList(page, limit);
  }

  async getItem(ctx: RequestContext, id: string, itemId: string): Promise<StoredItem> {
    const { id: uuid } = await this.find(ctx, id);
    const item = await this.parts.rows.readItem(uuid, itemId);
    if (!item) throw notFound("item");
    return item;
  }

  /** Resolves with the conversation. */
  async deleteItem(ctx: RequestContext, id: string, itemId: string): Promise<ConversationObject> {
    const { id: uuid } = await this.find(ctx, id);
    if (!(await this.parts.rows.removeItem(uuid, itemId))) throw notFound("item");
    return this.read(uuid);
  }

  private async within<Result>(accountId: string, content: unknown, write: () => Promise<Result>): Promise<Result> {
    const room = await this.parts.room.take(accountId, JSON.stringify(content).length);
    if (room === null) throw new AppError("PAYLOAD_TOO_LARGE", FULL);
    try {
      return await write();
    } finally {
      room.conclude();
    }
  }

  private async read(uuid: string): Promise<ConversationObject> {
    const conversation = await this.parts.rows.read(uuid);
    if (!conversation) throw this.missing();
    return conversation;
  }

  private async find(ctx: RequestContext, id: string): Promise<ConversationMeta> {
    const { database, rows } = this.parts;
    const row = await findReadable(database, requireCaller(ctx), uuidOf(id, "conv"), (uuid) => rows.findMeta(uuid));
    if (row === null) throw this.missing();
    return row;
  }

  private missing(): AppError {
    return this.parts.days === 0 ? new AppError("NOT_FOUND", `No such conversation. ${KEEPS_NOTHING}`) : notFound("conversation");
  }
}

const KEEPS_NOTHING = "This gateway stores no conversations. Send the whole conversation in the input of each response.";
const FULL = "The storage of the account is full. Delete stored responses, conversations or files.";
