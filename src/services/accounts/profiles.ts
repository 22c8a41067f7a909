/** Profiles: how a person and their account are called (docs/spec/accounts.md#profile). */
import * as z from "zod";
import type { RequestContext } from "../../context.js";
import { AppError } from "../../errors.js";
import { type Database, isUniqueViolation } from "../../store/database.js";
import type { Events } from "../../store/events.js";
import { requireSession } from "../access/permissions.js";
import { storableText } from "../requests/input.js";
import { handleInput } from "./handles.js";
import { PROFILE_IMAGE_CHARS_MAX, PROFILE_NAME_CHARS_MAX } from "./limits.js";

/** Only the fields that are sent change. */
export const updateProfileInput = z
  .strictObject({
    name: storableText
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

  /** Sessions only. Rejects with CONFLICT for a handle that somebody else has. */
  async update(ctx: RequestContext, input: UpdateProfileInput): Promise<void> {
    const { accountId } = requireSession(ctx);
    const { name, handle, image } = input;
    const data = { ...(name !== undefined && { name }), ...(handle !== undefined && { handle }), ...(image !== undefined && { image }) };
    try {
      await this.database.prisma.account.update({ where: { id: accountId }, data });
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw new AppError("CONFLICT", `The handle ${handle} is taken.`, { param: "handle" });
    }
    if (handle !== undefined) this.events.publish("account-renamed", { accountId });
  }
}
