/** The device flow and what it stands on. */

import type { Addresses } from "../../lib/base-url.js";
import type { Clock } from "../../lib/clock.js";
import type { Accounts } from "../accounts/accounts.js";
import type { ApiKeys } from "../api-keys/api-keys.js";
import type { Infrastructure } from "../composition/infrastructure.js";
import { Apps } from "./apps.js";
import { DeviceAuthorizations } from "./device-authorizations.js";
import { DeviceCodes } from "./device-codes.js";
import { Redemption } from "./device-redemption.js";
import { UserCodeGuesses } from "./user-code-guesses.js";

/** `addresses` is asked for each device: a port that the system chooses is known by then. */
export function createDeviceAuthorizations(
  { catalog, counters, database, deriveSecret, keyCache, events }: Infrastructure,
  accounts: Accounts,
  apiKeys: ApiKeys,
  clock: Clock,
  addresses: () => Addresses,
): DeviceAuthorizations {
  return new DeviceAuthorizations({
    database,
    accounts,
    codes: new DeviceCodes(database, deriveSecret("device codes"), clock),
    guesses: new UserCodeGuesses(counters),
    redemption: new Redemption(database, apiKeys, clock),
    apps: new Apps(database, keyCache, clock),
    catalog,
    events,
    clock,
    verificationUri: () => `${addresses().authUrl}/device`,
  });
}
