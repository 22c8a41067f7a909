-- Takes the rest of a due grant out of its bucket, at most the part that no hold and no lease ties up. Returns the amount; the rest stays due.
CREATE OR REPLACE FUNCTION credit_expire(booking_id uuid, of_grant uuid) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a     account%ROWTYPE;
  g     expiring_grant%ROWTYPE;
  taken bigint;
BEGIN
  SELECT * INTO g FROM expiring_grant e WHERE e.id = of_grant;
  PERFORM 1 FROM account WHERE account.id = g.account_id FOR NO KEY UPDATE;
  PERFORM credit_mark(g.account_id);
  SELECT * INTO a FROM account WHERE account.id = g.account_id;
  SELECT * INTO g FROM expiring_grant e WHERE e.id = of_grant;
  taken := least(g.left_nanocredits, CASE g.bucket
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    ELSE a.pack_nanocredits - a.pack_held_nanocredits
  END);
  IF taken <= 0 OR g.expires_at > now() THEN
    RETURN 0;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits)
    VALUES (booking_id, 1, g.account_id, g.bucket::text::"LedgerBook", 'expiry', -taken), (booking_id, 2, g.account_id, 'breakage', 'expiry', taken);
  UPDATE account SET
      crypto_nanocredits = a.crypto_nanocredits - CASE g.bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE g.bucket WHEN 'pack' THEN taken ELSE 0 END,
      crypto_marked_nanocredits = a.crypto_marked_nanocredits - CASE g.bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_marked_nanocredits = a.pack_marked_nanocredits - CASE g.bucket WHEN 'pack' THEN taken ELSE 0 END
    WHERE account.id = g.account_id;
  UPDATE expiring_grant e SET left_nanocredits = e.left_nanocredits - taken, expired_nanocredits = e.expired_nanocredits + taken WHERE e.id = of_grant;
  RETURN taken;
END
$$;
