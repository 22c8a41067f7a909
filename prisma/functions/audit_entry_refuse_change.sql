-- Trigger: the audit log is append-only. It is ENABLE ALWAYS, so replayed replication does not pass it either.
CREATE OR REPLACE FUNCTION audit_entry_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_entry is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;
