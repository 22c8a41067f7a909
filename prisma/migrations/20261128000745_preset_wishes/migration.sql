-- AlterTable
ALTER TABLE "preset" ADD COLUMN     "earlier" JSONB NOT NULL DEFAULT '[]',
ADD COLUMN     "models" TEXT[] DEFAULT ARRAY[]::TEXT[],
ADD COLUMN     "provider" JSONB;
