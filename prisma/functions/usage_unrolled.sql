-- The rows that are not added up yet, as of the statement that asks.
CREATE OR REPLACE FUNCTION usage_unrolled() RETURNS TABLE (
  account_id uuid, api_key_id uuid, at timestamptz, modality "Modality", model text, outcome "UsageOutcome", requests integer,
  cost_nanocredits bigint, input_tokens bigint, output_tokens bigint, response_time_ms integer, time_to_first_token_ms integer
)
LANGUAGE sql STABLE AS $$
  SELECT e.* FROM usage_roll_state s CROSS JOIN LATERAL usage_entries(s.watermark, 9223372036854775807, s.filled_to, NULL) e WHERE s.id = 1
$$;
