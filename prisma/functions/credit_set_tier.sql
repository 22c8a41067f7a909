-- Gives an account another tier, or none. The bucket is filled up to the new tier's amount. Credits above that stay until the next
-- boundary: the new tier's, or the old tier's when the new tier refills nothing. Leases are folded first.
CREATE OR REPLACE FUNCTION credit_set_tier(
  change_id   uuid,
  of_account  uuid,
  to_tier     text,
  amount      bigint,
  next_reset  timestamptz
) RETURNS TABLE (outcome text, change bigint, tier text, resets_at timestamptz, available bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  a      record;
BEGIN
  IF amount < 0 THEN
    RAISE EXCEPTION 'a tier gives 0 or more, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'missing', 0::bigint, NULL::text, NULL::timestamptz, 0::bigint;
    RETURN;
  END IF;
  change := 0;
  tier := to_tier;
  resets_at := a.tier_resets_at;
  IF a.tier IS NOT DISTINCT FROM to_tier THEN
    outcome := 'unchanged';
  ELSE
    outcome := 'set';
    IF next_reset IS NOT NULL THEN
      change := greatest(amount - a.tier_nanocredits, 0);
      resets_at := next_reset;
    END IF;
    IF change <> 0 THEN
      INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
        VALUES (change_id, 1, of_account, 'tier', 'refill', change, to_tier), (change_id, 2, of_account, 'issued', 'refill', -change, to_tier);
    END IF;
    UPDATE account SET tier = to_tier, tier_nanocredits = a.tier_nanocredits + change, tier_resets_at = resets_at, updated_at = now()
      WHERE account.id = of_account;
  END IF;
  available := a.tier_nanocredits + change + a.crypto_nanocredits + a.pack_nanocredits
    - a.tier_held_nanocredits - a.crypto_held_nanocredits - a.pack_held_nanocredits;
  RETURN NEXT;
END
$$;
