-- CreateTable
CREATE TABLE "failed_request" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "api_key_name" TEXT,
    -- Its order is that of its bytes, so that the index finds beginnings.
    "request_id" TEXT COLLATE "C" NOT NULL,
    "generation_id" UUID,
    "timestamp" TIMESTAMPTZ(3) NOT NULL,
    "route" TEXT NOT NULL,
    "operation" TEXT,
    "status" INTEGER NOT NULL,
    "code" TEXT NOT NULL,
    "message" TEXT NOT NULL,
    "model" TEXT,
    "milliseconds" INTEGER NOT NULL,
    "left_out" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "failed_request_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "failed_request_account_id_timestamp_id_idx" ON "failed_request"("account_id", "timestamp" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "failed_request_timestamp_id_idx" ON "failed_request"("timestamp" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "failed_request_request_id_idx" ON "failed_request"("request_id");

-- CreateIndex
CREATE INDEX "failed_request_generation_id_idx" ON "failed_request"("generation_id");
