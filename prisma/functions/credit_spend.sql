-- Settles charges out of leases. The process has decided what each charge takes from which bucket of its lease. All of the batch or nothing is
-- written, and no charge twice. Returns a row for each charge that was not written: its usage row exists (`charged` and `meter_source` are that
-- row's), or its lease does not exist any more (both are null).
CREATE OR REPLACE FUNCTION credit_spend(
  leases           uuid[],
  ids              uuid[],
  tiers            bigint[],
  cryptos          bigint[],
  packs            bigint[],
  sources          "Bucket"[],
  timestamps       timestamptz[],
  api_key_names    text[],
  api_key_types    "ApiKeyType"[],
  modalities       "Modality"[],
  models           text[],
  models_used      text[],
  quantities       integer[][], -- eleven kinds, in the order of the usage row's columns
  response_times   integer[],
  first_tokens     integer[],
  statuses         "UsageStatus"[],
  usage_sources    "UsageSource"[],
  parents          uuid[],
  -- For the receipt: nanocredits held in all, and milliseconds of the upstream and of the gateway.
  helds            bigint[] DEFAULT NULL,
  upstream_times   bigint[] DEFAULT NULL,
  gateway_times    bigint[] DEFAULT NULL,
  -- The route that served: its upstream, its id, the operator's cost in nanocredits, and the attempts before it as JSON.
  upstreams        text[] DEFAULT NULL,
  routes           text[] DEFAULT NULL,
  upstream_costs   bigint[] DEFAULT NULL,
  attempt_lists    text[] DEFAULT NULL
) RETURNS TABLE (id uuid, charged bigint, meter_source "Bucket")
LANGUAGE plpgsql
-- As in credit_flush, the planner has no statistics. There are few leases, and each operation is read once.
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
  seen := ARRAY(SELECT u.id FROM usage_record u WHERE u.id = ANY (ids));

  WITH o AS MATERIALIZED (
    SELECT o.*, o.tier + o.crypto + o.pack AS cost, l.account_id, l.api_key_id
    FROM unnest(leases, ids, tiers, cryptos, packs, sources, timestamps, api_key_names, api_key_types, modalities, models, models_used,
                response_times, first_tokens, statuses, usage_sources, parents)
         WITH ORDINALITY AS o(lease, id, tier, crypto, pack, source, at, api_key_name, api_key_type, modality, model, model_used,
                response_time, first_token, status, usage_source, parent, seq)
    JOIN credit_lease l ON l.id = o.lease
    WHERE o.id <> ALL (seen)
  ), recorded AS (
    INSERT INTO usage_record (id, account_id, api_key_id, api_key_name, api_key_type, timestamp, modality, model, model_used, meter_source,
        input_text_tokens, input_cached_tokens, input_cache_write_tokens, input_audio_tokens, input_image_tokens,
        output_text_tokens, output_reasoning_tokens, output_audio_tokens, output_image_tokens,
        output_video_milliseconds, output_audio_milliseconds,
        cost_nanocredits, response_time_ms, time_to_first_token_ms, status, usage_source, parent_request_id,
        held_nanocredits, upstream_us, gateway_us, upstream, route, upstream_cost_nanocredits, attempts)
      SELECT o.id, o.account_id, o.api_key_id, o.api_key_name, o.api_key_type, o.at, o.modality, o.model, o.model_used, o.source,
        quantities[o.seq][1], quantities[o.seq][2], quantities[o.seq][3], quantities[o.seq][4], quantities[o.seq][5],
        quantities[o.seq][6], quantities[o.seq][7], quantities[o.seq][8], quantities[o.seq][9],
        quantities[o.seq][10], quantities[o.seq][11],
        o.cost, o.response_time, o.first_token, o.status, o.usage_source, o.parent,
        helds[o.seq], upstream_times[o.seq], gateway_times[o.seq],
        upstreams[o.seq], routes[o.seq], upstream_costs[o.seq], attempt_lists[o.seq]::jsonb
      FROM o
  ), lines AS (
    INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits)
      SELECT o.id, line.number, o.account_id, line.book, 'charge', line.amount
      FROM o CROSS JOIN LATERAL (VALUES (1, 'tier'::"LedgerBook", -o.tier), (2, 'crypto', -o.crypto), (3, 'pack', -o.pack), (5, 'revenue', o.cost))
           AS line(number, book, amount)
      WHERE line.amount <> 0
  ), days AS (
    -- Sorted, here and in credit_flush, so that batches of different processes cannot deadlock.
    INSERT INTO usage_daily (account_id, day, model, meter_source, requests, cost_nanocredits)
      SELECT o.account_id, (o.at AT TIME ZONE 'UTC')::date, o.model, o.source, count(*), sum(o.cost) FROM o GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4
      ON CONFLICT ON CONSTRAINT usage_daily_pkey DO UPDATE SET
        requests = usage_daily.requests + excluded.requests,
        cost_nanocredits = usage_daily.cost_nanocredits + excluded.cost_nanocredits
  )
  UPDATE credit_lease l SET
      tier_nanocredits = l.tier_nanocredits - s.tier,
      crypto_nanocredits = l.crypto_nanocredits - s.crypto,
      pack_nanocredits = l.pack_nanocredits - s.pack,
      tier_paid_nanocredits = l.tier_paid_nanocredits + s.tier,
      crypto_paid_nanocredits = l.crypto_paid_nanocredits + s.crypto,
      pack_paid_nanocredits = l.pack_paid_nanocredits + s.pack,
      used_at = now()
    FROM (SELECT o.lease, sum(o.tier)::bigint AS tier, sum(o.crypto)::bigint AS crypto, sum(o.pack)::bigint AS pack FROM o GROUP BY o.lease) s
    WHERE l.id = s.lease;

  -- Last, because all users of an app share its row.
  IF EXISTS (SELECT FROM credit_lease l JOIN api_key k ON k.id = l.api_key_id WHERE l.id = ANY (there) AND k.app_key_id IS NOT NULL) THEN
    INSERT INTO app_usage_daily (app_key_id, day, model, requests, cost_nanocredits)
      SELECT k.app_key_id, (o.at AT TIME ZONE 'UTC')::date, o.model, count(*), sum(o.cost)
      FROM unnest(leases, ids, tiers, cryptos, packs, timestamps, models) AS a(lease, id, tier, crypto, pack, at, model)
      CROSS JOIN LATERAL (SELECT a.at, a.model, a.tier + a.crypto + a.pack AS cost) o
      JOIN credit_lease l ON l.id = a.lease
      JOIN api_key k ON k.id = l.api_key_id
      WHERE a.id <> ALL (seen) AND k.app_key_id IS NOT NULL
      GROUP BY 1, 2, 3
      ORDER BY 1, 2, 3
      ON CONFLICT ON CONSTRAINT app_usage_daily_pkey DO UPDATE SET
        requests = app_usage_daily.requests + excluded.requests,
        cost_nanocredits = app_usage_daily.cost_nanocredits + excluded.cost_nanocredits;
  END IF;

  IF cardinality(seen) > 0 THEN
    RETURN QUERY SELECT u.id, u.cost_nanocredits, u.meter_source FROM usage_record u WHERE u.id = ANY (seen);
  END IF;
  IF EXISTS (SELECT FROM unnest(leases) AS o(lease) WHERE o.lease <> ALL (there)) THEN
    RETURN QUERY SELECT o.id, NULL::bigint, NULL::"Bucket" FROM unnest(leases, ids) AS o(lease, id) WHERE o.lease <> ALL (there) AND o.id <> ALL (seen);
  END IF;
END
$$;
