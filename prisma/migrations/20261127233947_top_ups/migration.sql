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

-- They get parameters with defaults: processes of the version before call them as they did.
DROP FUNCTION credit_grant(uuid, uuid, "Bucket", bigint, text);
DROP FUNCTION credit_withdraw(uuid, uuid, "Bucket", bigint, text);

-- Adds `amount` to a bucket, once for each id, against another book: a grant, or a booking of another kind. Returns false when the id was
-- booked before. The kind is a text, because a migration cannot name a value of an enum that it adds.
CREATE OR REPLACE FUNCTION credit_grant(booking_id uuid, to_account uuid, to_bucket "Bucket", amount bigint, booking_note text, booking_kind text DEFAULT 'grant', against text DEFAULT 'issued') RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = to_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', to_account USING ERRCODE = 'no_data_found';
  END IF;
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a % is more than 0, not %', booking_kind, amount USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (booking_id, 1, to_account, to_bucket::text::"LedgerBook", booking_kind::"LedgerKind", amount, booking_note),
           (booking_id, 2, to_account, against::"LedgerBook", booking_kind::"LedgerKind", -amount, booking_note)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE account a SET
      tier_nanocredits = a.tier_nanocredits + CASE to_bucket WHEN 'tier' THEN amount ELSE 0 END,
      crypto_nanocredits = a.crypto_nanocredits + CASE to_bucket WHEN 'crypto' THEN amount ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits + CASE to_bucket WHEN 'pack' THEN amount ELSE 0 END
    WHERE a.id = to_account;
  RETURN true;
END
$$;

-- Takes credits of a bucket against another book, at most those that no hold and no lease ties up, once for each id. Leases are folded first.
-- The rest of the amount is written off if `writes_off`; else the booking is of the taken part alone, and there is none for 0. Returns the
-- amount that was taken; the amount of the first time when it was taken before.
CREATE OR REPLACE FUNCTION credit_withdraw(booking_id uuid, of_account uuid, from_bucket "Bucket", amount bigint, booking_note text, booking_kind text DEFAULT 'withdrawal', against text DEFAULT 'issued', writes_off boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a      account%ROWTYPE;
  taken  bigint;
  booked bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a % is more than 0, not %', booking_kind, amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', of_account USING ERRCODE = 'no_data_found';
  END IF;
  IF EXISTS (SELECT FROM ledger_entry l WHERE l.transaction_id = booking_id) THEN
    SELECT coalesce(-sum(l.amount_nanocredits), 0) INTO taken FROM ledger_entry l
      WHERE l.transaction_id = booking_id AND l.book = from_bucket::text::"LedgerBook";
    RETURN taken;
  END IF;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  taken := greatest(0, least(amount, CASE from_bucket
    WHEN 'tier' THEN a.tier_nanocredits - a.tier_held_nanocredits
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    WHEN 'pack' THEN a.pack_nanocredits - a.pack_held_nanocredits
  END));
  booked := CASE WHEN writes_off THEN amount ELSE taken END;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    SELECT booking_id, part.line, of_account, part.book, booking_kind::"LedgerKind", part.amount, booking_note
    FROM (VALUES (1, from_bucket::text::"LedgerBook", -taken), (2, against::"LedgerBook", booked), (3, 'write_off', taken - booked)) part(line, book, amount)
    WHERE part.amount <> 0;
  UPDATE account SET
      tier_nanocredits = a.tier_nanocredits - CASE from_bucket WHEN 'tier' THEN taken ELSE 0 END,
      crypto_nanocredits = a.crypto_nanocredits - CASE from_bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE from_bucket WHEN 'pack' THEN taken ELSE 0 END
    WHERE account.id = of_account AND taken > 0;
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
