/** Configuration in the terms of the services. */

/** Credits that an account of this tier gets at each boundary of the period, in UTC. */
export interface Tier {
  readonly name: string;
  /** The bucket's content after a refill. */
  readonly nanocredits: bigint;
  /** Null: no refills. */
  readonly period: "hour" | "day" | "week" | "month" | null;
}

/** The payment processor at which people buy credits. Unspecified: `development` gives credits without money, where only this machine can connect. */
export type PaymentsSetting = "off" | "development" | "stripe";

export interface StripeSettings {
  readonly secretKey: string;
  /** Of the endpoint of events; several while one is replaced. */
  readonly webhookSecrets: readonly string[];
  /** Null: Stripe's own. */
  readonly apiUrl: string | null;
  /** Stripe computes and collects taxes. */
  readonly hasAutomaticTax: boolean;
  /** Stripe writes an invoice for each payment. */
  readonly hasInvoices: boolean;
}

/** How credits are sold. One credit costs one unit of the currency. */
export interface SalesSettings {
  /** Null: PAYMENTS is not `stripe`. */
  readonly stripe: StripeSettings | null;
  /** ISO 4217, in lower case, with two decimals. */
  readonly currency: string;
  /** Amounts that are offered, in nanocredits. */
  readonly packs: readonly bigint[];
  /** Nanocredits of one top-up. */
  readonly least: bigint;
  readonly most: bigint;
  /** A dispute suspends the account. */
  readonly suspendsOnDispute: boolean;
  /** Of signed requests that add credits; several while one is replaced. Empty: there are none. */
  readonly creditsWebhookSecrets: readonly string[];
}

/** How people get credits on this gateway, in the operator's words. At least one of the two. */
export interface TopUp {
  readonly text: string | null;
  /** http, https or mailto. */
  readonly url: string | null;
}

export interface S3Settings {
  readonly bucket: string;
  /** Null: AWS. */
  readonly endpoint: string | null;
  readonly region: string;
  /** Null: the SDK's own default chain. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
}

export interface SignInPace {
  /** Between attempts of a client address with too many. */
  readonly addressTurnMs: number;
  /** Between attempts of one client address for an e-mail address with too many attempts from anywhere. */
  readonly emailTurnMs: number;
  /** Waiting attempts of a client address; more are refused. */
  readonly waitingPerAddressMax: number;
}

export interface GitHubSettings {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where browsers are redirected, and codes are exchanged. */
  readonly webUrl: string;
  readonly apiUrl: string;
}

export interface EarningsSettings {
  /** What the owner of a community model earns of its price, in millionths. */
  readonly communityShare: bigint;
  /** The highest margin that an app may take, in percent of the price; 0: none may. */
  readonly marginPercentMax: number;
}
