-- Trigger: folds a lease that is deleted and releases the rest of it.
CREATE OR REPLACE FUNCTION credit_lease_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM credit_lease_book(OLD.account_id, OLD.api_key_id, OLD.tier_paid_nanocredits, OLD.crypto_paid_nanocredits, OLD.pack_paid_nanocredits,
    OLD.tier_nanocredits, OLD.crypto_nanocredits, OLD.pack_nanocredits, OLD.used_at);
  RETURN NULL;
END
$$;
