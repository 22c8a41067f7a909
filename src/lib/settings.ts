/** What the configuration states in the words in which services are made with it. */

/** Where the gateway is reached, without a slash at the end. */
export interface Addresses {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly mediaUrl: string;
}

/** What an account of this tier is given at each boundary of the period, in UTC. */
export interface Tier {
  readonly name: string;
  /** What its bucket holds after each boundary. */
  readonly nanocredits: bigint;
  /** Null: nothing is refilled. */
  readonly period: "hour" | "day" | "week" | "month" | null;
}
