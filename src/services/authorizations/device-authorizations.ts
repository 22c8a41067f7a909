/**
 * The device flow (docs/spec/authorization.md#device-flow; RFC 8628): a device without a browser gets a key that a person pays for.
 *
 * 1. `create`: the device gets a device code, which it keeps, and a user code, which it shows.
 * 2. `find`: a signed-in person types the user code and sees the app, the device's address and the request. Wrong codes are counted.
 * 3. `approve` or `deny`: that person decides, once, and may narrow the request.
 * 4. `redeem`: the device, which has been polling, gets its key, once.
 *
 * The user code is no secret, so it reveals little: signed-in people can use it for half an hour, until one of them decides.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError, conflict, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { DeviceAuthorizationModel } from "../../store/generated/prisma/models.js";
import { admitAnybody, requireKeyManager, requireSession } from "../access/permissions.js";
import type { ProtectedResources } from "../access/protected-resources.js";
import type { Accounts } from "../accounts/accounts.js";
import { EventQueue } from "../accounts/live.js";
import {
  fromStoredTerms,
  GRANTABLE_PERMISSIONS,
  type GrantablePermission,
  type GrantTerms,
  grantableBudget,
  grantChoice,
  narrowTerms,
  permissionList,
  type StoredTerms,
  toRequestedTerms,
  toStoredTerms,
} from "../api-keys/grant-terms.js";
import type { Catalog } from "../catalog/catalog.js";
import type { RefusedFunds } from "../credits/refused-funds.js";
import type { App, Apps } from "./apps.js";
import { type DeviceCodes, formatUserCode, isUserCode, parseUserCode, type UserCodeGuesses } from "./device-codes.js";
import { type DeviceToken, type DeviceTokenAnswer, type Redemption, refuse } from "./device-redemption.js";
import { DEVICE_FIELD_CHARS_MAX } from "./limits.js";
import { OAuthError } from "./oauth-error.js";
import { resourceText } from "./request-input.js";

const deviceField = z.string().max(DEVICE_FIELD_CHARS_MAX);

/** RFC 8628 3.1. An empty field counts as absent (RFC 6749 3.2). */
export const createDeviceAuthorizationInput = z.object({
  /** An app key. */
  clientId: deviceField.nullish(),
  /** Permissions separated by spaces or commas; `account:profile` is `profile`. */
  scope: deviceField.nullish(),
});
export type CreateDeviceAuthorizationInput = z.output<typeof createDeviceAuthorizationInput>;

export const redeemDeviceCodeInput = z.object({
  deviceCode: deviceField.min(1),
  clientId: deviceField.nullish(),
  resource: resourceText.nullish(),
});
export type RedeemDeviceCodeInput = z.output<typeof redeemDeviceCodeInput>;

export const userCodeText = deviceField;
export const denyDeviceAuthorizationInput = z.strictObject({ userCode: userCodeText });
export const approveDeviceAuthorizationInput = grantChoice.extend({ userCode: userCodeText });
export type ApproveDeviceAuthorizationInput = z.output<typeof approveDeviceAuthorizationInput>;

export type DeviceStatus = "pending" | "approved" | "denied" | "used" | "expired";

/** The answer to a device, the only one with the device code. */
export interface NewDevice {
  readonly deviceCode: string;
  /** XXXX-XXXX. */
  readonly userCode: string;
  readonly verificationUri: string;
  /** With the user code in it. */
  readonly verificationUriComplete: string;
  /** Seconds. */
  readonly expiresIn: number;
  /** Seconds between two polls. */
  readonly interval: number;
}

export interface DeviceAuthorization {
  /** The user code, its only identifier. */
  readonly id: string;
  /** XXXX-XXXX. */
  readonly userCode: string;
  readonly status: DeviceStatus;
  /** Null: the app did not identify itself. */
  readonly app: App | null;
  readonly asked: GrantTerms;
  /** Nanocredits: the most that the caller can grant now. 0: the account is empty. */
  readonly creditBudgetMax: bigint;
  /** The approved terms, shown to the person who approved; else null. */
  readonly granted: GrantTerms | null;
  /** Address that the device requested from. */
  readonly clientAddress: string;
  readonly createdAt: Date;
  /** Seconds since the request. */
  readonly age: number;
  readonly expiresAt: Date;
  readonly decidedAt: Date | null;
}

export interface DeviceAuthorizationsDependencies {
  readonly database: Database;
  readonly accounts: Pick<Accounts, "balanceOf">;
  readonly codes: DeviceCodes;
  readonly guesses: UserCodeGuesses;
  readonly redemption: Redemption;
  readonly apps: Apps;
  readonly resources: ProtectedResources;
  readonly catalog: Catalog;
  readonly events: Events;
  readonly clock: Clock;
  readonly funds: Pick<RefusedFunds, "topUp" | "topUpUrl">;
  /** Address of the device page. */
  readonly verificationUri: () => string;
}

/** Key name for a device of no identified app. */
const UNNAMED = "Device";
const INVALID_CLIENT = "client_id is not an app key that is good: a publishable key, `pk_...`, that is neither expired nor revoked.";
/** Timers may fire a moment early. */
const EXPIRY_MARGIN_MS = 20;
const TERMINAL: ReadonlySet<DeviceStatus> = new Set(["denied", "used", "expired"]);

export class DeviceAuthorizations {
  constructor(private readonly deps: DeviceAuthorizationsDependencies) {}

  /** Step 1, without credentials. Throws OAuthError (`invalid_client`, `invalid_scope`) and RATE_LIMITED. */
  async create(ctx: RequestContext, { clientId, scope }: CreateDeviceAuthorizationInput): Promise<NewDevice> {
    admitAnybody(ctx);
    const { apps, codes, verificationUri } = this.deps;
    const app = clientId ? await apps.findByKey(clientId) : null;
    if (clientId && !app) throw new OAuthError("invalid_client", INVALID_CLIENT, "client_id");
    const { row, deviceCode } = await codes.create({
      clientAddress: ctx.clientAddress,
      appKeyId: app?.id ?? null,
      scope: parseScope(scope ?? ""),
      marginPercent: app?.marginPercent ?? 0,
    });
    const userCode = formatUserCode(row.userCode);
    return {
      deviceCode,
      userCode,
      verificationUri: verificationUri(),
      verificationUriComplete: `${verificationUri()}?user_code=${userCode}`,
      expiresIn: Math.round((row.expiresAt.getTime() - row.createdAt.getTime()) / 1000),
      interval: row.intervalSeconds,
    };
  }

  /** Step 4: the device code is the credential. Throws OAuthError for every answer but the key. */
  async redeem(ctx: RequestContext, input: RedeemDeviceCodeInput): Promise<DeviceToken> {
    const answer = await this.poll(ctx, input);
    if (answer.kind === "refusal") throw new OAuthError(answer.error, answer.description);
    return answer;
  }

  /** As `redeem`, with refusals as values, but for a resource of another server. */
  async poll(ctx: RequestContext, { deviceCode, clientId, resource: stated }: RedeemDeviceCodeInput): Promise<DeviceTokenAnswer> {
    admitAnybody(ctx);
    const { apps, codes, events, redemption, resources } = this.deps;
    const resource = stated ? resources.read(stated) : null;
    if (stated && resource === null) throw new OAuthError("invalid_target", resources.refusal, "resource");
    const client = clientId ? await apps.findByKey(clientId) : null;
    if (clientId && !client) return refuse("invalid_client", INVALID_CLIENT);
    const row = await codes.findByDeviceCode(deviceCode);
    if (!row || (client && client.id !== row.appKeyId)) return refuse("invalid_grant", "There is no such device code.");
    const nameOf = async () => (row.appKeyId ? ((await apps.find({ id: row.appKeyId }))?.name ?? null) : UNNAMED);
    const answer = await redemption.poll(row, resource, nameOf);
    if (answer.kind === "token") events.publish("device-authorization-changed", { deviceAuthorizationId: row.id });
    return answer;
  }

  /** Step 2. Throws BAD_REQUEST for text that cannot be a code, NOT_FOUND for a wrong code, RATE_LIMITED after too many wrong ones. */
  async find(ctx: RequestContext, typed: string): Promise<DeviceAuthorization> {
    const { accountId } = requireSession(ctx);
    return this.toView(await this.look(ctx, accountId, typed), accountId);
  }

  /** As `find`, by user codes as they are shown. Wrong codes are counted and left out. */
  async getMany(ctx: RequestContext, userCodes: readonly string[]): Promise<DeviceAuthorization[]> {
    const { accountId } = requireSession(ctx);
    const found: DeviceAuthorization[] = [];
    // One after another, so that guesses beyond the limit are not looked up.
    for (const userCode of userCodes.filter(isUserCode)) {
      const row = await this.seek(ctx, accountId, userCode);
      if (row) found.push(await this.toView(row, accountId));
    }
    return found;
  }

  /**
   * Step 3. Rejects as `find`; also BAD_REQUEST for more than was requested or than the balance, INSUFFICIENT_BALANCE for an empty account,
   * CONFLICT when already decided.
   */
  async approve(ctx: RequestContext, { userCode, ...choice }: ApproveDeviceAuthorizationInput): Promise<DeviceAuthorization> {
    const caller = requireSession(ctx);
    const { accountId } = caller;
    const row = await this.look(ctx, accountId, userCode);
    const balance = await this.deps.accounts.balanceOf(accountId);
    const { catalog, funds } = this.deps;
    const terms = narrowTerms((name) => catalog.known(caller, name, "models"), this.requestedTermsOf(row), choice, balance, funds);
    return this.decide(row, { status: "approved", accountId, grant: { ...toStoredTerms(terms) } });
  }

  /** Step 3; as `approve`. */
  async deny(ctx: RequestContext, { userCode }: { readonly userCode: string }): Promise<DeviceAuthorization> {
    const { accountId } = requireSession(ctx);
    return this.decide(await this.look(ctx, accountId, userCode), { status: "denied", accountId });
  }

  /**
   * Yields each change until the authorization is final, starting with the state at the start. For a session or a key that manages keys.
   * Wrong codes are counted as in `find`, so that watching reveals no more than looking.
   */
  async *watch(ctx: RequestContext, typed: string): AsyncGenerator<DeviceAuthorization> {
    const { accountId } = requireKeyManager(ctx);
    const { codes, events, clock } = this.deps;
    const { id, userCode, expiresAt } = await this.look(ctx, accountId, typed);
    // Only the current state matters, so many changes need one look.
    const changes = new EventQueue<true>(1);
    const look = () => changes.push(true);
    changes.onClose(
      events.listen("device-authorization-changed", ({ deviceAuthorizationId }) => {
        if (deviceAuthorizationId === id) look();
      }),
    );
    changes.onClose(events.onGap(look));
    const expiry = setTimeout(look, expiresAt.getTime() - clock.now().getTime() + EXPIRY_MARGIN_MS).unref();
    changes.onClose(() => clearTimeout(expiry));
    changes.closeWith(ctx.signal);
    look();
    try {
      let sent: DeviceStatus = "pending";
      while (!TERMINAL.has(sent) && (await changes.next())) {
        const row = await codes.findByUserCode(userCode);
        if (row?.id !== id) return;
        if (this.statusOf(row) === sent) continue;
        const view = await this.toView(row, accountId);
        sent = view.status;
        yield view;
      }
    } finally {
      changes.close();
    }
  }

  /** Deletes those that expired a while ago; resolves with their number. */
  sweep(): Promise<number> {
    return this.deps.codes.sweep();
  }

  private async look(ctx: RequestContext, accountId: string, typed: string): Promise<DeviceAuthorizationModel> {
    const row = await this.seek(ctx, accountId, typed);
    if (!row)
      throw new AppError("NOT_FOUND", "This code is unknown or has expired. Check the code on your device.", {
        param: "userCode",
      });
    return row;
  }

  /** Treats codes that another person decided on, that have expired, or whose app is gone as unknown. */
  private seek(ctx: RequestContext, accountId: string, typed: string): Promise<DeviceAuthorizationModel | null> {
    const { apps, codes, guesses } = this.deps;
    const userCode = parseUserCode(typed);
    return guesses.count(ctx, accountId, async () => {
      const known = await codes.findByUserCode(userCode);
      if (!known || !this.isShownTo(known, accountId)) return null;
      return known.appKeyId === null || (await apps.find({ id: known.appKeyId })) ? known : null;
    });
  }

  private isShownTo(row: DeviceAuthorizationModel, accountId: string): boolean {
    if (row.accountId !== null) return row.accountId === accountId;
    return row.expiresAt > this.deps.clock.now();
  }

  private async decide(
    { id, userCode }: DeviceAuthorizationModel,
    decision: { readonly status: "approved" | "denied"; readonly accountId: string; readonly grant?: object },
  ): Promise<DeviceAuthorization> {
    const { clock, codes, database, events } = this.deps;
    const decidedAt = clock.now();
    const { count } = await database.prisma.deviceAuthorization.updateMany({
      where: { id, status: "pending", expiresAt: { gt: decidedAt } },
      data: { ...decision, decidedAt },
    });
    if (count === 0) throw conflict("This device request was already approved or denied.");
    events.publish("device-authorization-changed", { deviceAuthorizationId: id });
    const row = await codes.findByUserCode(userCode);
    if (!row) throw notFound("device authorization");
    return this.toView(row, decision.accountId);
  }

  private requestedTermsOf({ scope, marginPercent }: DeviceAuthorizationModel): GrantTerms {
    const requested = { permissions: scope as GrantablePermission[] };
    return toRequestedTerms((name) => this.deps.catalog.known({ kind: "anonymous" }, name, "models"), requested, marginPercent);
  }

  private statusOf({ status, expiresAt }: DeviceAuthorizationModel): DeviceStatus {
    const isOpen = status === "pending" || status === "approved";
    return isOpen && expiresAt <= this.deps.clock.now() ? "expired" : status;
  }

  private async toView(row: DeviceAuthorizationModel, accountId: string): Promise<DeviceAuthorization> {
    const isOwn = row.accountId === accountId;
    const asked = this.requestedTermsOf(row);
    const userCode = formatUserCode(row.userCode);
    return {
      id: userCode,
      userCode,
      status: this.statusOf(row),
      app: row.appKeyId === null ? null : await this.deps.apps.find({ id: row.appKeyId }),
      asked,
      creditBudgetMax: grantableBudget(asked, await this.deps.accounts.balanceOf(accountId)),
      granted: isOwn && row.grant !== null ? fromStoredTerms(row.grant as unknown as StoredTerms) : null,
      clientAddress: row.clientAddress,
      createdAt: row.createdAt,
      age: Math.max(0, Math.floor((this.deps.clock.now().getTime() - row.createdAt.getTime()) / 1000)),
      expiresAt: row.expiresAt,
      decidedAt: row.decidedAt,
    };
  }
}

function parseScope(scope: string): readonly GrantablePermission[] {
  const parsed = permissionList.safeParse(scope.replace(/(?<![^\s,])account:/g, ""));
  if (!parsed.success) throw new OAuthError("invalid_scope", `The scope may hold ${GRANTABLE_PERMISSIONS.join(", ")}.`, "scope");
  return parsed.data;
}
