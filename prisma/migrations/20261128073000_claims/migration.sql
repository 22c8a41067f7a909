-- CreateEnum
CREATE TYPE "TopUpClaimKind" AS ENUM ('refund', 'dispute');

-- AlterEnum
ALTER TYPE "TopUpReversalKind" ADD VALUE 'refund_failed';

-- DropIndex
DROP INDEX "top_up_reversal_top_up_id_kind_reference_key";

-- AlterTable
ALTER TABLE "top_up_reversal" ADD COLUMN     "sold_nanocredits" BIGINT NOT NULL DEFAULT 0;

-- CreateTable
CREATE TABLE "top_up_claim" (
    "top_up_id" UUID NOT NULL,
    "kind" "TopUpClaimKind" NOT NULL,
    "reference" TEXT NOT NULL,
    "cents" BIGINT NOT NULL,
    "is_void" BOOLEAN NOT NULL DEFAULT false,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "top_up_claim_pkey" PRIMARY KEY ("top_up_id","kind","reference")
);

-- CreateIndex
CREATE INDEX "top_up_reversal_top_up_id_idx" ON "top_up_reversal"("top_up_id");

-- Books money of a refund or dispute that came back: `covered` reverses the write-off of credits that were spent, and the rest returns to the
-- bucket, `sold` of it as sold credits and the others as granted ones. Once for each id. Returns false when the id was booked before.
CREATE OR REPLACE FUNCTION credit_restore(booking_id uuid, to_account uuid, to_bucket "Bucket", amount bigint, covered bigint, sold bigint, booking_note text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  returned bigint := amount - covered;
BEGIN
  IF amount <= 0 OR covered NOT BETWEEN 0 AND amount OR sold NOT BETWEEN 0 AND returned THEN
    RAISE EXCEPTION 'of the % that came back, % cannot be covered, and % sold', amount, covered, sold USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account a WHERE a.id = to_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', to_account USING ERRCODE = 'no_data_found';
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    SELECT booking_id, part.line, to_account, part.book, 'refund', part.amount, booking_note
    FROM (VALUES (1, to_bucket::text::"LedgerBook", returned), (2, 'cash', -amount), (3, 'write_off', covered)) part(line, book, amount)
    WHERE part.amount <> 0
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM credit_mark(to_account);
  UPDATE account a SET
      crypto_nanocredits = a.crypto_nanocredits + CASE to_bucket WHEN 'crypto' THEN returned ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits + CASE to_bucket WHEN 'pack' THEN returned ELSE 0 END,
      crypto_marked_nanocredits = a.crypto_marked_nanocredits + CASE to_bucket WHEN 'crypto' THEN returned ELSE 0 END,
      pack_marked_nanocredits = a.pack_marked_nanocredits + CASE to_bucket WHEN 'pack' THEN returned ELSE 0 END,
      crypto_sold_nanocredits = a.crypto_sold_nanocredits + CASE to_bucket WHEN 'crypto' THEN sold ELSE 0 END,
      pack_sold_nanocredits = a.pack_sold_nanocredits + CASE to_bucket WHEN 'pack' THEN sold ELSE 0 END
    WHERE a.id = to_account;
  RETURN true;
END
$$;

-- The bookings so far, in cents of the charge. Refunds are one claim without an id, which gives way to those that the processor lists.
UPDATE top_up_reversal SET sold_nanocredits = moved_nanocredits;
-- So far a won dispute reversed no write-off.
UPDATE top_up_reversal SET nanocredits = moved_nanocredits WHERE kind = 'dispute_won';
INSERT INTO top_up_claim (top_up_id, kind, reference, cents, is_void, created_at)
  SELECT r.top_up_id, 'refund', '', t.refunded_cents * coalesce(t.charged_cents, t.amount_cents) / t.amount_cents, false, min(r.created_at)
  FROM top_up_reversal r JOIN top_up t ON t.id = r.top_up_id WHERE r.kind = 'refund' GROUP BY r.top_up_id, t.id;
INSERT INTO top_up_claim (top_up_id, kind, reference, cents, is_void, created_at)
  SELECT r.top_up_id, 'dispute', r.reference, coalesce(sum(r.amount_cents) FILTER (WHERE r.kind = 'dispute'), t.amount_cents) * coalesce(t.charged_cents, t.amount_cents) / t.amount_cents,
    bool_or(r.kind = 'dispute_won'), min(r.created_at)
  FROM top_up_reversal r JOIN top_up t ON t.id = r.top_up_id WHERE r.kind IN ('dispute', 'dispute_won') AND r.reference IS NOT NULL
  GROUP BY r.top_up_id, r.reference, t.id;
DELETE FROM top_up_reversal WHERE kind = 'dispute_won' AND amount_cents = 0;
ALTER TABLE "top_up_reversal" DROP CONSTRAINT "top_up_reversal_amounts_check",
    ADD CONSTRAINT "top_up_reversal_amounts_check" CHECK ("amount_cents" > 0 AND "moved_nanocredits" BETWEEN 0 AND "nanocredits" AND "sold_nanocredits" BETWEEN 0 AND "moved_nanocredits");
ALTER TABLE "top_up_claim" ADD CONSTRAINT "top_up_claim_cents_check" CHECK ("cents" > 0);
