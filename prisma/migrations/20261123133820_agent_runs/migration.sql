-- CreateEnum
CREATE TYPE "AgentRunOutcome" AS ENUM ('answered', 'failed', 'cancelled', 'processor_time', 'time', 'memory', 'sent', 'printed');

-- CreateTable
CREATE TABLE "agent_run" (
    "id" UUID NOT NULL,
    "agent_id" UUID NOT NULL,
    "started_at" TIMESTAMPTZ(3) NOT NULL,
    "duration_ms" INTEGER NOT NULL,
    "outcome" "AgentRunOutcome" NOT NULL,
    "status" INTEGER,
    "generation_id" UUID,
    "error" TEXT,
    "output" TEXT,

    CONSTRAINT "agent_run_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "agent_run_agent_id_started_at_idx" ON "agent_run"("agent_id", "started_at");

-- AddForeignKey
ALTER TABLE "agent_run" ADD CONSTRAINT "agent_run_agent_id_fkey" FOREIGN KEY ("agent_id") REFERENCES "agent"("id") ON DELETE CASCADE ON UPDATE CASCADE;
