-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "resource" TEXT;
