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

-- The window of a limit at a time: usage rows after `since` count, and `renews` is when a calendar window ends. Both are null without a window,
-- `renews` also for a rolling one. `since` never goes back as time goes on, as rows that have left a window must not return to it. Times of usage
-- rows are whole milliseconds.
CREATE OR REPLACE FUNCTION usage_limit_window(
  period "UsageLimitPeriod", minutes integer, is_rolling boolean, time_zone text, at timestamptz, OUT since timestamptz, OUT renews timestamptz
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  step   interval := CASE WHEN minutes IS NULL THEN ('1 ' || period::text)::interval ELSE make_interval(mins => minutes) END;
  monday timestamptz := timestamp '2001-01-01' AT TIME ZONE time_zone;
  utc    timestamp := at AT TIME ZONE 'UTC';
  day    timestamp;
  begun  timestamptz;
BEGIN
  IF step IS NULL THEN
    RETURN;
  END IF;
  IF is_rolling THEN
    -- An hour, a day and a week have always the same length. On days that the month before does not have, a month begins on the first.
    since := CASE WHEN period <> 'month' OR period IS NULL THEN at - make_interval(secs => extract(epoch FROM step))
                  WHEN extract(day FROM utc - step) < extract(day FROM utc) THEN date_trunc('month', utc) AT TIME ZONE 'UTC'
                  ELSE (utc - step) AT TIME ZONE 'UTC' END;
    RETURN;
  END IF;
  IF minutes IS NOT NULL THEN
    begun := date_bin(step, at, monday);
    renews := begun + step;
  ELSIF period = 'hour' THEN
    begun := date_trunc('hour', at, time_zone);
    renews := begun + step;
  ELSE
    day := date_trunc(period::text, at AT TIME ZONE time_zone);
    begun := usage_limit_first(day, time_zone);
    renews := usage_limit_first(day + step, time_zone);
  END IF;
  since := begun - interval '1 millisecond';
END
$$;
