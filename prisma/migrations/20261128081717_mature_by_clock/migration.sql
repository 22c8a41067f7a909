-- Adds an account's earnings of days before `before` to its earned credits, none of the last seven days and of today by the clock of the
-- database: shares of a day that has matured would be lost. Returns their sum. A deleted account forfeits them.
CREATE OR REPLACE FUNCTION credit_mature(of_account uuid, before date) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  total bigint;
  until date := least(before, (now() AT TIME ZONE 'UTC')::date - 7);
BEGIN
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  PERFORM 1 FROM earning_daily d WHERE d.account_id = of_account AND d.matured_at IS NULL AND d.day < until
    ORDER BY d.account_id, d.kind, d.source, d.day FOR NO KEY UPDATE;
  WITH matured AS (
    UPDATE earning_daily d SET matured_at = now() WHERE d.account_id = of_account AND d.matured_at IS NULL AND d.day < until RETURNING d.nanocredits
  )
  SELECT coalesce(sum(m.nanocredits), 0) INTO total FROM matured m;
  UPDATE account SET earned_nanocredits = earned_nanocredits + total WHERE account.id = of_account AND total <> 0;
  IF total <> 0 AND EXISTS (SELECT FROM account_deletion x WHERE x.account_id = of_account) THEN
    PERFORM credit_forfeit(gen_random_uuid(), of_account);
  END IF;
  RETURN total;
END
$$;
