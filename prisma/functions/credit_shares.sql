-- The shares of a charge that drew `sold` of sold and `granted` of other credits: an app's margin is on top of the price, a model's share is of the
-- price. Where the gateway counted less than the upstream reported (`most`), both are of the sold credits that the counted amounts would have drawn.
-- None for the payer, and for accounts that an operator linked with the payer. Fractions of a nanocredit stay with the platform.
CREATE OR REPLACE FUNCTION credit_shares(payer uuid, sold bigint, granted bigint, earners text) RETURNS TABLE (kind "EarningKind", earner uuid, source text, amount bigint)
LANGUAGE sql STABLE AS $$
  WITH term AS (
    SELECT coalesce((earners::jsonb #>> '{app,percent}')::numeric, 0) AS margin, (earners::jsonb #>> '{model,percent}')::numeric AS percent,
           (earners::jsonb #>> '{model,most}')::numeric AS most
  ), part AS (
    SELECT t.margin, t.percent, trunc(sold * t.margin / (100 + t.margin)) AS of_app, greatest(0, t.most - granted * 100 / (100 + t.margin)) AS counted, t.most IS NULL AS is_all FROM term t
  ), share AS (
    SELECT s.name::"EarningKind" AS kind, (earners::jsonb #>> ARRAY[s.name, 'accountId'])::uuid AS earner, earners::jsonb #>> ARRAY[s.name, 'source'] AS source, s.amount
    FROM part p CROSS JOIN LATERAL (VALUES
      ('app', CASE WHEN p.is_all THEN p.of_app ELSE least(p.of_app, trunc(p.counted * p.margin / 100)) END),
      ('model', trunc(CASE WHEN p.is_all THEN sold - p.of_app ELSE least(sold - p.of_app, p.counted) END * p.percent / 100))) AS s(name, amount)
  )
  SELECT s.kind, s.earner, s.source, s.amount::bigint
  FROM share s JOIN account a ON a.id = s.earner JOIN account p ON p.id = payer
  WHERE s.earner <> payer AND (a.earning_group_id = p.earning_group_id) IS NOT TRUE AND NOT EXISTS (SELECT FROM account_deletion d WHERE d.account_id = s.earner)
$$;
