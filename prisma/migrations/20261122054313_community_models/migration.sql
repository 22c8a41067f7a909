-- CreateEnum
CREATE TYPE "CommunityModelType" AS ENUM ('proxy', 'prompt_agent', 'code_agent', 'endpoint_agent');

-- CreateEnum
CREATE TYPE "Visibility" AS ENUM ('private', 'public');

-- CreateEnum
CREATE TYPE "UpstreamApi" AS ENUM ('chat_completions', 'responses');

-- CreateEnum
CREATE TYPE "ImagePricing" AS ENUM ('request', 'tokens');

-- CreateEnum
CREATE TYPE "DevelopmentConnectionStatus" AS ENUM ('initiated', 'active', 'failed', 'expired', 'inactive');

-- CreateTable
CREATE TABLE "community_model" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "type" "CommunityModelType" NOT NULL,
    "name" TEXT NOT NULL,
    "title" TEXT NOT NULL,
    "description" TEXT,
    "modality" "Modality" NOT NULL DEFAULT 'text',
    "visibility" "Visibility" NOT NULL DEFAULT 'private',
    "required_safety_features" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "input_modalities" TEXT[],
    "output_modalities" TEXT[],
    "api" "UpstreamApi",
    "url" TEXT,
    "upstream_model" TEXT,
    "bearer_token" BYTEA,
    "advertised_capabilities" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "advertised_context_length" INTEGER,
    "per_user_rpm" DOUBLE PRECISION,
    "paid_only" BOOLEAN NOT NULL DEFAULT false,
    "image_pricing" "ImagePricing" NOT NULL DEFAULT 'request',
    "fallbacks" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "prompt_text_price" BIGINT,
    "prompt_cached_price" BIGINT,
    "prompt_cache_write_price" BIGINT,
    "prompt_audio_price" BIGINT,
    "prompt_image_price" BIGINT,
    "completion_text_price" BIGINT,
    "completion_reasoning_price" BIGINT,
    "completion_audio_price" BIGINT,
    "completion_image_price" BIGINT,
    "completion_video_price" BIGINT,
    "pending" JSONB,
    "pending_effective_at" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "community_model_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "agent" (
    "id" UUID NOT NULL,
    "system_prompt" TEXT,
    "base_model" TEXT,
    "mcp_servers" TEXT[] DEFAULT ARRAY[]::TEXT[],
    "repository" TEXT,
    "deployed_commit_sha" TEXT,
    "bundle" TEXT,
    "synced_at" TIMESTAMPTZ(3),

    CONSTRAINT "agent_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "community_model_health" (
    "model_id" UUID NOT NULL,
    "hour" TIMESTAMPTZ(3) NOT NULL,
    "succeeded" INTEGER NOT NULL DEFAULT 0,
    "failed" INTEGER NOT NULL DEFAULT 0,

    CONSTRAINT "community_model_health_pkey" PRIMARY KEY ("model_id","hour")
);

-- CreateTable
CREATE TABLE "development_connection" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "toolkit" TEXT NOT NULL,
    "alias" TEXT,
    "status" "DevelopmentConnectionStatus" NOT NULL DEFAULT 'initiated',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "development_connection_pkey" PRIMARY KEY ("id")
);

-- CreateIndex
CREATE INDEX "community_model_account_id_created_at_id_idx" ON "community_model"("account_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "community_model_updated_at_idx" ON "community_model"("updated_at");

-- CreateIndex
CREATE UNIQUE INDEX "community_model_account_id_name_key" ON "community_model"("account_id", "name");

-- CreateIndex
CREATE INDEX "community_model_health_hour_idx" ON "community_model_health"("hour");

-- CreateIndex
CREATE INDEX "development_connection_account_id_created_at_id_idx" ON "development_connection"("account_id", "created_at", "id");

-- AddForeignKey
ALTER TABLE "community_model" ADD CONSTRAINT "community_model_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE RESTRICT ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "agent" ADD CONSTRAINT "agent_id_fkey" FOREIGN KEY ("id") REFERENCES "community_model"("id") ON DELETE CASCADE ON UPDATE CASCADE;
