/** What a refusal tells of money that the ledger's own answer does not say. Asked only once a hold has been refused. */
import type { Database } from "../../store/database.js";

export class RefusedFunds {
  constructor(private readonly database: Database) {}

  /** What can be set aside of the key's own budget, in nanocredits; null: it has none, and draws on that of a key that made it. */
  async ownBudget(apiKeyId: string): Promise<bigint | null> {
    const select = { budgetNanocredits: true, spentNanocredits: true, heldNanocredits: true } as const;
    const key = await this.database.prisma.apiKey.findUnique({ where: { id: apiKeyId }, select });
    return key?.budgetNanocredits == null ? null : key.budgetNanocredits - key.spentNanocredits - key.heldNanocredits;
  }

  /** What can be set aside of the credits that the account was not given by its tier. */
  async bought(accountId: string): Promise<bigint> {
    const select = { cryptoNanocredits: true, packNanocredits: true, cryptoHeldNanocredits: true, packHeldNanocredits: true } as const;
    const account = await this.database.prisma.account.findUnique({ where: { id: accountId }, select });
    if (!account) return 0n;
    return account.cryptoNanocredits + account.packNanocredits - account.cryptoHeldNanocredits - account.packHeldNanocredits;
  }
}
