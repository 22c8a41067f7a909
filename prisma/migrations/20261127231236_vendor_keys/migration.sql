-- CreateEnum
CREATE TYPE "VendorKeyUse" AS ENUM ('before', 'after', 'only');

-- CreateTable
CREATE TABLE "vendor_key" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "vendor" TEXT NOT NULL,
    "name" TEXT NOT NULL,
    "secret" BYTEA NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "ending" TEXT NOT NULL,
    "use" "VendorKeyUse" NOT NULL DEFAULT 'before',
    "models" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "api_key_ids" UUID[] DEFAULT ARRAY[]::UUID[],
    "is_enabled" BOOLEAN NOT NULL DEFAULT true,
    "refusal" TEXT,
    "refused_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "vendor_key_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "vendor_key_account_id_created_at_id_idx" ON "vendor_key"("account_id", "created_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "vendor_key_account_id_name_key" ON "vendor_key"("account_id", "name");
