-- CreateEnum
CREATE TYPE "ApiKeyType" AS ENUM ('secret', 'publishable');

-- CreateEnum
CREATE TYPE "Bucket" AS ENUM ('tier', 'crypto', 'pack');

-- CreateEnum
CREATE TYPE "Modality" AS ENUM ('text', 'image', 'video', 'speech', 'music', 'transcription', 'embedding', 'realtime');

-- CreateEnum
CREATE TYPE "UsageStatus" AS ENUM ('ok', 'cancelled');

-- CreateEnum
CREATE TYPE "UsageSource" AS ENUM ('provider', 'estimated', 'partial');

-- CreateEnum
CREATE TYPE "LedgerBook" AS ENUM ('tier', 'crypto', 'pack', 'revenue', 'write_off', 'issued');

-- CreateEnum
CREATE TYPE "LedgerKind" AS ENUM ('charge', 'grant', 'refill');

-- CreateTable
CREATE TABLE "account" (
    "id" UUID NOT NULL,
    "handle" TEXT NOT NULL,
    "name" TEXT,
    "email" TEXT,
    "github_username" TEXT,
    "image" TEXT,
    "tier" TEXT,
    "is_operator" BOOLEAN NOT NULL DEFAULT false,
    "tier_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "crypto_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "pack_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "tier_held_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "crypto_held_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "pack_held_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "tier_resets_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "account_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "api_key" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "hash" BYTEA NOT NULL,
    "type" "ApiKeyType" NOT NULL,
    "name" TEXT NOT NULL,
    "start" TEXT NOT NULL,
    "permissions" TEXT[],
    "restricts_models" BOOLEAN NOT NULL DEFAULT false,
    "allowed_models" TEXT[],
    "budget_nanocredits" BIGINT,
    "spent_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "held_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "expires_at" TIMESTAMPTZ(3),
    "revoked_at" TIMESTAMPTZ(3),
    "last_used_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "api_key_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "hold" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "process_id" UUID NOT NULL,
    "paid_only" BOOLEAN NOT NULL,
    "tier_nanocredits" BIGINT NOT NULL,
    "crypto_nanocredits" BIGINT NOT NULL,
    "pack_nanocredits" BIGINT NOT NULL,
    "metered_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "record" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "hold_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "ledger_entry" (
    "transaction_id" UUID NOT NULL,
    "line" SMALLINT NOT NULL,
    "account_id" UUID NOT NULL,
    "book" "LedgerBook" NOT NULL,
    "kind" "LedgerKind" NOT NULL,
    "amount_nanocredits" BIGINT NOT NULL,
    "note" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "ledger_entry_pkey" PRIMARY KEY ("transaction_id","line")
);

-- CreateTable
CREATE TABLE "usage_record" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "api_key_name" TEXT,
    "api_key_type" "ApiKeyType",
    "timestamp" TIMESTAMPTZ(3) NOT NULL,
    "modality" "Modality" NOT NULL,
    "model" TEXT NOT NULL,
    "model_used" TEXT NOT NULL,
    "meter_source" "Bucket" NOT NULL,
    "input_text_tokens" INTEGER NOT NULL DEFAULT 0,
    "input_cached_tokens" INTEGER NOT NULL DEFAULT 0,
    "input_cache_write_tokens" INTEGER NOT NULL DEFAULT 0,
    "input_audio_tokens" INTEGER NOT NULL DEFAULT 0,
    "input_image_tokens" INTEGER NOT NULL DEFAULT 0,
    "output_text_tokens" INTEGER NOT NULL DEFAULT 0,
    "output_reasoning_tokens" INTEGER NOT NULL DEFAULT 0,
    "output_audio_tokens" INTEGER NOT NULL DEFAULT 0,
    "output_image_tokens" INTEGER NOT NULL DEFAULT 0,
    "output_video_milliseconds" INTEGER NOT NULL DEFAULT 0,
    "output_audio_milliseconds" INTEGER NOT NULL DEFAULT 0,
    "cost_nanocredits" BIGINT NOT NULL,
    "response_time_ms" INTEGER NOT NULL,
    "time_to_first_token_ms" INTEGER,
    "status" "UsageStatus" NOT NULL,
    "usage_source" "UsageSource" NOT NULL,
    "parent_request_id" UUID,

    CONSTRAINT "usage_record_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "usage_daily" (
    "account_id" UUID NOT NULL,
    "day" DATE NOT NULL,
    "model" TEXT NOT NULL,
    "meter_source" "Bucket" NOT NULL,
    "requests" INTEGER NOT NULL,
    "cost_nanocredits" BIGINT NOT NULL,

    CONSTRAINT "usage_daily_pkey" PRIMARY KEY ("account_id","day","model","meter_source")
);

-- CreateTable
CREATE TABLE "gateway_process" (
    "id" UUID NOT NULL,
    "instance_id" UUID NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "heartbeat_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "gateway_process_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "deployment_setting" (
    "name" TEXT NOT NULL,
    "value" TEXT NOT NULL,

    CONSTRAINT "deployment_setting_pkey" PRIMARY KEY ("name")
);

-- CreateIndex
CREATE UNIQUE INDEX "account_handle_key" ON "account"("handle");

-- CreateIndex
CREATE UNIQUE INDEX "api_key_hash_key" ON "api_key"("hash");

-- CreateIndex
CREATE INDEX "api_key_account_id_created_at_id_idx" ON "api_key"("account_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "usage_record_account_id_timestamp_id_idx" ON "usage_record"("account_id", "timestamp" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "usage_record_api_key_id_timestamp_id_idx" ON "usage_record"("api_key_id", "timestamp" DESC, "id" DESC);

-- AddForeignKey
ALTER TABLE "api_key" ADD CONSTRAINT "api_key_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- Written by hand from here on: what the schema language cannot state.

-- Money is never negative, and what is held is there: a bucket minus its holds is an overdraft that cannot be written.
ALTER TABLE "account"
    ADD CONSTRAINT "account_tier_check" CHECK ("tier_held_nanocredits" >= 0 AND "tier_nanocredits" >= "tier_held_nanocredits"),
    ADD CONSTRAINT "account_crypto_check" CHECK ("crypto_held_nanocredits" >= 0 AND "crypto_nanocredits" >= "crypto_held_nanocredits"),
    ADD CONSTRAINT "account_pack_check" CHECK ("pack_held_nanocredits" >= 0 AND "pack_nanocredits" >= "pack_held_nanocredits");

ALTER TABLE "api_key"
    ADD CONSTRAINT "api_key_spent_check" CHECK ("spent_nanocredits" >= 0),
    ADD CONSTRAINT "api_key_held_check" CHECK ("held_nanocredits" >= 0),
    ADD CONSTRAINT "api_key_budget_check" CHECK ("budget_nanocredits" IS NULL OR "spent_nanocredits" + "held_nanocredits" <= "budget_nanocredits");

ALTER TABLE "hold"
    ADD CONSTRAINT "hold_amounts_check" CHECK (
        "tier_nanocredits" >= 0 AND "crypto_nanocredits" >= 0 AND "pack_nanocredits" >= 0 AND "metered_nanocredits" >= 0
    ),
    ADD CONSTRAINT "hold_paid_only_check" CHECK (NOT "paid_only" OR "tier_nanocredits" = 0);

-- A charge moves credits from buckets (and write_off) to revenue, everything else moves them between issued and buckets.
ALTER TABLE "ledger_entry"
    ADD CONSTRAINT "ledger_entry_line_check" CHECK ("line" >= 0),
    ADD CONSTRAINT "ledger_entry_book_check" CHECK (
        CASE "kind" WHEN 'charge' THEN "book" <> 'issued' ELSE "book" NOT IN ('revenue', 'write_off') END
    );

ALTER TABLE "usage_record"
    ADD CONSTRAINT "usage_record_amounts_check" CHECK (
        "input_text_tokens" >= 0 AND "input_cached_tokens" >= 0 AND "input_cache_write_tokens" >= 0
        AND "input_audio_tokens" >= 0 AND "input_image_tokens" >= 0
        AND "output_text_tokens" >= 0 AND "output_reasoning_tokens" >= 0
        AND "output_audio_tokens" >= 0 AND "output_image_tokens" >= 0
        AND "output_video_milliseconds" >= 0 AND "output_audio_milliseconds" >= 0
    ),
    ADD CONSTRAINT "usage_record_cost_check" CHECK ("cost_nanocredits" >= 0),
    ADD CONSTRAINT "usage_record_times_check" CHECK ("response_time_ms" >= 0 AND "time_to_first_token_ms" >= 0);

ALTER TABLE "usage_daily"
    ADD CONSTRAINT "usage_daily_amounts_check" CHECK ("requests" >= 0 AND "cost_nanocredits" >= 0);

-- The ledger is append-only. ENABLE ALWAYS, so that a session that replays a replication stream cannot pass either.
CREATE FUNCTION "ledger_entry_refuse_change"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ledger_entry is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;

CREATE TRIGGER "ledger_entry_append_only"
    BEFORE UPDATE OR DELETE OR TRUNCATE ON "ledger_entry"
    FOR EACH STATEMENT EXECUTE FUNCTION "ledger_entry_refuse_change"();

ALTER TABLE "ledger_entry" ENABLE ALWAYS TRIGGER "ledger_entry_append_only";

-- Rows that nearly every flush rewrites: room on their page keeps the new version there and out of the indexes (HOT).
ALTER TABLE "account" SET (fillfactor = 50);
ALTER TABLE "api_key" SET (fillfactor = 50);
ALTER TABLE "hold" SET (fillfactor = 50);
ALTER TABLE "usage_daily" SET (fillfactor = 50);
