/** Receipts as JSON columns hold them: amounts are decimal strings of nanocredits. */
import type { Receipt } from "./receipt.js";

type Amount = "costNanocredits" | "heldNanocredits";

/** What an agent asked for was charged once: no answer that is kept tells it again. */
export type StoredReceipt = Omit<Receipt, Amount | "childCostNanocredits"> & Readonly<Record<Amount, string>>;

export function toStoredReceipt({ childCostNanocredits: _, ...receipt }: Receipt): StoredReceipt {
  return { ...receipt, costNanocredits: receipt.costNanocredits.toString(), heldNanocredits: receipt.heldNanocredits.toString() };
}

/** `stored` is what `toStoredReceipt` made, as it came out of the database. */
export function fromStoredReceipt(stored: unknown): Receipt {
  const receipt = stored as StoredReceipt;
  return { ...receipt, costNanocredits: BigInt(receipt.costNanocredits), heldNanocredits: BigInt(receipt.heldNanocredits) };
}
