/** Filters of the request log: one rule for both faces (docs/spec/requests.md). */
import * as z from "zod";
import { ERROR_CODES, wrongField } from "../../errors.js";
import { isUuid, LOWEST_UUID } from "../../lib/ids.js";
import { escapeLike } from "../../lib/storable-text.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import { nonBlankText, parseInput, storableText } from "../requests/input.js";
import { REQUEST_FILTER_VALUES_MAX, REQUEST_ID_CHARS_MAX, REQUEST_ID_PREFIX_MIN, REQUEST_LIST_DAYS_DEFAULT } from "./limits.js";

const DAY_MS = 24 * 60 * 60 * 1000;
/** `ok` was charged, `failed` was not answered as asked; the others are its two halves. */
export const REQUEST_OUTCOMES = ["ok", "failed", "client_error", "server_error"] as const;
export type RequestOutcome = (typeof REQUEST_OUTCOMES)[number];

const some = <Item extends z.ZodType>(item: Item) => z.array(item).min(1).max(REQUEST_FILTER_VALUES_MAX).nullish();

/** Unknown ids, and those of other accounts, match nothing. */
export const requestFilterInput = z.strictObject({
  /** A request must match one of these, or of `statuses`. */
  outcomes: some(z.enum(REQUEST_OUTCOMES)),
  /** Exact statuses. Charged generations have 200. */
  statuses: some(z.int("must be a status from 200 to 599").min(200).max(599)),
  codes: some(z.enum(ERROR_CODES)),
  apiKeyIds: some(storableText.max(512)),
  /** Canonical ids of models, or names that were asked for and refused. */
  modelIds: some(storableText.max(512)),
  /** A request's or a generation's id, or its beginning. */
  requestId: nonBlankText.trim().max(REQUEST_ID_CHARS_MAX).nullish(),
  /** Inclusive. */
  from: z.date().nullish(),
  /** Exclusive. */
  to: z.date().nullish(),
});
export type RequestFilter = z.input<typeof requestFilterInput>;

/** SQL conditions of both tables; null: none of its rows match. The failures' row is `f`, the usage's `u`. */
export interface RequestScope {
  readonly failures: Prisma.Sql | null;
  readonly usage: Prisma.Sql | null;
}

/** Throws BAD_REQUEST, `param` naming the wrong field. `accountId` null: all accounts. */
export function requestScopeOf(accountId: string | null, filter: RequestFilter, now: Date): RequestScope {
  const { outcomes, statuses, codes, apiKeyIds, modelIds, requestId, from, to } = parseInput(requestFilterInput, filter);
  if (from && to && from > to) throw wrongField("from", "must not be later than `to`");
  // A request that is looked for by its id may be of any time.
  const start = from ?? (requestId ? null : new Date((to ?? now).getTime() - REQUEST_LIST_DAYS_DEFAULT * DAY_MS));
  const ids = apiKeyIds?.filter(isUuid);
  const failures = [
    ...(accountId === null ? [] : [Prisma.sql`f.account_id = ${accountId}::uuid`]),
    ...(outcomes || statuses ? [failedAs(outcomes ?? [], statuses ?? [])] : []),
    ...(codes ? [Prisma.sql`f.code = ANY (${[...codes]}::text[])`] : []),
    ...(ids ? [Prisma.sql`f.api_key_id = ANY (${ids}::uuid[])`] : []),
    ...(modelIds ? [Prisma.sql`f.model = ANY (${[...modelIds]}::text[])`] : []),
    ...(requestId ? [failureIdIs(requestId)] : []),
    ...timesOf(Prisma.sql`f.timestamp`, start, to ?? null),
  ];
  const usage = [
    ...(accountId === null ? [] : [Prisma.sql`u.account_id = ${accountId}::uuid`]),
    ...(ids ? [Prisma.sql`u.api_key_id = ANY (${ids}::uuid[])`] : []),
    ...(modelIds ? [Prisma.sql`u.model = ANY (${[...modelIds]}::text[])`] : []),
    ...(requestId ? [uuidStartsWith(Prisma.sql`u.id`, requestId)] : []),
    ...timesOf(Prisma.sql`u.timestamp`, start, to ?? null),
  ];
  const hasCharged = !codes && (!(outcomes || statuses) || outcomes?.includes("ok") || statuses?.includes(200));
  const hasFailed = !(outcomes || statuses) || outcomes?.some((outcome) => outcome !== "ok") || statuses?.some((status) => status >= 400);
  return { failures: hasFailed ? all(failures) : null, usage: hasCharged ? all(usage) : null };
}

function all(conditions: readonly Prisma.Sql[]): Prisma.Sql {
  return conditions.length === 0 ? Prisma.sql`true` : Prisma.join([...conditions], " AND ");
}

function failedAs(outcomes: readonly RequestOutcome[], statuses: readonly number[]): Prisma.Sql {
  if (outcomes.includes("failed")) return Prisma.sql`true`;
  return Prisma.join(
    [
      Prisma.sql`f.status = ANY (${[...statuses]}::integer[])`,
      ...(outcomes.includes("client_error") ? [Prisma.sql`f.status < 500`] : []),
      ...(outcomes.includes("server_error") ? [Prisma.sql`f.status >= 500`] : []),
    ],
    " OR ",
    "(",
    ")",
  );
}

function failureIdIs(text: string): Prisma.Sql {
  const beginning = `${escapeLike(text)}%`;
  const isRequest = text.length < REQUEST_ID_PREFIX_MIN ? Prisma.sql`f.request_id = ${text}` : Prisma.sql`f.request_id LIKE ${beginning}`;
  return Prisma.sql`(${isRequest} OR ${uuidStartsWith(Prisma.sql`f.generation_id`, text)} OR ${uuidStartsWith(Prisma.sql`f.id`, text)})`;
}

const HIGHEST = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** A range of an index instead of a comparison of texts. */
function uuidStartsWith(column: Prisma.Sql, text: string): Prisma.Sql {
  const start = text.toLowerCase();
  const [low, high] = [start + LOWEST_UUID.slice(start.length), start + HIGHEST.slice(start.length)];
  const isBeginning = start.length >= REQUEST_ID_PREFIX_MIN && UUID_TEXT.test(low) && UUID_TEXT.test(high);
  return isBeginning ? Prisma.sql`${column} BETWEEN ${low}::uuid AND ${high}::uuid` : Prisma.sql`false`;
}

const UUID_TEXT = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function timesOf(column: Prisma.Sql, from: Date | null, to: Date | null): Prisma.Sql[] {
  return [...(from ? [Prisma.sql`${column} >= ${from}`] : []), ...(to ? [Prisma.sql`${column} < ${to}`] : [])];
}
