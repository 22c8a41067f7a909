/** `secrets reseal` and `secrets forget`: they work on the database itself, for a person who can start the gateway. */
import { pino } from "pino";
import { type Environment, parseConfig } from "../../src/config/config.js";
import { forgetSecrets, type LostCounts, resealSecrets } from "../../src/services/composition/local-secrets.js";
import type { Outcome } from "./present.js";

const STANDARD_ERROR = 2;

function openLog() {
  return pino({ level: "warn" }, pino.destination({ dest: STANDARD_ERROR, sync: true }));
}

export async function runReseal(env: Environment, say: (text: string) => void): Promise<Outcome> {
  const report = await resealSecrets(parseConfig(env), { log: openLog(), say: (text) => say(`sluice: ${text}`) });
  const { resealed, left, unreadable, isFinished } = report;
  const words = [
    `${resealed} resealed, ${left} left.`,
    ...(unreadable > 0 ? [`${unreadable} cannot be read with any key: their owners have to state them again.`] : []),
    isFinished ? "The previous key is accepted no longer: unset ENCRYPTION_KEY_PREVIOUS." : "Run this again.",
  ];
  return { answer: report, words: words.join("\n") };
}

const ENDING: readonly (readonly [keyof LostCounts, string])[] = [
  ["apiKeys", "API keys are revoked"],
  ["sessions", "browser sessions end"],
  ["passwordLinks", "password links end"],
  ["authorizations", "authorizations under way end"],
  ["upstreamCredentials", "upstream credentials of registered models cannot be read: their owners state them again"],
  ["webhookSecrets", "webhook endpoints are switched off and get new secrets: their owners rotate and enable them"],
];

export async function runForget(env: Environment, confirm: string | null): Promise<Outcome> {
  const outcome = await forgetSecrets(parseConfig(env), confirm, openLog());
  const { name, counts, passwords, ownerKey } = outcome;
  if (ownerKey !== null) {
    const words = `${ownerKey}`;
    return { answer: outcome, words, advice: "This is the owner's new key. Start the gateway with the new ENCRYPTION_KEY." };
  }
  const lines = ENDING.map(([count, what]) => `${String(counts[count]).padStart(8)}  ${what}`);
  const words = [
    "Without the lost ENCRYPTION_KEY, this ends for good:",
    ...lines,
    `Accounts, balances, usage and files stay. ${passwords} people sign in with their passwords and make new keys; the owner gets a new key.`,
    `To do so, stop every gateway and run: npm run -s sluice -- secrets forget --confirm ${name}`,
  ];
  return { answer: outcome, words: words.join("\n") };
}
