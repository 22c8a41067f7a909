/**
 * Webhook endpoints of an account and the log of their deliveries. Callers that may manage keys manage them. Messages follow Standard
 * Webhooks; `docs/webhooks.md` is for receivers.
 */

import { z } from "zod";
import type { RequestContext } from "../../context.js";
import { conflict, notFound, rateLimited } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId, isUuid } from "../../lib/ids.js";
import { COUNT_TAKE, newestFirst, type Page, type PageRequest, toPage } from "../../lib/pagination.js";
import { type Database, lockName } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import type { WebhookDeliveryModel, WebhookEndpointModel } from "../../store/generated/prisma/models.js";
import { requireKeyManager } from "../access/permissions.js";
import { distinct, storableText } from "../requests/input.js";
import { readDeliveriesOf, type SelectedDelivery } from "./deliveries.js";
import { WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX, WEBHOOK_TEST_INTERVAL_MS } from "./limits.js";
import type { WebhookListeners } from "./listeners.js";
import { TEST_EVENT, testMessage, WEBHOOK_EVENTS, type WebhookBody, type WebhookEvent } from "./messages.js";
import type { DisabledReason, WebhookQueue } from "./queue.js";
import type { EndpointSecrets, WebhookSender } from "./sender.js";

// Input of webhook operations, one schema each for both faces.

/** The outbound guard checks the address, its length included. */
const url = storableText.min(1).meta({ pattern: "^https?://[^/?#\\s\\u0000][^\\s\\u0000]*$" });
const events = distinct(z.array(z.enum(WEBHOOK_EVENTS)).min(1).max(WEBHOOK_EVENTS.length));

export const createWebhookEndpointInput = z.strictObject({ url, events });
type CreateWebhookEndpointInput = z.output<typeof createWebhookEndpointInput>;

export const updateWebhookEndpointInput = z.strictObject({ url, events, isEnabled: z.boolean() }).partial();
type UpdateWebhookEndpointInput = z.output<typeof updateWebhookEndpointInput>;

export interface WebhookEndpointRow {
  readonly id: string;
  readonly url: string;
  readonly events: readonly WebhookEvent[];
  readonly isEnabled: boolean;
  /** Why the gateway disabled it; null when it did not. */
  readonly disabledReason: DisabledReason | null;
  /** Time of the first failure since the last success; null when the last attempt succeeded. */
  readonly failingSince: Date | null;
  readonly createdAt: Date;
}

export interface WebhookDeliveryRow {
  /** The message's id: `webhook-id`. */
  readonly id: string;
  readonly event: string;
  readonly status: "pending" | "delivered" | "failed";
  /** Attempts since it was queued or redelivered. */
  readonly attempts: number;
  /** Null when there is no further attempt. */
  readonly nextAttemptAt: Date | null;
  /** Status of the last answer; null without one. */
  readonly lastStatus: number | null;
  readonly lastError: string | null;
  readonly message: WebhookBody;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
}

export interface WebhooksDependencies {
  readonly database: Database;
  readonly queue: WebhookQueue;
  readonly sender: Pick<WebhookSender, "check">;
  readonly secrets: EndpointSecrets;
  readonly listeners: WebhookListeners;
  readonly events: Events;
  readonly clock: Clock;
  /** Called when a delivery is due at once. */
  readonly onQueued: () => void;
}

const IDENTITY = { id: true, createdAt: true } as const;

export type SelectedEndpoint = Pick<WebhookEndpointModel, keyof typeof IDENTITY>;

export class Webhooks {
  constructor(private readonly deps: WebhooksDependencies) {}

  /** Oldest first. */
  async listEndpoints(ctx: RequestContext): Promise<readonly WebhookEndpointRow[]> {
    const { accountId } = requireKeyManager(ctx);
    const omit = { secret: true, previousSecret: true } as const;
    const rows = await this.endpoints.findMany({ where: { accountId }, orderBy: [{ createdAt: "asc" }, { id: "asc" }], omit });
    return rows.map(toEndpointRow);
  }

  /** Lists endpoints, newest first. */
  async listSelected(ctx: RequestContext, page: PageRequest, select: Prisma.WebhookEndpointSelect): Promise<Page<SelectedEndpoint>> {
    const { accountId } = requireKeyManager(ctx);
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.endpoints.findMany({ where: { accountId, ...older }, select: { ...select, ...IDENTITY }, ...query });
    return toPage(rows, page, () => this.endpoints.count({ where: { accountId }, take: COUNT_TAKE }));
  }

  async getMany(ctx: RequestContext, ids: readonly string[], select: Prisma.WebhookEndpointSelect): Promise<SelectedEndpoint[]> {
    const { accountId } = requireKeyManager(ctx);
    return this.endpoints.findMany({ where: { id: { in: ids.filter(isUuid) }, accountId }, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with NOT_FOUND. */
  async get(ctx: RequestContext, id: string, select: Prisma.WebhookEndpointSelect): Promise<SelectedEndpoint> {
    const [endpoint] = await this.getMany(ctx, [id], select);
    if (!endpoint) throw notFound("webhook endpoint");
    return endpoint;
  }

  /** Lists deliveries per endpoint, newest first: two statements for any number of endpoints. */
  async listDeliveriesOf(
    ctx: RequestContext,
    endpointIds: readonly string[],
    page: PageRequest,
    select: Prisma.WebhookDeliverySelect,
  ): Promise<ReadonlyMap<string, Page<SelectedDelivery>>> {
    const { accountId } = requireKeyManager(ctx);
    return readDeliveriesOf(this.deps.database, accountId, endpointIds.filter(isUuid), page, select);
  }

  async getDeliveries(ctx: RequestContext, ids: readonly string[], select: Prisma.WebhookDeliverySelect): Promise<SelectedDelivery[]> {
    const { accountId } = requireKeyManager(ctx);
    const where = { id: { in: ids.filter(isUuid) }, endpoint: { accountId } };
    return this.deliveries.findMany({ where, select: { ...select, ...IDENTITY } });
  }

  /** Rejects with NOT_FOUND. */
  async getDelivery(ctx: RequestContext, id: string, select: Prisma.WebhookDeliverySelect): Promise<SelectedDelivery> {
    const [delivery] = await this.getDeliveries(ctx, [id], select);
    if (!delivery) throw notFound("webhook delivery");
    return delivery;
  }

  /** Only this answer and that of a rotation hold the secret. */
  async createEndpoint(ctx: RequestContext, input: CreateWebhookEndpointInput): Promise<{ endpoint: WebhookEndpointRow; secret: string }> {
    const { accountId } = requireKeyManager(ctx);
    const url = await this.deps.sender.check(input.url);
    const id = createId();
    const { text, sealed } = this.deps.secrets.create(id);
    const now = this.deps.clock.now();
    const row = await this.deps.database.prisma.$transaction(async (transaction) => {
      // Two concurrent requests must not both create the last one allowed.
      await lockName(transaction, `webhook endpoints of ${accountId}`);
      const there = await transaction.webhookEndpoint.count({ where: { accountId } });
      if (there >= WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX) {
        throw conflict(`An account has at most ${WEBHOOK_ENDPOINTS_PER_ACCOUNT_MAX} webhook endpoints.`);
      }
      return transaction.webhookEndpoint.create({
        data: { id, accountId, url, secret: sealed, events: input.events, listensSince: now, createdAt: now },
      });
    });
    await this.notify(accountId);
    return { endpoint: toEndpointRow(row), secret: text };
  }

  /** An endpoint that is enabled again gets no events of the time before. */
  async updateEndpoint(ctx: RequestContext, id: string, input: UpdateWebhookEndpointInput): Promise<WebhookEndpointRow> {
    const { accountId } = requireKeyManager(ctx);
    const endpoint = await this.findOwned(accountId, id);
    const { url, events, isEnabled } = input;
    const startsListening = events !== undefined || (isEnabled === true && !endpoint.isEnabled);
    const row = await this.endpoints.update({
      where: { id, accountId },
      data: {
        ...(url !== undefined && { url: await this.deps.sender.check(url), failingSince: null }),
        ...(events !== undefined && { events }),
        ...(isEnabled !== undefined && { isEnabled, disabledReason: null, failingSince: null }),
        ...(startsListening && { listensSince: this.deps.clock.now() }),
      },
    });
    if (isEnabled === false) await this.deps.queue.failPending(id);
    await this.notify(accountId);
    return toEndpointRow(row);
  }

  /** Deletes an endpoint with its log and its waiting deliveries. */
  async deleteEndpoint(ctx: RequestContext, id: string): Promise<string> {
    const { accountId } = requireKeyManager(ctx);
    await this.findOwned(accountId, id);
    await this.endpoints.deleteMany({ where: { id, accountId } });
    await this.notify(accountId);
    return id;
  }

  async rotateSecret(ctx: RequestContext, id: string): Promise<{ endpoint: WebhookEndpointRow; secret: string }> {
    const { accountId } = requireKeyManager(ctx);
    const { secret } = await this.findOwned(accountId, id);
    const { text, sealed } = this.deps.secrets.create(id);
    const previous = this.deps.secrets.retire(id, secret);
    // Of two concurrent rotations one fails here, so that no secret is lost unseen.
    const { count } = await this.endpoints.updateMany({
      where: { id, accountId, secret },
      data: { secret: sealed, previousSecret: previous.sealed, previousSecretExpiresAt: previous.expiresAt },
    });
    if (count === 0) throw conflict("The secret has just been rotated by another request.");
    return { endpoint: toEndpointRow(await this.findOwned(accountId, id)), secret: text };
  }

  /** Queues an empty message as a test. */
  async sendTest(ctx: RequestContext, id: string): Promise<WebhookDeliveryRow> {
    const { accountId } = requireKeyManager(ctx);
    const endpoint = await this.findOwned(accountId, id);
    if (!endpoint.isEnabled) throw conflict("This endpoint is disabled: enable it first.");
    const now = this.deps.clock.now();
    const recent = { endpointId: id, event: TEST_EVENT, createdAt: { gt: new Date(now.getTime() - WEBHOOK_TEST_INTERVAL_MS) } };
    const key = createId();
    await this.deps.database.prisma.$transaction(async (transaction) => {
      // Two concurrent requests must not both send a test.
      await lockName(transaction, `test events of ${id}`);
      if ((await transaction.webhookDelivery.count({ where: recent })) > 0) {
        throw rateLimited("A test event to this endpoint is already pending.", WEBHOOK_TEST_INTERVAL_MS / 1000);
      }
      await this.deps.queue.add([{ endpointId: id, message: testMessage(key, id, now) }], transaction);
    });
    const row = await this.deliveries.findFirst({ where: { endpointId: id, event: TEST_EVENT, eventKey: key } });
    if (!row) throw notFound("webhook endpoint");
    this.deps.onQueued();
    return toDeliveryRow(row);
  }

  /** Newest first. */
  async listDeliveries(ctx: RequestContext, endpointId: string, page: PageRequest): Promise<Page<WebhookDeliveryRow>> {
    const { accountId } = requireKeyManager(ctx);
    await this.findOwned(accountId, endpointId);
    const { where: older, ...query } = newestFirst(page);
    const rows = await this.deliveries.findMany({ where: { endpointId, ...older }, ...query });
    return toPage(rows.map(toDeliveryRow), page, () => this.deliveries.count({ where: { endpointId }, take: COUNT_TAKE }));
  }

  /** Sends a delivery again at once, with its id and a full set of attempts. */
  async redeliver(ctx: RequestContext, endpointId: string, deliveryId: string): Promise<WebhookDeliveryRow> {
    const { accountId } = requireKeyManager(ctx);
    const endpoint = await this.findOwned(accountId, endpointId);
    if (!endpoint.isEnabled) throw conflict("This endpoint is disabled: enable it first.");
    if (!isUuid(deliveryId)) throw notFound("webhook delivery");
    const now = this.deps.clock.now();
    const { count } = await this.deliveries.updateMany({
      where: { id: deliveryId, endpointId, OR: [{ leasedUntil: null }, { leasedUntil: { lte: now } }] },
      data: { status: "pending", attempts: 0, nextAttemptAt: now, finishedAt: null, leasedUntil: null },
    });
    const row = await this.deliveries.findUnique({ where: { id: deliveryId, endpointId } });
    if (!row) throw notFound("webhook delivery");
    if (count === 0) throw conflict("This message is being sent at this moment.", 1);
    this.deps.onQueued();
    return toDeliveryRow(row);
  }

  /** Publishes a change of listeners; this process has applied it on return, the others a moment later. */
  private async notify(accountId: string): Promise<void> {
    this.deps.events.publish("webhooks-changed", { accountId });
    await this.deps.listeners.settled();
  }

  private get endpoints() {
    return this.deps.database.prisma.webhookEndpoint;
  }

  private get deliveries() {
    return this.deps.database.prisma.webhookDelivery;
  }

  private async findOwned(accountId: string, id: string): Promise<WebhookEndpointModel> {
    const row = isUuid(id) ? await this.endpoints.findUnique({ where: { id, accountId } }) : null;
    if (!row) throw notFound("webhook endpoint");
    return row;
  }
}

function toEndpointRow(row: Omit<WebhookEndpointModel, "secret" | "previousSecret">): WebhookEndpointRow {
  const { id, url, events, isEnabled, disabledReason, failingSince, createdAt } = row;
  return {
    ...{ id, url, isEnabled, failingSince, createdAt },
    events: events as WebhookEvent[],
    disabledReason: disabledReason as DisabledReason | null,
  };
}

function toDeliveryRow(row: WebhookDeliveryModel): WebhookDeliveryRow {
  const { id, event, status, attempts, nextAttemptAt, lastStatus, lastError, payload, createdAt, finishedAt } = row;
  return {
    ...{ id, event, status, attempts, lastStatus, lastError, createdAt, finishedAt },
    nextAttemptAt: status === "pending" ? nextAttemptAt : null,
    message: toMessage(payload),
  };
}

export function toMessage(payload: WebhookDeliveryModel["payload"]): WebhookBody {
  const { type, timestamp, data } = payload as unknown as WebhookBody;
  return { type, timestamp, data };
}
