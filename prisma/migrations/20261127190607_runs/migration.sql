-- CreateEnum
CREATE TYPE "RunLimitAction" AS ENUM ('refuse', 'ask');

-- AlterEnum
ALTER TYPE "ApiKeyOrigin" ADD VALUE 'run';

-- CreateTable
CREATE TABLE "run" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "label" TEXT,
    "on_limit" "RunLimitAction" NOT NULL,
    "asked_nanocredits" BIGINT,
    "asked_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "run_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "run_account_id_created_at_id_idx" ON "run"("account_id", "created_at", "id");

-- AddForeignKey
ALTER TABLE "run" ADD CONSTRAINT "run_id_fkey" FOREIGN KEY ("id") REFERENCES "api_key"("id") ON DELETE CASCADE ON UPDATE CASCADE;
