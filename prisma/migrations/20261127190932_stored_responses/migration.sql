-- CreateEnum
CREATE TYPE "StoredResponseStatus" AS ENUM ('queued', 'in_progress', 'completed', 'incomplete', 'failed', 'cancelled');

-- CreateTable
CREATE TABLE "stored_response" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "run_id" UUID,
    "previous_id" UUID,
    "conversation_id" UUID,
    "model" TEXT NOT NULL,
    "status" "StoredResponseStatus" NOT NULL,
    "is_background" BOOLEAN NOT NULL,
    "has_events" BOOLEAN NOT NULL,
    "thread_bytes" INTEGER NOT NULL,
    "thread_length" INTEGER NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "input" BYTEA NOT NULL,
    "answer" BYTEA NOT NULL,
    "process_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "finished_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "stored_response_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "stored_response_events" (
    "id" UUID NOT NULL,
    "response_id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "first" INTEGER NOT NULL,
    "last" INTEGER NOT NULL,
    "events" BYTEA NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "stored_response_events_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "conversation" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "run_id" UUID,
    "metadata" BYTEA NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "item_bytes" INTEGER NOT NULL DEFAULT 0,
    "item_count" INTEGER NOT NULL DEFAULT 0,
    "next_position" INTEGER NOT NULL DEFAULT 0,
    "created_at" TIMESTAMPTZ(3) NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "conversation_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "conversation_item" (
    "id" UUID NOT NULL,
    "conversation_id" UUID NOT NULL,
    "item_id" TEXT NOT NULL,
    "position" INTEGER NOT NULL,
    "content" BYTEA NOT NULL,
    "size_bytes" INTEGER NOT NULL,

    CONSTRAINT "conversation_item_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "stored_response_account_id_created_at_id_idx" ON "stored_response"("account_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "stored_response_expires_at_idx" ON "stored_response"("expires_at");

-- CreateIndex
CREATE INDEX "stored_response_process_id_idx" ON "stored_response"("process_id");

-- CreateIndex
CREATE INDEX "stored_response_events_account_id_idx" ON "stored_response_events"("account_id");

-- CreateIndex
CREATE INDEX "stored_response_events_expires_at_idx" ON "stored_response_events"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "stored_response_events_response_id_first_key" ON "stored_response_events"("response_id", "first");

-- CreateIndex
CREATE INDEX "conversation_account_id_created_at_id_idx" ON "conversation"("account_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "conversation_expires_at_idx" ON "conversation"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "conversation_item_conversation_id_item_id_key" ON "conversation_item"("conversation_id", "item_id");

-- CreateIndex
CREATE UNIQUE INDEX "conversation_item_conversation_id_position_key" ON "conversation_item"("conversation_id", "position");

-- AddForeignKey
ALTER TABLE "stored_response_events" ADD CONSTRAINT "stored_response_events_response_id_fkey" FOREIGN KEY ("response_id") REFERENCES "stored_response"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "conversation_item" ADD CONSTRAINT "conversation_item_conversation_id_fkey" FOREIGN KEY ("conversation_id") REFERENCES "conversation"("id") ON DELETE CASCADE ON UPDATE CASCADE;
