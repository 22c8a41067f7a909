-- CreateEnum
CREATE TYPE "ApiKeyOrigin" AS ENUM ('created', 'redirect_flow', 'device_flow');

-- CreateEnum
CREATE TYPE "DeviceAuthorizationStatus" AS ENUM ('pending', 'approved', 'denied', 'used');

-- CreateEnum
CREATE TYPE "WebhookDeliveryStatus" AS ENUM ('pending', 'delivered', 'failed');

-- CreateEnum
CREATE TYPE "MediaObjectStatus" AS ENUM ('pending', 'complete');

-- AlterTable
ALTER TABLE "account" ADD COLUMN     "is_email_verified" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "is_publisher" BOOLEAN NOT NULL DEFAULT false,
ADD COLUMN     "low_balance_nanocredits" BIGINT,
ADD COLUMN     "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP;

-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "app_key_id" UUID,
ADD COLUMN     "origin" "ApiKeyOrigin" NOT NULL DEFAULT 'created',
ADD COLUMN     "redirect_urls" TEXT[] DEFAULT ARRAY[]::TEXT[];

-- CreateTable
CREATE TABLE "app_usage_daily" (
    "app_key_id" UUID NOT NULL,
    "day" DATE NOT NULL,
    "model" TEXT NOT NULL,
    "requests" INTEGER NOT NULL,
    "cost_nanocredits" BIGINT NOT NULL,

    CONSTRAINT "app_usage_daily_pkey" PRIMARY KEY ("app_key_id","day","model")
);

-- CreateTable
CREATE TABLE "session" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "token" TEXT NOT NULL,
    "ip_address" TEXT,
    "user_agent" TEXT,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "session_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "sign_in_method" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "provider_id" TEXT NOT NULL,
    "provider_account_id" TEXT NOT NULL,
    "password" TEXT,
    "access_token" TEXT,
    "refresh_token" TEXT,
    "id_token" TEXT,
    "access_token_expires_at" TIMESTAMPTZ(3),
    "refresh_token_expires_at" TIMESTAMPTZ(3),
    "scope" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "sign_in_method_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "verification" (
    "id" UUID NOT NULL,
    "identifier" TEXT NOT NULL,
    "value" TEXT NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "updated_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "verification_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "authorization_request" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "session_id" UUID NOT NULL,
    "request" JSONB NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "decided_at" TIMESTAMPTZ(3),

    CONSTRAINT "authorization_request_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "authorization_code" (
    "hash" BYTEA NOT NULL,
    "account_id" UUID NOT NULL,
    "app_key_id" UUID,
    "redirect_url" TEXT NOT NULL,
    "code_challenge" TEXT NOT NULL,
    "grant" JSONB NOT NULL,
    "failed_attempts" SMALLINT NOT NULL DEFAULT 0,
    "api_key_id" UUID,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "authorization_code_pkey" PRIMARY KEY ("hash")
);

-- CreateTable
CREATE TABLE "device_authorization" (
    "id" UUID NOT NULL,
    "device_code_hash" BYTEA NOT NULL,
    "user_code" TEXT NOT NULL,
    "app_key_id" UUID,
    "scope" TEXT[],
    "status" "DeviceAuthorizationStatus" NOT NULL DEFAULT 'pending',
    "account_id" UUID,
    "grant" JSONB,
    "api_key_id" UUID,
    "interval_seconds" INTEGER NOT NULL,
    "last_polled_at" TIMESTAMPTZ(3),
    "client_address" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "decided_at" TIMESTAMPTZ(3),

    CONSTRAINT "device_authorization_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_endpoint" (
    "id" UUID NOT NULL,
    "account_id" UUID NOT NULL,
    "url" TEXT NOT NULL,
    "secret" BYTEA NOT NULL,
    "events" TEXT[],
    "is_enabled" BOOLEAN NOT NULL DEFAULT true,
    "failing_since" TIMESTAMPTZ(3),
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,

    CONSTRAINT "webhook_endpoint_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "webhook_delivery" (
    "id" UUID NOT NULL,
    "endpoint_id" UUID NOT NULL,
    "event" TEXT NOT NULL,
    "event_key" TEXT NOT NULL,
    "payload" JSONB NOT NULL,
    "status" "WebhookDeliveryStatus" NOT NULL DEFAULT 'pending',
    "attempts" SMALLINT NOT NULL DEFAULT 0,
    "next_attempt_at" TIMESTAMPTZ(3) NOT NULL,
    "last_status" SMALLINT,
    "last_error" TEXT,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "webhook_delivery_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "media_object" (
    "id" TEXT NOT NULL,
    "account_id" UUID NOT NULL,
    "content_type" TEXT NOT NULL,
    "size_bytes" INTEGER NOT NULL,
    "name" TEXT,
    "tags" TEXT[],
    "status" "MediaObjectStatus" NOT NULL DEFAULT 'pending',
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "completed_at" TIMESTAMPTZ(3),
    "expires_at" TIMESTAMPTZ(3),

    CONSTRAINT "media_object_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "media_tag" (
    "tag" TEXT NOT NULL,
    "media_id" TEXT NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL,

    CONSTRAINT "media_tag_pkey" PRIMARY KEY ("tag","media_id")
);

-- CreateIndex
CREATE UNIQUE INDEX "session_token_key" ON "session"("token");

-- CreateIndex
CREATE INDEX "session_account_id_created_at_id_idx" ON "session"("account_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "session_expires_at_idx" ON "session"("expires_at");

-- CreateIndex
CREATE INDEX "sign_in_method_account_id_idx" ON "sign_in_method"("account_id");

-- CreateIndex
CREATE UNIQUE INDEX "sign_in_method_provider_id_provider_account_id_key" ON "sign_in_method"("provider_id", "provider_account_id");

-- CreateIndex
CREATE INDEX "verification_identifier_idx" ON "verification"("identifier");

-- CreateIndex
CREATE INDEX "verification_expires_at_idx" ON "verification"("expires_at");

-- CreateIndex
CREATE INDEX "authorization_request_expires_at_idx" ON "authorization_request"("expires_at");

-- CreateIndex
CREATE INDEX "authorization_code_expires_at_idx" ON "authorization_code"("expires_at");

-- CreateIndex
CREATE UNIQUE INDEX "device_authorization_device_code_hash_key" ON "device_authorization"("device_code_hash");

-- CreateIndex
CREATE UNIQUE INDEX "device_authorization_user_code_key" ON "device_authorization"("user_code");

-- CreateIndex
CREATE INDEX "device_authorization_expires_at_idx" ON "device_authorization"("expires_at");

-- CreateIndex
CREATE INDEX "webhook_endpoint_account_id_created_at_id_idx" ON "webhook_endpoint"("account_id", "created_at", "id");

-- CreateIndex
CREATE INDEX "webhook_delivery_status_next_attempt_at_idx" ON "webhook_delivery"("status", "next_attempt_at");

-- CreateIndex
CREATE INDEX "webhook_delivery_endpoint_id_created_at_id_idx" ON "webhook_delivery"("endpoint_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "webhook_delivery_endpoint_id_event_event_key_key" ON "webhook_delivery"("endpoint_id", "event", "event_key");

-- CreateIndex
CREATE INDEX "media_object_account_id_created_at_id_idx" ON "media_object"("account_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "media_object_expires_at_idx" ON "media_object"("expires_at");

-- CreateIndex
CREATE INDEX "media_tag_tag_created_at_media_id_idx" ON "media_tag"("tag", "created_at" DESC, "media_id" DESC);

-- CreateIndex
CREATE INDEX "media_tag_media_id_idx" ON "media_tag"("media_id");

-- CreateIndex
CREATE UNIQUE INDEX "account_email_key" ON "account"("email");

-- CreateIndex
CREATE INDEX "api_key_app_key_id_idx" ON "api_key"("app_key_id");

-- CreateIndex
CREATE INDEX "media_file_account_id_created_at_id_idx" ON "media_file"("account_id", "created_at" DESC, "id" DESC);

-- AddForeignKey
ALTER TABLE "session" ADD CONSTRAINT "session_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "sign_in_method" ADD CONSTRAINT "sign_in_method_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "webhook_delivery" ADD CONSTRAINT "webhook_delivery_endpoint_id_fkey" FOREIGN KEY ("endpoint_id") REFERENCES "webhook_endpoint"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- AddForeignKey
ALTER TABLE "media_tag" ADD CONSTRAINT "media_tag_media_id_fkey" FOREIGN KEY ("media_id") REFERENCES "media_object"("id") ON DELETE CASCADE ON UPDATE CASCADE;
