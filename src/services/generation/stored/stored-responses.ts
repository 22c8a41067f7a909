/** Stored responses for their readers (docs/spec/chat.md#stored-responses). */
import * as z from "zod";
import type { RequestContext } from "../../../context.js";
import { AppError, notFound, permissionDenied, wrongField } from "../../../errors.js";
import { conversationIdOf, type ResponseObject, responseIdOf, uuidOf } from "../../../formats/openai-responses/answer.js";
import type { StoredItem } from "../../../formats/openai-responses/stored-items.js";
import { type Page, type PageRequest, toPage } from "../../../lib/pagination.js";
import type { Database } from "../../../store/database.js";
import type { Events } from "../../../store/events.js";
import { requireCaller, requirePermission } from "../../access/permissions.js";
import { queryInteger } from "../../requests/query-values.js";
import type { ResponseStreamBatch } from "../chat/responses.js";
import { changesOf, type FollowedResponses } from "./followed.js";
import type { StorageRoom } from "./keeper.js";
import { CANCEL_WAIT_MS, ITEMS_PAGE_DEFAULT, ITEMS_PAGE_MAX } from "./limits.js";
import { findReadable, isGrantedToApp, readerFor } from "./owners.js";
import type { StoredMeta, StoredResponseRows } from "./rows.js";

export const itemsQuery = z.looseObject({
  limit: queryInteger(z.int().min(1).max(ITEMS_PAGE_MAX)).default(ITEMS_PAGE_DEFAULT).describe("The most items of the page."),
  order: z.enum(["asc", "desc"]).default("desc").describe("`desc`: the newest items first."),
  after: z.string().max(200).optional().describe("The ID of the last item of the previous page."),
});
export type ItemsQuery = z.output<typeof itemsQuery>;

/** OpenAI's `list` object. */
export interface ItemList {
  readonly object: "list";
  readonly data: readonly StoredItem[];
  readonly first_id: string | null;
  readonly last_id: string | null;
  readonly has_more: boolean;
}

export interface StoredResponse extends Omit<StoredMeta, "id" | "previousId" | "conversationId"> {
  /** These ids are those of the Responses format. */
  readonly id: string;
  readonly previousResponseId: string | null;
  readonly conversationId: string | null;
  readonly uuid: string;
}

export interface StoredResponsesParts {
  readonly database: Database;
  readonly rows: StoredResponseRows;
  readonly followed: FollowedResponses;
  readonly events: Events;
  readonly room: Pick<StorageRoom, "freed">;
  /** Days that responses are kept; 0: they are not stored here. */
  readonly days: number;
}

export class StoredResponses {
  constructor(private readonly parts: StoredResponsesParts) {}

  /** Throws NOT_FOUND. */
  async get(ctx: RequestContext, id: string): Promise<ResponseObject> {
    const { id: uuid } = await this.find(ctx, id);
    const response = await this.parts.rows.readAnswer(uuid);
    if (!response) throw this.missing();
    return response;
  }

  /** A response without its content. Throws NOT_FOUND. */
  async getStored(ctx: RequestContext, id: string): Promise<StoredResponse> {
    return toStored(await this.find(ctx, id));
  }

  /** Those that the caller may read. */
  async getMany(ctx: RequestContext, ids: readonly string[]): Promise<readonly StoredResponse[]> {
    const caller = requireCaller(ctx);
    const rows = await this.parts.rows.findMetas(ids.flatMap((id) => uuidOf(id, "resp") ?? []));
    const readable = await Promise.all(rows.map(readerFor(this.parts.database, caller)));
    return rows.filter((_row, index) => readable[index]).map(toStored);
  }

  /** The contents of responses that the caller was given, by their UUIDs. */
  async answers(ctx: RequestContext, uuids: readonly string[]): Promise<ReadonlyMap<string, ResponseObject>> {
    const { accountId } = requireCaller(ctx);
    return this.parts.rows.readAnswers(accountId, uuids);
  }

  /** The input items of a response, with those of the responses before it. Throws NOT_FOUND, or BAD_REQUEST for an unknown `after`. */
  async inputItems(ctx: RequestContext, id: string, query: ItemsQuery): Promise<ItemList> {
    const row = await this.find(ctx, id);
    const parts = row.previousId === null ? [] : (await this.parts.rows.readThread(row.id, row.accountId)).slice(0, -1);
    const items = parts.flatMap((part) => [...part.items, ...(part.output as unknown as StoredItem[])]);
    for (const item of await this.parts.rows.readInput(row.id)) items.push(item);
    return pageOf(items, query);
  }

  /** Throws NOT_FOUND. */
  async delete(ctx: RequestContext, id: string): Promise<{ readonly id: string }> {
    const { id: uuid, accountId } = await this.find(ctx, id);
    await this.parts.rows.remove(uuid);
    this.parts.room.freed(accountId);
    this.parts.events.publish("stored-response-changed", { accountId, responseId: uuid, status: "deleted" });
    return { id };
  }

  /** Ends a background response, and resolves with its delivered part. A finished one is unchanged. Throws NOT_FOUND, BAD_REQUEST. */
  async cancel(ctx: RequestContext, id: string): Promise<ResponseObject> {
    const { id: uuid, accountId, isBackground } = await this.find(ctx, id);
    if (!isBackground) throw wrongField("response", "was not created with background: true, so there is nothing to cancel");
    if (await this.parts.rows.cancel(uuid)) await this.ended(ctx, accountId, uuid);
    return this.get(ctx, id);
  }

  /** The events of a background response that was created with `stream: true`, after a sequence number. */
  async follow(ctx: RequestContext, id: string, startingAfter: number): Promise<AsyncGenerator<ResponseStreamBatch>> {
    const { hasEvents } = await this.find(ctx, id);
    if (!hasEvents) throw wrongField("stream", "needs a response that was created with background: true and stream: true");
    return this.parts.followed.follow(ctx, id, startingAfter);
  }

  /** Newest first. Needs a secret key with the permission `usage` that no app was granted, or a session. */
  async list(ctx: RequestContext, page: PageRequest): Promise<Page<StoredResponse>> {
    const caller = requirePermission(ctx, "usage");
    const { database, rows } = this.parts;
    if (caller.kind === "key" && (caller.apiKeyType !== "secret" || (await isGrantedToApp(database, caller.apiKeyId))))
      throw permissionDenied("Listing stored responses requires a secret key that no app was granted.");
    const stored = (await rows.list(caller.accountId, page)).map(toStored);
    return toPage(stored, page, () => rows.count(caller.accountId));
  }

  private async find(ctx: RequestContext, id: string): Promise<StoredMeta> {
    const { database, rows } = this.parts;
    const row = await findReadable(database, requireCaller(ctx), uuidOf(id, "resp"), (uuid) => rows.findMeta(uuid));
    if (row === null) throw this.missing();
    return row;
  }

  /** Publishes the cancellation, and waits for the end of the response for a bounded time. */
  private async ended(ctx: RequestContext, accountId: string, uuid: string): Promise<void> {
    const { events, rows } = this.parts;
    const changes = changesOf(events, ctx, accountId, uuid);
    const timer = setTimeout(() => changes.close(), CANCEL_WAIT_MS);
    events.publish("stored-response-changed", { accountId, responseId: uuid, status: "cancelled" });
    try {
      while ((await changes.next()) !== undefined) {
        if ((await rows.findMeta(uuid))?.finishedAt !== null) return;
      }
    } finally {
      clearTimeout(timer);
      changes.close();
    }
  }

  private missing(): AppError {
    return this.parts.days === 0 ? new AppError("NOT_FOUND", KEEPS_NOTHING) : notFound("response");
  }
}

const KEEPS_NOTHING =
  "No such response: this gateway stores no responses. Send the whole conversation in input instead of the id of an earlier response.";

function toStored({ id, previousId, conversationId, ...meta }: StoredMeta): StoredResponse {
  return {
    ...meta,
    id: responseIdOf(id),
    uuid: id,
    previousResponseId: previousId && responseIdOf(previousId),
    conversationId: conversationId && conversationIdOf(conversationId),
  };
}

function pageOf(items: readonly StoredItem[], { limit, order, after }: ItemsQuery): ItemList {
  const ordered = order === "asc" ? items : items.toReversed();
  const place = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && place === -1) throw wrongField("after", "must be the id of an item of this list");
  return toList(ordered.slice(place + 1, place + 2 + limit), limit);
}

/** `items` may have one more than the page. */
export function toList(items: readonly StoredItem[], limit: number): ItemList {
  const data = items.slice(0, limit);
  return {
    object: "list",
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: items.length > limit,
  };
}
