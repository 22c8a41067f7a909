/** Credits that an account has bought at the development checkout, without its page. */
import { randomUUID } from "node:crypto";
import type { TestApp } from "./app.js";

const NANOCREDITS_PER_CENT = 10_000_000n;

/** Returns the id of the top-up. */
export async function buyCredits(app: TestApp, accountId: string, cents: bigint): Promise<string> {
  const id = randomUUID();
  const price = { processor: "development", currency: "usd", nanocredits: cents * NANOCREDITS_PER_CENT, amountCents: cents };
  await app.database.prisma.topUp.create({ data: { id, accountId, ...price, expiresAt: new Date() } });
  const result = await app.services.topUps.bookPayment("development", { topUpId: id, cents, currency: "usd" });
  if (!result) throw new Error("the payment was refused");
  return id;
}
