/** Form that grants credits to an account. */
import { Button, Group, Modal, Select, Stack, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation } from "urql";
import { type MeterSource, type OperatorAccountPartsFragment, OperatorGrantDocument } from "../../client/generated/graphql.js";
import { useServerForm } from "../../ui/server-form.js";
import { Failure } from "../../ui/states.js";

type Account = OperatorAccountPartsFragment;

export const BUCKETS: readonly { readonly value: MeterSource; readonly label: string }[] = [
  { value: "PACK", label: "Purchased" },
  { value: "CRYPTO", label: "Purchased (crypto)" },
  { value: "TIER", label: "Free: expires at the next refill" },
];

/** Asks for confirmation before it grants. Repeated submits grant once. */
export function Grant({ account, onChange }: { readonly account: Account; readonly onChange: () => void }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Grant credits</Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Grant credits" closeOnClickOutside={false}>
        <GrantForm account={account} onClose={() => setOpen(false)} onChange={onChange} />
      </Modal>
    </>
  );
}

interface FormProps {
  readonly account: Account;
  readonly onClose: () => void;
  readonly onChange: () => void;
}

function GrantForm({ account: { id, handle }, onClose, onChange }: FormProps) {
  const [{ fetching }, grant] = useMutation(OperatorGrantDocument);
  const form = useServerForm(["credits", "bucket", "note"]);
  // Idempotency key of this form: a repeat after a lost response does not grant twice.
  const [grantId] = useState(createUuid);
  const [bucket, setBucket] = useState<MeterSource>("PACK");
  const [credits, setCredits] = useState("");
  const [note, setNote] = useState("");
  const [isConfirming, setConfirming] = useState(false);
  const label = BUCKETS.find(({ value }) => value === bucket)?.label.toLowerCase();
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (!isConfirming && credits.trim() !== "") {
      setConfirming(true);
      return;
    }
    const answer = await grant({ input: { accountId: id, bucket, credits: credits.trim(), grantId, ...(note !== "" && { note }) } });
    if (!form.accept(answer)) {
      setConfirming(false);
      return;
    }
    onChange();
    onClose();
  };
  return (
    <form onSubmit={submit} noValidate>
      <Stack>
        {form.rest && <Failure error={form.rest} />}
        {isConfirming ? (
          <Text role="status">
            Grant{" "}
            <strong>
              {credits.trim()} credits ({label})
            </strong>{" "}
            to <bdi>{handle}</bdi>?
          </Text>
        ) : (
          <>
            <TextInput
              label="Credits"
              description="One credit is worth one US dollar."
              {...form.text("credits", credits, setCredits)}
              inputMode="decimal"
              autoComplete="off"
              required
              data-autofocus
            />
            <Select
              label="Bucket"
              data={BUCKETS.map(({ value, label: name }) => ({ value, label: name }))}
              value={bucket}
              onChange={(value) => setBucket(BUCKETS.find((each) => each.value === value)?.value ?? "PACK")}
              allowDeselect={false}
              error={form.errorOf("bucket")}
            />
            <Textarea
              label="Note"
              description="Stored in the ledger with the grant."
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
          <Button type="submit" loading={fetching}>
            {isConfirming ? `Grant ${credits.trim()} credits` : "Continue"}
          </Button>
        </Group>
      </Stack>
    </form>
  );
}

/** Replaces `crypto.randomUUID`, which browsers offer on https pages only. */
export function createUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, index) => {
    const value = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte;
    return value.toString(16).padStart(2, "0");
  }).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
