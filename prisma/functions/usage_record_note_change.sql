-- Trigger: takes a usage row that changes or is deleted off the roll-ups; usage_roll counts the changed row again. A row that only loses its
-- key's name stays as it is counted.
CREATE OR REPLACE FUNCTION usage_record_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.api_key_name IS NULL THEN
    OLD.api_key_name := NULL;
    IF OLD IS NOT DISTINCT FROM NEW THEN
      RETURN NEW;
    END IF;
  END IF;
  INSERT INTO usage_event (record_id, written_in, requests, account_id, api_key_id, timestamp, modality, model, outcome,
      cost_nanocredits, input_tokens, output_tokens, response_time_ms, time_to_first_token_ms)
    SELECT OLD.id, note.written_in, note.requests, OLD.account_id, OLD.api_key_id, OLD.timestamp, OLD.modality, OLD.model,
      OLD.status::text::"UsageOutcome", OLD.cost_nanocredits,
      OLD.input_text_tokens::bigint + OLD.input_cached_tokens + OLD.input_cache_write_tokens + OLD.input_audio_tokens + OLD.input_image_tokens,
      OLD.output_text_tokens::bigint + OLD.output_reasoning_tokens + OLD.output_audio_tokens + OLD.output_image_tokens,
      OLD.response_time_ms, OLD.time_to_first_token_ms
    FROM (VALUES (OLD.written_in, 1), (usage_transaction(), -1)) AS note(written_in, requests);
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.written_in := usage_transaction();
  RETURN NEW;
END
$$;
