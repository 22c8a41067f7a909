-- Settles a batch of a process: makes, extends and releases holds, and charges. Locks the accounts of the batch in the order of their ids
-- (docs/decisions/money-in-one-sql-function.md). An operation that was done before is not done twice. Returns one row for each operation.
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
  -- Columns of a settlement's usage row.
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
  -- Nanocredits that all tier buckets together may spend in a day (UTC). Null: no cap, and the sum is not counted.
  free_spend_cap   bigint DEFAULT NULL,
  -- For the receipt: nanocredits held in all, and milliseconds of the upstream and of the gateway.
  helds            bigint[] DEFAULT NULL,
  upstream_times   bigint[] DEFAULT NULL,
  gateway_times    bigint[] DEFAULT NULL,
  -- The route that served: its upstream, its id, the operator's cost in nanocredits, and the attempts before it as JSON.
  upstreams        text[] DEFAULT NULL,
  routes           text[] DEFAULT NULL,
  upstream_costs   bigint[] DEFAULT NULL,
  attempt_lists    text[] DEFAULT NULL,
  -- Who earns of a settlement, as JSON: { app: { accountId, source, percent }, model: ... }, each of which may be absent. Null: none.
  earner_lists     text[] DEFAULT NULL
) RETURNS TABLE (
  outcome          text,
  is_contended     boolean,
  charged          bigint,
  written_off      bigint,
  meter_source     "Bucket",
  available        bigint,
  key_available    bigint,
  -- Nanocredits that the app's and the model's owner earned.
  app_earned       bigint,
  model_earned     bigint
)
LANGUAGE plpgsql
-- Every look-up is by primary key. Without statistics the planner would choose other plans.
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
  -- The current account: credits of each bucket, and how many of them are not held.
  tier          bigint;
  crypto        bigint;
  pack          bigint;
  tier_free     bigint;
  crypto_free   bigint;
  pack_free     bigint;
  crypto_sold   bigint;
  pack_sold     bigint;
  -- The current key: what remains of its budget, and how much of that is not held. Null: no budget. A key with ancestors has the smallest of
  -- all their budgets. An operation draws on all of these budgets alike.
  key_left      bigint;
  key_free      bigint;
  -- The current key and its ancestors, and the two budgets above as they were before its operations. Null: the key has no ancestors.
  lineage       uuid[];
  left_before   bigint;
  free_before   bigint;
  -- Changes so far to keys of the current account that are in trees, one entry for each change. Null: none.
  tree_ids      uuid[];
  tree_left     bigint[];
  tree_free     bigint[];
  has_lineage   boolean := false; -- a key of the batch has ancestors
  -- Credits that the current operation can spend, and those it takes from each bucket.
  affordable    bigint;
  from_tier     bigint;
  from_crypto   bigint;
  from_pack     bigint;
  -- Credits that the current settlement still has to charge (negative: to give back), and those written off.
  due           bigint;
  unpaid        bigint;
  -- For a correction: what the recovery drew and wrote off. 0 for other settlements.
  was_tier        bigint := 0;
  was_crypto      bigint := 0;
  was_pack        bigint := 0;
  was_written_off bigint := 0;
  -- Credits that tier buckets may still spend today. Null: no cap.
  allowance     bigint;
  -- Results, entry i for operation i.
  r_outcome     text[]     := array_fill('missing'::text, ARRAY[n]);
  r_contended   boolean[]  := array_fill(false, ARRAY[n]);
  r_charged     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  r_written_off bigint[]   := array_fill(0::bigint, ARRAY[n]);
  r_source      "Bucket"[] := array_fill(NULL::"Bucket", ARRAY[n]);
  r_available   bigint[]   := array_fill(0::bigint, ARRAY[n]);
  r_key         bigint[]   := array_fill(NULL::bigint, ARRAY[n]);
  r_app_earned   bigint[]  := array_fill(0::bigint, ARRAY[n]);
  r_model_earned bigint[]  := array_fill(0::bigint, ARRAY[n]);
  -- Credits that a settlement paid from each bucket, and the change of what is held of each bucket.
  paid_tier     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  paid_crypto   bigint[]   := array_fill(0::bigint, ARRAY[n]);
  paid_pack     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  held_tier     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  held_crypto   bigint[]   := array_fill(0::bigint, ARRAY[n]);
  held_pack     bigint[]   := array_fill(0::bigint, ARRAY[n]);
  is_written    boolean[]  := array_fill(false, ARRAY[n]); -- a new hold or a new usage row
  closed        uuid[]     := '{}';
  -- Settlements that correct a recovery, and the recovery's usage rows. Null until there is one.
  corrected     boolean[];
  old_times     timestamptz[];
  old_models    text[];
  old_sources   "Bucket"[];
  old_costs     bigint[];
  -- App keys of settlements whose key was granted to an app. Null until there is one.
  apps          uuid[];
  -- What settlements with earners drew of sold credits. Null until there is one.
  sold_drawn    bigint[];
BEGIN
  PERFORM 1 FROM account a WHERE a.id = ANY (ARRAY(SELECT DISTINCT unnest(account_ids))) ORDER BY a.id FOR NO KEY UPDATE;

  -- Payments of leases were made before: granted credits are spent before sold ones.
  IF num_nonnulls(VARIADIC coalesce(earner_lists, '{}')) > 0 THEN
    PERFORM credit_fold(ARRAY(SELECT DISTINCT e.account_id FROM unnest(account_ids, earner_lists) AS e(account_id, earners) WHERE e.earners IS NOT NULL));
  END IF;

  IF free_spend_cap IS NOT NULL AND n > 0 THEN
    allowance := free_spend_cap
      - coalesce((SELECT sum(f.tier_nanocredits) FROM free_spend_daily f WHERE f.day = (now() AT TIME ZONE 'UTC')::date), 0)
      - coalesce((SELECT sum(h.tier_nanocredits) FROM hold h), 0);
  END IF;

  FOR op IN
    SELECT o.seq, o.kind, o.id, o.account_id, o.api_key_id, o.amount, o.paid_only,
           a.tier_nanocredits, a.crypto_nanocredits, a.pack_nanocredits,
           a.tier_held_nanocredits, a.crypto_held_nanocredits, a.pack_held_nanocredits, a.crypto_sold_nanocredits, a.pack_sold_nanocredits,
           k.budget_nanocredits, k.spent_nanocredits, k.held_nanocredits, k.ancestor_ids, k.app_key_id,
           h.id AS hold_id, h.tier_nanocredits AS hold_tier, h.crypto_nanocredits AS hold_crypto, h.pack_nanocredits AS hold_pack,
           u.id AS usage_id, u.cost_nanocredits AS usage_cost, u.meter_source AS usage_meter_source,
           u.is_recovered
    FROM unnest(kinds, ids, account_ids, api_key_ids, amounts, paid_only)
         WITH ORDINALITY AS o(kind, id, account_id, api_key_id, amount, paid_only, seq)
    JOIN account a ON a.id = o.account_id
    LEFT JOIN api_key k ON k.id = o.api_key_id
    LEFT JOIN hold h ON h.id = o.id
    LEFT JOIN usage_record u ON u.id = o.id
    -- Releases come before holds. Keys with ancestors come first in their account, so their changes to the keys above them are known when
    -- those keys come.
    ORDER BY o.account_id, coalesce(cardinality(k.ancestor_ids), 0) = 0, o.api_key_id NULLS FIRST,
             CASE o.kind WHEN 'settle' THEN 1 WHEN 'recover' THEN 1 WHEN 'release' THEN 1 WHEN 'extend' THEN 2 ELSE 3 END, o.seq
  LOOP
    i := op.seq;
    IF account IS DISTINCT FROM op.account_id THEN
      account := op.account_id;
      api_key := NULL; key_left := NULL; key_free := NULL;
      lineage := NULL; tree_ids := NULL; tree_left := NULL; tree_free := NULL;
      tier := op.tier_nanocredits; crypto := op.crypto_nanocredits; pack := op.pack_nanocredits;
      tier_free := tier - op.tier_held_nanocredits;
      crypto_free := crypto - op.crypto_held_nanocredits;
      pack_free := pack - op.pack_held_nanocredits;
      crypto_sold := op.crypto_sold_nanocredits; pack_sold := op.pack_sold_nanocredits;
    END IF;
    IF api_key IS DISTINCT FROM op.api_key_id THEN
      IF lineage IS NOT NULL AND left_before IS NOT NULL THEN
        tree_ids := tree_ids || lineage;
        tree_left := tree_left || array_fill(key_left - left_before, ARRAY[cardinality(lineage)]);
        tree_free := tree_free || array_fill(key_free - free_before, ARRAY[cardinality(lineage)]);
      END IF;
      api_key := op.api_key_id;
      key_left := op.budget_nanocredits - op.spent_nanocredits;
      key_free := key_left - op.held_nanocredits;
      lineage := NULL;
      IF cardinality(op.ancestor_ids) > 0 THEN
        has_lineage := true;
        lineage := op.api_key_id || op.ancestor_ids;
        SELECT min(l.budget_nanocredits - l.spent_nanocredits + coalesce(t.more_left, 0)),
               min(l.budget_nanocredits - l.spent_nanocredits - l.held_nanocredits + coalesce(t.more_free, 0))
          INTO key_left, key_free
          FROM api_key l
          LEFT JOIN LATERAL (SELECT sum(c.more_left)::bigint AS more_left, sum(c.more_free)::bigint AS more_free
                             FROM unnest(tree_ids, tree_left, tree_free) AS c(id, more_left, more_free) WHERE c.id = l.id) t ON true
          WHERE l.id = ANY (lineage);
        left_before := key_left; free_before := key_free;
      ELSIF tree_ids IS NOT NULL AND key_left IS NOT NULL THEN
        SELECT key_left + coalesce(sum(c.more_left), 0), key_free + coalesce(sum(c.more_free), 0)
          INTO key_left, key_free
          FROM unnest(tree_ids, tree_left, tree_free) AS c(id, more_left, more_free) WHERE c.id = op.api_key_id;
      END IF;
    END IF;

    IF op.kind IN ('settle', 'recover', 'release') THEN
      IF op.hold_id IS NOT NULL THEN
        closed := closed || op.hold_id;
        tier_free := tier_free + op.hold_tier; crypto_free := crypto_free + op.hold_crypto; pack_free := pack_free + op.hold_pack;
        key_free := key_free + op.hold_tier + op.hold_crypto + op.hold_pack;
        allowance := allowance + op.hold_tier;
        held_tier[i] := -op.hold_tier; held_crypto[i] := -op.hold_crypto; held_pack[i] := -op.hold_pack;
        r_outcome[i] := 'ok';
      END IF;
      IF op.kind <> 'release' AND op.usage_id IS NOT NULL AND NOT (op.kind = 'settle' AND op.is_recovered) THEN
        r_outcome[i] := 'duplicate'; r_charged[i] := op.usage_cost; r_source[i] := op.usage_meter_source;
      ELSIF op.kind <> 'release' THEN
        due := op.amount;
        r_outcome[i] := 'ok';
        IF op.usage_id IS NOT NULL THEN
          SELECT -coalesce(sum(l.amount_nanocredits) FILTER (WHERE l.book = 'tier'), 0),
                 -coalesce(sum(l.amount_nanocredits) FILTER (WHERE l.book = 'crypto'), 0),
                 -coalesce(sum(l.amount_nanocredits) FILTER (WHERE l.book = 'pack'), 0),
                 -coalesce(sum(l.amount_nanocredits) FILTER (WHERE l.book = 'write_off'), 0)
            INTO was_tier, was_crypto, was_pack, was_written_off
            FROM ledger_entry l WHERE l.transaction_id = op.id;
          due := op.amount - was_tier - was_crypto - was_pack - was_written_off;
          old_times[i] := (SELECT u.timestamp FROM usage_record u WHERE u.id = op.id);
          old_models[i] := (SELECT u.model FROM usage_record u WHERE u.id = op.id);
          old_sources[i] := op.usage_meter_source; old_costs[i] := op.usage_cost;
          corrected := coalesce(corrected, array_fill(false, ARRAY[n]));
          corrected[i] := true;
          r_outcome[i] := 'corrected';
        END IF;
        IF due >= 0 THEN
          affordable := least(due, CASE WHEN op.paid_only THEN 0 ELSE tier_free END + crypto_free + pack_free, key_free);
          -- The tier pays what was held of it, and what the cap allows. It pays more only when no other bucket has credits.
          from_tier := CASE WHEN op.paid_only THEN 0 ELSE least(tier_free, affordable,
            CASE WHEN allowance < coalesce(op.hold_tier, 0) THEN coalesce(op.hold_tier, 0) ELSE allowance END) END;
          from_crypto := least(crypto_free, affordable - from_tier);
          from_pack := least(pack_free, affordable - from_tier - from_crypto);
          from_tier := affordable - from_crypto - from_pack;
          unpaid := due - affordable;
        ELSE
          -- Credits are returned in reverse order: first what was written off, then what was drawn last.
          unpaid := -least(-due, was_written_off);
          from_pack := -least(unpaid - due, was_pack);
          from_crypto := -least(unpaid + from_pack - due, was_crypto);
          from_tier := due - unpaid - from_pack - from_crypto;
          affordable := from_tier + from_crypto + from_pack;
        END IF;
        IF earner_lists[i] IS NOT NULL THEN
          sold_drawn[i] := least(crypto_sold, crypto) - least(crypto_sold, crypto - from_crypto) + least(pack_sold, pack) - least(pack_sold, pack - from_pack);
        END IF;
        tier := tier - from_tier; crypto := crypto - from_crypto; pack := pack - from_pack;
        tier_free := tier_free - from_tier; crypto_free := crypto_free - from_crypto; pack_free := pack_free - from_pack;
        key_left := key_left - affordable; key_free := key_free - affordable;
        allowance := allowance - from_tier;
        paid_tier[i] := from_tier; paid_crypto[i] := from_crypto; paid_pack[i] := from_pack;
        r_charged[i] := coalesce(op.usage_cost, 0) + affordable; r_written_off[i] := unpaid; is_written[i] := true;
        IF op.app_key_id IS NOT NULL THEN
          apps[i] := op.app_key_id;
        END IF;
        -- The bucket that paid the most. When nothing was paid: the first bucket in order.
        from_tier := from_tier + was_tier; from_crypto := from_crypto + was_crypto; from_pack := from_pack + was_pack;
        r_source[i] := CASE
          WHEN r_charged[i] > 0 AND from_tier >= from_crypto AND from_tier >= from_pack THEN 'tier'
          WHEN r_charged[i] > 0 AND from_crypto >= from_pack THEN 'crypto'
          WHEN r_charged[i] > 0 THEN 'pack'
          WHEN tier > 0 AND NOT op.paid_only THEN 'tier'
          WHEN crypto > 0 THEN 'crypto'
          ELSE 'pack' END;
        IF op.usage_id IS NOT NULL THEN
          was_tier := 0; was_crypto := 0; was_pack := 0; was_written_off := 0;
        END IF;
      END IF;

    ELSIF op.kind = 'hold' AND op.usage_id IS NOT NULL THEN
      r_outcome[i] := 'duplicate';
    ELSIF op.kind = 'hold' AND op.hold_id IS NOT NULL THEN
      r_outcome[i] := 'ok';
    ELSIF op.kind = 'hold' OR op.hold_id IS NOT NULL THEN -- a new hold, or an extension of a hold
      -- Without a cap the allowance is null, which least() ignores.
      from_tier := CASE WHEN op.paid_only THEN 0 ELSE least(tier_free, CASE WHEN allowance < 0 THEN 0 ELSE allowance END) END;
      affordable := from_tier + crypto_free + pack_free;
      IF op.amount > 0 AND key_free < op.amount THEN
        r_outcome[i] := 'key_budget_exhausted';
        r_contended[i] := key_left >= op.amount AND (op.kind = 'hold' OR EXISTS (SELECT FROM credit_lease l WHERE l.account_id = account));
      ELSIF op.amount > 0 AND affordable < op.amount THEN
        r_outcome[i] := CASE WHEN NOT op.paid_only AND tier_free + crypto_free + pack_free >= op.amount
          THEN 'free_spend_exhausted' ELSE 'insufficient_balance' END;
        r_contended[i] := r_outcome[i] = 'insufficient_balance' AND CASE WHEN op.paid_only THEN 0 ELSE tier END + crypto + pack >= op.amount
          AND (op.kind = 'hold' OR affordable + coalesce(
            (SELECT sum(l.tier_nanocredits + l.crypto_nanocredits + l.pack_nanocredits) FROM credit_lease l WHERE l.account_id = account), 0) >= op.amount);
      ELSE
        from_tier := least(from_tier, op.amount);
        from_crypto := least(crypto_free, op.amount - from_tier);
        from_pack := op.amount - from_tier - from_crypto;
        tier_free := tier_free - from_tier; crypto_free := crypto_free - from_crypto; pack_free := pack_free - from_pack;
        key_free := key_free - op.amount;
        allowance := allowance - from_tier;
        held_tier[i] := from_tier; held_crypto[i] := from_crypto; held_pack[i] := from_pack;
        r_outcome[i] := 'ok'; is_written[i] := true;
      END IF;
    END IF;

    r_available[i] := least(tier_free, CASE WHEN allowance < 0 THEN 0 ELSE allowance END) + crypto_free + pack_free;
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

  IF 'settle' = ANY (kinds) OR 'recover' = ANY (kinds) THEN
    IF corrected IS NOT NULL THEN
      UPDATE usage_daily d SET requests = d.requests - o.requests, cost_nanocredits = d.cost_nanocredits - o.cost
        FROM (SELECT account_ids[s.i] AS account_id, (old_times[s.i] AT TIME ZONE 'UTC')::date AS day, old_models[s.i] AS model,
                     old_sources[s.i] AS meter_source, count(*) AS requests, sum(old_costs[s.i]) AS cost
              FROM generate_subscripts(corrected, 1) AS s(i) WHERE corrected[s.i] GROUP BY 1, 2, 3, 4) o
        WHERE d.account_id = o.account_id AND d.day = o.day AND d.model = o.model AND d.meter_source = o.meter_source;

      UPDATE usage_record u SET
          api_key_name = api_key_names[s.i], api_key_type = api_key_types[s.i], timestamp = timestamps[s.i], modality = modalities[s.i],
          model = models[s.i], model_used = models_used[s.i], meter_source = r_source[s.i],
          input_text_tokens = quantities[s.i][1], input_cached_tokens = quantities[s.i][2], input_cache_write_tokens = quantities[s.i][3],
          input_audio_tokens = quantities[s.i][4], input_image_tokens = quantities[s.i][5],
          output_text_tokens = quantities[s.i][6], output_reasoning_tokens = quantities[s.i][7], output_audio_tokens = quantities[s.i][8],
          output_image_tokens = quantities[s.i][9], output_video_milliseconds = quantities[s.i][10], output_audio_milliseconds = quantities[s.i][11],
          cost_nanocredits = r_charged[s.i], response_time_ms = response_times[s.i], time_to_first_token_ms = first_tokens[s.i],
          status = statuses[s.i], usage_source = usage_sources[s.i], parent_request_id = parents[s.i], is_recovered = false,
          held_nanocredits = helds[s.i], upstream_us = upstream_times[s.i], gateway_us = gateway_times[s.i],
          upstream = upstreams[s.i], route = routes[s.i], upstream_cost_nanocredits = upstream_costs[s.i], attempts = attempt_lists[s.i]::jsonb,
          app_margin_nanocredits = credit_margin(r_charged[s.i], earner_lists[s.i])
        FROM generate_subscripts(corrected, 1) AS s(i)
        WHERE corrected[s.i] AND u.id = ids[s.i];
    END IF;

    INSERT INTO usage_record (id, account_id, api_key_id, api_key_name, api_key_type, timestamp, modality, model, model_used, meter_source,
        input_text_tokens, input_cached_tokens, input_cache_write_tokens, input_audio_tokens, input_image_tokens,
        output_text_tokens, output_reasoning_tokens, output_audio_tokens, output_image_tokens,
        output_video_milliseconds, output_audio_milliseconds,
        cost_nanocredits, response_time_ms, time_to_first_token_ms, status, usage_source, parent_request_id, is_recovered,
        held_nanocredits, upstream_us, gateway_us, upstream, route, upstream_cost_nanocredits, attempts, app_margin_nanocredits)
      SELECT o.id, o.account_id, o.api_key_id, o.api_key_name, o.api_key_type, o.at, o.modality, o.model, o.model_used, o.source,
        quantities[o.seq][1], quantities[o.seq][2], quantities[o.seq][3], quantities[o.seq][4], quantities[o.seq][5],
        quantities[o.seq][6], quantities[o.seq][7], quantities[o.seq][8], quantities[o.seq][9],
        quantities[o.seq][10], quantities[o.seq][11],
        o.charged, o.response_time, o.first_token, o.status, o.usage_source, o.parent, o.kind = 'recover',
        helds[o.seq], upstream_times[o.seq], gateway_times[o.seq],
        upstreams[o.seq], routes[o.seq], upstream_costs[o.seq], attempt_lists[o.seq]::jsonb,
        credit_margin(o.charged, earner_lists[o.seq])
      FROM unnest(kinds, ids, account_ids, api_key_ids, api_key_names, api_key_types, timestamps, modalities, models, models_used,
                  response_times, first_tokens, statuses, usage_sources, parents, r_source, r_charged, is_written, corrected)
           WITH ORDINALITY AS o(kind, id, account_id, api_key_id, api_key_name, api_key_type, at, modality, model, model_used,
                  response_time, first_token, status, usage_source, parent, source, charged, is_written, is_corrected, seq)
      WHERE o.kind IN ('settle', 'recover') AND o.is_written AND o.is_corrected IS NOT TRUE;

    INSERT INTO usage_daily (account_id, day, model, meter_source, requests, cost_nanocredits)
      SELECT o.account_id, (o.at AT TIME ZONE 'UTC')::date, o.model, o.source, count(*), sum(o.charged)
      FROM unnest(kinds, account_ids, timestamps, models, r_source, r_charged, is_written)
           AS o(kind, account_id, at, model, source, charged, is_written)
      WHERE o.kind IN ('settle', 'recover') AND o.is_written
      GROUP BY 1, 2, 3, 4
      ORDER BY 1, 2, 3, 4
      ON CONFLICT ON CONSTRAINT usage_daily_pkey DO UPDATE SET
        requests = usage_daily.requests + excluded.requests,
        cost_nanocredits = usage_daily.cost_nanocredits + excluded.cost_nanocredits;

    IF corrected IS NOT NULL THEN
      DELETE FROM usage_daily d WHERE d.account_id = ANY (account_ids) AND d.requests = 0;
    END IF;

    -- A correction adds entries to the transaction of the charge that it corrects. That transaction still sums to zero.
    INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
      SELECT o.id, line.number + CASE WHEN o.is_corrected THEN 5 ELSE 0 END, o.account_id, line.book, 'charge', line.amount,
             CASE WHEN o.is_corrected THEN 'correction' END
      FROM unnest(kinds, ids, account_ids, paid_tier, paid_crypto, paid_pack, r_written_off, is_written, corrected)
           AS o(kind, id, account_id, t, c, p, written_off, is_written, is_corrected)
      CROSS JOIN LATERAL (VALUES (1, 'tier'::"LedgerBook", -o.t), (2, 'crypto', -o.c), (3, 'pack', -o.p),
                                 (4, 'write_off', -o.written_off), (5, 'revenue', o.t + o.c + o.p + o.written_off)) AS line(number, book, amount)
      WHERE o.kind IN ('settle', 'recover') AND o.is_written AND line.amount <> 0;
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

  IF NOT has_lineage THEN
    UPDATE api_key k SET
        spent_nanocredits = k.spent_nanocredits + r.paid,
        held_nanocredits = k.held_nanocredits + r.held,
        last_used_at = now()
      FROM (SELECT o.api_key_id, sum(o.pt + o.pc + o.pp)::bigint AS paid, sum(o.ht + o.hc + o.hp)::bigint AS held
            FROM unnest(api_key_ids, paid_tier, paid_crypto, paid_pack, held_tier, held_crypto, held_pack)
                 AS o(api_key_id, pt, pc, pp, ht, hc, hp) WHERE o.api_key_id IS NOT NULL GROUP BY o.api_key_id) r
      WHERE k.id = r.api_key_id;
  ELSE
    -- Each key is written once, with the sum of its own and its descendants' changes. Single changes might exceed its budget.
    UPDATE api_key k SET
        spent_nanocredits = k.spent_nanocredits + r.paid,
        held_nanocredits = k.held_nanocredits + r.held,
        last_used_at = CASE WHEN r.is_used THEN now() ELSE k.last_used_at END
      FROM (SELECT l.id, sum(o.pt + o.pc + o.pp)::bigint AS paid, sum(o.ht + o.hc + o.hp)::bigint AS held,
                   bool_or(l.id = o.api_key_id) AS is_used
            FROM unnest(api_key_ids, paid_tier, paid_crypto, paid_pack, held_tier, held_crypto, held_pack)
                 AS o(api_key_id, pt, pc, pp, ht, hc, hp)
            JOIN api_key c ON c.id = o.api_key_id
            CROSS JOIN LATERAL unnest(c.id || c.ancestor_ids) AS l(id) GROUP BY l.id) r
      WHERE k.id = r.id;
  END IF;

  -- Each process has its own row, so processes do not wait for each other.
  IF free_spend_cap IS NOT NULL THEN
    INSERT INTO free_spend_daily (day, process_id, tier_nanocredits)
      SELECT (now() AT TIME ZONE 'UTC')::date, process, sum(o.t)::bigint FROM unnest(paid_tier) AS o(t) HAVING sum(o.t) <> 0
      ON CONFLICT ON CONSTRAINT free_spend_daily_pkey DO UPDATE SET
        tier_nanocredits = free_spend_daily.tier_nanocredits + excluded.tier_nanocredits;
  END IF;

  -- Last, because all users of an app share its row, which stays locked until the commit. Sorted, so that batches of different processes
  -- cannot deadlock.
  IF apps IS NOT NULL THEN
    IF corrected IS NOT NULL THEN
      PERFORM 1 FROM app_usage_daily d
        JOIN (SELECT DISTINCT apps[s.i] AS app, (old_times[s.i] AT TIME ZONE 'UTC')::date AS day, old_models[s.i] AS model
              FROM generate_subscripts(corrected, 1) AS s(i) WHERE corrected[s.i] AND apps[s.i] IS NOT NULL
              UNION SELECT apps[s.i], (timestamps[s.i] AT TIME ZONE 'UTC')::date, models[s.i]
              FROM generate_subscripts(apps, 1) AS s(i) WHERE apps[s.i] IS NOT NULL) o
          ON d.app_key_id = o.app AND d.day = o.day AND d.model = o.model
        ORDER BY d.app_key_id, d.day, d.model FOR NO KEY UPDATE OF d;
      UPDATE app_usage_daily d SET requests = d.requests - o.requests, cost_nanocredits = d.cost_nanocredits - o.cost
        FROM (SELECT apps[s.i] AS app, (old_times[s.i] AT TIME ZONE 'UTC')::date AS day, old_models[s.i] AS model,
                     count(*) AS requests, sum(old_costs[s.i]) AS cost
              FROM generate_subscripts(corrected, 1) AS s(i) WHERE corrected[s.i] AND apps[s.i] IS NOT NULL GROUP BY 1, 2, 3) o
        WHERE d.app_key_id = o.app AND d.day = o.day AND d.model = o.model;
    END IF;

    INSERT INTO app_usage_daily (app_key_id, day, model, requests, cost_nanocredits)
      SELECT o.app, (o.at AT TIME ZONE 'UTC')::date, o.model, count(*), sum(o.charged)
      FROM (SELECT apps[a.i] AS app, timestamps[a.i] AS at, models[a.i] AS model, r_charged[a.i] AS charged
            FROM generate_subscripts(apps, 1) AS a(i) WHERE apps[a.i] IS NOT NULL) o
      GROUP BY 1, 2, 3
      ORDER BY 1, 2, 3
      ON CONFLICT ON CONSTRAINT app_usage_daily_pkey DO UPDATE SET
        requests = app_usage_daily.requests + excluded.requests,
        cost_nanocredits = app_usage_daily.cost_nanocredits + excluded.cost_nanocredits;

    IF corrected IS NOT NULL THEN
      DELETE FROM app_usage_daily d WHERE d.app_key_id = ANY (apps) AND d.requests = 0;
    END IF;
  END IF;

  -- After the roll-ups of apps, because all payers of an owner share these rows too. Sorted for the same reason.
  IF sold_drawn IS NOT NULL THEN
    FOR op IN
      -- A correction changes the share to that of the whole charge, less at most the part that was not taken back. Of credits that were returned after
      -- they counted as granted, the charge has drawn no sold ones any more.
      SELECT s.i, e.kind, e.earner, e.source, c.sold - coalesce(b.sold_nanocredits, 0) AS sold,
             greatest(e.amount - coalesce(b.nanocredits, 0), coalesce(b.reversed_nanocredits - b.nanocredits, 0)) AS amount
      FROM generate_subscripts(sold_drawn, 1) AS s(i)
      CROSS JOIN LATERAL (SELECT greatest(0, least(r_charged[s.i], sold_drawn[s.i] + coalesce(
        CASE WHEN corrected[s.i] THEN (SELECT max(r.sold_nanocredits) FROM earning r WHERE r.generation_id = ids[s.i]) END, 0))) AS sold) c
      CROSS JOIN LATERAL credit_shares(account_ids[s.i], c.sold, r_charged[s.i] - c.sold, earner_lists[s.i]) e
      LEFT JOIN earning b ON corrected[s.i] AND b.generation_id = ids[s.i] AND b.kind = e.kind AND b.account_id = e.earner
      WHERE sold_drawn[s.i] IS NOT NULL AND greatest(e.amount - coalesce(b.nanocredits, 0), coalesce(b.reversed_nanocredits - b.nanocredits, 0)) <> 0
      ORDER BY e.earner, e.kind, e.source
    LOOP
      i := op.i;
      IF op.kind = 'app' THEN r_app_earned[i] := op.amount; ELSE r_model_earned[i] := op.amount; END IF;
      INSERT INTO earning (generation_id, kind, account_id, payer_id, source, sold_nanocredits, nanocredits, day)
        VALUES (ids[i], op.kind, op.earner, account_ids[i], op.source, op.sold, op.amount, (now() AT TIME ZONE 'UTC')::date)
        -- A correction.
        ON CONFLICT ON CONSTRAINT earning_pkey DO UPDATE SET
          sold_nanocredits = earning.sold_nanocredits + excluded.sold_nanocredits,
          nanocredits = earning.nanocredits + excluded.nanocredits;
      INSERT INTO earning_daily (account_id, day, kind, source, requests, nanocredits)
        -- Of today even for a correction, because an earlier day may have matured.
        VALUES (op.earner, (now() AT TIME ZONE 'UTC')::date, op.kind, op.source, CASE WHEN corrected[i] THEN 0 ELSE 1 END, op.amount)
        ON CONFLICT ON CONSTRAINT earning_daily_pkey DO UPDATE SET
          requests = earning_daily.requests + excluded.requests,
          nanocredits = earning_daily.nanocredits + excluded.nanocredits;
      INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
        SELECT ids[i], line.number + CASE op.kind WHEN 'app' THEN 10 ELSE 12 END + CASE WHEN corrected[i] THEN 10 ELSE 0 END,
               line.account_id, line.book, 'charge', line.amount, CASE WHEN corrected[i] THEN 'correction' END
        FROM (VALUES (1, op.earner, 'earnings'::"LedgerBook", op.amount), (2, account_ids[i], 'revenue', -op.amount)) AS line(number, account_id, book, amount);
    END LOOP;
  END IF;

  RETURN QUERY SELECT * FROM unnest(r_outcome, r_contended, r_charged, r_written_off, r_source, r_available, r_key, r_app_earned, r_model_earned);
END
$$;
