/** Variables of the sale of credits (docs/spec/top-ups.md). */
import * as z from "zod";
import type { SalesSettings } from "../lib/settings.js";
import { isLoopbackHostname } from "../lib/urls.js";
import { credits, httpUrl, json } from "./values.js";

const NANO = 10n ** 9n;
const NANOCREDITS_PER_CENT = 10n ** 7n;
/** Unspecified: the most that one top-up may buy. Stripe's bound for most currencies is 999,999.99. */
const MOST = 500_000n * NANO;
const PACKS_MAX = 12;

/** Currencies of ISO 4217 that have no hundredths: https://docs.stripe.com/currencies#zero-decimal and #three-decimal. */
const WITHOUT_CENTS: ReadonlySet<string> = new Set(
  "bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf bhd iqd jod kwd lyd omr tnd isk huf twd".split(" "),
);
const CURRENCIES: ReadonlySet<string> = new Set(Intl.supportedValuesOf("currency").map((code) => code.toLowerCase()));

const switchedOff = z.enum(["on", "off"]).default("off");
const amount = (fallback: bigint) =>
  credits()
    .refine((value) => value >= NANOCREDITS_PER_CENT && value <= MOST && value % NANOCREDITS_PER_CENT === 0n, {
      error: "must be a number of credits from 0.01 to 500000 with at most 2 decimals",
    })
    .default(fallback);

export const paymentsEnvironment = {
  PAYMENTS: z.enum(["off", "development", "stripe"]).optional(),
  PAYMENT_CURRENCY: z
    .string()
    .transform((value) => value.toLowerCase())
    .refine((value) => CURRENCIES.has(value) && !WITHOUT_CENTS.has(value), "must be a currency of ISO 4217 with two decimals, such as usd")
    .default("usd"),
  PAYMENT_PACKS: json(z.array(z.number().positive().multipleOf(0.01, "must have at most 2 decimals")).max(PACKS_MAX))
    .transform((packs) => packs.map((pack) => BigInt(Math.round(pack * 100)) * NANOCREDITS_PER_CENT))
    .default([5n, 10n, 25n, 100n].map((pack) => pack * NANO)),
  PAYMENT_LEAST: amount(NANO),
  PAYMENT_MOST: amount(10_000n * NANO),
  PAYMENT_DISPUTES_SUSPEND: switchedOff,
  STRIPE_SECRET_KEY: z
    .string()
    .regex(/^[rs]k_[\x21-\x7e]{8,}$/, "must be a secret or restricted key of Stripe, which begins with sk_ or rk_")
    .optional(),
  STRIPE_WEBHOOK_SECRET: secrets(
    /^whsec_[\x21-\x7e]{8,}$/,
    "must be the signing secret of the endpoint, which begins with whsec_",
  ).optional(),
  STRIPE_API_URL: httpUrl().optional(),
  STRIPE_AUTOMATIC_TAX: switchedOff,
  STRIPE_INVOICES: switchedOff,
  CREDITS_WEBHOOK_SECRET: secrets(
    /^(?:whsec_[\w+/-]{24,}={0,2}|(?!whsec_)[\x21-\x7e]{24,})$/,
    "must have at least 24 characters, without spaces; after whsec_ they must be base64",
  ).optional(),
};

/** One value, or several with commas. */
function secrets(pattern: RegExp, message: string) {
  return z
    .string()
    .transform((value) => value.split(",").map((part) => part.trim()))
    .refine((all) => all.length <= 4 && all.every((secret) => pattern.test(secret)), message);
}

type Values = z.output<z.ZodObject<typeof paymentsEnvironment>>;

export function toSales(values: Values): SalesSettings {
  const { STRIPE_SECRET_KEY: secretKey } = values;
  const stripe =
    values.PAYMENTS === "stripe" && secretKey !== undefined
      ? {
          secretKey,
          webhookSecrets: values.STRIPE_WEBHOOK_SECRET ?? [],
          apiUrl: values.STRIPE_API_URL ?? null,
          hasAutomaticTax: values.STRIPE_AUTOMATIC_TAX === "on",
          hasInvoices: values.STRIPE_INVOICES === "on",
        }
      : null;
  const { PAYMENT_LEAST: least, PAYMENT_MOST: most } = values;
  return {
    stripe,
    currency: values.PAYMENT_CURRENCY,
    packs: values.PAYMENT_PACKS,
    ...{ least, most },
    suspendsOnDispute: values.PAYMENT_DISPUTES_SUSPEND === "on",
    creditsWebhookSecrets: values.CREDITS_WEBHOOK_SECRET ?? [],
  };
}

/** A sentence for each variable that contradicts another. `isAllowed`: a host of UPSTREAM_ALLOW_HOSTS. */
export function paymentProblems(values: Values, isForThisMachineOnly: boolean, isAllowed: (hostname: string) => boolean): string[] {
  const problems: string[] = [];
  if (values.PAYMENTS === "development" && !isForThisMachineOnly) {
    problems.push("PAYMENTS: development gives credits without money, and is for a gateway that only this machine can reach");
  }
  if (values.PAYMENTS === "stripe") {
    for (const name of ["STRIPE_SECRET_KEY", "STRIPE_WEBHOOK_SECRET"] as const) {
      if (values[name] === undefined) problems.push(`${name}: is needed when PAYMENTS is stripe`);
    }
  }
  if (values.PAYMENT_LEAST > values.PAYMENT_MOST) problems.push("PAYMENT_LEAST: must not be above PAYMENT_MOST");
  const isSold = (pack: bigint) => pack >= values.PAYMENT_LEAST && pack <= values.PAYMENT_MOST;
  if (!values.PAYMENT_PACKS.every(isSold)) problems.push("PAYMENT_PACKS: each must be from PAYMENT_LEAST to PAYMENT_MOST");
  const host = values.STRIPE_API_URL === undefined ? null : new URL(values.STRIPE_API_URL).hostname;
  // The secret key is sent there.
  if (host !== null && host !== "api.stripe.com" && !isLoopbackHostname(host) && !isAllowed(host)) {
    problems.push("STRIPE_API_URL: must be a server of this machine, or a host of UPSTREAM_ALLOW_HOSTS: leave it unset for Stripe");
  }
  return problems;
}
