-- Locks an account and counts the credits of its grants and purchases that were spent since the last call. Charges only change the buckets: granted
-- credits count as spent before sold ones, those that expire first of all. Every other change of a bucket calls this before.
CREATE OR REPLACE FUNCTION credit_mark(of_account uuid) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  a      account%ROWTYPE;
  g      expiring_grant%ROWTYPE;
  crypto bigint;
  pack   bigint;
  used   bigint;
BEGIN
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  crypto := greatest(0, a.crypto_marked_nanocredits - a.crypto_nanocredits);
  pack := greatest(0, a.pack_marked_nanocredits - a.pack_nanocredits);
  FOR g IN SELECT * FROM expiring_grant e WHERE e.account_id = of_account AND e.left_nanocredits > 0 ORDER BY e.priority, e.expires_at, e.id LOOP
    used := least(g.left_nanocredits, CASE g.bucket WHEN 'crypto' THEN crypto ELSE pack END);
    CONTINUE WHEN used = 0;
    UPDATE expiring_grant e SET left_nanocredits = e.left_nanocredits - used WHERE e.id = g.id;
    IF g.bucket = 'crypto' THEN crypto := crypto - used; ELSE pack := pack - used; END IF;
  END LOOP;
  UPDATE account SET
      crypto_sold_nanocredits = least(a.crypto_sold_nanocredits, a.crypto_nanocredits),
      pack_sold_nanocredits = least(a.pack_sold_nanocredits, a.pack_nanocredits),
      crypto_marked_nanocredits = a.crypto_nanocredits,
      pack_marked_nanocredits = a.pack_nanocredits
    WHERE account.id = of_account
      AND (a.crypto_sold_nanocredits > a.crypto_nanocredits OR a.pack_sold_nanocredits > a.pack_nanocredits
        OR a.crypto_marked_nanocredits <> a.crypto_nanocredits OR a.pack_marked_nanocredits <> a.pack_nanocredits);
END
$$;
