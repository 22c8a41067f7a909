/** Makes an owner key from the command line, for an operator who lost theirs. */
import type { Logger } from "pino";
import { openEvents } from "../../store/events/open.js";
import { hashApiKey, openSecrets } from "../secrets/deployment-secrets.js";
import { type LocalSettings, withLocalDatabase } from "./local-database.js";
import { addOwnerKey, type MadeOwnerKey } from "./owner.js";

export interface OwnerKeyOptions {
  readonly revokesOthers: boolean;
  readonly log: Logger;
}

/** Rejects with a StartError that states the remedy. */
export function makeOwnerKey(settings: LocalSettings, { revokesOthers, log }: OwnerKeyOptions): Promise<MadeOwnerKey> {
  return withLocalDatabase(settings, log, async ({ database, ledger, encryptionKey, keep }) => {
    const keys = { current: encryptionKey, previous: settings.encryptionKeyPrevious };
    const { pepper } = (await openSecrets(database, keys, keep)).secrets;
    const options = { nanocredits: settings.ownerCredits, revokesOthers, now: new Date() };
    const made = await addOwnerKey(database, ledger, { hash: (key) => hashApiKey(pepper, key) }, options);
    if (made.endedIds.length > 0) {
      // Running gateways cache keys.
      const events = await openEvents({ redisUrl: settings.redisUrl, database, log });
      for (const apiKeyId of made.endedIds) {
        events.publish("api-key-changed", { accountId: made.accountId, apiKeyId, change: "revoked" });
      }
      await events.close();
    }
    return made;
  });
}
