-- The first instant of a local time. Where clocks go back over it, `AT TIME ZONE` returns the second of two.
CREATE OR REPLACE FUNCTION usage_limit_first(local timestamp, time_zone text) RETURNS timestamptz
LANGUAGE plpgsql STABLE AS $$
DECLARE
  last   timestamptz := local AT TIME ZONE time_zone;
  -- Before the change: none goes back by more.
  before timestamptz := last - interval '3 hours';
  early  timestamptz := (local - ((before AT TIME ZONE time_zone) - (before AT TIME ZONE 'UTC'))) AT TIME ZONE 'UTC';
BEGIN
  RETURN CASE WHEN early < last AND early AT TIME ZONE time_zone = local THEN early ELSE last END;
END
$$;
