-- AlterTable
ALTER TABLE "account" ADD COLUMN     "is_low_balance_told" BOOLEAN NOT NULL DEFAULT true,
ADD COLUMN     "low_balance_since" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "webhook_delivery" ADD COLUMN     "leased_until" TIMESTAMPTZ(3);

-- AlterTable
ALTER TABLE "webhook_endpoint" ADD COLUMN     "disabled_reason" TEXT,
ADD COLUMN     "listens_since" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
ADD COLUMN     "previous_secret" BYTEA,
ADD COLUMN     "previous_secret_expires_at" TIMESTAMPTZ(3);

-- CreateIndex
CREATE INDEX "account_is_low_balance_told_idx" ON "account"("is_low_balance_told");

-- DropIndex
DROP INDEX "webhook_delivery_status_next_attempt_at_idx";

-- CreateIndex
CREATE INDEX "webhook_delivery_finished_at_idx" ON "webhook_delivery"("finished_at");

-- CreateIndex
CREATE INDEX "webhook_delivery_status_endpoint_id_next_attempt_at_idx" ON "webhook_delivery"("status", "endpoint_id", "next_attempt_at");

-- Whether the balance, which is the sum of the buckets, is below what its account wants to be told of. A row-level trigger, so
-- that charges, grants, refills and whatever else moves credits need not know of it; it is not called for accounts without a
-- threshold. A threshold that is set above the balance is no fall below it: there is nothing to tell until the next one.
CREATE FUNCTION account_watch_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.low_balance_nanocredits IS NULL
     OR NEW.tier_nanocredits + NEW.crypto_nanocredits + NEW.pack_nanocredits >= NEW.low_balance_nanocredits THEN
    NEW.low_balance_since := NULL;
    NEW.is_low_balance_told := true;
  ELSIF OLD.low_balance_since IS NULL THEN
    NEW.low_balance_since := now();
    NEW.is_low_balance_told := OLD.low_balance_nanocredits IS DISTINCT FROM NEW.low_balance_nanocredits;
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER account_balance_watched
  BEFORE UPDATE OF low_balance_nanocredits, tier_nanocredits, crypto_nanocredits, pack_nanocredits ON account
  FOR EACH ROW WHEN (OLD.low_balance_nanocredits IS NOT NULL OR NEW.low_balance_nanocredits IS NOT NULL)
  EXECUTE FUNCTION account_watch_balance();
