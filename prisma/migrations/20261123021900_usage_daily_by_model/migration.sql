-- CreateIndex
CREATE INDEX "usage_daily_model_day_idx" ON "usage_daily"("model", "day");
