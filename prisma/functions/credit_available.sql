-- What the account and the key can still hold. `key_available` is null for a key without a budget.
CREATE OR REPLACE FUNCTION credit_available(of_account uuid, of_key uuid) RETURNS TABLE (available bigint, key_available bigint)
LANGUAGE sql STABLE AS $$
  SELECT a.tier_nanocredits + a.crypto_nanocredits + a.pack_nanocredits
           - a.tier_held_nanocredits - a.crypto_held_nanocredits - a.pack_held_nanocredits,
         (SELECT min(k.budget_nanocredits - k.spent_nanocredits - k.held_nanocredits) FROM api_key k
          WHERE k.id IN (SELECT unnest(c.id || c.ancestor_ids) FROM api_key c WHERE c.id = of_key))
  FROM account a WHERE a.id = of_account
$$;
