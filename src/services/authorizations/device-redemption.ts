/**
 * Answers a device that polls for its key (RFC 8628 3.4, 3.5). The key is made when it is fetched, not on approval, so that its text is not
 * stored. The same transaction ends the device code, so that one of many polls gets the key.
 */
import { AppError } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import type { Database } from "../../store/database.js";
import type { DeviceAuthorizationModel } from "../../store/generated/prisma/models.js";
import type { ApiKeys } from "../api-keys/api-keys.js";
import { fromStoredTerms, type GrantablePermission, type StoredTerms } from "../api-keys/grant-terms.js";
import { DEVICE_POLL_TOLERANCE_MS, DEVICE_SLOW_DOWN_SECONDS } from "./limits.js";

export type DeviceTokenError =
  | "authorization_pending"
  | "slow_down"
  | "access_denied"
  | "expired_token"
  | "invalid_grant"
  | "invalid_client";

export interface DeviceToken {
  readonly kind: "token";
  /** The key's text, shown only here. */
  readonly accessToken: string;
  readonly scope: readonly GrantablePermission[];
  /** Seconds. */
  readonly expiresIn: number;
}

export interface DeviceTokenRefusal {
  readonly kind: "refusal";
  readonly error: DeviceTokenError;
  readonly description: string;
  /** Seconds to wait before the next poll; null: the answer is final. */
  readonly interval: number | null;
}

export type DeviceTokenAnswer = DeviceToken | DeviceTokenRefusal;

export class Redemption {
  constructor(
    private readonly database: Database,
    private readonly apiKeys: Pick<ApiKeys, "mintGranted" | "announceGranted">,
    private readonly clock: Clock,
  ) {}

  /** The key is for `resource`. `nameOf` returns the name for the key; null: the app is gone. */
  async poll(row: DeviceAuthorizationModel, resource: string | null, nameOf: () => Promise<string | null>): Promise<DeviceTokenAnswer> {
    if (row.status === "used") return refuse("invalid_grant", "The device code has been used.");
    if (row.status === "denied") return refuse("access_denied", "The user denied access.");
    if (row.expiresAt <= this.clock.now()) return refuse("expired_token", "The device code has expired. Request a new one.");
    if (row.status === "pending") return this.pace(row);
    const name = await nameOf();
    if (name === null) return refuse("invalid_client", "The app key is no longer valid.");
    return this.mint(row, resource, name);
  }

  /** Lengthens this and all later waits after a poll that came too soon, which includes a concurrent one. */
  private async pace(row: DeviceAuthorizationModel): Promise<DeviceTokenRefusal> {
    const now = this.clock.now();
    const due = row.lastPolledAt === null ? 0 : row.lastPolledAt.getTime() + row.intervalSeconds * 1000 - DEVICE_POLL_TOLERANCE_MS;
    const { deviceAuthorization } = this.database.prisma;
    if (now.getTime() >= due) {
      const { count } = await deviceAuthorization.updateMany({
        where: { id: row.id, lastPolledAt: row.lastPolledAt },
        data: { lastPolledAt: now },
      });
      if (count === 1) return refuse("authorization_pending", "The user has not approved or denied the request yet.", row.intervalSeconds);
    }
    const { intervalSeconds } = await deviceAuthorization.update({
      where: { id: row.id },
      data: { lastPolledAt: now, intervalSeconds: { increment: DEVICE_SLOW_DOWN_SECONDS } },
      select: { intervalSeconds: true },
    });
    return refuse("slow_down", `Wait ${intervalSeconds} seconds before each poll from now on.`, intervalSeconds);
  }

  private async mint(row: DeviceAuthorizationModel, resource: string | null, name: string): Promise<DeviceTokenAnswer> {
    const { accountId, appKeyId } = row;
    if (accountId === null) throw new Error(`Device authorization ${row.id} was approved by nobody.`);
    const terms = fromStoredTerms(row.grant as unknown as StoredTerms);
    try {
      let apiKeyId: string | null = null;
      const answer = await this.database.prisma.$transaction(async (transaction): Promise<DeviceTokenAnswer> => {
        const { count } = await transaction.deviceAuthorization.updateMany({
          where: { id: row.id, status: "approved" },
          data: { status: "used" },
        });
        if (count === 0) return refuse("invalid_grant", "The device code has been used.");
        const grant = { accountId, origin: "device_flow", appKeyId, name, terms, resource } as const;
        const { apiKey, key } = await this.apiKeys.mintGranted(grant, transaction);
        apiKeyId = apiKey.id;
        await transaction.deviceAuthorization.update({ where: { id: row.id }, data: { apiKeyId } });
        const lifeMs = (apiKey.expiresAt?.getTime() ?? 0) - this.clock.now().getTime();
        return { kind: "token", accessToken: key, scope: terms.permissions, expiresIn: Math.max(1, Math.round(lifeMs / 1000)) };
      });
      if (apiKeyId !== null) this.apiKeys.announceGranted(accountId, apiKeyId);
      return answer;
    } catch (error) {
      // The account has its maximum of keys, or was suspended since the approval.
      const isFinal = error instanceof AppError && (error.code === "CONFLICT" || error.code === "ACCOUNT_SUSPENDED");
      if (isFinal) return refuse("access_denied", error.message);
      throw error;
    }
  }
}

export function refuse(error: DeviceTokenError, description: string, interval: number | null = null): DeviceTokenRefusal {
  return { kind: "refusal", error, description, interval };
}
