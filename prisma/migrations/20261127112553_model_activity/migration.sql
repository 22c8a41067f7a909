-- CreateTable
CREATE TABLE "model_price" (
    "model" TEXT NOT NULL,
    "since" TIMESTAMPTZ(3) NOT NULL,
    "community_model_id" UUID,
    "pricing" JSONB NOT NULL,

    CONSTRAINT "model_price_pkey" PRIMARY KEY ("model","since")
);

-- CreateIndex
CREATE INDEX "model_price_community_model_id_idx" ON "model_price"("community_model_id");

-- Only usage_roll waits while this is made; no charge does.
-- CreateIndex
CREATE INDEX "usage_hour_rollup_level_model_start_idx" ON "usage_hour_rollup"("level", "model", "start" DESC);

-- AddForeignKey
ALTER TABLE "model_price" ADD CONSTRAINT "model_price_community_model_id_fkey" FOREIGN KEY ("community_model_id") REFERENCES "community_model"("id") ON DELETE CASCADE ON UPDATE CASCADE;
