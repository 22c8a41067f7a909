-- Books money of a refund or dispute that came back: `covered` reverses the write-off of credits that were spent, and the rest returns to the
-- bucket, `sold` of it as sold credits and the others as granted ones. Once for each id. Returns false when the id was booked before.
CREATE OR REPLACE FUNCTION credit_restore(booking_id uuid, to_account uuid, to_bucket "Bucket", amount bigint, covered bigint, sold bigint, booking_note text) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  returned bigint := amount - covered;
BEGIN
  IF amount <= 0 OR covered NOT BETWEEN 0 AND amount OR sold NOT BETWEEN 0 AND returned THEN
    RAISE EXCEPTION 'of the % that came back, % cannot be covered, and % sold', amount, covered, sold USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account a WHERE a.id = to_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', to_account USING ERRCODE = 'no_data_found';
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    SELECT booking_id, part.line, to_account, part.book, 'refund', part.amount, booking_note
    FROM (VALUES (1, to_bucket::text::"LedgerBook", returned), (2, 'cash', -amount), (3, 'write_off', covered)) part(line, book, amount)
    WHERE part.amount <> 0
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM credit_mark(to_account);
  UPDATE account a SET
      crypto_nanocredits = a.crypto_nanocredits + CASE to_bucket WHEN 'crypto' THEN returned ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits + CASE to_bucket WHEN 'pack' THEN returned ELSE 0 END,
      crypto_marked_nanocredits = a.crypto_marked_nanocredits + CASE to_bucket WHEN 'crypto' THEN returned ELSE 0 END,
      pack_marked_nanocredits = a.pack_marked_nanocredits + CASE to_bucket WHEN 'pack' THEN returned ELSE 0 END,
      crypto_sold_nanocredits = a.crypto_sold_nanocredits + CASE to_bucket WHEN 'crypto' THEN sold ELSE 0 END,
      pack_sold_nanocredits = a.pack_sold_nanocredits + CASE to_bucket WHEN 'pack' THEN sold ELSE 0 END
    WHERE a.id = to_account;
  RETURN true;
END
$$;
