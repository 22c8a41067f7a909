-- CreateTable
CREATE TABLE "preset" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "name" TEXT NOT NULL,
    "version" INTEGER NOT NULL DEFAULT 1,
    "model" TEXT,
    "system_prompt" TEXT,
    "parameters" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "preset_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "preset_account_id_created_at_id_idx" ON "preset"("account_id", "created_at", "id");

-- CreateIndex
CREATE UNIQUE INDEX "preset_account_id_name_key" ON "preset"("account_id", "name");
