/** Rows of conversations and their items. The conversation's row is the lock of its items: their places, number and bytes are counted there. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { conversationIdOf } from "../../../formats/openai-responses/answer.js";
import { type StoredItem, withNewId } from "../../../formats/openai-responses/stored-items.js";
import type { Clock } from "../../../lib/clock.js";
import { createId } from "../../../lib/ids.js";
import { newestFirst, type PageRequest } from "../../../lib/pagination.js";
import type { Database, DatabaseClient } from "../../../store/database.js";
import { Prisma } from "../../../store/generated/prisma/client.js";
import type { ConversationModel } from "../../../store/generated/prisma/models.js";
import type { SecretBox } from "../../secrets/secret-box.js";
import { deleteExpired, expiryAfter } from "./expiry.js";
import { STORED_ROW_BYTES } from "./limits.js";
import type { Owner } from "./owners.js";

/** Items are read in turns of the event loop of so many bytes. */
const TURN_BYTES = 256 * 1024;

type Transaction = Pick<DatabaseClient, "conversation" | "conversationItem">;

/** A conversation without its content. */
export type ConversationMeta = Omit<ConversationModel, "metadata">;

/** OpenAI's `conversation` object. */
export interface ConversationObject {
  readonly id: string;
  readonly object: "conversation";
  /** Seconds. */
  readonly created_at: number;
  readonly metadata: Readonly<Record<string, string>>;
}

export class ConversationRows {
  constructor(
    private readonly database: Database,
    private readonly box: SecretBox,
    private readonly clock: Clock,
    private readonly days: number,
  ) {}

  /** Returns its UUID. */
  async create(owner: Owner, metadata: Readonly<Record<string, string>>, items: readonly StoredItem[]): Promise<string> {
    const id = createId();
    const now = this.clock.now();
    const text = JSON.stringify(metadata);
    const times = { createdAt: now, expiresAt: expiryAfter(now, this.days) };
    const row = { id, ...owner, metadata: this.sealMetadata(id, text), sizeBytes: text.length + STORED_ROW_BYTES, ...times };
    await this.database.prisma.$transaction(async (transaction) => {
      await transaction.conversation.create({ data: row });
      await this.add(transaction, id, items);
    });
    return id;
  }

  findMeta(id: string): Promise<ConversationMeta | null> {
    return this.database.prisma.conversation.findFirst({ where: this.isKept(id), omit: { metadata: true } });
  }

  async read(id: string): Promise<ConversationObject | null> {
    const row = await this.database.prisma.conversation.findFirst({ where: this.isKept(id) });
    return row && this.toObject(row);
  }

  /** With items, in the form of the account's export. */
  async export(accountId: string, page: PageRequest) {
    const { where: older, ...query } = newestFirst(page);
    const where = { accountId, expiresAt: { gt: this.clock.now() }, ...older };
    const rows = await this.database.prisma.conversation.findMany({ where, ...query });
    const conversations = [];
    for (const row of rows) {
      const { id, createdAt, expiresAt, apiKeyId } = row;
      conversations.push({ id, createdAt, expiresAt, apiKeyId, conversation: this.toObject(row), items: await this.readItems(id) });
    }
    return conversations;
  }

  async setMetadata(id: string, metadata: Readonly<Record<string, string>>): Promise<void> {
    await this.database.prisma.conversation.updateMany({
      where: { id },
      data: { metadata: this.sealMetadata(id, JSON.stringify(metadata)) },
    });
  }

  async remove(id: string): Promise<void> {
    await this.database.prisma.conversation.deleteMany({ where: { id } });
  }

  /** Adds items at the end, under other ids where it has theirs. Null: the conversation is gone. */
  append(id: string, items: readonly StoredItem[]): Promise<readonly StoredItem[] | null> {
    return this.database.prisma.$transaction((transaction) => this.add(transaction, id, items));
  }

  /** All items, the oldest first. */
  async readItems(id: string): Promise<StoredItem[]> {
    const rows = await this.database.prisma.conversationItem.findMany({ where: { conversationId: id }, orderBy: { position: "asc" } });
    const items: StoredItem[] = [];
    let bytes = 0;
    for (const row of rows) {
      bytes += row.sizeBytes;
      if (bytes > TURN_BYTES) {
        bytes = 0;
        await nextTurn();
      }
      items.push(this.openItem(row));
    }
    return items;
  }

  /** At most `take` items beside another one; null: there is no such other one. */
  async readPage(
    id: string,
    { after, order, take }: { readonly after?: string | undefined; readonly order: "asc" | "desc"; readonly take: number },
  ) {
    const { conversationItem } = this.database.prisma;
    const place = after === undefined ? null : await this.placeOf(id, after);
    if (after !== undefined && place === null) return null;
    const beyond = place === null ? {} : { position: order === "asc" ? { gt: place } : { lt: place } };
    const rows = await conversationItem.findMany({ where: { conversationId: id, ...beyond }, orderBy: { position: order }, take });
    return rows.map((row) => this.openItem(row));
  }

  async readItem(id: string, itemId: string): Promise<StoredItem | null> {
    const row = await this.database.prisma.conversationItem.findFirst({ where: { conversationId: id, itemId } });
    return row && this.openItem(row);
  }

  /** False: there is none. */
  removeItem(id: string, itemId: string): Promise<boolean> {
    return this.database.prisma.$transaction(async (transaction) => {
      const row = await transaction.conversationItem.findFirst({
        where: { conversationId: id, itemId },
        select: { id: true, sizeBytes: true },
      });
      if (!row) return false;
      const { count } = await transaction.conversationItem.deleteMany({ where: { id: row.id } });
      if (count === 0) return false;
      const less = { decrement: row.sizeBytes };
      await transaction.conversation.updateMany({
        where: { id },
        data: { itemCount: { decrement: 1 }, itemBytes: less, sizeBytes: { decrement: row.sizeBytes + STORED_ROW_BYTES } },
      });
      return true;
    });
  }

  /** As that of StoredResponseRows. */
  sweep(): Promise<number> {
    return deleteExpired(this.database, Prisma.sql`conversation`, this.clock.now(), this.days);
  }

  private async add(transaction: Transaction, id: string, items: readonly StoredItem[]): Promise<readonly StoredItem[] | null> {
    const given = items.map((item) => item.id);
    const taken = await transaction.conversationItem.findMany({
      where: { conversationId: id, itemId: { in: given } },
      select: { itemId: true },
    });
    const seen = new Set(taken.map(({ itemId }) => itemId));
    const added = items.map((item) => {
      const own = seen.has(item.id) ? withNewId(item) : item;
      seen.add(own.id);
      return own;
    });
    const texts = added.map((item) => JSON.stringify(item));
    const bytes = texts.reduce((sum, text) => sum + text.length, 0);
    const [row] = await transaction.conversation.updateManyAndReturn({
      where: { id },
      data: {
        ...{ itemCount: { increment: added.length }, nextPosition: { increment: added.length }, itemBytes: { increment: bytes } },
        sizeBytes: { increment: bytes + added.length * STORED_ROW_BYTES },
      },
      select: { nextPosition: true },
    });
    if (!row) return null;
    const first = row.nextPosition - added.length;
    const rows = added.map((item, index) => {
      const rowId = createId();
      const text = texts[index] ?? "";
      const content = this.box.seal({ table: "conversation_item", rowId, column: "content" }, text);
      return { id: rowId, conversationId: id, itemId: item.id, position: first + index, content, sizeBytes: text.length };
    });
    await transaction.conversationItem.createMany({ data: rows });
    return added;
  }

  private async placeOf(id: string, itemId: string): Promise<number | null> {
    const row = await this.database.prisma.conversationItem.findFirst({
      where: { conversationId: id, itemId },
      select: { position: true },
    });
    return row?.position ?? null;
  }

  private toObject({ id, createdAt, metadata }: ConversationModel): ConversationObject {
    const text = this.box.open({ table: "conversation", rowId: id, column: "metadata" }, metadata);
    const seconds = Math.floor(createdAt.getTime() / 1000);
    return { id: conversationIdOf(id), object: "conversation", created_at: seconds, metadata: JSON.parse(text) as Record<string, string> };
  }

  private openItem({ id, content }: { readonly id: string; readonly content: Uint8Array }): StoredItem {
    return JSON.parse(this.box.open({ table: "conversation_item", rowId: id, column: "content" }, content)) as StoredItem;
  }

  private sealMetadata(id: string, text: string) {
    return this.box.seal({ table: "conversation", rowId: id, column: "metadata" }, text);
  }

  private isKept(id: string) {
    return { id, expiresAt: { gt: this.clock.now() } };
  }
}
