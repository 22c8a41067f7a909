-- Returns the credits and earnings of a deleted account that no hold and no lease ties up to where credits are issued. It is called again when a hold or
-- a lease is settled. Returns the sum that was taken.
CREATE OR REPLACE FUNCTION credit_forfeit(forfeit_id uuid, of_account uuid) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a  account%ROWTYPE;
  free_tier bigint;
  free_crypto bigint;
  free_pack bigint;
  total bigint;
BEGIN
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT EXISTS (SELECT FROM account_deletion d WHERE d.account_id = of_account) THEN
    RAISE EXCEPTION 'the account % has not been deleted', of_account USING ERRCODE = 'check_violation';
  END IF;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  free_tier := a.tier_nanocredits - a.tier_held_nanocredits;
  free_crypto := a.crypto_nanocredits - a.crypto_held_nanocredits;
  free_pack := a.pack_nanocredits - a.pack_held_nanocredits;
  total := free_tier + free_crypto + free_pack + a.earned_nanocredits;
  IF total = 0 THEN
    RETURN 0;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits)
    SELECT forfeit_id, row_number() OVER (ORDER BY l.place), of_account, l.book, 'forfeit', l.amount
    FROM (VALUES (1, 'tier'::"LedgerBook", -free_tier), (2, 'crypto', -free_crypto), (3, 'pack', -free_pack), (4, 'earnings', -a.earned_nanocredits), (5, 'issued', total)) AS l(place, book, amount)
    WHERE l.amount <> 0;
  UPDATE account SET
      tier_nanocredits = a.tier_nanocredits - free_tier,
      crypto_nanocredits = a.crypto_nanocredits - free_crypto,
      pack_nanocredits = a.pack_nanocredits - free_pack,
      earned_nanocredits = 0
    WHERE account.id = of_account;
  RETURN total;
END
$$;
