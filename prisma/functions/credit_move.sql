-- Turns the reservations of open generations in leases into separate holds, with the metered amounts. The held amounts of the account and
-- the keys do not change, so their rows are not written. Returns the ids whose lease does not exist any more.
CREATE OR REPLACE FUNCTION credit_move(
  process          uuid,
  hold_seconds     integer,
  leases           uuid[],
  ids              uuid[],
  paid_only        boolean[],
  tiers            bigint[],
  cryptos          bigint[],
  packs            bigint[],
  metered          bigint[],
  records          text[]
) RETURNS TABLE (id uuid)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  there  uuid[];
  seen   uuid[];
BEGIN
  there := ARRAY(SELECT l.id FROM credit_lease l WHERE l.id = ANY (leases) ORDER BY l.id FOR NO KEY UPDATE);
  seen := ARRAY(SELECT h.id FROM hold h WHERE h.id = ANY (ids) UNION ALL SELECT u.id FROM usage_record u WHERE u.id = ANY (ids));

  WITH o AS MATERIALIZED (
    SELECT o.*, l.account_id, l.api_key_id
    FROM unnest(leases, ids, paid_only, tiers, cryptos, packs, metered, records) AS o(lease, id, paid_only, tier, crypto, pack, metered, record)
    JOIN credit_lease l ON l.id = o.lease
    WHERE o.id <> ALL (seen)
  ), held AS (
    INSERT INTO hold (id, account_id, api_key_id, process_id, paid_only, tier_nanocredits, crypto_nanocredits, pack_nanocredits,
                      metered_nanocredits, record, expires_at)
      SELECT o.id, o.account_id, o.api_key_id, process, o.paid_only, o.tier, o.crypto, o.pack, o.metered, o.record::jsonb,
             now() + make_interval(secs => hold_seconds)
      FROM o
  )
  UPDATE credit_lease l SET
      tier_nanocredits = l.tier_nanocredits - s.tier,
      crypto_nanocredits = l.crypto_nanocredits - s.crypto,
      pack_nanocredits = l.pack_nanocredits - s.pack
    FROM (SELECT o.lease, sum(o.tier)::bigint AS tier, sum(o.crypto)::bigint AS crypto, sum(o.pack)::bigint AS pack FROM o GROUP BY o.lease) s
    WHERE l.id = s.lease;

  RETURN QUERY SELECT o.id FROM unnest(leases, ids) AS o(lease, id) WHERE o.lease <> ALL (there) AND o.id <> ALL (seen);
END
$$;
