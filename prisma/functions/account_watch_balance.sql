-- Trigger: notes when the balance (the sum of the buckets) falls below the account's threshold. It is a trigger on the row, so charges,
-- grants and refills need no code for it. It does not run for accounts without a threshold. A threshold set above the balance is not a fall.
CREATE OR REPLACE FUNCTION account_watch_balance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.low_balance_nanocredits IS NULL
     OR NEW.tier_nanocredits + NEW.crypto_nanocredits + NEW.pack_nanocredits >= NEW.low_balance_nanocredits THEN
    NEW.low_balance_since := NULL;
    NEW.is_low_balance_told := true;
  ELSIF OLD.low_balance_since IS NULL THEN
    NEW.low_balance_since := now();
    NEW.is_low_balance_told := OLD.low_balance_nanocredits IS DISTINCT FROM NEW.low_balance_nanocredits;
  END IF;
  RETURN NEW;
END
$$;
