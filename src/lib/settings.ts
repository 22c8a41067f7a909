/** What the configuration states in the words in which services are made with it. */

/** What an account of this tier is given at each boundary of the period, in UTC. */
export interface Tier {
  readonly name: string;
  /** What its bucket holds after each boundary. */
  readonly nanocredits: bigint;
  /** Null: nothing is refilled. */
  readonly period: "hour" | "day" | "week" | "month" | null;
}

/** Of a bucket that keeps the blobs. */
export interface S3Settings {
  readonly bucket: string;
  /** Null: AWS. */
  readonly endpoint: string | null;
  readonly region: string;
  /** Null: those that the SDK finds by itself. */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | null;
}

/** Of attempts to sign in beyond the limit. */
export interface SignInPace {
  /** Between the attempts of a client address that makes too many. */
  readonly addressTurnMs: number;
  /** Between those of one client address for an e-mail address that too many attempts name, wherever they come from. */
  readonly emailTurnMs: number;
  /** Attempts of a client address that may wait at once; more are refused. */
  readonly waitingPerAddressMax: number;
}

export interface GitHubSettings {
  readonly clientId: string;
  readonly clientSecret: string;
  /** Where people are sent, and codes are exchanged. */
  readonly webUrl: string;
  readonly apiUrl: string;
}
