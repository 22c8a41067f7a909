-- Adds `amount` to a bucket, once for each id, against another book: a grant, or a booking of another kind. Returns false when the id was
-- booked before. The kind is a text, because a migration cannot name a value of an enum that it adds. A purchase adds to the sold part.
CREATE OR REPLACE FUNCTION credit_grant(booking_id uuid, to_account uuid, to_bucket "Bucket", amount bigint, booking_note text, booking_kind text DEFAULT 'grant', against text DEFAULT 'issued', expires timestamptz DEFAULT NULL, spent_in_order integer DEFAULT 0) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = to_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', to_account USING ERRCODE = 'no_data_found';
  END IF;
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a % is more than 0, not %', booking_kind, amount USING ERRCODE = 'check_violation';
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (booking_id, 1, to_account, to_bucket::text::"LedgerBook", booking_kind::"LedgerKind", amount, booking_note),
           (booking_id, 2, to_account, against::"LedgerBook", booking_kind::"LedgerKind", -amount, booking_note)
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  PERFORM credit_mark(to_account);
  UPDATE account a SET
      tier_nanocredits = a.tier_nanocredits + CASE to_bucket WHEN 'tier' THEN amount ELSE 0 END,
      crypto_nanocredits = a.crypto_nanocredits + CASE to_bucket WHEN 'crypto' THEN amount ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits + CASE to_bucket WHEN 'pack' THEN amount ELSE 0 END,
      crypto_marked_nanocredits = a.crypto_marked_nanocredits + CASE to_bucket WHEN 'crypto' THEN amount ELSE 0 END,
      pack_marked_nanocredits = a.pack_marked_nanocredits + CASE to_bucket WHEN 'pack' THEN amount ELSE 0 END,
      crypto_sold_nanocredits = a.crypto_sold_nanocredits + CASE WHEN booking_kind = 'purchase' AND to_bucket = 'crypto' THEN amount ELSE 0 END,
      pack_sold_nanocredits = a.pack_sold_nanocredits + CASE WHEN booking_kind = 'purchase' AND to_bucket = 'pack' THEN amount ELSE 0 END
    WHERE a.id = to_account;
  IF expires IS NOT NULL THEN
    INSERT INTO expiring_grant (id, account_id, bucket, nanocredits, left_nanocredits, priority, expires_at)
      VALUES (booking_id, to_account, to_bucket, amount, amount, spent_in_order, expires);
  END IF;
  RETURN true;
END
$$;
