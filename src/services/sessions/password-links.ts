/**
 * Links by which an account's owner sets a password (docs/spec/sessions.md#password-links). An operator makes one, and passes it on. A link is
 * good once, for 24 hours; a new one replaces it. The database stores an HMAC of its token.
 */
import { createHmac, randomBytes } from "node:crypto";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { type AppError, conflict, notFound, permissionDenied } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { createId } from "../../lib/ids.js";
import type { Database, DatabaseClient } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { admitAnybody, requireOperator } from "../access/permissions.js";
import { recordAct } from "../audit/audit-log.js";
import { PASSWORD_LINK_CHARS_MAX, PASSWORD_LINK_SECONDS } from "./limits.js";
import type { Passwords } from "./passwords.js";
import { announceEnded, deleteSessions } from "./sessions.js";
import { newPasswordInput } from "./sign-in.js";

export const createPasswordLinkInput = z.strictObject({ accountId: z.uuid() });
export type CreatePasswordLinkInput = z.output<typeof createPasswordLinkInput>;

export const passwordLinkToken = z.string().min(1, "is missing: open the whole link").max(PASSWORD_LINK_CHARS_MAX);
export const setPasswordInput = z.strictObject({ token: passwordLinkToken, password: newPasswordInput });
export type SetPasswordInput = z.output<typeof setPasswordInput>;

export interface PasswordLink {
  /** Shown once. */
  readonly url: string;
  readonly expiresAt: Date;
}

export interface PasswordLinkParts {
  readonly database: Database;
  readonly passwords: Passwords;
  readonly events: Events;
  readonly clock: Clock;
  readonly secret: Buffer;
  /** The page's address. */
  readonly pageUrl: () => string;
}

const TOKEN_BYTES = 32;
const CREDENTIAL = "credential";

type Links = Pick<DatabaseClient, "passwordLink">;

export class PasswordLinks {
  constructor(private readonly parts: PasswordLinkParts) {}

  /** Rejects with NOT_FOUND, and with CONFLICT for an account without an e-mail address, which a password needs. */
  async create(ctx: RequestContext, { accountId }: CreatePasswordLinkInput): Promise<PasswordLink> {
    requireOperator(ctx);
    const { database, clock, pageUrl } = this.parts;
    const token = randomBytes(TOKEN_BYTES).toString("base64url");
    const expiresAt = new Date(clock.now().getTime() + PASSWORD_LINK_SECONDS * 1000);
    await database.prisma.$transaction(async (transaction) => {
      const account = await transaction.account.findUnique({ where: { id: accountId, deletion: null }, select: { email: true } });
      if (!account) throw notFound("account");
      if (account.email === null) throw conflict("This account has no e-mail address to sign in with.");
      const link = { hash: this.hash(token), expiresAt, usedAt: null };
      await transaction.passwordLink.upsert({ where: { accountId }, create: { accountId, ...link }, update: link });
      await recordAct(transaction, ctx, { act: "create_password_link", accountId, after: { expiresAt: expiresAt.toISOString() } });
    });
    ctx.log.info({ accountId }, "an operator made a password link");
    return { url: `${pageUrl()}?token=${token}`, expiresAt };
  }

  /** The e-mail address that the link is for. Rejects as `use` does. */
  async show(ctx: RequestContext, token: string): Promise<string> {
    admitAnybody(ctx);
    const { account } = await this.findGood(this.parts.database.prisma, ctx, token);
    return account.email ?? "";
  }

  /**
   * Sets the password, and ends the account's sessions. Rejects with NOT_FOUND for an unknown link, CONFLICT for a used or expired one, and
   * FORBIDDEN for a person who is signed in to another account.
   */
  async use(ctx: RequestContext, { token, password }: SetPasswordInput): Promise<void> {
    admitAnybody(ctx);
    const { database, passwords, events, clock } = this.parts;
    await this.findGood(database.prisma, ctx, token);
    const hash = await passwords.hash(password);
    const { accountId, sessions } = await database.prisma.$transaction(async (transaction) => {
      const { accountId } = await this.findGood(transaction, ctx, token);
      // Of two concurrent uses one finds it unused.
      const { count } = await transaction.passwordLink.updateMany({
        where: { accountId, hash: this.hash(token), usedAt: null },
        data: { usedAt: clock.now() },
      });
      if (count === 0) throw used();
      const method = { accountId, providerId: CREDENTIAL };
      const changed = await transaction.signInMethod.updateMany({ where: method, data: { password: hash } });
      if (changed.count === 0) {
        await transaction.signInMethod.create({ data: { id: createId(), ...method, providerAccountId: accountId, password: hash } });
      }
      const sessions = await deleteSessions(transaction, accountId);
      await recordAct(transaction, ctx, { act: "use_password_link", accountId, before: { sessions: sessions.length } });
      return { accountId, sessions };
    });
    announceEnded(events, accountId, sessions);
    ctx.log.info({ accountId }, "a password was set with a link");
  }

  private async findGood(links: Links, { caller }: RequestContext, token: string) {
    const link = await links.passwordLink.findUnique({
      where: { hash: this.hash(token), account: { deletion: null } },
      select: { accountId: true, expiresAt: true, usedAt: true, account: { select: { email: true } } },
    });
    if (!link) throw notFound("link: it may have been replaced by a newer one. Ask the operator for a new one");
    if (link.usedAt !== null) throw used();
    if (link.expiresAt <= this.parts.clock.now())
      throw conflict("This link has expired: it was good for 24 hours. Ask the operator for a new one.");
    if (caller.kind === "session" && caller.accountId !== link.accountId) {
      throw permissionDenied("This link is for another account than the one that you are signed in to: sign out first.");
    }
    return link;
  }

  private hash(token: string): Uint8Array<ArrayBuffer> {
    return new Uint8Array(createHmac("sha256", this.parts.secret).update(token).digest());
  }
}

function used(): AppError {
  return conflict("This link has been used: a password is set once with it. Ask the operator for a new one.");
}
