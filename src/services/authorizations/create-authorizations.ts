/** The redirect flow's services, each with what it uses. */

import type { Addresses } from "../../lib/base-url.js";
import type { Clock } from "../../lib/clock.js";
import type { Accounts } from "../accounts/accounts.js";
import type { ApiKeys } from "../api-keys/api-keys.js";
import type { Infrastructure } from "../composition/infrastructure.js";
import { Apps } from "./apps.js";
import { AuthorizationCodes } from "./authorization-codes.js";
import { Authorizations } from "./authorizations.js";

export function createAuthorizations(
  { database, keyCache, catalog, deriveSecret }: Infrastructure,
  accounts: Accounts,
  apiKeys: ApiKeys,
  clock: Clock,
  addresses: () => Addresses,
): { readonly authorizations: Authorizations; readonly authorizationCodes: AuthorizationCodes } {
  const apps = new Apps(database, keyCache, clock);
  const codes = new AuthorizationCodes(database, deriveSecret("authorization codes"), apiKeys, apps, clock);
  const issuer = () => addresses().authUrl;
  return {
    authorizations: new Authorizations({ database, accounts, apiKeys, apps, codes, catalog, clock, issuer }),
    authorizationCodes: codes,
  };
}
