-- Books a fee of a payment processor, once for each id; an amount below 0 is a fee that came back. Returns false when the id was booked before.
CREATE OR REPLACE FUNCTION credit_book_fee(booking_id uuid, of_account uuid, amount bigint, booking_note text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  IF amount = 0 THEN
    RAISE EXCEPTION 'a fee is not 0' USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (booking_id, 1, of_account, 'fees', 'fee', -amount, booking_note), (booking_id, 2, of_account, 'cash', 'fee', amount, booking_note)
    ON CONFLICT DO NOTHING;
  RETURN FOUND;
END
$$;
