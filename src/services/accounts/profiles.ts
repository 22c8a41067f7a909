/** Profiles: the names of a person and of their account (docs/spec/accounts.md#profile). */

import { randomInt } from "node:crypto";
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError } from "../../errors.js";
import { type Database, refusingTaken } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireAccount, requireSession } from "../access/permissions.js";
import { shownText } from "../requests/input.js";
import { HANDLE_CHARS_MAX, PROFILE_IMAGE_CHARS_MAX, PROFILE_NAME_CHARS_MAX } from "./limits.js";

// Handles name an account in community model ids, `community/<handle>/<name>`. Unspecified: GitHub's rules for user names.

const PATTERN = /^[a-z0-9][a-z0-9-]*$/;
/** The gateway's own names, and names that could be mistaken for them. */
const RESERVED: ReadonlySet<string> = new Set([
  "account",
  "admin",
  "administrator",
  "api",
  "auth",
  "community",
  "help",
  "me",
  "media",
  "models",
  "null",
  "official",
  "operator",
  "owner",
  "root",
  "sandbox",
  "security",
  "sluice",
  "staff",
  "support",
  "system",
  "undefined",
]);

export const handleInput = z
  .string()
  .trim()
  .toLowerCase()
  .min(1)
  .max(HANDLE_CHARS_MAX)
  .regex(PATTERN, "must be of the letters a to z, digits and dashes, and begin with a letter or digit")
  .refine((handle) => !RESERVED.has(handle), "is reserved");

const SUFFIX_DIGITS = 6;

/** Chooses the first free handle derived from `source`: a GitHub user name, or an e-mail address (the part before the @). */
export async function chooseHandle(source: string, isTaken: (handle: string) => Promise<boolean>): Promise<string> {
  const stem = toStem(source);
  if (stem.length > 0 && !RESERVED.has(stem) && !(await isTaken(stem))) return stem;
  for (;;) {
    const suffix = String(randomInt(10 ** SUFFIX_DIGITS)).padStart(SUFFIX_DIGITS, "0");
    const handle = `${(stem || "account").slice(0, HANDLE_CHARS_MAX - SUFFIX_DIGITS - 1)}-${suffix}`;
    if (!(await isTaken(handle))) return handle;
  }
}

function toStem(source: string): string {
  const [local = ""] = source.normalize("NFKD").toLowerCase().split(/[+@]/, 1);
  // Runs of dashes are one dash by now, so at most one is at either end.
  return local
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-/, "")
    .slice(0, HANDLE_CHARS_MAX)
    .replace(/-$/, "");
}

/** Fields that are absent do not change. */
export const updateProfileInput = z
  .strictObject({
    name: shownText
      .trim()
      .min(1)
      .max(PROFILE_NAME_CHARS_MAX)
      .meta({ allOf: [{ pattern: "\\S" }] })
      .nullable(),
    handle: handleInput,
    image: z
      .url({ protocol: /^https$/, error: "must be an https URL" })
      .max(PROFILE_IMAGE_CHARS_MAX)
      .nullable(),
  })
  .partial();
export type UpdateProfileInput = z.output<typeof updateProfileInput>;

export class Profiles {
  constructor(
    private readonly database: Database,
    private readonly events: Events,
  ) {}

  /** Updates the profile; for sessions only. Rejects with CONFLICT for a handle that is taken. */
  async update(ctx: RequestContext, input: UpdateProfileInput): Promise<void> {
    const { accountId } = requireSession(ctx);
    const { name, handle, image } = input;
    const data = { ...(name !== undefined && { name }), ...(handle !== undefined && { handle }), ...(image !== undefined && { image }) };
    await refusingTaken(
      () => this.database.prisma.account.update({ where: { id: accountId }, data }),
      () => new AppError("CONFLICT", `The handle ${handle} is taken.`, { param: "handle" }),
    );
    if (handle !== undefined) this.events.publish("account-renamed", { accountId });
  }
}

// User info as named by OpenID Connect Core 5.1 (docs/spec/authorization.md#user-info), for apps with a granted key.

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

  /** Returns the claims of the caller: any key, publishable ones included, or a session. */
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
