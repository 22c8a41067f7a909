-- Takes credits of a bucket back, at most those that no hold and no lease ties up, once for each id. Leases are folded first. Returns the
-- amount that was taken; the amount of the first time when it was taken before.
CREATE OR REPLACE FUNCTION credit_withdraw(withdrawal_id uuid, of_account uuid, from_bucket "Bucket", amount bigint, withdrawal_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a     account%ROWTYPE;
  taken bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a withdrawal is more than 0, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', of_account USING ERRCODE = 'no_data_found';
  END IF;
  SELECT l.amount_nanocredits INTO taken FROM ledger_entry l WHERE l.transaction_id = withdrawal_id AND l.line = 2;
  IF FOUND THEN
    RETURN taken;
  END IF;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  taken := least(amount, CASE from_bucket
    WHEN 'tier' THEN a.tier_nanocredits - a.tier_held_nanocredits
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    WHEN 'pack' THEN a.pack_nanocredits - a.pack_held_nanocredits
  END);
  IF taken <= 0 THEN
    RETURN 0;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (withdrawal_id, 1, of_account, from_bucket::text::"LedgerBook", 'withdrawal', -taken, withdrawal_note),
           (withdrawal_id, 2, of_account, 'issued', 'withdrawal', taken, withdrawal_note);
  UPDATE account SET
      tier_nanocredits = a.tier_nanocredits - CASE from_bucket WHEN 'tier' THEN taken ELSE 0 END,
      crypto_nanocredits = a.crypto_nanocredits - CASE from_bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE from_bucket WHEN 'pack' THEN taken ELSE 0 END
    WHERE account.id = of_account;
  RETURN taken;
END
$$;
