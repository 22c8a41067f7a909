-- Takes matured earnings: as credits of the pack bucket (`conversion`), which count as granted, or in money (`payout`). Once for each id.
-- Returns the amount; null, without a booking, when less has matured.
CREATE OR REPLACE FUNCTION credit_use_earnings(booking_id uuid, of_account uuid, amount bigint, booking_kind text, booking_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  booked bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a % is more than 0, not %', booking_kind, amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  SELECT -l.amount_nanocredits INTO booked FROM ledger_entry l WHERE l.transaction_id = booking_id AND l.book = 'earnings';
  IF FOUND THEN
    RETURN booked;
  END IF;
  IF booking_kind = 'conversion' THEN
    PERFORM credit_mark(of_account);
  END IF;
  UPDATE account a SET
      earned_nanocredits = a.earned_nanocredits - amount,
      pack_nanocredits = a.pack_nanocredits + CASE booking_kind WHEN 'conversion' THEN amount ELSE 0 END,
      pack_marked_nanocredits = a.pack_marked_nanocredits + CASE booking_kind WHEN 'conversion' THEN amount ELSE 0 END
    WHERE a.id = of_account AND a.earned_nanocredits >= amount;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (booking_id, 1, of_account, 'earnings', booking_kind::"LedgerKind", -amount, booking_note),
           (booking_id, 2, of_account, CASE booking_kind WHEN 'conversion' THEN 'pack' ELSE 'cash' END::"LedgerBook", booking_kind::"LedgerKind", amount, booking_note);
  RETURN amount;
END
$$;
