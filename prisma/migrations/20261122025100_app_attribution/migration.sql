-- Traffic by app: credit_flush as it was, and each settlement through a key that was granted to an app is also added to the
-- app's day. Who the user was is not written there. A batch without such keys does nothing more than before.

ALTER TABLE "app_usage_daily" ADD CONSTRAINT "app_usage_daily_amounts_check" CHECK ("requests" >= 0 AND "cost_nanocredits" >= 0);

-- Rewritten by nearly every flush: room on the page keeps the new version there and out of the index (HOT).
ALTER TABLE "app_usage_daily" SET (fillfactor = 50);

CREATE OR REPLACE FUNCTION credit_flush(
  process          uuid,
  hold_seconds     integer,
  kinds            text[],
  ids              uuid[],
  account_ids      uuid[],
  api_key_ids      uuid[],
  amounts          bigint[],
  paid_only        boolean[],
  metered          bigint[],
  records          text[],
  -- The usage row of a settlement.
  timestamps       timestamptz[],
  api_key_names    text[],
  api_key_types    "ApiKeyType"[],
  modalities       "Modality"[],
  models           text[],
  models_used      text[],
  quantities       integer[][], -- eleven columns, in the usage row's order
  response_times   integer[],
  first_tokens     integer[],
  statuses         "UsageStatus"[],
  usage_sources    "UsageSource"[],
  parents          uuid[]
) RETURNS TABLE (
  outcome          text,
  is_contended     boolean,
  charged          bigint,
  written_off      bigint,
  meter_source     "Bucket",
  available        bigint,
  key_available    bigint
)
LANGUAGE plpgsql
-- Every look-up is by primary key. The planner must not think otherwise of tables that it has no statistics of.
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET enable_bitmapscan = off
SET enable_material = off
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
  n             integer := cardinality(ids);
  op            record;
  i             integer;
  account       uuid;
  api_key       uuid;
  -- The current account: what each bucket holds, and what of it is free.
  tier          bigint;
  crypto        bigint;
  pack          bigint;
  tier_free     bigint;
  crypto_free   bigint;
  pack_free     bigint;
  -- The current key: what remains of its budget, and what of it is free. Null: no budget.
  key_left      bigint;
  key_free      bigint;
  -- What the current operation can spend, and what it takes from each bucket.
  affordable    bigint;
  from_tier     bigint;
  from_crypto   bigint;
  from_pack     bigint;
  -- Results, entry i for operation i.
  r_outcome     text[]     := array_fill('missing'::text, ARRAY[n]);
  r_contended   boolean[]  := array_fill(false, ARRAY[n]);
  r_charged     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  r_written_off bigint[]   := array_fill(0::bigint, ARRAY[n]);
  r_source      "Bucket"[] := array_fill(NULL::"Bucket", ARRAY[n]);
  r_available   bigint[]   := array_fill(0::bigint, ARRAY[n]);
  r_key         bigint[]   := array_fill(NULL::bigint, ARRAY[n]);
  -- What a settlement paid from each bucket, and what is held of each bucket more (or less, when negative).
  paid_tier     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  paid_crypto   bigint[]   := array_fill(0::bigint, ARRAY[n]);
  paid_pack     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  held_tier     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  held_crypto   bigint[]   := array_fill(0::bigint, ARRAY[n]);
  held_pack     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  is_written    boolean[]  := array_fill(false, ARRAY[n]); -- a new hold or a new usage row
  closed        uuid[]     := '{}';
  -- The app keys of settlements whose key was granted to an app; null as long as there is none.
  apps          uuid[];
BEGIN
  PERFORM 1 FROM account a WHERE a.id = ANY (ARRAY(SELECT DISTINCT unnest(account_ids))) ORDER BY a.id FOR NO KEY UPDATE;

  FOR op IN
    SELECT o.seq, o.kind, o.id, o.account_id, o.api_key_id, o.amount, o.paid_only,
           a.tier_nanocredits, a.crypto_nanocredits, a.pack_nanocredits,
           a.tier_held_nanocredits, a.crypto_held_nanocredits, a.pack_held_nanocredits,
           k.budget_nanocredits, k.spent_nanocredits, k.held_nanocredits, k.app_key_id,
           h.id AS hold_id, h.tier_nanocredits AS hold_tier, h.crypto_nanocredits AS hold_crypto, h.pack_nanocredits AS hold_pack,
           u.id AS usage_id, u.cost_nanocredits AS usage_cost, u.meter_source AS usage_meter_source
    FROM unnest(kinds, ids, account_ids, api_key_ids, amounts, paid_only)
         WITH ORDINALITY AS o(kind, id, account_id, api_key_id, amount, paid_only, seq)
    JOIN account a ON a.id = o.account_id
    LEFT JOIN api_key k ON k.id = o.api_key_id
    LEFT JOIN hold h ON h.id = o.id
    LEFT JOIN usage_record u ON u.id = o.id
    -- What frees money comes before what takes it.
    ORDER BY o.account_id, o.api_key_id NULLS FIRST,
             CASE o.kind WHEN 'settle' THEN 1 WHEN 'release' THEN 1 WHEN 'extend' THEN 2 ELSE 3 END, o.seq
  LOOP
    i := op.seq;
    IF account IS DISTINCT FROM op.account_id THEN
      account := op.account_id;
      api_key := NULL; key_left := NULL; key_free := NULL;
      tier := op.tier_nanocredits; crypto := op.crypto_nanocredits; pack := op.pack_nanocredits;
      tier_free := tier - op.tier_held_nanocredits;
      crypto_free := crypto - op.crypto_held_nanocredits;
      pack_free := pack - op.pack_held_nanocredits;
    END IF;
    IF api_key IS DISTINCT FROM op.api_key_id THEN
      api_key := op.api_key_id;
      key_left := op.budget_nanocredits - op.spent_nanocredits;
      key_free := key_left - op.held_nanocredits;
    END IF;

    IF op.kind IN ('settle', 'release') THEN
      IF op.hold_id IS NOT NULL THEN
        closed := closed || op.hold_id;
        tier_free := tier_free + op.hold_tier; crypto_free := crypto_free + op.hold_crypto; pack_free := pack_free + op.hold_pack;
        key_free := key_free + op.hold_tier + op.hold_crypto + op.hold_pack;
        held_tier[i] := -op.hold_tier; held_crypto[i] := -op.hold_crypto; held_pack[i] := -op.hold_pack;
        r_outcome[i] := 'ok';
      END IF;
      IF op.kind = 'settle' AND op.usage_id IS NOT NULL THEN
        r_outcome[i] := 'duplicate'; r_charged[i] := op.usage_cost; r_source[i] := op.usage_meter_source;
      ELSIF op.kind = 'settle' THEN
        affordable := least(op.amount, CASE WHEN op.paid_only THEN 0 ELSE tier_free END + crypto_free + pack_free, key_free);
        from_tier := CASE WHEN op.paid_only THEN 0 ELSE least(tier_free, affordable) END;
        from_crypto := least(crypto_free, affordable - from_tier);
        from_pack := affordable - from_tier - from_crypto;
        tier := tier - from_tier; crypto := crypto - from_crypto; pack := pack - from_pack;
        tier_free := tier_free - from_tier; crypto_free := crypto_free - from_crypto; pack_free := pack_free - from_pack;
        key_left := key_left - affordable; key_free := key_free - affordable;
        paid_tier[i] := from_tier; paid_crypto[i] := from_crypto; paid_pack[i] := from_pack;
        r_outcome[i] := 'ok'; r_charged[i] := affordable; r_written_off[i] := op.amount - affordable; is_written[i] := true;
        IF op.app_key_id IS NOT NULL THEN
          apps[i] := op.app_key_id;
        END IF;
        -- The bucket that paid the most; when nothing was paid, the first that would have.
        r_source[i] := CASE
          WHEN affordable > 0 AND from_tier >= from_crypto AND from_tier >= from_pack THEN 'tier'
          WHEN affordable > 0 AND from_crypto >= from_pack THEN 'crypto'
          WHEN affordable > 0 THEN 'pack'
          WHEN tier > 0 AND NOT op.paid_only THEN 'tier'
          WHEN crypto > 0 THEN 'crypto'
          ELSE 'pack' END;
      END IF;

    ELSIF op.kind = 'hold' AND op.usage_id IS NOT NULL THEN
      r_outcome[i] := 'duplicate';
    ELSIF op.kind = 'hold' AND op.hold_id IS NOT NULL THEN
      r_outcome[i] := 'ok';
    ELSIF op.kind = 'hold' OR op.hold_id IS NOT NULL THEN -- a new hold, or an extension of one that is there
      affordable := CASE WHEN op.paid_only THEN 0 ELSE tier_free END + crypto_free + pack_free;
      IF op.amount > 0 AND key_free < op.amount THEN
        r_outcome[i] := 'key_budget_exhausted';
        r_contended[i] := key_left >= op.amount;
      ELSIF op.amount > 0 AND affordable < op.amount THEN
        r_outcome[i] := 'insufficient_balance';
        r_contended[i] := CASE WHEN op.paid_only THEN 0 ELSE tier END + crypto + pack >= op.amount;
      ELSE
        from_tier := CASE WHEN op.paid_only THEN 0 ELSE least(tier_free, op.amount) END;
        from_crypto := least(crypto_free, op.amount - from_tier);
        from_pack := op.amount - from_tier - from_crypto;
        tier_free := tier_free - from_tier; crypto_free := crypto_free - from_crypto; pack_free := pack_free - from_pack;
        key_free := key_free - op.amount;
        held_tier[i] := from_tier; held_crypto[i] := from_crypto; held_pack[i] := from_pack;
        r_outcome[i] := 'ok'; is_written[i] := true;
      END IF;
    END IF;

    r_available[i] := tier_free + crypto_free + pack_free;
    r_key[i] := key_free;
  END LOOP;

  IF cardinality(closed) > 0 THEN
    DELETE FROM hold WHERE hold.id = ANY (closed);
  END IF;

  IF 'hold' = ANY (kinds) THEN
    INSERT INTO hold (id, account_id, api_key_id, process_id, paid_only, tier_nanocredits, crypto_nanocredits, pack_nanocredits,
                      metered_nanocredits, record, expires_at)
      SELECT o.id, o.account_id, o.api_key_id, process, o.paid_only, o.t, o.c, o.p, 0, o.record::jsonb, now() + make_interval(secs => hold_seconds)
      FROM unnest(kinds, ids, account_ids, api_key_ids, paid_only, records, held_tier, held_crypto, held_pack, is_written)
           AS o(kind, id, account_id, api_key_id, paid_only, record, t, c, p, is_written)
      WHERE o.kind = 'hold' AND o.is_written;
  END IF;

  IF 'extend' = ANY (kinds) THEN
    UPDATE hold h SET
        tier_nanocredits = h.tier_nanocredits + o.t,
        crypto_nanocredits = h.crypto_nanocredits + o.c,
        pack_nanocredits = h.pack_nanocredits + o.p,
        metered_nanocredits = greatest(h.metered_nanocredits, o.metered),
        record = o.record::jsonb,
        expires_at = now() + make_interval(secs => hold_seconds)
      FROM unnest(kinds, ids, metered, records, held_tier, held_crypto, held_pack) AS o(kind, id, metered, record, t, c, p)
      WHERE o.kind = 'extend' AND h.id = o.id;
  END IF;

  IF 'settle' = ANY (kinds) THEN
    INSERT INTO usage_record (id, account_id, api_key_id, api_key_name, api_key_type, timestamp, modality, model, model_used, meter_source,
        input_text_tokens, input_cached_tokens, input_cache_write_tokens, input_audio_tokens, input_image_tokens,
        output_text_tokens, output_reasoning_tokens, output_audio_tokens, output_image_tokens,
        output_video_milliseconds, output_audio_milliseconds,
        cost_nanocredits, response_time_ms, time_to_first_token_ms, status, usage_source, parent_request_id)
      SELECT o.id, o.account_id, o.api_key_id, o.api_key_name, o.api_key_type, o.at, o.modality, o.model, o.model_used, o.source,
        quantities[o.seq][1], quantities[o.seq][2], quantities[o.seq][3], quantities[o.seq][4], quantities[o.seq][5],
        quantities[o.seq][6], quantities[o.seq][7], quantities[o.seq][8], quantities[o.seq][9],
        quantities[o.seq][10], quantities[o.seq][11],
        o.charged, o.response_time, o.first_token, o.status, o.usage_source, o.parent
      FROM unnest(kinds, ids, account_ids, api_key_ids, api_key_names, api_key_types, timestamps, modalities, models, models_used,
                  response_times, first_tokens, statuses, usage_sources, parents, r_source, r_charged, is_written)
           WITH ORDINALITY AS o(kind, id, account_id, api_key_id, api_key_name, api_key_type, at, modality, model, model_used,
                  response_time, first_token, status, usage_source, parent, source, charged, is_written, seq)
      WHERE o.kind = 'settle' AND o.is_written;

    INSERT INTO usage_daily (account_id, day, model, meter_source, requests, cost_nanocredits)
      SELECT o.account_id, (o.at AT TIME ZONE 'UTC')::date, o.model, o.source, count(*), sum(o.charged)
      FROM unnest(kinds, account_ids, timestamps, models, r_source, r_charged, is_written)
           AS o(kind, account_id, at, model, source, charged, is_written)
      WHERE o.kind = 'settle' AND o.is_written
      GROUP BY 1, 2, 3, 4
      ON CONFLICT ON CONSTRAINT usage_daily_pkey DO UPDATE SET
        requests = usage_daily.requests + excluded.requests,
        cost_nanocredits = usage_daily.cost_nanocredits + excluded.cost_nanocredits;

    INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits)
      SELECT o.id, line.number, o.account_id, line.book, 'charge', line.amount
      FROM unnest(kinds, ids, account_ids, amounts, paid_tier, paid_crypto, paid_pack, r_written_off, is_written)
           AS o(kind, id, account_id, amount, t, c, p, written_off, is_written)
      CROSS JOIN LATERAL (VALUES (1, 'tier'::"LedgerBook", -o.t), (2, 'crypto', -o.c), (3, 'pack', -o.p),
                                 (4, 'write_off', -o.written_off), (5, 'revenue', o.amount)) AS line(number, book, amount)
      WHERE o.kind = 'settle' AND o.is_written AND line.amount <> 0;
  END IF;

  UPDATE account a SET
      tier_nanocredits = a.tier_nanocredits - r.paid_tier,
      crypto_nanocredits = a.crypto_nanocredits - r.paid_crypto,
      pack_nanocredits = a.pack_nanocredits - r.paid_pack,
      tier_held_nanocredits = a.tier_held_nanocredits + r.held_tier,
      crypto_held_nanocredits = a.crypto_held_nanocredits + r.held_crypto,
      pack_held_nanocredits = a.pack_held_nanocredits + r.held_pack
    FROM (SELECT o.account_id, sum(o.pt)::bigint AS paid_tier, sum(o.pc)::bigint AS paid_crypto, sum(o.pp)::bigint AS paid_pack,
                 sum(o.ht)::bigint AS held_tier, sum(o.hc)::bigint AS held_crypto, sum(o.hp)::bigint AS held_pack
          FROM unnest(account_ids, paid_tier, paid_crypto, paid_pack, held_tier, held_crypto, held_pack)
               AS o(account_id, pt, pc, pp, ht, hc, hp) GROUP BY o.account_id) r
    WHERE a.id = r.account_id;

  UPDATE api_key k SET
      spent_nanocredits = k.spent_nanocredits + r.paid,
      held_nanocredits = k.held_nanocredits + r.held,
      last_used_at = now()
    FROM (SELECT o.api_key_id, sum(o.pt + o.pc + o.pp)::bigint AS paid, sum(o.ht + o.hc + o.hp)::bigint AS held
          FROM unnest(api_key_ids, paid_tier, paid_crypto, paid_pack, held_tier, held_crypto, held_pack)
               AS o(api_key_id, pt, pc, pp, ht, hc, hp) WHERE o.api_key_id IS NOT NULL GROUP BY o.api_key_id) r
    WHERE k.id = r.api_key_id;

  -- Last, because an app's row is shared by the accounts of all its users: it is locked until the commit, which follows. In
  -- order, so that batches of different processes do not wait for each other in a circle.
  IF apps IS NOT NULL THEN
    INSERT INTO app_usage_daily (app_key_id, day, model, requests, cost_nanocredits)
      SELECT o.app, (o.at AT TIME ZONE 'UTC')::date, o.model, count(*), sum(o.charged)
      FROM (SELECT apps[a.i] AS app, timestamps[a.i] AS at, models[a.i] AS model, r_charged[a.i] AS charged
            FROM generate_subscripts(apps, 1) AS a(i) WHERE apps[a.i] IS NOT NULL) o
      GROUP BY 1, 2, 3
      ORDER BY 1, 2, 3
      ON CONFLICT ON CONSTRAINT app_usage_daily_pkey DO UPDATE SET
        requests = app_usage_daily.requests + excluded.requests,
        cost_nanocredits = app_usage_daily.cost_nanocredits + excluded.cost_nanocredits;
  END IF;

  RETURN QUERY SELECT * FROM unnest(r_outcome, r_contended, r_charged, r_written_off, r_source, r_available, r_key);
END
$$;
