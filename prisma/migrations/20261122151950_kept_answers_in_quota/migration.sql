-- CreateEnum
CREATE TYPE "IdempotentAnswerOmission" AS ENUM ('too_large', 'no_room');

-- AlterTable
ALTER TABLE "idempotent_request" ADD COLUMN     "omission" "IdempotentAnswerOmission",
ADD COLUMN     "size_bytes" INTEGER NOT NULL DEFAULT 0;

-- CreateIndex
CREATE INDEX "idempotent_request_account_id_expires_at_idx" ON "idempotent_request"("account_id", "expires_at");

-- An answer is stored whole, or why it is not; never both.
ALTER TABLE "idempotent_request"
    DROP CONSTRAINT "idempotent_request_answer_check",
    ADD CONSTRAINT "idempotent_request_answer_check" CHECK (
        ("status" = 'done') = ("status_code" IS NOT NULL)
        AND ("status" = 'done') = ("headers" IS NOT NULL)
        AND num_nonnulls("body", "body_key", "omission") = CASE "status" WHEN 'done' THEN 1 ELSE 0 END
    ),
    ADD CONSTRAINT "idempotent_request_size_check" CHECK ("size_bytes" >= 0);
