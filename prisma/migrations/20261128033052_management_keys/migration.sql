-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "definition" JSONB,
ADD COLUMN     "external_id" TEXT,
ADD COLUMN     "is_management" BOOLEAN NOT NULL DEFAULT false;

-- CreateIndex
-- A revoked key leaves its external id to another.
CREATE UNIQUE INDEX "api_key_account_id_external_id_key" ON "api_key"("account_id", "external_id") WHERE "revoked_at" IS NULL;
