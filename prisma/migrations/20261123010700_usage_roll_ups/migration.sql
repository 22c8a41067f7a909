-- Roll-ups of usage by hour and by day (docs/decisions/usage-roll-ups.md). Charges write nothing of them: a row bears the number of the
-- transaction that wrote it, and usage_roll adds up, in the background, what transactions that have ended wrote.
--
-- What is added up are entries: each usage row counts once, and each row of usage_event as often as it says. A row that is changed or
-- deleted leaves there what it said before, once as of the transaction that had written it and once less as of this one, so that the
-- sums come out whether or not it had been added up.

CREATE TYPE "UsageOutcome" AS ENUM ('ok', 'cancelled', 'failed');

-- Numbers of transactions, which grow. A database that is restored elsewhere begins with small ones: usage_roll_open then replaces this
-- function by one that goes on from where the rows are.
CREATE FUNCTION usage_transaction() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT pg_current_xact_id()::text::bigint $$;

-- Rows that exist are of no transaction; they are added up in the order of their ids. No row is rewritten by this.
ALTER TABLE "usage_record" ADD COLUMN "written_in" BIGINT NOT NULL DEFAULT 0;
ALTER TABLE "usage_record" ALTER COLUMN "written_in" SET DEFAULT usage_transaction();

-- At the right end alone, once for each transaction: the cheapest that an index can be.
CREATE INDEX "usage_record_written_in_idx" ON "usage_record"("written_in");

CREATE TABLE "usage_event" (
    "id" BIGSERIAL NOT NULL,
    "written_in" BIGINT NOT NULL DEFAULT usage_transaction(),
    "record_id" UUID,
    "requests" INTEGER NOT NULL,
    "account_id" UUID NOT NULL,
    "api_key_id" UUID,
    "timestamp" TIMESTAMPTZ(3) NOT NULL,
    "modality" "Modality" NOT NULL,
    "model" TEXT NOT NULL,
    "outcome" "UsageOutcome" NOT NULL,
    "cost_nanocredits" BIGINT NOT NULL DEFAULT 0,
    "input_tokens" BIGINT NOT NULL DEFAULT 0,
    "output_tokens" BIGINT NOT NULL DEFAULT 0,
    "response_time_ms" INTEGER,
    "time_to_first_token_ms" INTEGER,

    CONSTRAINT "usage_event_pkey" PRIMARY KEY ("id")
);

CREATE INDEX "usage_event_written_in_idx" ON "usage_event"("written_in");

-- level: 1 when it is by key, 2 when it is by model, added together: a question reads no finer rows than it needs. What a row is not by is
-- empty.
CREATE TABLE "usage_hour_rollup" (
    "account_id" UUID NOT NULL,
    "level" SMALLINT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "api_key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "modality" "Modality" NOT NULL,
    "outcome" "UsageOutcome" NOT NULL,
    "requests" BIGINT NOT NULL,
    "cost_nanocredits" BIGINT NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "response_times" DECIMAL NOT NULL,
    "first_token_times" DECIMAL NOT NULL,

    CONSTRAINT "usage_hour_rollup_pkey" PRIMARY KEY ("account_id","level","start","api_key_id","model","modality","outcome")
);

CREATE TABLE "usage_day_rollup" (
    "account_id" UUID NOT NULL,
    "level" SMALLINT NOT NULL,
    "start" TIMESTAMPTZ(3) NOT NULL,
    "api_key_id" UUID NOT NULL,
    "model" TEXT NOT NULL,
    "modality" "Modality" NOT NULL,
    "outcome" "UsageOutcome" NOT NULL,
    "requests" BIGINT NOT NULL,
    "cost_nanocredits" BIGINT NOT NULL,
    "input_tokens" BIGINT NOT NULL,
    "output_tokens" BIGINT NOT NULL,
    "response_times" DECIMAL NOT NULL,
    "first_token_times" DECIMAL NOT NULL,

    CONSTRAINT "usage_day_rollup_pkey" PRIMARY KEY ("account_id","level","start","api_key_id","model","modality","outcome")
);

CREATE TABLE "usage_roll_state" (
    "id" SMALLINT NOT NULL DEFAULT 1,
    "watermark" BIGINT NOT NULL,
    "transaction_offset" BIGINT NOT NULL DEFAULT 0,
    "filled_to" UUID,

    CONSTRAINT "usage_roll_state_pkey" PRIMARY KEY ("id")
);

-- Written by hand from here on: what the schema language cannot state.

ALTER TABLE "usage_roll_state" ADD CONSTRAINT "usage_roll_state_single_check" CHECK ("id" = 1);
ALTER TABLE "usage_hour_rollup" ADD CONSTRAINT "usage_hour_rollup_level_check" CHECK ("level" BETWEEN 0 AND 3);
ALTER TABLE "usage_day_rollup" ADD CONSTRAINT "usage_day_rollup_level_check" CHECK ("level" BETWEEN 0 AND 3);

-- The hours and days that are under way are rewritten again and again: room on their pages keeps the new versions there (HOT).
ALTER TABLE "usage_hour_rollup" SET (fillfactor = 70);
ALTER TABLE "usage_day_rollup" SET (fillfactor = 70);

-- watermark: what transactions of a smaller number wrote has been added up. filled_to: rows of no transaction, up to this id; null: all.
INSERT INTO "usage_roll_state" ("id", "watermark", "filled_to")
  SELECT 1, 1, CASE WHEN EXISTS (SELECT FROM "usage_record") THEN '00000000-0000-0000-0000-000000000000'::uuid END;

-- A time as a digit of a number: twelve decimal places for each bucket, so that sums of these numbers are histograms. Bucket 0 is 0 ms;
-- bucket n ends at 1.1 ^ (n - 1) ms, so that no time lies further than 4.8% from the middle of its bucket. Null stays null.
CREATE FUNCTION usage_time_digit(milliseconds integer) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ('1e' || 12 * CASE WHEN milliseconds <= 0 THEN 0 ELSE 1 + ceil(round((ln(milliseconds::float8) / ln(1.1::float8))::numeric, 9))::integer END)::numeric
$$;

CREATE FUNCTION usage_record_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
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

CREATE TRIGGER "usage_record_note_change" BEFORE UPDATE OR DELETE ON "usage_record" FOR EACH ROW EXECUTE FUNCTION usage_record_note_change();

-- The entries of transactions from `low` and below `high`; or, of no transaction, of the rows with ids after `low_id` and up to `high_id`.
CREATE FUNCTION usage_entries(low bigint, high bigint, low_id uuid, high_id uuid) RETURNS TABLE (
  account_id uuid, api_key_id uuid, at timestamptz, modality "Modality", model text, outcome "UsageOutcome", requests integer,
  cost_nanocredits bigint, input_tokens bigint, output_tokens bigint, response_time_ms integer, time_to_first_token_ms integer
)
LANGUAGE plpgsql STABLE
-- By the index of the numbers, or of the ids. The planner must not think otherwise of tables that it has no statistics of.
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
      -- Sorted, so that only the index of the ids will do.
      FROM (SELECT * FROM usage_record r WHERE r.id > low_id AND (high_id IS NULL OR r.id <= high_id) ORDER BY r.id OFFSET 0) u
      WHERE u.written_in = 0;
    RETURN QUERY
      SELECT e.account_id, e.api_key_id, e.timestamp, e.modality, e.model, e.outcome, e.requests, e.cost_nanocredits, e.input_tokens,
        e.output_tokens, e.response_time_ms, e.time_to_first_token_ms
      FROM usage_event e WHERE e.written_in = 0 AND e.record_id > low_id AND (high_id IS NULL OR e.record_id <= high_id);
  END IF;
END
$$;

-- What has not been added up yet, as of the statement that asks.
CREATE FUNCTION usage_unrolled() RETURNS TABLE (
  account_id uuid, api_key_id uuid, at timestamptz, modality "Modality", model text, outcome "UsageOutcome", requests integer,
  cost_nanocredits bigint, input_tokens bigint, output_tokens bigint, response_time_ms integer, time_to_first_token_ms integer
)
LANGUAGE sql STABLE AS $$
  SELECT e.* FROM usage_roll_state s CROSS JOIN LATERAL usage_entries(s.watermark, 9223372036854775807, s.filled_to, NULL) e WHERE s.id = 1
$$;

-- Adds up at most `rows_max` rows, but never less than one transaction's. is_behind: there are more. One process does it at a time, and
-- whoever finds another at it goes away. All of it is one transaction: a process that is killed has done nothing.
CREATE FUNCTION usage_roll(rows_max integer) RETURNS TABLE (rolled integer, is_behind boolean)
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
  -- Nothing is written while there is nothing to do.
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
  -- Whatever transactions of smaller numbers have written is there for the next statement to see.
  high := greatest(low, pg_snapshot_xmin(pg_current_snapshot())::text::bigint + state.transaction_offset);
  SELECT u.written_in INTO beyond FROM usage_record u WHERE u.written_in >= low AND u.written_in < high ORDER BY u.written_in OFFSET rows_max LIMIT 1;
  is_behind := FOUND;
  IF is_behind THEN
    high := greatest(beyond, 1 + (SELECT min(u.written_in) FROM usage_record u WHERE u.written_in >= low));
  END IF;
  -- First those that were there before there were numbers, and only they.
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
      SELECT b.account_id, l.level, date_trunc('day', b.hour, 'UTC'),
        CASE WHEN l.level & 1 = 0 THEN '00000000-0000-0000-0000-000000000000' ELSE b.api_key_id END,
        CASE WHEN l.level & 2 = 0 THEN '' ELSE b.model END, b.modality, b.outcome,
        sum(b.requests), sum(b.cost), sum(b.input_tokens), sum(b.output_tokens), sum(b.response_times), sum(b.first_token_times)
      FROM base b CROSS JOIN generate_series(0, 3) AS l(level)
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

-- Once at the start of each process. A database that was restored from a dump may number transactions from the beginning again: what it
-- writes is from then on numbered above everything that was dumped.
CREATE FUNCTION usage_roll_open() RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  state  usage_roll_state%ROWTYPE;
  gap    bigint;
BEGIN
  SELECT s.* INTO state FROM usage_roll_state s WHERE s.id = 1;
  IF state.watermark <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + state.transaction_offset THEN
    RETURN;
  END IF;
  SELECT s.* INTO state FROM usage_roll_state s WHERE s.id = 1 FOR UPDATE;
  IF state.watermark <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint + state.transaction_offset THEN
    RETURN;
  END IF;
  gap := greatest(state.watermark, (SELECT max(u.written_in) FROM usage_record u), (SELECT max(e.written_in) FROM usage_event e));
  UPDATE usage_roll_state SET transaction_offset = gap WHERE id = 1;
  EXECUTE format('CREATE OR REPLACE FUNCTION usage_transaction() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS '
    '$f$ SELECT pg_current_xact_id()::text::bigint + %s $f$', gap);
END
$$;
