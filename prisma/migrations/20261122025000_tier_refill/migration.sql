-- The writers of the tier bucket beside credit_flush and credit_grant. What a tier gives and when its boundaries are is
-- configuration, so both are told: `amount` in nanocredits, and `next_reset`, which is null when the tier refills nothing.
--
-- Outcomes: refilled (or set); not_due (or unchanged): nothing was written; tier_changed: the account has another
-- tier than the caller knew, nothing was written; missing (no such account). available: what the account can hold now.

-- A refill sets the bucket, it never stacks, and it takes nothing away that is held. Once for each boundary: afterwards the
-- account's own is later than `as_of`. An account that has a boundary but no tier that refills it loses what is left there.
CREATE FUNCTION credit_refill(
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
  SELECT * INTO a FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN QUERY SELECT 'missing', 0::bigint, NULL::text, NULL::timestamptz, 0::bigint;
    RETURN;
  END IF;
  change := 0;
  IF a.tier IS DISTINCT FROM of_tier THEN
    outcome := 'tier_changed';
  -- Without a boundary yet, a tier that refills is due at once.
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

-- Gives an account another tier, or none. At once the bucket is filled up to what the new tier gives; what it has more than
-- that stays until the next boundary, which is the new tier's, or the old one's when the new tier refills nothing.
CREATE FUNCTION credit_set_tier(
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
  SELECT * INTO a FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
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

-- Operators look through accounts, newest first.
CREATE INDEX "account_created_at_id_idx" ON "account"("created_at" DESC, "id" DESC);
