-- AlterEnum
ALTER TYPE "LedgerKind" ADD VALUE 'withdrawal';

-- AlterTable
ALTER TABLE "account" ADD COLUMN     "suspended_at" TIMESTAMPTZ(3),
ADD COLUMN     "suspension_reason" TEXT;

-- CreateTable
CREATE TABLE "audit_entry" (
    "id" UUID NOT NULL,
    "created_at" TIMESTAMPTZ(3) NOT NULL DEFAULT CURRENT_TIMESTAMP,
    "actor_account_id" UUID,
    "actor_api_key_id" UUID,
    "act" TEXT NOT NULL,
    "account_id" UUID,
    "object_id" TEXT,
    "before" JSONB,
    "after" JSONB,
    "reason" TEXT,
    "address" TEXT,
    "request_id" TEXT,

    CONSTRAINT "audit_entry_pkey" PRIMARY KEY ("id")
);

-- CreateTable
CREATE TABLE "password_link" (
    "account_id" UUID NOT NULL,
    "hash" BYTEA NOT NULL,
    "expires_at" TIMESTAMPTZ(3) NOT NULL,
    "used_at" TIMESTAMPTZ(3),

    CONSTRAINT "password_link_pkey" PRIMARY KEY ("account_id")
);

-- CreateIndex
CREATE INDEX "audit_entry_created_at_id_idx" ON "audit_entry"("created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "audit_entry_account_id_created_at_id_idx" ON "audit_entry"("account_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE INDEX "audit_entry_actor_account_id_created_at_id_idx" ON "audit_entry"("actor_account_id", "created_at" DESC, "id" DESC);

-- CreateIndex
CREATE UNIQUE INDEX "password_link_hash_key" ON "password_link"("hash");

-- AddForeignKey
ALTER TABLE "password_link" ADD CONSTRAINT "password_link_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- Trigger: the audit log is append-only. It is ENABLE ALWAYS, so replayed replication does not pass it either.
CREATE OR REPLACE FUNCTION audit_entry_refuse_change() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'audit_entry is append-only: % is refused', TG_OP USING ERRCODE = 'restrict_violation';
END
$$;

-- Takes credits of a bucket back, at most those that no hold and no lease ties up, once for each id. Leases are folded first. Returns the
-- amount that was taken; the amount of the first time when it was taken before.
CREATE OR REPLACE FUNCTION credit_withdraw(withdrawal_id uuid, of_account uuid, from_bucket "Bucket", amount bigint, withdrawal_note text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
  a     account%ROWTYPE;
  taken bigint;
BEGIN
  IF amount <= 0 THEN
    RAISE EXCEPTION 'a withdrawal is more than 0, not %', amount USING ERRCODE = 'check_violation';
  END IF;
  PERFORM 1 FROM account WHERE account.id = of_account FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no account %', of_account USING ERRCODE = 'no_data_found';
  END IF;
  SELECT l.amount_nanocredits INTO taken FROM ledger_entry l WHERE l.transaction_id = withdrawal_id AND l.line = 2;
  IF FOUND THEN
    RETURN taken;
  END IF;
  PERFORM credit_fold(ARRAY[of_account]);
  SELECT * INTO a FROM account WHERE account.id = of_account;
  taken := least(amount, CASE from_bucket
    WHEN 'tier' THEN a.tier_nanocredits - a.tier_held_nanocredits
    WHEN 'crypto' THEN a.crypto_nanocredits - a.crypto_held_nanocredits
    WHEN 'pack' THEN a.pack_nanocredits - a.pack_held_nanocredits
  END);
  IF taken <= 0 THEN
    RETURN 0;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits, note)
    VALUES (withdrawal_id, 1, of_account, from_bucket::text::"LedgerBook", 'withdrawal', -taken, withdrawal_note),
           (withdrawal_id, 2, of_account, 'issued', 'withdrawal', taken, withdrawal_note);
  UPDATE account SET
      tier_nanocredits = a.tier_nanocredits - CASE from_bucket WHEN 'tier' THEN taken ELSE 0 END,
      crypto_nanocredits = a.crypto_nanocredits - CASE from_bucket WHEN 'crypto' THEN taken ELSE 0 END,
      pack_nanocredits = a.pack_nanocredits - CASE from_bucket WHEN 'pack' THEN taken ELSE 0 END
    WHERE account.id = of_account;
  RETURN taken;
END
$$;

CREATE TRIGGER "audit_entry_append_only"
    BEFORE UPDATE OR DELETE OR TRUNCATE ON "audit_entry"
    FOR EACH STATEMENT EXECUTE FUNCTION "audit_entry_refuse_change"();

ALTER TABLE "audit_entry" ENABLE ALWAYS TRIGGER "audit_entry_append_only";
