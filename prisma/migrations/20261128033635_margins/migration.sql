-- DropIndex
DROP INDEX "earning_account_id_created_at_generation_id_idx";

-- AlterTable
ALTER TABLE "api_key" ADD COLUMN     "margin_percent" SMALLINT NOT NULL DEFAULT 0;

-- AlterTable
ALTER TABLE "earning" ADD COLUMN     "id" UUID NOT NULL DEFAULT gen_random_uuid();

-- CreateIndex
CREATE UNIQUE INDEX "earning_id_key" ON "earning"("id");

-- CreateIndex
CREATE INDEX "earning_account_id_created_at_id_idx" ON "earning"("account_id", "created_at" DESC, "id" DESC);

-- The shares of a charge that drew `sold` of sold credits: an app's margin is on top of the price, a model's share is of the price, or of the
-- amounts that the gateway counted if that is less. None for the payer, and for accounts that an operator linked with the payer. Fractions of a nanocredit stay with the platform.
CREATE OR REPLACE FUNCTION credit_shares(payer uuid, sold bigint, earners text) RETURNS TABLE (kind "EarningKind", earner uuid, source text, amount bigint)
LANGUAGE sql STABLE AS $$
  WITH margin AS (
    SELECT coalesce((earners::jsonb #>> '{app,percent}')::numeric, 0) AS percent
  ), part AS (
    SELECT trunc(sold * m.percent / (100 + m.percent)) AS of_app FROM margin m
  ), share AS (
    SELECT s.name::"EarningKind" AS kind, (earners::jsonb #>> ARRAY[s.name, 'accountId'])::uuid AS earner, earners::jsonb #>> ARRAY[s.name, 'source'] AS source, s.amount
    FROM part p CROSS JOIN LATERAL (VALUES ('app', p.of_app), ('model', trunc(least(sold - p.of_app, (earners::jsonb #>> '{model,most}')::numeric) * (earners::jsonb #>> '{model,percent}')::numeric / 100))) AS s(name, amount)
  )
  SELECT s.kind, s.earner, s.source, s.amount::bigint
  FROM share s JOIN account a ON a.id = s.earner JOIN account p ON p.id = payer
  WHERE s.earner <> payer AND (a.earning_group_id = p.earning_group_id) IS NOT TRUE AND NOT EXISTS (SELECT FROM account_deletion d WHERE d.account_id = s.earner)
$$;
