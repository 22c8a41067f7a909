/** The seam to whoever keeps the connections to outside apps: an OAuth broker (docs/spec/connected-apps.md#broker). */
import { type AppError, conflict, invalidInput, serviceUnavailable } from "../../errors.js";
import { CONNECTED_APPS_PER_ACCOUNT_MAX } from "./limits.js";

export const CONNECTED_APP_STATUSES = ["initiated", "active", "failed", "expired", "inactive"] as const;
/** initiated: a person has yet to approve it. failed: refused, or gone wrong. inactive: switched off, or ended by the app. */
export type ConnectedAppStatus = (typeof CONNECTED_APP_STATUSES)[number];

/** See docs/spec/connected-apps.md#connections. */
export interface ConnectedApp {
  readonly id: string;
  /** The toolkit's slug. */
  readonly toolkit: string;
  readonly name: string | null;
  readonly description: string;
  /** The address of a picture. */
  readonly logo: string | null;
  /** What the person calls this connection, to tell it from others of the toolkit. */
  readonly alias: string | null;
  readonly status: ConnectedAppStatus;
}

/** See docs/spec/connected-apps.md#toolkits. */
export interface Toolkit {
  readonly slug: string;
  readonly name: string;
  readonly description: string;
  readonly logo: string | null;
}

export interface WantedConnection {
  readonly accountId: string;
  readonly toolkit: string;
  /** Where the person is sent when they have decided. */
  readonly callbackUrl: string;
}

export interface NewConnection {
  readonly id: string;
  /** The page on which a person approves the connection: for them alone. */
  readonly url: string;
}

/**
 * Whatever it is asked is about one account. Methods reject with an AppError: UPSTREAM_ERROR, UPSTREAM_TIMEOUT or SERVICE_UNAVAILABLE
 * when the broker fails, and with the signal's reason when that is aborted.
 */
export interface IntegrationsBroker {
  /** An empty search is every toolkit. */
  listToolkits(search: string, signal: AbortSignal): Promise<readonly Toolkit[]>;
  listConnections(accountId: string, signal: AbortSignal): Promise<readonly ConnectedApp[]>;
  /** Rejects with BAD_REQUEST when there is no such toolkit, with CONFLICT when the account has as many connections as it may. */
  connect(wanted: WantedConnection, signal: AbortSignal): Promise<NewConnection>;
  /** Answers what was ended. Null: the account has no such connection. */
  disconnect(accountId: string, id: string, signal: AbortSignal): Promise<ConnectedApp | null>;
  close(): Promise<void>;
}

// `INTEGRATIONS_BROKER_URL=off`: nothing can be connected, and nothing is (docs/spec/connected-apps.md#broker).

export const NO_BROKER: IntegrationsBroker = {
  listToolkits: async () => {
    throw switchedOff();
  },
  listConnections: async () => [],
  connect: async () => {
    throw switchedOff();
  },
  disconnect: async () => null,
  close: async () => undefined,
};

function switchedOff(): AppError {
  return serviceUnavailable("Connected apps are switched off on this gateway.", { retryAfterSeconds: 60 * 60 });
}

// What the brokers refuse in the same words.

export function unknownToolkit(toolkit: string): AppError {
  return invalidInput(
    `There is no toolkit \`${toolkit}\` that can be connected. The toolkits are listed at /account/integrations/toolkits.`,
    "toolkit",
  );
}

export function tooManyConnections(): AppError {
  return conflict(`An account has at most ${CONNECTED_APPS_PER_ACCOUNT_MAX} connected apps. Remove one first.`);
}
