-- What a limit's usage rows and uses (usage_limit_use) after `since` sum up to: nanocredits, tokens or requests. Long windows read the roll-ups
-- (usage_roll) for their whole hours and days, and usage rows for the rest. A limit of all accounts has uses only.
CREATE OR REPLACE FUNCTION usage_limit_spent(of_limit usage_limit, since timestamptz, at timestamptz) RETURNS bigint
LANGUAGE plpgsql STABLE
-- Uses the indexes by time. Without statistics the planner would choose other plans.
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
DECLARE
  keys        uuid[] := CASE WHEN of_limit.api_key_id IS NOT NULL THEN ARRAY(SELECT k.id FROM api_key k WHERE k.account_id = of_limit.account_id
                     AND (k.id = of_limit.api_key_id OR of_limit.api_key_id = ANY (k.ancestor_ids))) END;
  whole_hours timestamptz := date_trunc('hour', since + interval '1 hour', 'UTC');
  whole_days  timestamptz := date_trunc('day', whole_hours + interval '1 day' - interval '1 microsecond', 'UTC');
  grouped_by  smallint := CASE WHEN of_limit.api_key_id IS NULL THEN 0 ELSE 1 END + CASE WHEN of_limit.model IS NULL THEN 0 ELSE 2 END;
  used        bigint;
  result      bigint;
BEGIN
  IF since IS NULL THEN
    RETURN 0;
  END IF;
  SELECT coalesce(sum(s.amount), 0) INTO used FROM usage_limit_use s WHERE s.limit_id = of_limit.id AND s.at > since;
  IF of_limit.account_id IS NULL THEN
    RETURN used;
  END IF;
  IF since > at - interval '2 hours' THEN
    whole_hours := 'infinity';
  END IF;
  SELECT sum(CASE of_limit.metric WHEN 'credits' THEN r.cost WHEN 'tokens' THEN r.tokens ELSE r.requests END) INTO result FROM (
    SELECT u.cost_nanocredits AS cost, u.input_text_tokens::bigint + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens
        + u.input_image_tokens + u.output_text_tokens + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens AS tokens, 1 AS requests
      FROM usage_record u
      WHERE keys IS NULL AND u.account_id = of_limit.account_id AND u.timestamp > since AND u.timestamp < whole_hours
        AND (of_limit.model IS NULL OR u.model = of_limit.model)
    UNION ALL
    SELECT u.cost_nanocredits, u.input_text_tokens::bigint + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens
        + u.input_image_tokens + u.output_text_tokens + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens, 1
      FROM unnest(keys) AS k(id) CROSS JOIN LATERAL (SELECT * FROM usage_record u
        WHERE u.api_key_id = k.id AND u.timestamp > since AND u.timestamp < whole_hours AND (of_limit.model IS NULL OR u.model = of_limit.model)) u
    UNION ALL
    SELECT h.cost_nanocredits, h.input_tokens + h.output_tokens, h.requests
      FROM usage_hour_rollup h
      WHERE h.account_id = of_limit.account_id AND h.level = grouped_by AND h.start >= whole_hours AND h.start < whole_days AND whole_hours <> 'infinity'
        AND (keys IS NULL OR h.api_key_id = ANY (keys)) AND (of_limit.model IS NULL OR h.model = of_limit.model)
        AND h.outcome IN ('ok', 'cancelled')
    UNION ALL
    SELECT d.cost_nanocredits, d.input_tokens + d.output_tokens, d.requests
      FROM usage_day_rollup d
      WHERE d.account_id = of_limit.account_id AND d.level = grouped_by AND d.start >= whole_days AND whole_hours <> 'infinity'
        AND (keys IS NULL OR d.api_key_id = ANY (keys)) AND (of_limit.model IS NULL OR d.model = of_limit.model)
        AND d.outcome IN ('ok', 'cancelled')
    UNION ALL
    SELECT e.requests * e.cost_nanocredits, e.requests * (e.input_tokens + e.output_tokens), e.requests
      FROM usage_unrolled() e
      WHERE whole_hours <> 'infinity' AND e.account_id = of_limit.account_id AND e.at >= whole_hours
        AND (keys IS NULL OR e.api_key_id = ANY (keys)) AND (of_limit.model IS NULL OR e.model = of_limit.model)
        AND e.outcome IN ('ok', 'cancelled')
  ) r;
  RETURN coalesce(result, 0) + used;
END
$$;
