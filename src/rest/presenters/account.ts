/** The account as REST shows it (docs/spec/accounts.md). */
import { toCreditsNumber } from "../../lib/money.js";
import type { AccountRow } from "../../services/accounts/accounts.js";

export function toProfile({ name, email, githubUsername, image, tier, createdAt, nextResetAt }: AccountRow) {
  return { name, email, githubUsername, image, tier, createdAt, nextResetAt };
}

/** In credits. */
export function toBalance({ balance }: { readonly balance: bigint }) {
  return { balance: toCreditsNumber(balance) };
}
