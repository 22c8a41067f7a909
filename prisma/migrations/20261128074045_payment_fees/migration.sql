-- CreateEnum
CREATE TYPE "PaymentFeeKind" AS ENUM ('payment', 'dispute');

-- CreateTable
CREATE TABLE "payment_fee" (
    "processor" TEXT NOT NULL,
    "reference" TEXT NOT NULL,
    "kind" "PaymentFeeKind" NOT NULL,
    "top_up_id" UUID NOT NULL,
    "cents" BIGINT NOT NULL,
    "booked_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "attempts" INTEGER NOT NULL DEFAULT 0,
    "next_at" TIMESTAMPTZ(3),

    CONSTRAINT "payment_fee_pkey" PRIMARY KEY ("processor","reference")
);

-- CreateIndex
CREATE INDEX "payment_fee_next_at_idx" ON "payment_fee"("next_at");

-- Books a fee of a payment processor, once for each id; an amount below 0 is a fee that came back. Returns false when the id was booked before.
CREATE OR REPLACE FUNCTION credit_book_fee(booking_id uuid, of_account uuid, amount bigint, booking_note text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF amount = 0 THEN
    RAISE EXCEPTION 'a fee is not 0' USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (booking_id, 1, of_account, 'fees', 'fee', -amount, booking_note), (booking_id, 2, of_account, 'cash', 'fee', amount, booking_note)
    ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$$;

ALTER TABLE "payment_fee" ADD CONSTRAINT "payment_fee_amounts_check" CHECK ("cents" > 0 AND "attempts" >= 0);
-- Those of the payments and disputes so far.
INSERT INTO payment_fee (processor, reference, kind, top_up_id, cents, next_at)
  SELECT processor, payment_reference, 'payment', id, coalesce(charged_cents, amount_cents), now()
  FROM top_up WHERE status = 'paid' AND processor = 'stripe' AND payment_reference IS NOT NULL;
INSERT INTO payment_fee (processor, reference, kind, top_up_id, cents, next_at)
  SELECT t.processor, c.reference, 'dispute', t.id, c.cents, now()
  FROM top_up_claim c JOIN top_up t ON t.id = c.top_up_id WHERE c.kind = 'dispute' AND t.processor = 'stripe' ON CONFLICT DO NOTHING;
