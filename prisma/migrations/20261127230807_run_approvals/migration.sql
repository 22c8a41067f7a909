-- CreateTable
CREATE TABLE "run_approval" (
    "run_id" UUID NOT NULL,
    "scope_id" UUID NOT NULL,
    "idempotency_key" TEXT NOT NULL,
    "amount_nanocredits" BIGINT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "run_approval_pkey" PRIMARY KEY ("run_id","scope_id","idempotency_key")
);

-- AddForeignKey
ALTER TABLE "run_approval" ADD CONSTRAINT "run_approval_run_id_fkey" FOREIGN KEY ("run_id") REFERENCES "run"("id") ON DELETE CASCADE ON UPDATE CASCADE;
