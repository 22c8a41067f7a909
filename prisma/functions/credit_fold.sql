-- Takes what leases of these accounts have paid off the accounts' buckets and the keys' budgets. Returns false when there was nothing to do.
CREATE OR REPLACE FUNCTION credit_fold(of_accounts uuid[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
  l  credit_lease%ROWTYPE;
BEGIN
  IF NOT EXISTS (SELECT FROM credit_lease c WHERE c.account_id = ANY (of_accounts)
                   AND c.tier_paid_nanocredits + c.crypto_paid_nanocredits + c.pack_paid_nanocredits > 0) THEN
    RETURN false;
  END IF;
  PERFORM 1 FROM account a WHERE a.id = ANY (of_accounts) ORDER BY a.id FOR NO KEY UPDATE;
  FOR l IN SELECT * FROM credit_lease c WHERE c.account_id = ANY (of_accounts) ORDER BY c.id FOR UPDATE LOOP
    CONTINUE WHEN l.tier_paid_nanocredits + l.crypto_paid_nanocredits + l.pack_paid_nanocredits = 0;
    UPDATE credit_lease c SET tier_paid_nanocredits = 0, crypto_paid_nanocredits = 0, pack_paid_nanocredits = 0 WHERE c.id = l.id;
    PERFORM credit_lease_book(l.account_id, l.api_key_id, l.tier_paid_nanocredits, l.crypto_paid_nanocredits, l.pack_paid_nanocredits, 0, 0, 0, l.used_at);
  END LOOP;
  RETURN true;
END
$$;
