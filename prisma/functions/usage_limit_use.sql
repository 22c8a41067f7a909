-- Counts an amount of the window after `since` against a limit, beside its usage rows. A calendar window has one row; a rolling one has 60, of whose
-- parts an amount leaves with the last: it counts up to a sixtieth of the window too long.
CREATE OR REPLACE FUNCTION usage_limit_use(of_limit usage_limit, since timestamptz, now timestamptz, used bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  part double precision := greatest(extract(epoch FROM now - since) / 60, 1);
  slot timestamptz := CASE WHEN of_limit.is_rolling THEN to_timestamp(ceil(extract(epoch FROM now) / part) * part) ELSE since END;
BEGIN
  -- A minute, as another process may have a slower clock.
  DELETE FROM usage_limit_use s WHERE s.limit_id = of_limit.id AND s.at < since - interval '1 minute';
  INSERT INTO usage_limit_use AS s (limit_id, at, amount) VALUES (of_limit.id, date_trunc('milliseconds', slot + interval '1 millisecond'), used)
    ON CONFLICT (limit_id, at) DO UPDATE SET amount = s.amount + excluded.amount;
END
$$;
