-- A time as a digit of a number: twelve decimal places for each bucket, so that sums of these numbers are histograms. Bucket 0 is 0 ms.
-- Bucket n ends at 1.1 ^ (n - 1) ms, so no time is further than 4.8% from the middle of its bucket. Null stays null.
CREATE OR REPLACE FUNCTION usage_time_digit(milliseconds integer) RETURNS numeric LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT ('1e' || 12 * CASE WHEN milliseconds <= 0 THEN 0 ELSE 1 + ceil(round((ln(milliseconds::float8) / ln(1.1::float8))::numeric, 9))::integer END)::numeric
$$;
