-- Sets the tier bucket to the tier's amount, once for each boundary: afterwards the account's boundary is later than `as_of`. Refills do not
-- add up, and held credits are not taken away. An account with a boundary whose tier refills nothing loses the rest of its tier bucket.
-- Leases are folded first, so credits spent in the old period are not deducted from the new one.
CREATE OR REPLACE FUNCTION credit_refill(
  refill_id   uuid,
  of_account  uuid,
  of_tier     text,
  amount      bigint,
  as_of       timestamptz,
  next_reset  timestamptz
) RETURNS TABLE (outcome text, change bigint, tier text, resets_at timestamptz, available bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  a      record;
BEGIN
  IF amount < 0 OR next_reset <= as_of THEN
    RAISE EXCEPTION 'a refill of % until % is not one', amount, next_reset USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'missing', 0::bigint, NULL::text, NULL::timestamptz, 0::bigint;
    RETURN;
  END IF;
  change := 0;
  IF a.tier IS DISTINCT FROM of_tier THEN
    outcome := 'tier_changed';
  -- An account without a boundary is due at once when its tier refills.
  ELSIF NOT coalesce(a.tier_resets_at <= as_of, next_reset IS NOT NULL) THEN
    outcome := 'not_due';
  ELSE
    outcome := 'refilled';
    change := greatest(amount, a.tier_held_nanocredits) - a.tier_nanocredits;
    IF change <> 0 THEN
      INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
        VALUES (refill_id, 1, of_account, 'tier', 'refill', change, of_tier), (refill_id, 2, of_account, 'issued', 'refill', -change, of_tier);
    END IF;
    UPDATE account SET tier_nanocredits = a.tier_nanocredits + change, tier_resets_at = next_reset WHERE account.id = of_account;
    a.tier_resets_at := next_reset;
  END IF;
  tier := a.tier;
  resets_at := a.tier_resets_at;
  available := a.tier_nanocredits + change + a.crypto_nanocredits + a.pack_nanocredits
    - a.tier_held_nanocredits - a.crypto_held_nanocredits - a.pack_held_nanocredits;
  RETURN NEXT;
END
$$;
