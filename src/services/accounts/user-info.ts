/** Who stands behind a key, in the words of OpenID Connect Core 5.1 (docs/spec/authorization.md#user-info): for apps that were granted one. */
import type { RequestContext } from "../../context.js";
import type { Database } from "../../store/database.js";
import { requireAccount } from "../access/permissions.js";

export interface UserInfoClaims {
  /** The account's id, the same for every app. */
  readonly sub: string;
  /** The handle. */
  readonly preferredUsername: string;
  /** The address of an image. */
  readonly picture: string | null;
  /** Null for a key without the permission `profile`. */
  readonly profile: { readonly name: string | null; readonly email: string | null; readonly isEmailVerified: boolean } | null;
}

export class UserInfo {
  constructor(private readonly database: Database) {}

  /** Any key, publishable ones included, or a session. */
  async get(ctx: RequestContext): Promise<UserInfoClaims> {
    const caller = requireAccount(ctx);
    const account = await this.database.prisma.account.findUniqueOrThrow({
      where: { id: caller.accountId },
      select: { id: true, handle: true, image: true, name: true, email: true, isEmailVerified: true },
    });
    const { id: sub, handle: preferredUsername, image: picture, ...profile } = account;
    const isShown = caller.kind === "session" || caller.permissions.has("profile");
    return { sub, preferredUsername, picture, profile: isShown ? profile : null };
  }
}
