-- Deducts a lease's payments from the account's buckets and the keys' budgets, and releases the freed credits. A negative `freed` holds
-- more. The caller has locked the account.
CREATE OR REPLACE FUNCTION credit_lease_book(
  of_account uuid, of_key uuid, paid_tier bigint, paid_crypto bigint, paid_pack bigint, freed_tier bigint, freed_crypto bigint, freed_pack bigint,
  used timestamptz
) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = of_account FOR NO KEY UPDATE;
  UPDATE account a SET
      tier_nanocredits = a.tier_nanocredits - paid_tier,
      crypto_nanocredits = a.crypto_nanocredits - paid_crypto,
      pack_nanocredits = a.pack_nanocredits - paid_pack,
      tier_held_nanocredits = a.tier_held_nanocredits - paid_tier - freed_tier,
      crypto_held_nanocredits = a.crypto_held_nanocredits - paid_crypto - freed_crypto,
      pack_held_nanocredits = a.pack_held_nanocredits - paid_pack - freed_pack
    WHERE a.id = of_account;
  IF of_key IS NOT NULL THEN
    UPDATE api_key k SET
        spent_nanocredits = k.spent_nanocredits + paid_tier + paid_crypto + paid_pack,
        held_nanocredits = k.held_nanocredits - paid_tier - paid_crypto - paid_pack - freed_tier - freed_crypto - freed_pack,
        last_used_at = CASE WHEN k.id = of_key THEN greatest(k.last_used_at, used) ELSE k.last_used_at END
      WHERE k.id IN (SELECT unnest(c.id || c.ancestor_ids) FROM api_key c WHERE c.id = of_key);
  END IF;
END
$$;
