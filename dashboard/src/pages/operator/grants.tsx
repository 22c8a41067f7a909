/** Grants of credits to an account: history and form. */
import { Button, Group, Modal, Select, Stack, Table, Text, Textarea, TextInput } from "@mantine/core";
import { type FormEvent, useState } from "react";
import { useMutation } from "urql";
import { useAnswer } from "../../client/answer.js";
import {
  type MeterSource,
  type OperatorAccountPartsFragment,
  OperatorGrantDocument,
  OperatorGrantsDocument,
} from "../../client/generated/graphql.js";
import { refetchQuery } from "../../client/graphql.js";
import { Credits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { useServerForm } from "../../ui/server-form.js";
import { Empty, Failure, Loading, QueryView } from "../../ui/states.js";
import { WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";

type Account = OperatorAccountPartsFragment;

/** Lists grants other than refills of a tier. */
export function Grants({ accountId }: { readonly accountId: string }) {
  const [after, setAfter] = useState<string | null>(null);
  const answer = useAnswer({ query: OperatorGrantsDocument, variables: { id: accountId, ...(after !== null && { after }) } });
  return (
    <Card title="Credit grants">
      <QueryView answer={answer} loading={<Loading rows={2} height={34} />}>
        {({ account }) => {
          const { nodes = [], pageInfo } = account?.creditGrants ?? {};
          if (nodes.length === 0) return <Empty title="No grants yet">Purchases and grants are listed here.</Empty>;
          return (
            <Stack gap="sm">
              <WideTable label="Credit grants" columns={["Time", { amount: "Credits" }, "Bucket", "Note"]}>
                {nodes.map(({ id: grantId, bucket, credits, note, createdAt }) => (
                  <Table.Tr key={grantId}>
                    <WhenCell value={createdAt} />
                    <Table.Td ta="right">
                      <Credits value={credits} />
                    </Table.Td>
                    <Table.Td style={{ whiteSpace: "nowrap" }}>{BUCKETS.find(({ value }) => value === bucket)?.short}</Table.Td>
                    <Table.Td className="any-wrap" miw={160}>
                      {note === null ? <span className="soft">None</span> : <bdi>{note}</bdi>}
                    </Table.Td>
                  </Table.Tr>
                ))}
              </WideTable>
              <Pager after={after} pageInfo={pageInfo} onMove={setAfter} next="Older grants" />
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

const BUCKETS: readonly { readonly value: MeterSource; readonly label: string; readonly short: string }[] = [
  { value: "PACK", label: "Purchased", short: "Purchased" },
  { value: "CRYPTO", label: "Purchased (crypto)", short: "Purchased (crypto)" },
  { value: "TIER", label: "Free: expires at the next refill", short: "Free" },
];

/** Asks for confirmation before it grants. Repeated submits grant once. */
export function Grant({ account }: { readonly account: Account }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Grant credits</Button>
      <Modal opened={isOpen} onClose={() => setOpen(false)} title="Grant credits" closeOnClickOutside={false}>
        <GrantForm account={account} onClose={() => setOpen(false)} />
      </Modal>
    </>
  );
}

function GrantForm({ account: { id, handle }, onClose }: { readonly account: Account; readonly onClose: () => void }) {
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
    void refetchQuery(OperatorGrantsDocument, { id });
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
            to <bdi>{handle}</bdi>? The grant stays in the ledger and cannot be undone here.
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
function createUuid(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const hex = Array.from(bytes, (byte, index) => {
    const value = index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte;
    return value.toString(16).padStart(2, "0");
  }).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
