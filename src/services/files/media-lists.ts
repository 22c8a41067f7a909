/** Lists of files, page by page: an account's own in an order, and all public ones with a tag (docs/spec/media.md#tags). */
import * as z from "zod";
import { isUuid } from "../../lib/ids.js";
import {
  COUNT_TAKE,
  type Cursors,
  type Page,
  type PagePosition,
  type PageRequest,
  RANKED,
  type RankedPosition,
  toPage,
} from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import type { MediaObjectModel } from "../../store/generated/prisma/models.js";
import { storableText } from "../requests/input.js";
import { MEDIA_NAME_CHARS_MAX, MEDIA_TAGS_MAX, MEDIA_TYPE_CHARS_MAX } from "./limits.js";
import { mediaTag } from "./media-objects-input.js";

/** A file's kind by its media type. */
export const MEDIA_KINDS = ["image", "video", "audio", "text", "other"] as const;
export type MediaKind = (typeof MEDIA_KINDS)[number];

/** Unspecified: media types in one filter. */
const FILTER_TYPES_MAX = 20;
/** Sorts before every file. */
const LIST_START = { timestamp: new Date("9999-12-31T23:59:59.999Z"), id: "~" };
/** Sorts after every file. */
const LIST_END = { timestamp: new Date(0), id: "" };

/** A filter of files, which must match every field. */
export const mediaFilterInput = z.strictObject({
  kinds: z.array(z.enum(MEDIA_KINDS)).min(1).max(MEDIA_KINDS.length).nullish(),
  contentTypes: z.array(storableText.max(MEDIA_TYPE_CHARS_MAX)).min(1).max(FILTER_TYPES_MAX).nullish(),
  /** All of them must match. */
  tags: z.array(mediaTag).min(1).max(MEDIA_TAGS_MAX).nullish(),
});
export type MediaFilter = z.input<typeof mediaFilterInput>;

export interface MediaOrder {
  /** Files without a name sort after all names. */
  readonly field: "created_at" | "size" | "name";
  readonly direction: "asc" | "desc";
}

const NEWEST_MEDIA_FIRST: MediaOrder = { field: "created_at", direction: "desc" };

export interface MediaQuery {
  readonly filter?: MediaFilter | undefined;
  readonly orderBy: MediaOrder;
  readonly page: PageRequest<RankedPosition>;
}

const COLUMNS = { created_at: "createdAt", size: "sizeBytes", name: "name" } as const;
/** Columns of a row that give its position in any order. */
const PLACE = { id: true, createdAt: true, sizeBytes: true, name: true } as const;

export type ListedMedia = Pick<MediaObjectModel, keyof typeof PLACE>;

/** An account's complete files, optionally with a tag. Sorting by size and name uses no index: the quota bounds their number. */
export async function readOwnPage(
  { prisma: { mediaObject } }: Database,
  accountId: string,
  { filter, orderBy: { field, direction }, page }: Omit<MediaQuery, "filter"> & { readonly filter: z.output<typeof mediaFilterInput> },
  select: Prisma.MediaObjectSelect,
): Promise<Page<ListedMedia>> {
  const where: Prisma.MediaObjectWhereInput = {
    accountId,
    status: "complete",
    NOT: { tags: { isEmpty: true } },
    AND: toConditions(filter),
  };
  const { first, after, before, isFromEnd = false } = page;
  const isAscending = (direction === "asc") !== isFromEnd;
  const bounds = [
    ...(after ? [boundAt(field, after, direction === "asc")] : []),
    ...(before ? [boundAt(field, before, direction !== "asc")] : []),
  ];
  const sorted = isAscending ? ("asc" as const) : ("desc" as const);
  const rows = await mediaObject.findMany({
    where: { AND: [where, ...bounds] },
    orderBy: [{ [COLUMNS[field]]: sorted }, { id: sorted }],
    take: first + 1,
    select: { ...select, ...PLACE },
  });
  return toPage(rows, page, () => mediaObject.count({ where, take: COUNT_TAKE }));
}

/** Public files with a tag, newest first. */
export async function readTaggedPage(
  { prisma }: Database,
  tag: string,
  page: PageRequest,
  select: Prisma.MediaObjectSelect,
): Promise<Page<ListedMedia>> {
  const { first, after = LIST_START, before = LIST_END, isFromEnd = false } = page;
  const direction = isFromEnd ? Prisma.sql`ASC` : Prisma.sql`DESC`;
  const found = await prisma.$queryRaw<{ readonly id: string }[]>`
    SELECT t.media_id AS id FROM media_tag t
    WHERE t.tag = ${tag} AND (t.created_at, t.media_id) < (${after.timestamp}, ${after.id})
      AND (t.created_at, t.media_id) > (${before.timestamp}, ${before.id})
    ORDER BY t.created_at ${direction}, t.media_id ${direction} LIMIT ${first + 1}`;
  const rows = await prisma.mediaObject.findMany({ where: { id: { in: found.map(({ id }) => id) } }, select: { ...select, ...PLACE } });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const sorted = found.flatMap(({ id }) => byId.get(id) ?? []);
  return toPage(sorted, page, () => prisma.mediaTag.count({ where: { tag }, take: COUNT_TAKE }));
}

/** The newest-first page in the form of `readOwnPage`. */
export function toNewestQuery({ after, before, ...page }: PageRequest): MediaQuery {
  const place = ({ timestamp, id }: PagePosition) => ({ rank: String(timestamp.getTime()), id });
  return {
    orderBy: NEWEST_MEDIA_FIRST,
    page: { ...page, after: after && place(after), before: before && place(before) },
  };
}

export function mediaPosition(row: ListedMedia, { field }: MediaOrder): RankedPosition {
  const value = row[COLUMNS[field]];
  return { rank: value instanceof Date ? String(value.getTime()) : String(value ?? ""), id: row.id };
}

/** Cursors of an order; refuses ranks that no row can have. */
export function mediaCursors({ field }: MediaOrder): Cursors<RankedPosition> {
  return {
    encode: RANKED.encode,
    decode: (cursor, list) => {
      const position = RANKED.decode(cursor, list);
      return position && isUuid(position.id) && RANKS[field].test(position.rank) ? position : null;
    },
  };
}

/** A time before the year 10000, an integer of bytes, a name or none. */
const RANKS = { created_at: /^\d{1,14}$/, size: /^\d{1,9}$/, name: new RegExp(`^[^\\0]{0,${MEDIA_NAME_CHARS_MAX}}$`, "su") };

export function kindOf(contentType: string): MediaKind {
  const family = contentType.split("/", 1)[0];
  return MEDIA_KINDS.find((kind) => kind === family) ?? "other";
}

function toConditions({ kinds, contentTypes, tags }: z.output<typeof mediaFilterInput>): Prisma.MediaObjectWhereInput[] {
  return [
    ...(kinds ? [{ OR: kinds.map(isOfKind) }] : []),
    ...(contentTypes ? [{ contentType: { in: contentTypes.map((type) => type.toLowerCase()) } }] : []),
    ...(tags ? [{ tags: { hasEvery: tags } }] : []),
  ];
}

function isOfKind(kind: MediaKind): Prisma.MediaObjectWhereInput {
  if (kind !== "other") return { contentType: { startsWith: `${kind}/` } };
  return { NOT: MEDIA_KINDS.filter((each) => each !== "other").map(isOfKind) };
}

/** The condition for rows after a position, ascending or descending. A missing name sorts as the greatest, as in the database. */
function boundAt(field: MediaOrder["field"], { rank, id }: RankedPosition, isUpwards: boolean): Prisma.MediaObjectWhereInput {
  const beyond = <Value>(value: Value) => (isUpwards ? { gt: value } : { lt: value });
  const from = <Value>(value: Value) => (isUpwards ? { gte: value } : { lte: value });
  const isLater = { id: beyond(id) };
  if (field === "created_at") {
    const value = new Date(Number(rank));
    // The first half alone bounds the column, so that an index scan starts where the page begins.
    return { createdAt: from(value), OR: [{ createdAt: beyond(value) }, isLater] };
  }
  if (field === "size") return { sizeBytes: from(Number(rank)), OR: [{ sizeBytes: beyond(Number(rank)) }, isLater] };
  if (rank === "") return { OR: [{ name: null, ...isLater }, ...(isUpwards ? [] : [{ name: { not: null } }])] };
  return { OR: [{ name: beyond(rank) }, { name: rank, ...isLater }, ...(isUpwards ? [{ name: null }] : [])] };
}
