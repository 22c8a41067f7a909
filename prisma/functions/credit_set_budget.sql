-- Sets the remaining credits of a key's budget; null removes the budget. The budget is never set below its held credits. Leases are folded first.
-- Returns false when the account has no such key.
CREATE OR REPLACE FUNCTION credit_set_budget(of_account uuid, of_key uuid, remaining bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF remaining < 0 THEN
    RAISE EXCEPTION 'a budget is 0 or more, not %', remaining USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account a WHERE a.id = of_account FOR NO KEY UPDATE;
  PERFORM credit_fold(ARRAY[of_account]);
  UPDATE api_key k SET budget_nanocredits = CASE
      WHEN remaining IS NULL THEN NULL
      ELSE k.spent_nanocredits + greatest(remaining, k.held_nanocredits) END
    WHERE k.id = of_key AND k.account_id = of_account;
  RETURN FOUND;
END
$$;
