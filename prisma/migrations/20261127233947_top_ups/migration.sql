-- CreateEnum
CREATE TYPE "TopUpStatus" AS ENUM ('open', 'paid', 'cancelled');

-- AlterEnum
ALTER TYPE "LedgerBook" ADD VALUE 'cash';

-- AlterEnum
-- This migration adds more than one value to an enum.
-- With PostgreSQL versions 11 and earlier, this is not possible
-- in a single migration. This can be worked around by creating
-- multiple migrations, each migration adding only one value to
-- the enum.


ALTER TYPE "LedgerKind" ADD VALUE 'purchase';
ALTER TYPE "LedgerKind" ADD VALUE 'refund';

-- CreateTable
CREATE TABLE "top_up" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "processor" TEXT NOT NULL,
    "reference" TEXT,
    "status" "TopUpStatus" NOT NULL DEFAULT 'open',
    "nanocredits" BIGINT NOT NULL,
    "currency" TEXT NOT NULL,
    "amount_cents" BIGINT NOT NULL,
    "refunded_cents" BIGINT NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "paid_at" TIMESTAMPTZ(3),

    CONSTRAINT "top_up_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "top_up_account_id_created_at_id_idx" ON "top_up"("account_id", "created_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "top_up_processor_reference_key" ON "top_up"("processor", "reference");

-- Adds credits that were paid for to a bucket, once for each id. Returns false when that purchase was booked before.
CREATE OR REPLACE FUNCTION credit_purchase(purchase_id uuid, to_account uuid, to_bucket "Bucket", amount bigint, purchase_note text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = to_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', to_account USING ERRCODE = 'no_data_found';
  END IF;
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a purchase is more than 0, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (purchase_id, 1, to_account, to_bucket::text::"LedgerBook", 'purchase', amount, purchase_note),
           (purchase_id, 2, to_account, 'cash', 'purchase', -amount, purchase_note)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE account a SET
      crypto_nanocredits = a.crypto_nanocredits + CASE to_bucket WHEN 'crypto' THEN amount ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits + CASE to_bucket WHEN 'pack' THEN amount ELSE 0 END
    WHERE a.id = to_account;
  RETURN true;
END
$$;

-- Takes credits whose money was paid back, once for each id: from the bucket the part that no hold and no lease ties up; the rest, which is spent,
-- is written off. Leases are folded first. Returns the amount that the bucket lost, of the first time when it was booked before.
CREATE OR REPLACE FUNCTION credit_refund(refund_id uuid, of_account uuid, from_bucket "Bucket", amount bigint, refund_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a     account%ROWTYPE;
  taken bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a refund is more than 0, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', of_account USING ERRCODE = 'no_data_found';
  END IF;
  IF EXISTS (SELECT FROM ledger_entry l WHERE l.transaction_id = refund_id) THEN
    SELECT coalesce(-sum(l.amount_nanocredits), 0) INTO taken FROM ledger_entry l
      WHERE l.transaction_id = refund_id AND l.book = from_bucket::text::"LedgerBook";
    RETURN taken;
  END IF;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  taken := greatest(0, least(amount, CASE from_bucket
    WHEN 'tier' THEN 0
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    WHEN 'pack' THEN a.pack_nanocredits - a.pack_held_nanocredits
  END));
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    SELECT refund_id, row_number() OVER (), of_account, part.book, 'refund', part.amount, refund_note
    FROM (VALUES (from_bucket::text::"LedgerBook", -taken), ('write_off', taken - amount), ('cash', amount)) part(book, amount)
    WHERE part.amount <> 0;
  UPDATE account SET
      crypto_nanocredits = a.crypto_nanocredits - CASE from_bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE from_bucket WHEN 'pack' THEN taken ELSE 0 END
    WHERE account.id = of_account;
  RETURN taken;
END
$$;

-- Each kind has its books. Older rows satisfied a narrower check. As text, because new values of an enum cannot be used in the transaction
-- that adds them.
ALTER TABLE "ledger_entry" DROP CONSTRAINT "ledger_entry_book_check";
ALTER TABLE "ledger_entry" ADD CONSTRAINT "ledger_entry_book_check" CHECK (
    CASE "kind"::text
        WHEN 'charge' THEN "book"::text NOT IN ('issued', 'cash')
        WHEN 'purchase' THEN "book"::text IN ('crypto', 'pack', 'cash')
        WHEN 'refund' THEN "book"::text IN ('crypto', 'pack', 'cash', 'write_off')
        ELSE "book"::text NOT IN ('revenue', 'write_off', 'cash')
    END
) NOT VALID;

ALTER TABLE "top_up"
    ADD CONSTRAINT "top_up_amounts_check" CHECK ("nanocredits" > 0 AND "amount_cents" > 0 AND "refunded_cents" BETWEEN 0 AND "amount_cents");
