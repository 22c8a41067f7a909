-- Adds up at most `rows_max` rows, and at least one transaction. `is_behind`: there are more. One process does it at a time; others return at
-- once. It is one transaction, so a killed process has done nothing.
CREATE OR REPLACE FUNCTION usage_roll(rows_max integer) RETURNS TABLE (rolled integer, is_behind boolean)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  state    usage_roll_state%ROWTYPE;
  low      bigint;
  high     bigint;
  beyond   bigint;
  low_id   uuid;
  high_id  uuid;
  n        integer;
BEGIN
  -- Writes nothing when there is nothing to add up.
  SELECT s.* INTO state FROM usage_roll_state s WHERE s.id = 1;
  IF state.filled_to IS NULL AND NOT EXISTS (SELECT FROM usage_record u WHERE u.written_in >= state.watermark)
      AND NOT EXISTS (SELECT FROM usage_event e WHERE e.written_in >= state.watermark) THEN
    RETURN QUERY SELECT 0, false;
    RETURN;
  END IF;
  SELECT s.* INTO state FROM usage_roll_state s WHERE s.id = 1 FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 0, false;
    RETURN;
  END IF;
  low := state.watermark;
  -- All rows of transactions with smaller numbers are visible to the next statement.
  high := greatest(low, pg_snapshot_xmin(pg_current_snapshot())::text::bigint + state.transaction_offset);
  SELECT u.written_in INTO beyond FROM usage_record u WHERE u.written_in >= low AND u.written_in < high ORDER BY u.written_in OFFSET rows_max LIMIT 1;
  is_behind := FOUND;
  IF is_behind THEN
    high := greatest(beyond, 1 + (SELECT min(u.written_in) FROM usage_record u WHERE u.written_in >= low));
  END IF;
  -- First, and alone, the rows that were written before transactions were numbered.
  IF state.filled_to IS NOT NULL THEN
    high := low;
    low_id := state.filled_to;
    SELECT max(r.id::text)::uuid INTO high_id FROM (SELECT u.id FROM usage_record u WHERE u.id > low_id ORDER BY u.id LIMIT rows_max) r;
    is_behind := true;
  END IF;

  WITH base AS MATERIALIZED (
    SELECT e.account_id, date_trunc('hour', e.at, 'UTC') AS hour, coalesce(e.api_key_id, '00000000-0000-0000-0000-000000000000') AS api_key_id,
      e.model, e.modality, e.outcome,
      count(*) AS entries, sum(e.requests) AS requests, sum(e.requests * e.cost_nanocredits) AS cost,
      sum(e.requests * e.input_tokens) AS input_tokens, sum(e.requests * e.output_tokens) AS output_tokens,
      coalesce(sum(e.requests * usage_time_digit(e.response_time_ms)), 0) AS response_times,
      coalesce(sum(e.requests * usage_time_digit(e.time_to_first_token_ms)), 0) AS first_token_times
    FROM usage_entries(low, high, low_id, high_id) e
    GROUP BY 1, 2, 3, 4, 5, 6
  ), hours AS (
    INSERT INTO usage_hour_rollup AS r (account_id, level, start, api_key_id, model, modality, outcome, requests, cost_nanocredits, input_tokens,
        output_tokens, response_times, first_token_times)
      SELECT b.account_id, l.level, b.hour,
        CASE WHEN l.level & 1 = 0 THEN '00000000-0000-0000-0000-000000000000' ELSE b.api_key_id END,
        CASE WHEN l.level & 2 = 0 THEN '' ELSE b.model END, b.modality, b.outcome,
        sum(b.requests), sum(b.cost), sum(b.input_tokens), sum(b.output_tokens), sum(b.response_times), sum(b.first_token_times)
      FROM base b CROSS JOIN generate_series(0, 3) AS l(level)
      GROUP BY 1, 2, 3, 4, 5, 6, 7
      ORDER BY 1, 2, 3, 4, 5, 6, 7
      ON CONFLICT ON CONSTRAINT usage_hour_rollup_pkey DO UPDATE SET
        requests = r.requests + excluded.requests,
        cost_nanocredits = r.cost_nanocredits + excluded.cost_nanocredits,
        input_tokens = r.input_tokens + excluded.input_tokens,
        output_tokens = r.output_tokens + excluded.output_tokens,
        response_times = r.response_times + excluded.response_times,
        first_token_times = r.first_token_times + excluded.first_token_times
  ), days AS (
    INSERT INTO usage_day_rollup AS r (account_id, level, start, api_key_id, model, modality, outcome, requests, cost_nanocredits, input_tokens,
        output_tokens, response_times, first_token_times)
      SELECT b.account_id, l.level, date_trunc(CASE WHEN l.level & 4 = 0 THEN 'day' ELSE 'week' END, b.hour, 'UTC'),
        CASE WHEN l.level & 1 = 0 THEN '00000000-0000-0000-0000-000000000000' ELSE b.api_key_id END,
        CASE WHEN l.level & 2 = 0 THEN '' ELSE b.model END, b.modality, b.outcome,
        sum(b.requests), sum(b.cost), sum(b.input_tokens), sum(b.output_tokens), sum(b.response_times), sum(b.first_token_times)
      FROM base b CROSS JOIN generate_series(0, 7) AS l(level)
      GROUP BY 1, 2, 3, 4, 5, 6, 7
      ORDER BY 1, 2, 3, 4, 5, 6, 7
      ON CONFLICT ON CONSTRAINT usage_day_rollup_pkey DO UPDATE SET
        requests = r.requests + excluded.requests,
        cost_nanocredits = r.cost_nanocredits + excluded.cost_nanocredits,
        input_tokens = r.input_tokens + excluded.input_tokens,
        output_tokens = r.output_tokens + excluded.output_tokens,
        response_times = r.response_times + excluded.response_times,
        first_token_times = r.first_token_times + excluded.first_token_times
  )
  SELECT coalesce(sum(entries), 0)::integer INTO n FROM base;

  IF state.filled_to IS NULL THEN
    UPDATE usage_roll_state SET watermark = high WHERE id = 1;
    DELETE FROM usage_event e WHERE e.written_in < high;
  ELSE
    UPDATE usage_roll_state SET filled_to = high_id WHERE id = 1;
  END IF;
  RETURN QUERY SELECT n, is_behind;
END
$$;
