/** The interface of OAuth brokers, which hold connections to outside apps (docs/spec/connected-apps.md#broker). */
import { type AppError, conflict, invalidInput, serviceUnavailable } from "../../errors.js";
import { CONNECTED_APPS_PER_ACCOUNT_MAX } from "./limits.js";

export const CONNECTED_APP_STATUSES = ["initiated", "active", "failed", "expired", "inactive"] as const;
/** initiated: not yet approved. failed: refused or failed. inactive: switched off, or ended by the app. */
export type ConnectedAppStatus = (typeof CONNECTED_APP_STATUSES)[number];

/** See docs/spec/connected-apps.md#connections. */
export interface ConnectedApp {
  readonly id: string;
  readonly toolkit: string;
  readonly name: string | null;
  readonly description: string;
  /** The address of an image. */
  readonly logo: string | null;
  /** The person's name for this connection among others of the toolkit. */
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

export interface RequestedConnection {
  readonly accountId: string;
  readonly toolkit: string;
  /** Where the person is redirected after the decision. */
  readonly callbackUrl: string;
}

export interface NewConnection {
  readonly id: string;
  /** The page on which the person approves the connection; secret to them. */
  readonly url: string;
}

/**
 * Methods concern one account. They reject with an AppError (UPSTREAM_ERROR, UPSTREAM_TIMEOUT or SERVICE_UNAVAILABLE) when the broker
 * fails, and with the signal's reason when that is aborted.
 */
export interface IntegrationsBroker {
  /** An empty search matches every toolkit. */
  listToolkits(search: string, signal: AbortSignal): Promise<readonly Toolkit[]>;
  listConnections(accountId: string, signal: AbortSignal): Promise<readonly ConnectedApp[]>;
  /** Rejects with BAD_REQUEST for an unknown toolkit, with CONFLICT when the account has too many connections. */
  connect(wanted: RequestedConnection, signal: AbortSignal): Promise<NewConnection>;
  /** Returns the ended connection; null when the account has no such one. */
  disconnect(accountId: string, id: string, signal: AbortSignal): Promise<ConnectedApp | null>;
  close(): Promise<void>;
}

// `INTEGRATIONS_BROKER_URL=off`: no connections (docs/spec/connected-apps.md#broker).

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
  return serviceUnavailable("Connected apps are disabled on this gateway.", { retryAfterSeconds: 60 * 60 });
}

// Refusals that the brokers share.

export function unknownToolkit(toolkit: string): AppError {
  return invalidInput(
    `There is no toolkit \`${toolkit}\` that can be connected. The toolkits are listed at /account/integrations/toolkits.`,
    "toolkit",
  );
}

export function tooManyConnections(): AppError {
  return conflict(`An account has at most ${CONNECTED_APPS_PER_ACCOUNT_MAX} connected apps. Remove one first.`);
}
