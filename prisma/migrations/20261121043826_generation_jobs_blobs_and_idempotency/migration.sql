-- CreateEnum
CREATE TYPE "GenerationJobStatus" AS ENUM ('queued', 'running', 'succeeded', 'failed', 'cancelled');

-- CreateEnum
CREATE TYPE "IdempotentRequestStatus" AS ENUM ('running', 'done');

-- CreateTable
CREATE TABLE "generation_job" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "modality" "Modality" NOT NULL,
    "model" TEXT NOT NULL,
    "status" "GenerationJobStatus" NOT NULL DEFAULT 'queued',
    "progress" SMALLINT NOT NULL DEFAULT 0,
    "request" JSONB NOT NULL,
    "result_key" TEXT,
    "result_content_type" TEXT,
    "receipt" JSONB,
    "error_code" TEXT,
    "error_message" TEXT,
    "process_id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "generation_job_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "media_file" (
    "id" TEXT NOT NULL,
    "sha256" BYTEA NOT NULL,
    "account_id" UUID NOT NULL,
    "content_type" TEXT NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "name" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "media_file_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "content_cache_entry" (
    "store_id" UUID NOT NULL,
    "key" BYTEA NOT NULL,
    "blob_key" TEXT NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "answer" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "used_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "content_cache_entry_pkey" PRIMARY KEY ("store_id","key")
);

-- CreateTable
CREATE TABLE "idempotent_request" (
    "id" UUID NOT NULL,
    "scope_id" UUID NOT NULL,
    "key" TEXT NOT NULL,
    "account_id" UUID NOT NULL,
    "fingerprint" BYTEA NOT NULL,
    "generation_id" UUID NOT NULL,
    "process_id" UUID NOT NULL,
    "status" "IdempotentRequestStatus" NOT NULL DEFAULT 'running',
    "status_code" SMALLINT,
    "headers" JSONB,
    "body" BYTEA,
    "body_key" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "idempotent_request_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "generation_job_account_id_created_at_id_idx" ON "generation_job"("account_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "generation_job_expires_at_idx" ON "generation_job"("expires_at");

-- CreateIndex
CREATE INDEX "media_file_expires_at_idx" ON "media_file"("expires_at");

-- CreateIndex
CREATE INDEX "content_cache_entry_store_id_used_at_idx" ON "content_cache_entry"("store_id", "used_at");

-- CreateIndex
CREATE INDEX "content_cache_entry_expires_at_idx" ON "content_cache_entry"("expires_at");

-- CreateIndex
CREATE INDEX "idempotent_request_expires_at_idx" ON "idempotent_request"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "idempotent_request_scope_id_key_key" ON "idempotent_request"("scope_id", "key");

-- Written by hand from here on: what the schema language cannot state.

-- A job is finished or it is not; a result, a receipt and an error are there exactly where they belong.
ALTER TABLE "generation_job"
    ADD CONSTRAINT "generation_job_progress_check" CHECK ("progress" BETWEEN 0 AND 100 AND ("status" <> 'succeeded' OR "progress" = 100)),
    ADD CONSTRAINT "generation_job_finished_check" CHECK (("finished_at" IS NULL) = ("status" IN ('queued', 'running'))),
    ADD CONSTRAINT "generation_job_result_check" CHECK (
        ("result_key" IS NOT NULL) = ("status" = 'succeeded')
        AND ("result_content_type" IS NOT NULL) = ("status" = 'succeeded')
        AND ("receipt" IS NOT NULL OR "status" <> 'succeeded')
        AND ("receipt" IS NULL OR "finished_at" IS NOT NULL)
    ),
    ADD CONSTRAINT "generation_job_error_check" CHECK (
        ("error_code" IS NOT NULL) = ("status" = 'failed') AND ("error_message" IS NULL) = ("error_code" IS NULL)
    ),
    ADD CONSTRAINT "generation_job_expiry_check" CHECK ("expires_at" > "created_at");

-- Progress rewrites a job's row many times.
ALTER TABLE "generation_job" SET (fillfactor = 50);

-- The id is the hash's beginning: a row can name no other bytes than its own.
ALTER TABLE "media_file"
    ADD CONSTRAINT "media_file_id_check" CHECK (octet_length("sha256") = 32 AND "id" = left(encode("sha256", 'hex'), 16)),
    ADD CONSTRAINT "media_file_size_check" CHECK ("size_bytes" >= 0),
    ADD CONSTRAINT "media_file_expiry_check" CHECK ("expires_at" > "created_at");

ALTER TABLE "content_cache_entry"
    ADD CONSTRAINT "content_cache_entry_key_check" CHECK (octet_length("key") = 32),
    ADD CONSTRAINT "content_cache_entry_size_check" CHECK ("size_bytes" >= 0),
    ADD CONSTRAINT "content_cache_entry_expiry_check" CHECK ("expires_at" > "created_at");

-- An answer is stored whole or not at all, in one place.
ALTER TABLE "idempotent_request"
    ADD CONSTRAINT "idempotent_request_key_check" CHECK (char_length("key") BETWEEN 1 AND 255),
    ADD CONSTRAINT "idempotent_request_fingerprint_check" CHECK (octet_length("fingerprint") = 32),
    ADD CONSTRAINT "idempotent_request_answer_check" CHECK (
        ("status" = 'done') = ("status_code" IS NOT NULL)
        AND ("status" = 'done') = ("headers" IS NOT NULL)
        AND num_nonnulls("body", "body_key") = CASE "status" WHEN 'done' THEN 1 ELSE 0 END
    ),
    ADD CONSTRAINT "idempotent_request_expiry_check" CHECK ("expires_at" > "created_at");
