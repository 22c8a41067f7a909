/** Accounts with tiers, and a gateway whose clock a test sets. */
import type { Tier } from "../../src/lib/settings.js";
import { createPayer, databaseOf, type Payer, type PayerOptions } from "../e2e/money.js";
import { createTestApp, type TestApp } from "./app.js";

const CREDIT = 1_000_000_000n;
const DAY_MS = 24 * 60 * 60 * 1000;

export const TEST_TIERS: readonly Tier[] = [
  { name: "free", nanocredits: 1n * CREDIT, period: "day" },
  { name: "plus", nanocredits: 5n * CREDIT, period: "day" },
  { name: "idle", nanocredits: 7n * CREDIT, period: null },
];

export interface TierApp extends TestApp {
  /** Where the clock stands still until it is set. */
  readonly noon: Date;
  /** The boundary that follows. */
  readonly midnight: Date;
  readonly nextMidnight: Date;
  setClock(now: Date): void;
}

/** The clock stands at noon (UTC) of today: what the database dates by itself is of the same day. */
export async function createTierApp(): Promise<TierApp> {
  const noon = new Date(new Date().setUTCHours(12, 0, 0, 0));
  const midnight = new Date(noon.getTime() + DAY_MS / 2);
  let now = noon;
  const prices = { promptTextPrice: "0", completionTextPrice: "1" };
  const dearPaidOnly = {
    id: "acme/dear-paid-only",
    title: "x",
    modality: "text",
    upstream: "acme",
    upstreamModel: "x",
    paidOnly: true,
    prices,
  };
  const app = await createTestApp({ clock: { now: () => now }, config: { tiers: TEST_TIERS }, models: [dearPaidOnly] });
  return {
    ...app,
    noon,
    midnight,
    nextMidnight: new Date(midnight.getTime() + DAY_MS),
    setClock: (time) => {
      now = time;
    },
  };
}

export interface TierAccountOptions extends PayerOptions {
  readonly tier?: never;
  readonly tierName?: string | null;
  readonly permissions?: readonly string[];
  /** The app that its key was granted to. */
  readonly appKeyId?: string;
}

/** A new account of the tier free unless said, not refilled yet. */
export async function createTierAccount(app: TestApp, options: TierAccountOptions = {}): Promise<Payer> {
  const { tierName = "free", permissions = ["profile", "balance", "usage", "keys"], appKeyId = null, ...buckets } = options;
  const payer = await createPayer(app, buckets);
  const { prisma } = databaseOf(app);
  await prisma.account.update({ where: { id: payer.accountId }, data: { tier: tierName } });
  await prisma.apiKey.update({ where: { id: payer.apiKeyId }, data: { permissions: [...permissions], appKeyId } });
  return payer;
}
