-- Runs once at the start of a process. A database that was restored from a dump may number its transactions from the beginning again: new
-- rows are then numbered above all rows of the dump.
CREATE OR REPLACE FUNCTION usage_roll_open() RETURNS void LANGUAGE plpgsql AS $$
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
