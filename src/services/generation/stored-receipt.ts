/** Receipts as JSON columns hold them: amounts are decimal strings of nanocredits. */
import type { Receipt } from "./receipt.js";

type Amount = "costNanocredits" | "heldNanocredits";

export type StoredReceipt = Omit<Receipt, Amount> & Readonly<Record<Amount, string>>;

export function toStoredReceipt(receipt: Receipt): StoredReceipt {
  return { ...receipt, costNanocredits: receipt.costNanocredits.toString(), heldNanocredits: receipt.heldNanocredits.toString() };
}

/** `stored` is what `toStoredReceipt` made, as it came out of the database. */
export function fromStoredReceipt(stored: unknown): Receipt {
  const receipt = stored as StoredReceipt;
  return { ...receipt, costNanocredits: BigInt(receipt.costNanocredits), heldNanocredits: BigInt(receipt.heldNanocredits) };
}
