/** Deliveries of several endpoints, page by page. */
import { groupBy } from "../../lib/collections.js";
import { COUNT_TAKE, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import type { Database } from "../../store/database.js";
import { Prisma } from "../../store/generated/prisma/client.js";
import type { WebhookDeliveryModel } from "../../store/generated/prisma/models.js";

const IDENTITY = { id: true, createdAt: true } as const;

export type SelectedDelivery = Pick<WebhookDeliveryModel, keyof typeof IDENTITY>;

/** Reads a page per endpoint of the account, newest first. */
export async function readDeliveriesOf(
  database: Database,
  accountId: string,
  endpointIds: readonly string[],
  page: PageRequest,
  select: Prisma.WebhookDeliverySelect,
): Promise<ReadonlyMap<string, Page<SelectedDelivery>>> {
  const { first, after, before, isFromEnd = false } = page;
  const order = isFromEnd ? ("asc" as const) : ("desc" as const);
  const direction = Prisma.raw(order);
  const older = after ? Prisma.sql`AND (d.created_at, d.id) < (${after.timestamp}, ${after.id}::uuid)` : Prisma.empty;
  const newer = before ? Prisma.sql`AND (d.created_at, d.id) > (${before.timestamp}, ${before.id}::uuid)` : Prisma.empty;
  const found = await database.prisma.$queryRaw<{ endpoint_id: string; id: string | null }[]>`
    SELECT e.id::text AS endpoint_id, delivery.id::text FROM webhook_endpoint e LEFT JOIN LATERAL (
      SELECT d.id FROM webhook_delivery d WHERE d.endpoint_id = e.id ${older} ${newer}
      ORDER BY d.created_at ${direction}, d.id ${direction} LIMIT ${first + 1}) delivery ON true
    WHERE e.account_id = ${accountId}::uuid AND e.id = ANY (${[...endpointIds]}::uuid[])`;
  const rows = await database.prisma.webhookDelivery.findMany({
    where: { id: { in: found.flatMap(({ id }) => id ?? []) } },
    orderBy: [{ createdAt: order }, { id: order }],
    select: { ...select, ...IDENTITY, endpointId: true },
  });
  const byEndpoint = groupBy(rows, ({ endpointId }) => endpointId);
  const owned = [...new Set(found.map(({ endpoint_id: id }) => id))];
  let counts: Promise<ReadonlyMap<string, number>> | undefined;
  const countOf = async (id: string) => {
    counts ??= countDeliveriesOf(database, owned);
    return (await counts).get(id) ?? 0;
  };
  return new Map(owned.map((id) => [id, toPage(byEndpoint.get(id) ?? [], page, () => countOf(id))]));
}

/** Counts deliveries per endpoint, up to one more than lists are counted to. */
async function countDeliveriesOf(database: Database, endpointIds: readonly string[]): Promise<ReadonlyMap<string, number>> {
  const counted = await database.prisma.$queryRaw<{ id: string; count: number }[]>`
    SELECT e.id::text, count(*)::integer FROM unnest(${[...endpointIds]}::uuid[]) AS e(id)
    CROSS JOIN LATERAL (SELECT FROM webhook_delivery d WHERE d.endpoint_id = e.id LIMIT ${COUNT_TAKE}) counted
    GROUP BY e.id`;
  return new Map(counted.map(({ id, count }) => [id, count]));
}
