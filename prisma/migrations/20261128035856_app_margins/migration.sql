-- AlterTable
ALTER TABLE "device_authorization" ADD COLUMN     "margin_percent" SMALLINT NOT NULL DEFAULT 0;
