-- AlterEnum
ALTER TYPE "LedgerKind" ADD VALUE 'forfeit';

-- CreateTable
CREATE TABLE "account_deletion" (
    "account_id" UUID NOT NULL,
    "deleted_at" TIMESTAMPTZ(3) NOT NULL,
    "finished_at" TIMESTAMPTZ(3),

    CONSTRAINT "account_deletion_pkey" PRIMARY KEY ("account_id")
);

-- CreateIndex
CREATE INDEX "account_deletion_finished_at_idx" ON "account_deletion"("finished_at");

-- AddForeignKey
ALTER TABLE "account_deletion" ADD CONSTRAINT "account_deletion_account_id_fkey" FOREIGN KEY ("account_id") REFERENCES "account"("id") ON DELETE CASCADE ON UPDATE CASCADE;

-- What is not a charge, by account: few entries, so that charges pay nothing for the index. A charge has its usage row's id.
CREATE INDEX "ledger_entry_account_id_created_at_idx" ON "ledger_entry"("account_id", "created_at" DESC, "transaction_id" DESC) WHERE "kind" <> 'charge';

-- A deleted account is given nothing by which it could act again. Whoever deletes it locks its row FOR UPDATE: what is being inserted at that
-- moment is there before it is deleted, and whatever comes later finds the deletion.
CREATE FUNCTION account_refuse_deleted() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM 1 FROM account a WHERE a.id = NEW.account_id FOR KEY SHARE;
  IF EXISTS (SELECT FROM account_deletion d WHERE d.account_id = NEW.account_id) THEN
    RAISE EXCEPTION 'the account % has been deleted', NEW.account_id USING ERRCODE = 'restrict_violation';
  END IF;
  RETURN NEW;
END
$$;

CREATE TRIGGER "api_key_refuse_deleted" BEFORE INSERT ON "api_key" FOR EACH ROW EXECUTE FUNCTION account_refuse_deleted();
CREATE TRIGGER "session_refuse_deleted" BEFORE INSERT ON "session" FOR EACH ROW EXECUTE FUNCTION account_refuse_deleted();
CREATE TRIGGER "sign_in_method_refuse_deleted" BEFORE INSERT ON "sign_in_method" FOR EACH ROW EXECUTE FUNCTION account_refuse_deleted();
CREATE TRIGGER "webhook_endpoint_refuse_deleted" BEFORE INSERT ON "webhook_endpoint" FOR EACH ROW EXECUTE FUNCTION account_refuse_deleted();
CREATE TRIGGER "community_model_refuse_deleted" BEFORE INSERT ON "community_model" FOR EACH ROW EXECUTE FUNCTION account_refuse_deleted();

-- Takes from a deleted account what nothing holds of its buckets, back to where credits are issued. What holds and leases have stays until
-- they are settled: it is called again then. The sum that was taken now.
CREATE FUNCTION credit_forfeit(forfeit_id uuid, of_account uuid) RETURNS bigint
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
  total := free_tier + free_crypto + free_pack;
  IF total = 0 THEN
    RETURN 0;
  END IF;
  INSERT INTO ledger_entry (transaction_id, line, account_id, book, kind, amount_nanocredits)
    SELECT forfeit_id, row_number() OVER (ORDER BY l.place), of_account, l.book, 'forfeit', l.amount
    FROM (VALUES (1, 'tier'::"LedgerBook", -free_tier), (2, 'crypto', -free_crypto), (3, 'pack', -free_pack), (4, 'issued', total)) AS l(place, book, amount)
    WHERE l.amount <> 0;
  UPDATE account SET
      tier_nanocredits = a.tier_nanocredits - free_tier,
      crypto_nanocredits = a.crypto_nanocredits - free_crypto,
      pack_nanocredits = a.pack_nanocredits - free_pack
    WHERE account.id = of_account;
  RETURN total;
END
$$;

-- As it was, and a row that only loses its key's name stays as it is to the roll-ups.
CREATE OR REPLACE FUNCTION usage_record_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' AND NEW.api_key_name IS NULL THEN
    OLD.api_key_name := NULL;
    IF OLD IS NOT DISTINCT FROM NEW THEN
      RETURN NEW;
    END IF;
  END IF;
  INSERT INTO usage_event (record_id, written_in, requests, account_id, api_key_id, timestamp, modality, model, outcome,
      cost_nanocredits, input_tokens, output_tokens, response_time_ms, time_to_first_token_ms)
    SELECT OLD.id, note.written_in, note.requests, OLD.account_id, OLD.api_key_id, OLD.timestamp, OLD.modality, OLD.model,
      OLD.status::text::"UsageOutcome", OLD.cost_nanocredits,
      OLD.input_text_tokens::bigint + OLD.input_cached_tokens + OLD.input_cache_write_tokens + OLD.input_audio_tokens + OLD.input_image_tokens,
      OLD.output_text_tokens::bigint + OLD.output_reasoning_tokens + OLD.output_audio_tokens + OLD.output_image_tokens,
      OLD.response_time_ms, OLD.time_to_first_token_ms
    FROM (VALUES (OLD.written_in, 1), (usage_transaction(), -1)) AS note(written_in, requests);
  IF TG_OP = 'DELETE' THEN
    RETURN OLD;
  END IF;
  NEW.written_in := usage_transaction();
  RETURN NEW;
END
$$;
