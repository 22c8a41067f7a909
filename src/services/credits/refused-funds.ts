/** Amounts for refusals, read only after a refusal, and the way to more credits. */
import type { TopUp } from "../../lib/settings.js";
import type { Database } from "../../store/database.js";

export class RefusedFunds {
  constructor(
    private readonly database: Database,
    readonly topUp: TopUp | null,
    private readonly creditsPage: () => string | null = () => null,
  ) {}

  /** Address of the page where credits are bought, as it is in the details of every 402. Null: they are not sold here. */
  get topUpUrl(): string | null {
    return this.creditsPage();
  }

  /** Nanocredits; null: the key has no budget of its own, and draws on an ancestor's. */
  async ownBudget(apiKeyId: string): Promise<bigint | null> {
    const select = { budgetNanocredits: true, spentNanocredits: true, heldNanocredits: true } as const;
    const key = await this.database.prisma.apiKey.findUnique({ where: { id: apiKeyId }, select });
    return key?.budgetNanocredits == null ? null : key.budgetNanocredits - key.spentNanocredits - key.heldNanocredits;
  }

  /** Nanocredits outside of the tier bucket. */
  async bought(accountId: string): Promise<bigint> {
    const select = { cryptoNanocredits: true, packNanocredits: true, cryptoHeldNanocredits: true, packHeldNanocredits: true } as const;
    const account = await this.database.prisma.account.findUnique({ where: { id: accountId }, select });
    if (!account) return 0n;
    return account.cryptoNanocredits + account.packNanocredits - account.cryptoHeldNanocredits - account.packHeldNanocredits;
  }
}
