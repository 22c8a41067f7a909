-- The entries of transactions from `low` up to below `high`, or, without transactions, of rows with ids after `low_id` up to `high_id`.
CREATE OR REPLACE FUNCTION usage_entries(low bigint, high bigint, low_id uuid, high_id uuid) RETURNS TABLE (
  account_id uuid, api_key_id uuid, at timestamptz, modality "Modality", model text, outcome "UsageOutcome", requests integer,
  cost_nanocredits bigint, input_tokens bigint, output_tokens bigint, response_time_ms integer, time_to_first_token_ms integer
)
LANGUAGE plpgsql STABLE
-- Uses the index of transactions or of ids. Without statistics the planner would choose other plans.
SET enable_seqscan = off
SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN QUERY
    SELECT u.account_id, u.api_key_id, u.timestamp, u.modality, u.model, u.status::text::"UsageOutcome", 1, u.cost_nanocredits,
      u.input_text_tokens::bigint + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens + u.input_image_tokens,
      u.output_text_tokens::bigint + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens,
      u.response_time_ms, u.time_to_first_token_ms
    FROM usage_record u WHERE u.written_in >= low AND u.written_in < high;
  RETURN QUERY
    SELECT e.account_id, e.api_key_id, e.timestamp, e.modality, e.model, e.outcome, e.requests, e.cost_nanocredits, e.input_tokens,
      e.output_tokens, e.response_time_ms, e.time_to_first_token_ms
    FROM usage_event e WHERE e.written_in >= low AND e.written_in < high;
  IF low_id IS NOT NULL THEN
    RETURN QUERY
      SELECT u.account_id, u.api_key_id, u.timestamp, u.modality, u.model, u.status::text::"UsageOutcome", 1, u.cost_nanocredits,
        u.input_text_tokens::bigint + u.input_cached_tokens + u.input_cache_write_tokens + u.input_audio_tokens + u.input_image_tokens,
        u.output_text_tokens::bigint + u.output_reasoning_tokens + u.output_audio_tokens + u.output_image_tokens,
        u.response_time_ms, u.time_to_first_token_ms
      -- Sorted, so that the planner uses the index of ids.
      FROM (SELECT * FROM usage_record r WHERE r.id > low_id AND (high_id IS NULL OR r.id <= high_id) ORDER BY r.id OFFSET 0) u
      WHERE u.written_in = 0;
    RETURN QUERY
      SELECT e.account_id, e.api_key_id, e.timestamp, e.modality, e.model, e.outcome, e.requests, e.cost_nanocredits, e.input_tokens,
        e.output_tokens, e.response_time_ms, e.time_to_first_token_ms
      FROM usage_event e WHERE e.written_in = 0 AND e.record_id > low_id AND (high_id IS NULL OR e.record_id <= high_id);
  END IF;
END
$$;
