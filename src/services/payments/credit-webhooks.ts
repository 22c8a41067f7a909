/**
 * Credits by signed requests of any other payment processor (docs/spec/top-ups.md#other-processors), in the form of Standard Webhooks
 * (https://www.standardwebhooks.com). They are in the bucket `crypto`.
 */
import { createHmac, timingSafeEqual } from "node:crypto";
import * as z from "zod";
import { conflict, credentialRefused, invalidInput, notFound, wrongField } from "../../errors.js";
import type { Clock } from "../../lib/clock.js";
import { isUuid, namedId } from "../../lib/ids.js";
import { parseNanocredits } from "../../lib/money.js";
import type { SalesSettings } from "../../lib/settings.js";
import { CREDITS_MAX } from "../../limits.js";
import { type Database, lockName } from "../../store/database.js";
import { creditsAmount } from "../credits/credits-amount.js";
import { parseInput, storableText } from "../requests/input.js";
import type { BookingResult, TopUpBooking } from "./booking.js";
import { CREDITS_WEBHOOK, CREDITS_WEBHOOK_ID, SIGNATURE_AGE_SECONDS_MAX } from "./limits.js";
import { NANOCREDITS_PER_CENT } from "./money.js";

/** Amounts with many decimals are exact as texts alone. */
const decimalText = z
  .string()
  .max(30)
  .transform((text, issues) => {
    const nanocredits = parseNanocredits(text);
    if (nanocredits !== null && nanocredits <= BigInt(CREDITS_MAX) * 10n ** 9n) return nanocredits;
    issues.addIssue({ code: "custom", message: "must be a decimal number of credits with at most 9 decimals" });
    return z.NEVER;
  });

export const creditsWebhookBody = z.strictObject({
  account: storableText.min(1).max(200).describe("The ID or handle of the account."),
  credits: z
    .union([creditsAmount, decimalText])
    .refine((nanocredits) => nanocredits >= NANOCREDITS_PER_CENT, "must be at least 0.01")
    .describe("The credits that it gets, with at most 9 decimals: a number, or a decimal text."),
});
export type CreditsWebhookBody = z.output<typeof creditsWebhookBody>;

export interface SignedRequest {
  /** Of the headers. */
  readonly id: string;
  readonly timestamp: string;
  readonly signature: string;
  readonly body: string;
}

export interface CreditWebhooksDependencies {
  readonly database: Database;
  readonly booking: TopUpBooking;
  readonly clock: Clock;
  readonly sales: SalesSettings;
}

export class CreditWebhooks {
  constructor(private readonly deps: CreditWebhooksDependencies) {}

  /**
   * Adds credits once for each id. Rejects with NOT_FOUND when no secret is configured, and for an unknown account; UNAUTHORIZED for a
   * signature that is wrong or more than 5 minutes away; CONFLICT when the id came with another account or amount before.
   */
  async take(request: SignedRequest): Promise<{ readonly topUpId: string; readonly result: BookingResult }> {
    const { database, booking, sales } = this.deps;
    if (sales.creditsWebhookSecrets.length === 0) throw notFound("path");
    this.verify(request);
    const { account: name, credits } = parseInput(creditsWebhookBody, parseBody(request.body));
    const account = await database.prisma.account.findFirst({
      where: { ...(isUuid(name) ? { id: name } : { handle: name }), deletion: null },
      select: { id: true },
    });
    if (!account) throw wrongField("account", "is no account of this gateway: send its ID or handle");
    const topUpId = namedId(`credits webhook ${request.id}`);
    const row = await database.prisma.$transaction(async (transaction) => {
      await lockName(transaction, `top-up ${topUpId}`);
      const earlier = await transaction.topUp.findUnique({ where: { id: topUpId } });
      if (earlier) return earlier;
      const now = this.deps.clock.now();
      const amounts = { nanocredits: credits, amountCents: credits / NANOCREDITS_PER_CENT, currency: sales.currency };
      const identity = { id: topUpId, accountId: account.id, processor: CREDITS_WEBHOOK, reference: request.id };
      return transaction.topUp.create({ data: { ...identity, ...amounts, createdAt: now, expiresAt: now } });
    });
    if (row.accountId !== account.id || row.nanocredits !== credits)
      throw conflict(
        "This webhook-id came with another account or amount before: nothing was credited. Send a new ID for another payment.",
      );
    const { amountCents: cents, currency } = row;
    return { topUpId, result: await booking.bookPayment(CREDITS_WEBHOOK, { topUpId, cents, currency, payment: request.id }) };
  }

  private verify({ id, timestamp, signature, body }: SignedRequest): void {
    if (!CREDITS_WEBHOOK_ID.test(id)) throw invalidInput("The header webhook-id must have 1 to 255 printable characters, without spaces.");
    const seconds = /^\d{1,11}$/.test(timestamp) ? Number(timestamp) : Number.NaN;
    const age = Math.abs(this.deps.clock.now().getTime() / 1_000 - seconds);
    if (!(age <= SIGNATURE_AGE_SECONDS_MAX))
      throw credentialRefused(
        `The header webhook-timestamp must be the current time in seconds, at most ${SIGNATURE_AGE_SECONDS_MAX} seconds away.`,
      );
    const stated = signature
      .split(" ", SIGNATURES_MAX)
      .filter((each) => each.startsWith("v1,"))
      .map((each) => Buffer.from(each.slice(3), "base64"));
    const isGood = this.deps.sales.creditsWebhookSecrets.some((secret) => {
      const expected = createHmac("sha256", keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest();
      return stated.some((each) => each.length === expected.length && timingSafeEqual(each, expected));
    });
    if (!isGood) throw credentialRefused("The header webhook-signature does not fit the body, the time and the ID.");
  }
}

const SIGNATURES_MAX = 8;

/** As Standard Webhooks writes secrets, or any text. */
function keyOf(secret: string): Buffer {
  return secret.startsWith("whsec_") ? Buffer.from(secret.slice(6), "base64") : Buffer.from(secret, "utf8");
}

function parseBody(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    throw invalidInput("The body must be JSON.");
  }
}
