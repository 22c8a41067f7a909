-- Books money that came for credits sold on an invoice, or the fee of a payment processor (`fee`): once for each id. Returns the amount; null,
-- without a booking, when the account owes less.
CREATE OR REPLACE FUNCTION credit_book_payment(booking_id uuid, of_account uuid, amount bigint, booking_kind text, booking_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  booked bigint;
  owed   bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a % is more than 0, not %', booking_kind, amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  SELECT abs(l.amount_nanocredits) INTO booked FROM ledger_entry l WHERE l.transaction_id = booking_id AND l.book = 'cash';
  IF FOUND THEN
    RETURN booked;
  END IF;
  IF booking_kind = 'payment' THEN
    SELECT coalesce(-sum(l.amount_nanocredits), 0) INTO owed FROM ledger_entry l WHERE l.account_id = of_account AND l.book = 'receivable';
    IF owed < amount THEN
      RETURN NULL;
    END IF;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (booking_id, 1, of_account, CASE booking_kind WHEN 'payment' THEN 'receivable' ELSE 'fees' END::"LedgerBook", booking_kind::"LedgerKind",
            CASE booking_kind WHEN 'payment' THEN amount ELSE -amount END, booking_note),
           (booking_id, 2, of_account, 'cash', booking_kind::"LedgerKind", CASE booking_kind WHEN 'payment' THEN -amount ELSE amount END, booking_note);
  RETURN amount;
END
$$;
