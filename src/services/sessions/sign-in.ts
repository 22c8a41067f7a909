/**
 * Sign-up and sign-in (docs/spec/sessions.md#sign-in): with an e-mail address and a password, and with GitHub where it is configured.
 *
 * 1. Attempts are counted before any look-up, and wait when there were too many.
 * 2. The library checks the password; it takes as long for an unknown address as for a wrong password.
 * 3. A new session is made; the browser's earlier session ends.
 * 4. The answer sets its cookie. The database stores an HMAC of the token, which cannot be sent as a cookie.
 */
import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { type AppError, accountSuspended, conflict, invalidInput, permissionDenied, unauthenticated } from "../../errors.js";
import { createId } from "../../lib/ids.js";
import { type Database, isUniqueViolation } from "../../store/database.js";
import type { Prisma } from "../../store/generated/prisma/client.js";
import { admitAnybody, requireOperator, requireSession } from "../access/permissions.js";
import { PROFILE_NAME_CHARS_MAX } from "../accounts/limits.js";
import { chooseHandle } from "../accounts/profiles.js";
import { type AuditWriter, recordAct } from "../audit/audit-log.js";
import { shownText } from "../requests/input.js";
import type { SessionCookie } from "./csrf-tokens.js";
import { EMAIL_CHARS_MAX, PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN } from "./limits.js";
import type { Passwords } from "./passwords.js";
import type { SessionDirectory } from "./session-directory.js";
import type { SelectedSession, Sessions } from "./sessions.js";
import { NEW_ACCOUNT, type SignInLibrary, toLibraryHeaders, toStoredUserAgent } from "./sign-in-library.js";
import type { SignInLimits } from "./sign-in-limits.js";

/** Unspecified: lower-case ASCII only, so that no two addresses look alike. */
const emailInput = z
  .string()
  .trim()
  .pipe(
    z
      .email("must be an address such as name@example.com")
      .max(EMAIL_CHARS_MAX, `must have at most ${EMAIL_CHARS_MAX} characters`)
      .toLowerCase(),
  );
const tooLong = `must have at most ${PASSWORD_CHARS_MAX} characters`;
export const newPasswordInput = z
  .string()
  .min(PASSWORD_CHARS_MIN, `must have at least ${PASSWORD_CHARS_MIN} characters`)
  .max(PASSWORD_CHARS_MAX, tooLong);
export const passwordInput = z.string().min(1, "must not be empty").max(PASSWORD_CHARS_MAX, tooLong);

export const signUpInput = z.strictObject({
  email: emailInput,
  password: newPasswordInput,
  name: shownText.trim().max(PROFILE_NAME_CHARS_MAX).nullish(),
});
export type SignUpInput = z.output<typeof signUpInput>;

export const createAccountInput = signUpInput.omit({ password: true });
export type CreateAccountInput = z.output<typeof createAccountInput>;

export const signInInput = z.strictObject({ email: emailInput, password: passwordInput });
export type SignInInput = z.output<typeof signInInput>;

export const changePasswordInput = z.strictObject({ currentPassword: passwordInput, newPassword: newPasswordInput });
export type ChangePasswordInput = z.output<typeof changePasswordInput>;

export interface Browser {
  readonly userAgent: string | undefined;
}

export interface SignedIn {
  readonly accountId: string;
  readonly sessionId: string;
  readonly session: SelectedSession;
  /** `Set-Cookie` lines of the answer. */
  readonly cookies: readonly string[];
}

interface StoredPassword {
  /** The sign-in method's id. */
  readonly id: string;
  /** A slow hash. */
  readonly password: string;
}

interface VerifiedPassword {
  /** The sign-in method's id. */
  readonly id: string;
  readonly accountId: string;
  readonly password: string | null;
}

export interface SignInParts {
  readonly database: Database;
  readonly sessions: Sessions;
  readonly directory: SessionDirectory;
  readonly cookie: SessionCookie;
  readonly passwords: Passwords;
  readonly limits: SignInLimits;
  /** The line for people who forgot their password; empty: none. */
  readonly passwordHelp: string;
  /** False: only operators make accounts. */
  readonly isSignUpOpen: boolean;
  /** Loaded on first use. */
  readonly library: () => Promise<SignInLibrary>;
}

const CREDENTIAL = "credential";
/** 144 bits, 24 characters. */
const MADE_PASSWORD_BYTES = 18;

export class SignIn {
  constructor(private readonly parts: SignInParts) {}

  get passwordHelp(): string {
    return this.parts.passwordHelp;
  }

  get isSignUpOpen(): boolean {
    return this.parts.isSignUpOpen;
  }

  /**
   * Makes an account and signs in. Rejects with FORBIDDEN where sign-up is closed, CONFLICT when the address has an account, RATE_LIMITED.
   */
  async signUp(ctx: RequestContext, input: SignUpInput, browser: Browser, select: Prisma.SessionSelect = {}): Promise<SignedIn> {
    admitAnybody(ctx);
    const { limits, passwords, isSignUpOpen } = this.parts;
    if (!isSignUpOpen) throw signUpClosed();
    await limits.countSignUp(ctx.clientAddress);
    // Hashed before any look-up, so that the time of the refusal does not reveal whether the address has an account.
    const password = await passwords.hash(input.password);
    const accountId = await this.createAccount({ email: input.email, name: input.name || null, password });
    return this.open(ctx, accountId, browser, select);
  }

  /**
   * For operators: makes an account with a password that is shown once and that its owner should change. Rejects with CONFLICT when the
   * address has an account.
   */
  async createFor(ctx: RequestContext, { email, name }: CreateAccountInput): Promise<{ accountId: string; password: string }> {
    requireOperator(ctx);
    const password = randomBytes(MADE_PASSWORD_BYTES).toString("base64url");
    const hash = await this.parts.passwords.hash(password);
    const accountId = await this.createAccount({ email, name: name || null, password: hash }, (writer, id) =>
      recordAct(writer, ctx, { act: "create_account", accountId: id, after: { tier: NEW_ACCOUNT.tier } }),
    );
    ctx.log.info({ accountId }, "an operator made an account");
    return { accountId, password };
  }

  /** Rejects with UNAUTHORIZED, in the same words for a wrong address and a wrong password, or RATE_LIMITED when too many attempts wait. */
  async signIn(ctx: RequestContext, input: SignInInput, browser: Browser, select: Prisma.SessionSelect = {}): Promise<SignedIn> {
    admitAnybody(ctx);
    const { limits, library, database } = this.parts;
    await limits.countSignIn(ctx, input.email);
    const { api } = await library();
    const verified = await database.prisma.signInMethod.findFirst({
      where: { providerId: CREDENTIAL, account: { email: input.email } },
      select: { id: true, accountId: true, password: true },
    });
    const { token } = await api.signInEmail({ body: input, headers: toLibraryHeaders(ctx.clientAddress, browser.userAgent) }).catch(refuse);
    if (verified) await this.assertUnchanged(verified, token);
    return this.admit(ctx, token, select);
  }

  /** Ends every session of the account and opens a new one. Rejects with BAD_REQUEST for a wrong current password, or RATE_LIMITED. */
  async changePassword(
    ctx: RequestContext,
    input: ChangePasswordInput,
    browser: Browser,
    select: Prisma.SessionSelect = {},
  ): Promise<SignedIn> {
    const { accountId } = requireSession(ctx);
    const { passwords, database, sessions } = this.parts;
    const method = await this.checkPassword(accountId, input.currentPassword, "currentPassword");
    if (!method) throw conflict("This account has no password. It signs in with GitHub.");
    const password = await passwords.hash(input.newPassword);
    // Of two concurrent changes, only one finds the password that it verified.
    const changed = await database.prisma.signInMethod.updateMany({
      where: { id: method.id, password: method.password },
      data: { password },
    });
    if (changed.count === 0) throw conflict("The password has just been changed.");
    await database.prisma.passwordLink.deleteMany({ where: { accountId } });
    await sessions.end(accountId);
    return this.open(ctx, accountId, browser, select);
  }

  /** False: the account signs in with another provider only. Not exposed by GraphQL or REST. */
  async hasPassword(accountId: string): Promise<boolean> {
    return (await this.findPassword(accountId)) !== null;
  }

  /**
   * Returns the stored password after verifying `password`; null: the account has none. Rejects with BAD_REQUEST that names `param` for a
   * wrong one, or RATE_LIMITED. Not exposed by GraphQL or REST.
   */
  async checkPassword(accountId: string, password: string, param: string): Promise<StoredPassword | null> {
    await this.parts.limits.countPasswordCheck(accountId);
    const method = await this.findPassword(accountId);
    if (method && !(await this.parts.passwords.verify(password, method.password))) {
      throw invalidInput("The password is wrong.", param);
    }
    return method;
  }

  /**
   * Ends the new session when the password that it began with was replaced meanwhile. It waits for a change that is under way; a change
   * that begins later ends the session itself.
   */
  private async assertUnchanged(verified: VerifiedPassword, token: string): Promise<void> {
    const { database, sessions, directory } = this.parts;
    const [method] = await database.prisma.$queryRaw<{ password: string | null }[]>`
      SELECT password FROM sign_in_method WHERE id = ${verified.id}::uuid FOR SHARE`;
    if (method?.password === verified.password) return;
    const begun = await database.prisma.session.findUnique({ where: { token: directory.hash(token) }, select: { id: true } });
    if (begun) await sessions.end(verified.accountId, { id: begun.id });
    throw wrongCredentials();
  }

  private async findPassword(accountId: string): Promise<StoredPassword | null> {
    const method = await this.parts.database.prisma.signInMethod.findFirst({ where: { accountId, providerId: CREDENTIAL } });
    return method?.password ? { id: method.id, password: method.password } : null;
  }

  /** One transaction makes the account, its password and what `record` writes, so that none exists without the others. */
  private async createAccount(
    account: { email: string; name: string | null; password: string },
    record: (writer: AuditWriter, id: string) => Promise<void> = async () => undefined,
  ): Promise<string> {
    const { prisma } = this.parts.database;
    const { email, name, password } = account;
    if ((await prisma.account.count({ where: { email } })) > 0) throw emailTaken();
    const id = createId();
    for (let attemptsLeft = 3; ; attemptsLeft -= 1) {
      const handle = await chooseHandle(email, async (taken) => (await prisma.account.count({ where: { handle: taken } })) > 0);
      const method = { id: createId(), providerId: CREDENTIAL, providerAccountId: id, password };
      try {
        await prisma.$transaction(async (transaction) => {
          await transaction.account.create({ data: { id, email, name, handle, ...NEW_ACCOUNT, signInMethods: { create: method } } });
          await record(transaction, id);
        });
        return id;
      } catch (error) {
        if (!isUniqueViolation(error)) throw error;
        if ((await prisma.account.count({ where: { email } })) > 0) throw emailTaken();
        // Another account took the handle meanwhile.
        if (attemptsLeft === 0) throw error;
      }
    }
  }

  private async open(ctx: RequestContext, accountId: string, { userAgent }: Browser, select: Prisma.SessionSelect): Promise<SignedIn> {
    const { internalAdapter } = await (await this.parts.library()).$context;
    const ipAddress = ctx.clientAddress;
    const { token } = await internalAdapter.createSession(accountId, false, { ipAddress, userAgent: toStoredUserAgent(userAgent) });
    return this.admit(ctx, token, select);
  }

  /** Returns the cookie of a new session, and ends the browser's earlier one. Rejects with ACCOUNT_SUSPENDED. */
  async admit(ctx: RequestContext, token: string, select: Prisma.SessionSelect = {}): Promise<SignedIn> {
    const { database, directory, sessions, cookie } = this.parts;
    const session = await database.prisma.session.findUnique({
      where: { token: directory.hash(token) },
      select: { ...select, id: true, accountId: true, createdAt: true, account: { select: { suspendedAt: true } } },
    });
    if (!session) throw unauthenticated("The session was ended as it began: sign in again.");
    const { id: sessionId, accountId, account } = session;
    if (account.suspendedAt !== null) {
      await sessions.end(accountId, { id: sessionId });
      throw accountSuspended();
    }
    const { caller } = ctx;
    if (caller.kind === "session") await sessions.end(caller.accountId, { id: caller.sessionId });
    // A failed clean-up does not fail the sign-in.
    await sessions.tidy(accountId).catch((error: unknown) => ctx.log.warn({ err: error }, "could not tidy up after old sessions"));
    return { accountId, sessionId, session, cookies: [cookie.create(token)] };
  }
}

/** Hides the library's exact reason from the client. */
function refuse(error: unknown): never {
  if (error instanceof Error && "statusCode" in error && error.statusCode === 401) {
    throw wrongCredentials();
  }
  throw error;
}

function wrongCredentials(): AppError {
  return unauthenticated("The e-mail address or the password is wrong.");
}

/** One message for the page, GraphQL and GitHub. */
export function signUpClosed(): AppError {
  return permissionDenied("Sign-up is closed. Ask the operator of this gateway for an account.");
}

function emailTaken(): Error {
  return conflict("An account with this e-mail address already exists. Sign in instead.");
}
