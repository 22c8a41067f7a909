-- Trigger: the ledger is append-only. It is ENABLE ALWAYS, so replayed replication does not pass it either.
CREATE OR REPLACE FUNCTION ledger_entry_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'ledger_entry is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
