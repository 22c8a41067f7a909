-- CreateEnum
CREATE TYPE "AlertKind" AS ENUM ('spend_unusual', 'budget_reached', 'top_up_failed', 'key_unused', 'model_deprecated');

-- CreateTable
CREATE TABLE "alert" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "kind" "AlertKind" NOT NULL,
    "occurrence" TEXT NOT NULL,
    "subject_id" TEXT NOT NULL,
    "subject_name" TEXT,
    "details" JSONB NOT NULL,
    "is_silenced" BOOLEAN NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "acknowledged_at" TIMESTAMPTZ(3),

    CONSTRAINT "alert_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "alert_rule" (
    "account_id" UUID NOT NULL,
    "kind" "AlertKind" NOT NULL,
    "is_enabled" BOOLEAN NOT NULL,
    "parameters" JSONB NOT NULL,

    CONSTRAINT "alert_rule_pkey" PRIMARY KEY ("account_id","kind")
);

-- CreateTable
CREATE TABLE "alert_silence" (
    "account_id" UUID NOT NULL,
    "kind" "AlertKind" NOT NULL,
    "subject_id" TEXT NOT NULL,
    "until" TIMESTAMPTZ(3),

    CONSTRAINT "alert_silence_pkey" PRIMARY KEY ("account_id","kind","subject_id")
);

-- CreateIndex
CREATE INDEX "alert_account_id_created_at_id_idx" ON "alert"("account_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "alert_created_at_idx" ON "alert"("created_at");

-- CreateIndex
CREATE UNIQUE INDEX "alert_account_id_kind_occurrence_key" ON "alert"("account_id", "kind", "occurrence");
