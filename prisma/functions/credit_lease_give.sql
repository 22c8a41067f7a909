-- Folds a lease and releases all but the credits of each bucket that its process still needs. Deletes a lease that needs none.
-- Returns no row when there is no such lease.
CREATE OR REPLACE FUNCTION credit_lease_give(of_lease uuid, need_tier bigint, need_crypto bigint, need_pack bigint)
RETURNS TABLE (available bigint, key_available bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  l  credit_lease%ROWTYPE;
BEGIN
  PERFORM 1 FROM account a JOIN credit_lease c ON c.account_id = a.id WHERE c.id = of_lease FOR NO KEY UPDATE OF a;
  SELECT * INTO l FROM credit_lease WHERE credit_lease.id = of_lease FOR UPDATE;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF need_tier + need_crypto + need_pack = 0 THEN
    DELETE FROM credit_lease WHERE credit_lease.id = of_lease;
  ELSE
    UPDATE credit_lease c SET
        tier_nanocredits = least(c.tier_nanocredits, need_tier),
        crypto_nanocredits = least(c.crypto_nanocredits, need_crypto),
        pack_nanocredits = least(c.pack_nanocredits, need_pack),
        tier_paid_nanocredits = 0, crypto_paid_nanocredits = 0, pack_paid_nanocredits = 0,
        sized_at = now()
      WHERE c.id = of_lease;
    PERFORM credit_lease_book(l.account_id, l.api_key_id, l.tier_paid_nanocredits, l.crypto_paid_nanocredits, l.pack_paid_nanocredits,
      greatest(l.tier_nanocredits - need_tier, 0), greatest(l.crypto_nanocredits - need_crypto, 0), greatest(l.pack_nanocredits - need_pack, 0),
      l.used_at);
  END IF;
  RETURN QUERY SELECT c.available, c.key_available FROM credit_available(l.account_id, l.api_key_id) c;
END
$$;
