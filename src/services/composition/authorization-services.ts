/** The services for apps that spend a person's credits: redirect flow, device flow, clients and their keys. */

import type { Clock } from "../../lib/clock.js";
import type { Addresses } from "../../lib/urls.js";
import { ProtectedResources } from "../access/protected-resources.js";
import type { Accounts } from "../accounts/accounts.js";
import type { ApiKeys } from "../api-keys/api-keys.js";
import { AppMargins } from "../authorizations/app-margins.js";
import { Apps } from "../authorizations/apps.js";
import { AuthorizationCodes } from "../authorizations/authorization-codes.js";
import { Authorizations } from "../authorizations/authorizations.js";
import { ClientDocuments } from "../authorizations/client-documents.js";
import { ClientRegistrations } from "../authorizations/client-registrations.js";
import { Clients } from "../authorizations/clients.js";
import { DeviceAuthorizations } from "../authorizations/device-authorizations.js";
import { DeviceCodes, UserCodeGuesses } from "../authorizations/device-codes.js";
import { Redemption } from "../authorizations/device-redemption.js";
import type { RefusedFunds } from "../credits/refused-funds.js";
import type { Infrastructure } from "./infrastructure.js";

export interface AuthorizationParts
  extends Pick<Infrastructure, "database" | "keyCache" | "catalog" | "events" | "counters" | "secrets" | "outbound"> {
  readonly accounts: Accounts;
  readonly apiKeys: ApiKeys;
  readonly clock: Clock;
  readonly funds: RefusedFunds;
  /** Known once the server listens. */
  readonly addresses: () => Addresses;
  readonly readsClientDocuments: boolean;
  /** The highest margin of an app, in percent. */
  readonly marginPercentMax: number;
}

export function createAuthorizationServices({ readsClientDocuments, marginPercentMax, ...parts }: AuthorizationParts) {
  const { database, keyCache, catalog, events, counters, secrets, outbound, accounts, apiKeys, clock, addresses, funds } = parts;
  const apps = new Apps(database, keyCache, clock, marginPercentMax);
  const protectedResources = new ProtectedResources(
    () => addresses().baseUrl,
    () => addresses().authUrl,
  );
  const clientRegistrations = new ClientRegistrations(secrets.hashing("client registrations"), counters, clock);
  const clientDocuments = new ClientDocuments(outbound, counters, clock, readsClientDocuments);
  const authorizationCodes = new AuthorizationCodes(
    database,
    secrets.hashing("authorization codes"),
    apiKeys,
    apps,
    protectedResources,
    clock,
  );
  const deviceAuthorizations = new DeviceAuthorizations({
    ...{ database, accounts, apps, resources: protectedResources, catalog, events, clock, funds },
    codes: new DeviceCodes(database, secrets.hashing("device codes"), clock),
    guesses: new UserCodeGuesses(counters),
    redemption: new Redemption(database, apiKeys, clock),
    verificationUri: () => `${addresses().authUrl}/device`,
  });
  const authorizations = new Authorizations({
    ...{ database, accounts, apiKeys, apps, resources: protectedResources, catalog, clock, funds },
    clients: new Clients(apps, clientRegistrations, clientDocuments),
    codes: authorizationCodes,
    issuer: () => addresses().authUrl,
  });
  return {
    ...{ apps, authorizations, authorizationCodes, clientDocuments, clientRegistrations, deviceAuthorizations },
    protectedResources,
    appMargins: new AppMargins(database, marginPercentMax),
  };
}
