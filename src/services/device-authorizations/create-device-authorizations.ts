/** The device flow and what it stands on. */
import type { Clock } from "../../lib/clock.js";
import type { Accounts } from "../accounts.js";
import type { ApiKeys } from "../api-keys.js";
import { Apps } from "../authorizations/apps.js";
import { DeviceAuthorizations } from "../device-authorizations.js";
import type { Foundations } from "../foundations.js";
import type { Addresses } from "../platform-settings.js";
import { DeviceCodes } from "./device-codes.js";
import { UserCodeGuesses } from "./guesses.js";
import { Redemption } from "./redemption.js";

/** `addresses` is asked for each device: a port that the system chooses is known by then. */
export function createDeviceAuthorizations(
  { catalog, counters, database, deriveSecret, directory, events }: Foundations,
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
    apps: new Apps(database, directory, clock),
    catalog,
    events,
    clock,
    verificationUri: () => `${addresses().authUrl}/device`,
  });
}
