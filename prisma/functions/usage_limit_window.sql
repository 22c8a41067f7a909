-- The window of a limit at a time: usage rows after `since` count, and `renews` is when a calendar window ends. Both are null without a window,
-- `renews` also for a rolling one. A month that has no such day begins at its last. Times of usage rows are whole milliseconds.
CREATE OR REPLACE FUNCTION usage_limit_window(
  period "UsageLimitPeriod", minutes integer, is_rolling boolean, time_zone text, at timestamptz, OUT since timestamptz, OUT renews timestamptz
)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  step   interval := CASE WHEN minutes IS NULL THEN ('1 ' || period::text)::interval ELSE make_interval(mins => minutes) END;
  monday timestamptz := timestamp '2001-01-01' AT TIME ZONE time_zone;
  begun  timestamptz;
BEGIN
  IF step IS NULL THEN
    RETURN;
  END IF;
  IF is_rolling THEN
    -- An hour, a day and a week have always the same length.
    since := CASE WHEN period = 'month' THEN (at AT TIME ZONE time_zone - step) AT TIME ZONE time_zone
                  ELSE at - make_interval(secs => extract(epoch FROM step)) END;
    RETURN;
  END IF;
  IF minutes IS NOT NULL THEN
    begun := date_bin(step, at, monday);
    renews := begun + step;
  ELSE
    begun := date_trunc(period::text, at, time_zone);
    renews := CASE WHEN period = 'hour' THEN begun + step ELSE (begun AT TIME ZONE time_zone + step) AT TIME ZONE time_zone END;
  END IF;
  since := begun - interval '1 millisecond';
END
$$;
