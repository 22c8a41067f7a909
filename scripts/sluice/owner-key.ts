/** `owner key`: makes a key of the owner's account, for a person who can start the gateway. */
import { pino } from "pino";
import { type Environment, parseConfig } from "../../src/config/config.js";
import { makeOwnerKey } from "../../src/services/accounts/owner-keys.js";
import type { Outcome } from "./present.js";

/** Standard output is the answer's alone. */
const STANDARD_ERROR = 2;

export async function runOwnerKey(env: Environment, revokesOthers: boolean): Promise<Outcome> {
  const config = parseConfig(env);
  const log = pino({ level: "warn" }, pino.destination({ dest: STANDARD_ERROR, sync: true }));
  const { key, others, endedIds } = await makeOwnerKey(config, { revokesOthers, log });
  const answer = { key, others: others.map(({ id, start, createdAt }) => ({ id, start, createdAt })), endedIds };
  if (others.length === 0) return { answer, words: key };
  const named = others.map(({ start, createdAt }) => `${start}... of ${createdAt.toISOString()}`).join(", ");
  const advice = revokesOthers
    ? `Ended: ${named}, and all that was made with them. Unset OWNER_API_KEY, or set it to the new key, if it held one of them.`
    : `The owner's older keys go on working: ${named}. With --revoke-others they end.`;
  return { answer, words: key, advice };
}
