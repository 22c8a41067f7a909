-- Takes credits whose money was paid back, once for each id: from the bucket the part that no hold and no lease ties up; the rest, which is spent,
-- is written off. Leases are folded first. Returns the amount that the bucket lost, of the first time when it was booked before.
CREATE OR REPLACE FUNCTION credit_refund(refund_id uuid, of_account uuid, from_bucket "Bucket", amount bigint, refund_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a     account%ROWTYPE;
  taken bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a refund is more than 0, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', of_account USING ERRCODE = 'no_data_found';
  END IF;
  IF EXISTS (SELECT FROM ledger_entry l WHERE l.transaction_id = refund_id) THEN
    SELECT coalesce(-sum(l.amount_nanocredits), 0) INTO taken FROM ledger_entry l
      WHERE l.transaction_id = refund_id AND l.book = from_bucket::text::"LedgerBook";
    RETURN taken;
  END IF;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  taken := greatest(0, least(amount, CASE from_bucket
    WHEN 'tier' THEN 0
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    WHEN 'pack' THEN a.pack_nanocredits - a.pack_held_nanocredits
  END));
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    SELECT refund_id, row_number() OVER (), of_account, part.book, 'refund', part.amount, refund_note
    FROM (VALUES (from_bucket::text::"LedgerBook", -taken), ('write_off', taken - amount), ('cash', amount)) part(book, amount)
    WHERE part.amount <> 0;
  UPDATE account SET
      crypto_nanocredits = a.crypto_nanocredits - CASE from_bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE from_bucket WHEN 'pack' THEN taken ELSE 0 END
    WHERE account.id = of_account;
  RETURN taken;
END
$$;
