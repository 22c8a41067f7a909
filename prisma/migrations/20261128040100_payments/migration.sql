-- CreateEnum
CREATE TYPE "TopUpReversalKind" AS ENUM ('refund', 'dispute', 'dispute_won');

-- AlterTable
ALTER TABLE "top_up" ADD COLUMN     "charged_cents" BIGINT,
ADD COLUMN     "disputed_cents" BIGINT NOT NULL DEFAULT 0,
ADD COLUMN     "failure" TEXT,
ADD COLUMN     "is_automatic" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "payment_reference" TEXT,
ADD COLUMN     "receipt_number" INTEGER;

-- CreateTable
CREATE TABLE "top_up_reversal" (
    "id" UUID NOT NULL,
    "top_up_id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "kind" "TopUpReversalKind" NOT NULL,
    "reference" TEXT,
    "amount_cents" BIGINT NOT NULL,
    "nanocredits" BIGINT NOT NULL,
    "moved_nanocredits" BIGINT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "top_up_reversal_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "payment_customer" (
    "account_id" UUID NOT NULL,
    "processor" TEXT NOT NULL,
    "reference" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "payment_customer_pkey" PRIMARY KEY ("account_id","processor")
);

-- CreateTable
CREATE TABLE "payment_event" (
    "processor" TEXT NOT NULL,
    "event_id" TEXT NOT NULL,
    "type" TEXT NOT NULL,
    "top_up_id" UUID,
    "result" TEXT NOT NULL,
    "at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "payment_event_pkey" PRIMARY KEY ("processor","event_id")
);

-- CreateTable
CREATE TABLE "auto_top_up" (
    "account_id" UUID NOT NULL,
    "is_enabled" BOOLEAN NOT NULL,
    "threshold_nanocredits" BIGINT NOT NULL,
    "amount_nanocredits" BIGINT NOT NULL,
    "monthly_nanocredits" BIGINT NOT NULL,
    "attempt_id" UUID,
    "next_at" TIMESTAMPTZ(3),
    "failures" INTEGER NOT NULL DEFAULT 0,
    "problem" TEXT,
    "gave_up_at" TIMESTAMPTZ(3),
    "updated_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "auto_top_up_pkey" PRIMARY KEY ("account_id")
);

-- CreateIndex
CREATE INDEX "top_up_reversal_created_at_idx" ON "top_up_reversal"("created_at");

-- CreateIndex
CREATE UNIQUE INDEX "top_up_reversal_top_up_id_kind_reference_key" ON "top_up_reversal"("top_up_id", "kind", "reference");

-- CreateIndex
CREATE UNIQUE INDEX "payment_customer_processor_reference_key" ON "payment_customer"("processor", "reference");

-- CreateIndex
CREATE INDEX "payment_event_at_idx" ON "payment_event"("at");

-- CreateIndex
CREATE UNIQUE INDEX "auto_top_up_attempt_id_key" ON "auto_top_up"("attempt_id");

-- CreateIndex
CREATE INDEX "auto_top_up_is_enabled_gave_up_at_idx" ON "auto_top_up"("is_enabled", "gave_up_at");

-- CreateIndex
CREATE UNIQUE INDEX "top_up_receipt_number_key" ON "top_up"("receipt_number");

-- CreateIndex
CREATE INDEX "top_up_paid_at_idx" ON "top_up"("paid_at");

-- CreateIndex
CREATE UNIQUE INDEX "top_up_processor_payment_reference_key" ON "top_up"("processor", "payment_reference");

ALTER TABLE "top_up"
    ADD CONSTRAINT "top_up_disputes_check" CHECK ("disputed_cents" >= 0 AND "refunded_cents" + "disputed_cents" <= "amount_cents");
ALTER TABLE "top_up_reversal"
    ADD CONSTRAINT "top_up_reversal_amounts_check" CHECK ("amount_cents" >= 0 AND "moved_nanocredits" BETWEEN 0 AND "nanocredits");
ALTER TABLE "auto_top_up"
    ADD CONSTRAINT "auto_top_up_amounts_check" CHECK ("threshold_nanocredits" > 0 AND "amount_nanocredits" > 0 AND "monthly_nanocredits" >= "amount_nanocredits");
