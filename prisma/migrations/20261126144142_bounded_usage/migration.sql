-- AlterEnum
ALTER TYPE "UsageSource" ADD VALUE 'bounded';
