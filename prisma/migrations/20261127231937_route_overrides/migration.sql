-- CreateTable
CREATE TABLE "route_overrides" (
    "model_id" TEXT NOT NULL,
    "changes" JSONB NOT NULL,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "route_overrides_pkey" PRIMARY KEY ("model_id")
);
