-- Trigger: refuses rows that would let a deleted account act again. The account's deletion locks its row FOR UPDATE, so a row that is
-- inserted meanwhile is either there before the deletion or refused after it.
CREATE OR REPLACE FUNCTION account_refuse_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = NEW.account_id FOR KEY SHARE;
  IF EXISTS (SELECT FROM account_deletion d WHERE d.account_id = NEW.account_id) THEN
    RAISE EXCEPTION 'the account % has been deleted', NEW.account_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;
