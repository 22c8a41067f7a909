-- Makes a lease or enlarges it up to `target` nanocredits. It takes at most a quarter of the available credits of the account and of the
-- budgets, and leaves the balance above the account's threshold. It takes nothing when the lease would be smaller than `least_size`, or when free spend is
-- capped and the account has credits of its tier. `is_lost`: the process relied on a lease that does not exist; it is not made again.
CREATE OR REPLACE FUNCTION credit_lease_take(
  of_lease uuid, process uuid, of_account uuid, of_key uuid, target bigint, least_size bigint, is_relied_on boolean, is_free_spend_capped boolean
) RETURNS TABLE (tier bigint, crypto bigint, pack bigint, available bigint, key_available bigint, is_lost boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  a     account%ROWTYPE;
  l     credit_lease%ROWTYPE;
  own   bigint;
  size  bigint;
BEGIN
  tier := 0; crypto := 0; pack := 0; available := 0; key_available := NULL;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  SELECT * INTO l FROM credit_lease WHERE credit_lease.id = of_lease FOR UPDATE;
  is_lost := is_relied_on AND NOT FOUND;
  IF is_lost THEN
    RETURN NEXT;
    RETURN;
  END IF;
  IF l.id IS NOT NULL THEN
    UPDATE credit_lease SET tier_paid_nanocredits = 0, crypto_paid_nanocredits = 0, pack_paid_nanocredits = 0 WHERE credit_lease.id = of_lease;
    PERFORM credit_lease_book(of_account, of_key, l.tier_paid_nanocredits, l.crypto_paid_nanocredits, l.pack_paid_nanocredits, 0, 0, 0, l.used_at);
  END IF;
  SELECT * INTO a FROM account WHERE account.id = of_account;
  IF a.id IS NULL THEN
    RETURN NEXT;
    RETURN;
  END IF;
  SELECT c.available, c.key_available INTO available, key_available FROM credit_available(of_account, of_key) c;
  own := coalesce(l.tier_nanocredits + l.crypto_nanocredits + l.pack_nanocredits, 0);
  size := least(target, (available + own) / 4, (key_available + own) / 4,
    CASE WHEN a.low_balance_since IS NULL THEN available + own - a.low_balance_nanocredits END);
  IF is_free_spend_capped AND a.tier_nanocredits > a.tier_held_nanocredits THEN
    size := 0;
  END IF;
  IF size >= least_size AND size > own THEN
    tier := least(a.tier_nanocredits - a.tier_held_nanocredits, size - own);
    crypto := least(a.crypto_nanocredits - a.crypto_held_nanocredits, size - own - tier);
    pack := size - own - tier - crypto;
    INSERT INTO credit_lease AS c (id, process_id, account_id, api_key_id, tier_nanocredits, crypto_nanocredits, pack_nanocredits, used_at)
      VALUES (of_lease, process, of_account, of_key, tier, crypto, pack, now())
      ON CONFLICT ON CONSTRAINT credit_lease_pkey DO UPDATE SET
        tier_nanocredits = c.tier_nanocredits + excluded.tier_nanocredits,
        crypto_nanocredits = c.crypto_nanocredits + excluded.crypto_nanocredits,
        pack_nanocredits = c.pack_nanocredits + excluded.pack_nanocredits,
        sized_at = now();
    PERFORM credit_lease_book(of_account, of_key, 0, 0, 0, -tier, -crypto, -pack, now());
    available := available - (size - own);
    key_available := key_available - (size - own);
  END IF;
  RETURN NEXT;
END
$$;
