-- Takes credits of a bucket against another book, at most those that no hold and no lease ties up, once for each id. Leases are folded first.
-- The rest of the amount is written off if `writes_off`; else the booking is of the taken part alone, and there is none for 0. Returns the
-- amount that was taken; the amount of the first time when it was taken before. A refund is of sold credits, and takes back the
-- earnings of those that are spent.
CREATE OR REPLACE FUNCTION credit_withdraw(booking_id uuid, of_account uuid, from_bucket "Bucket", amount bigint, booking_note text, booking_kind text DEFAULT 'withdrawal', against text DEFAULT 'issued', writes_off boolean DEFAULT false) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a      account%ROWTYPE;
  taken  bigint;
  booked bigint;
  -- Sold credits that the account has spent of those that are refunded.
  spent  bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a % is more than 0, not %', booking_kind, amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', of_account USING ERRCODE = 'no_data_found';
  END IF;
  IF EXISTS (SELECT FROM ledger_entry l WHERE l.transaction_id = booking_id) THEN
    SELECT coalesce(-sum(l.amount_nanocredits), 0) INTO taken FROM ledger_entry l
      WHERE l.transaction_id = booking_id AND l.book = from_bucket::text::"LedgerBook";
    RETURN taken;
  END IF;
  PERFORM credit_mark(of_account);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  taken := greatest(0, least(amount, CASE from_bucket
    WHEN 'tier' THEN a.tier_nanocredits - a.tier_held_nanocredits
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    WHEN 'pack' THEN a.pack_nanocredits - a.pack_held_nanocredits
  END));
  booked := CASE WHEN writes_off THEN amount ELSE taken END;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    SELECT booking_id, part.line, of_account, part.book, booking_kind::"LedgerKind", part.amount, booking_note
    FROM (VALUES (1, from_bucket::text::"LedgerBook", -taken), (2, against::"LedgerBook", booked), (3, 'write_off', taken - booked)) part(line, book, amount)
    WHERE part.amount <> 0;
  UPDATE account SET
      tier_nanocredits = a.tier_nanocredits - CASE from_bucket WHEN 'tier' THEN taken ELSE 0 END,
      crypto_nanocredits = a.crypto_nanocredits - CASE from_bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE from_bucket WHEN 'pack' THEN taken ELSE 0 END,
      crypto_marked_nanocredits = a.crypto_marked_nanocredits - CASE WHEN booking_kind = 'refund' AND from_bucket = 'crypto' THEN least(taken, a.crypto_sold_nanocredits) ELSE 0 END,
      pack_marked_nanocredits = a.pack_marked_nanocredits - CASE WHEN booking_kind = 'refund' AND from_bucket = 'pack' THEN least(taken, a.pack_sold_nanocredits) ELSE 0 END,
      crypto_sold_nanocredits = greatest(0, a.crypto_sold_nanocredits - CASE WHEN booking_kind = 'refund' AND from_bucket = 'crypto' THEN taken ELSE 0 END),
      pack_sold_nanocredits = greatest(0, a.pack_sold_nanocredits - CASE WHEN booking_kind = 'refund' AND from_bucket = 'pack' THEN taken ELSE 0 END)
    WHERE account.id = of_account AND taken > 0;
  -- Granted credits in the bucket do not stand in for sold ones that were spent.
  spent := booked - least(taken, CASE from_bucket WHEN 'crypto' THEN a.crypto_sold_nanocredits ELSE a.pack_sold_nanocredits END);
  IF booking_kind = 'refund' AND spent > 0 THEN
    PERFORM credit_reverse_earnings(md5(booking_id::text || 'clawback')::uuid, of_account, NULL, spent, booking_note);
  END IF;
  RETURN taken;
END
$$;
