/** Form that takes credits back, at most the available ones. */
import { Button, Group, Modal, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation } from "urql";
import { type MeterSource, type OperatorAccountPartsFragment, OperatorWithdrawDocument } from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";
import { BUCKETS, createUuid } from "./grants.js";

type Account = OperatorAccountPartsFragment;

interface TakeBackProps {
  readonly account: Account;
  readonly onChange: () => void;
}

/** Asks for confirmation, then says how many credits were taken. Repeated submits take once. */
export function TakeBack({ account, onChange }: TakeBackProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        Take back credits
      </Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Take back credits" closeOnClickOutside={false}>
        <TakeBackForm account={account} onClose={() => setOpen(false)} onChange={onChange} />
      </Modal>
    </>
  );
}

const COLUMNS = { PACK: "pack", CRYPTO: "crypto", TIER: "tier" } as const;

function TakeBackForm({ account: { id, handle, balance }, onClose, onChange }: TakeBackProps & { readonly onClose: () => void }) {
  const [{ fetching }, withdraw] = useMutation(OperatorWithdrawDocument);
  const form = useServerForm(["credits", "bucket", "note"]);
  // Idempotency key of this form: a repeat after a lost response takes nothing twice.
  const [withdrawalId] = useState(createUuid);
  const [bucket, setBucket] = useState<MeterSource>("PACK");
  const [credits, setCredits] = useState("");
  const [note, setNote] = useState("");
  const [isConfirming, setConfirming] = useState(false);
  const [taken, setTaken] = useState<string | null>(null);
  const inBucket = (source: MeterSource) => formatCredits(balance?.[COLUMNS[source]] ?? "0");
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isConfirming && credits.trim() !== "") {
      setConfirming(true);
      return;
    }
    const answer = await withdraw({
      input: { accountId: id, bucket, credits: credits.trim(), withdrawalId, ...(note !== "" && { note }) },
    });
    if (!form.accept(answer)) {
      setConfirming(false);
      return;
    }
    setTaken(answer.data?.withdrawCredits?.credits ?? null);
    onChange();
  };
  if (taken !== null) {
    return (
      <Stack>
        <Text role="status">
          {formatCredits(taken)} credits were taken back.
          {taken !== credits.trim() && " The bucket had no more available credits."}
        </Text>
        <Group justify="flex-end">
          <Button onClick={onClose}>Done</Button>
        </Group>
      </Stack>
    );
  }
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        {form.rest && <Failure error={form.rest} />}
        {isConfirming ? (
          <Text role="status">
            Take <strong>{credits.trim()} credits</strong> from <bdi>{handle}</bdi>? If the bucket has fewer available, those are taken.
            Credits on hold for running requests are not taken. Requests fail when the balance is used up.
          </Text>
        ) : (
          <>
            <TextInput
              label="Credits"
              description="The balance never falls below zero."
              {...form.text("credits", credits, setCredits)}
              inputMode="decimal"
              autoComplete="off"
              required
              data-autofocus
            />
            <Select
              label="Bucket"
              data={BUCKETS.map(({ value, label }) => ({ value, label: `${label.split(":")[0]} (${inBucket(value)})` }))}
              value={bucket}
              onChange={(value) => setBucket(BUCKETS.find((each) => each.value === value)?.value ?? "PACK")}
              allowDeselect={false}
              error={form.errorOf("bucket")}
            />
            <Textarea
              label="Note"
              description="Stored in the ledger, where the owner sees it, and in the audit log."
              {...form.text("note", note, setNote)}
              autosize
              minRows={2}
              maxRows={5}
            />
          </>
        )}
        <Group justify="flex-end">
          <Button variant="default" onClick={isConfirming ? () => setConfirming(false) : onClose}>
            {isConfirming ? "Back" : "Cancel"}
          </Button>
          <Button type="submit" color="red" loading={fetching}>
            {isConfirming ? "Take back" : "Continue"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
