/**
 * The device flow (docs/spec/authorization.md#device-flow; RFC 8628): a device without a browser gets a key that a person pays for.
 *
 * 1. `create`: the device asks for a device code, which it keeps, and a user code, which it shows.
 * 2. `find`: a signed-in person types the user code and sees who asks, from where and for what. Wrong codes are counted.
 * 3. `approve` or `deny`: that person decides, once, and may narrow what was asked for.
 * 4. `redeem`: the device, which has been asking all along, gets its key, once.
 *
 * The user code is no secret, so it says little: it is good for half an hour, to those who are signed in, until somebody decided.
 */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError, conflict, notFound } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import type { DeviceAuthorizationModel } from "../../store/generated/prisma/models.js";
import { admitAnybody, requireKeyManager, requireSession } from "../access/permissions.js";
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
  toAskedTerms,
  toStoredTerms,
} from "../api-keys/grant-terms.js";
import type { Catalog } from "../catalog/catalog.js";
import type { App, Apps } from "./apps.js";
import { type DeviceCodes, formatUserCode, isUserCode, parseUserCode, type UserCodeGuesses } from "./device-codes.js";
import { type DeviceToken, type DeviceTokenAnswer, type Redemption, refuse } from "./device-redemption.js";
import { DEVICE_FIELD_CHARS_MAX } from "./limits.js";
import { OAuthError } from "./oauth-error.js";

const deviceField = z.string().max(DEVICE_FIELD_CHARS_MAX);

/** RFC 8628 3.1. An empty field is one that is not there (RFC 6749 3.2). */
export const createDeviceAuthorizationInput = z.object({
  /** An app key. */
  clientId: deviceField.nullish(),
  /** Permissions with spaces or commas between them; `account:profile` is `profile`. */
  scope: deviceField.nullish(),
});
export type CreateDeviceAuthorizationInput = z.output<typeof createDeviceAuthorizationInput>;

export const redeemDeviceCodeInput = z.object({
  deviceCode: deviceField.min(1),
  clientId: deviceField.nullish(),
});
export type RedeemDeviceCodeInput = z.output<typeof redeemDeviceCodeInput>;

export const userCodeText = deviceField;
export const denyDeviceAuthorizationInput = z.strictObject({ userCode: userCodeText });
export const approveDeviceAuthorizationInput = grantChoice.extend({ userCode: userCodeText });
export type ApproveDeviceAuthorizationInput = z.output<typeof approveDeviceAuthorizationInput>;

export type DeviceStatus = "pending" | "approved" | "denied" | "used" | "expired";

/** What the device needs to know; the device code is in this answer and nowhere else. */
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

/** What a person is shown of a device that asks. */
export interface DeviceAuthorization {
  /** The user code, by which alone it is known. */
  readonly id: string;
  /** XXXX-XXXX. */
  readonly userCode: string;
  readonly status: DeviceStatus;
  /** Null: the app has not said who it is. */
  readonly app: App | null;
  readonly asked: GrantTerms;
  /** Nanocredits: the most that whoever looks can grant now. 0: their account has none. */
  readonly creditBudgetMax: bigint;
  /** What was approved, to whoever approved it; else null. */
  readonly granted: GrantTerms | null;
  /** Where the device asked from. */
  readonly clientAddress: string;
  readonly createdAt: Date;
  /** Since it asked, in seconds. */
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
  readonly catalog: Catalog;
  readonly events: Events;
  readonly clock: Clock;
  /** Where the device page is. */
  readonly verificationUri: () => string;
}

/** How a device that nobody vouches for is called among the keys. */
const UNNAMED = "Device";
const INVALID_CLIENT = "client_id is not an app key that is good: a publishable key, `pk_...`, that is neither expired nor revoked.";
/** Timers may be a moment early. */
const EXPIRY_MARGIN_MS = 20;
const TERMINAL: ReadonlySet<DeviceStatus> = new Set(["denied", "used", "expired"]);

export class DeviceAuthorizations {
  constructor(private readonly deps: DeviceAuthorizationsDependencies) {}

  /** Step 1; open to all. Throws OAuthError (`invalid_client`, `invalid_scope`) and RATE_LIMITED. */
  async create(ctx: RequestContext, { clientId, scope }: CreateDeviceAuthorizationInput): Promise<NewDevice> {
    admitAnybody(ctx);
    const { apps, codes, verificationUri } = this.deps;
    const app = clientId ? await apps.findByKey(clientId) : null;
    if (clientId && !app) throw new OAuthError("invalid_client", INVALID_CLIENT, "client_id");
    const { row, deviceCode } = await codes.create({
      clientAddress: ctx.clientAddress,
      appKeyId: app?.id ?? null,
      scope: parseScope(scope ?? ""),
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

  /** Step 4; open to all, because whoever has the device code is the device. Throws OAuthError for every other answer than the key. */
  async redeem(ctx: RequestContext, input: RedeemDeviceCodeInput): Promise<DeviceToken> {
    const answer = await this.poll(ctx, input);
    if (answer.kind === "refusal") throw new OAuthError(answer.error, answer.description);
    return answer;
  }

  /** As `redeem`, for those who take a refusal for an answer. */
  async poll(ctx: RequestContext, { deviceCode, clientId }: RedeemDeviceCodeInput): Promise<DeviceTokenAnswer> {
    admitAnybody(ctx);
    const { apps, codes, events, redemption } = this.deps;
    const client = clientId ? await apps.findByKey(clientId) : null;
    if (clientId && !client) return refuse("invalid_client", INVALID_CLIENT);
    const row = await codes.findByDeviceCode(deviceCode);
    if (!row || (client && client.id !== row.appKeyId)) return refuse("invalid_grant", "There is no such device code.");
    const answer = await redemption.poll(row, async () =>
      row.appKeyId ? ((await apps.find({ id: row.appKeyId }))?.name ?? null) : UNNAMED,
    );
    if (answer.kind === "token") events.publish("device-authorization-changed", { deviceAuthorizationId: row.id });
    return answer;
  }

  /** Step 2. Throws BAD_REQUEST for what can be no code, NOT_FOUND for a wrong one, RATE_LIMITED after too many of those. */
  async find(ctx: RequestContext, typed: string): Promise<DeviceAuthorization> {
    const { accountId } = requireSession(ctx);
    return this.toView(await this.look(ctx, accountId, typed), accountId);
  }

  /** As `find`, each by its user code as it is shown. Wrong ones are counted, and are not in the answer. */
  async getMany(ctx: RequestContext, userCodes: readonly string[]): Promise<DeviceAuthorization[]> {
    const { accountId } = requireSession(ctx);
    const found: DeviceAuthorization[] = [];
    // One after the other: whoever guesses is refused at the first that is one too many.
    for (const userCode of userCodes.filter(isUserCode)) {
      const row = await this.seek(ctx, accountId, userCode);
      if (row) found.push(await this.toView(row, accountId));
    }
    return found;
  }

  /**
   * Step 3. As `find`; also BAD_REQUEST for more than was asked for or than the account has, INSUFFICIENT_BALANCE when it has nothing,
   * CONFLICT when it has decided already.
   */
  async approve(ctx: RequestContext, { userCode, ...choice }: ApproveDeviceAuthorizationInput): Promise<DeviceAuthorization> {
    const caller = requireSession(ctx);
    const { accountId } = caller;
    const row = await this.look(ctx, accountId, userCode);
    const balance = await this.deps.accounts.balanceOf(accountId);
    const terms = narrowTerms((name) => this.deps.catalog.known(caller, name, "models"), this.askedTerms(row), choice, balance);
    return this.decide(row, { status: "approved", accountId, grant: { ...toStoredTerms(terms) } });
  }

  /** Step 3; as `approve`. */
  async deny(ctx: RequestContext, { userCode }: { readonly userCode: string }): Promise<DeviceAuthorization> {
    const { accountId } = requireSession(ctx);
    return this.decide(await this.look(ctx, accountId, userCode), { status: "denied", accountId });
  }

  /**
   * Each change until nothing can change any more; the first is there at once when there was one before. For a session or a key
   * that manages keys, and a wrong code is counted as in `find`: whoever watches learns no more than whoever looks.
   */
  async *watch(ctx: RequestContext, typed: string): AsyncGenerator<DeviceAuthorization> {
    const { accountId } = requireKeyManager(ctx);
    const { codes, events, clock } = this.deps;
    const { id, userCode, expiresAt } = await this.look(ctx, accountId, typed);
    // Only how it stands now is of interest, so of many changes one look is enough.
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
      let told: DeviceStatus = "pending";
      while (!TERMINAL.has(told) && (await changes.next())) {
        const row = await codes.findByUserCode(userCode);
        if (row?.id !== id) return;
        if (this.statusOf(row) === told) continue;
        const view = await this.toView(row, accountId);
        told = view.status;
        yield view;
      }
    } finally {
      changes.close();
    }
  }

  /** Forgets those that expired a while ago; resolves with how many there were. */
  sweep(): Promise<number> {
    return this.deps.codes.sweep();
  }

  private async look(ctx: RequestContext, accountId: string, typed: string): Promise<DeviceAuthorizationModel> {
    const row = await this.seek(ctx, accountId, typed);
    if (!row)
      throw new AppError("NOT_FOUND", "No device shows this code, or it is no longer good. Look at the device again.", {
        param: "userCode",
      });
    return row;
  }

  /** Codes that somebody else decided on, that have expired or whose app is gone are as unknown as made up ones. */
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
    if (count === 0) throw conflict("This device has been decided on already.");
    events.publish("device-authorization-changed", { deviceAuthorizationId: id });
    const row = await codes.findByUserCode(userCode);
    if (!row) throw notFound("device authorization");
    return this.toView(row, decision.accountId);
  }

  private askedTerms({ scope }: DeviceAuthorizationModel): GrantTerms {
    return toAskedTerms((name) => this.deps.catalog.known({ kind: "anonymous" }, name, "models"), {
      permissions: scope as GrantablePermission[],
    });
  }

  private statusOf({ status, expiresAt }: DeviceAuthorizationModel): DeviceStatus {
    const isOpen = status === "pending" || status === "approved";
    return isOpen && expiresAt <= this.deps.clock.now() ? "expired" : status;
  }

  private async toView(row: DeviceAuthorizationModel, accountId: string): Promise<DeviceAuthorization> {
    const isOwn = row.accountId === accountId;
    const asked = this.askedTerms(row);
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
