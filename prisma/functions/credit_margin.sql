-- The margin of an app within a charge, rounded down. Null: no app takes one.
CREATE OR REPLACE FUNCTION credit_margin(charged bigint, earners text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
  SELECT trunc(charged * m.percent / (100 + m.percent))::bigint FROM (SELECT (earners::jsonb #>> '{app,percent}')::numeric AS percent) m
$$;
