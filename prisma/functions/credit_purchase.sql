-- Adds credits that were paid for to a bucket, once for each id. Returns false when that purchase was booked before.
CREATE OR REPLACE FUNCTION credit_purchase(purchase_id uuid, to_account uuid, to_bucket "Bucket", amount bigint, purchase_note text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = to_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', to_account USING ERRCODE = 'no_data_found';
  END IF;
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a purchase is more than 0, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (purchase_id, 1, to_account, to_bucket::text::"LedgerBook", 'purchase', amount, purchase_note),
           (purchase_id, 2, to_account, 'cash', 'purchase', -amount, purchase_note)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE account a SET
      crypto_nanocredits = a.crypto_nanocredits + CASE to_bucket WHEN 'crypto' THEN amount ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits + CASE to_bucket WHEN 'pack' THEN amount ELSE 0 END
    WHERE a.id = to_account;
  RETURN true;
END
$$;
