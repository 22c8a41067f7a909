-- The number of the current transaction, which grows. usage_roll_open replaces this function in a restored database (see there).
CREATE OR REPLACE FUNCTION usage_transaction() RETURNS bigint LANGUAGE sql STABLE PARALLEL SAFE AS $$ SELECT pg_current_xact_id()::text::bigint $$;
