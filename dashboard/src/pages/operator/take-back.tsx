/** Form that takes credits back, at most the available ones. */
import { Button, Group, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useMutation } from "urql";
import { type MeterSource, OperatorWithdrawDocument } from "../../client/generated/graphql.js";
import { formatCredits } from "../../ui/credits.js";
import { CreditsDialog, CreditsForm } from "./credits-form.js";
import type { CreditsProps } from "./grants.js";

/** Asks for confirmation, then says how many credits were taken. Repeated submits take once. */
export function TakeBack(props: CreditsProps) {
  return (
    <CreditsDialog title="Take back credits" variant="default">
      {(close) => <TakeBackForm {...props} onClose={close} />}
    </CreditsDialog>
  );
}

const BUCKETS: Readonly<Record<MeterSource, { readonly label: string; readonly column: "pack" | "crypto" | "tier" }>> = {
  PACK: { label: "Purchased", column: "pack" },
  CRYPTO: { label: "Purchased (crypto)", column: "crypto" },
  TIER: { label: "Free", column: "tier" },
};

function TakeBackForm({ account, onClose, onChange }: CreditsProps & { readonly onClose: () => void }) {
  const { id: accountId, handle, balance } = account;
  const [{ fetching }, withdraw] = useMutation(OperatorWithdrawDocument);
  const [taken, setTaken] = useState<{ readonly credits: string; readonly isAll: boolean } | null>(null);
  if (taken !== null) {
    return (
      <Stack>
        <Text role="status">
          {formatCredits(taken.credits)} credits were taken back.
          {!taken.isAll && " The bucket had no more available credits."}
        </Text>
        <Group justify="flex-end">
          <Button onClick={onClose}>Done</Button>
        </Group>
      </Stack>
    );
  }
  return (
    <CreditsForm
      creditsDescription="The balance never falls below zero."
      bucketLabel={(bucket) => `${BUCKETS[bucket].label} (${formatCredits(balance?.[BUCKETS[bucket].column] ?? "0")})`}
      noteDescription="Stored in the ledger, where the owner sees it, and in the audit log."
      question={({ credits }) => (
        <>
          Take <strong>{credits} credits</strong> from <bdi>{handle}</bdi>? If the bucket has fewer available, those are taken. Credits on
          hold for running requests are not taken. Requests fail when the balance is used up.
        </>
      )}
      action={() => "Take back"}
      isDangerous
      isBusy={fetching}
      send={({ id, bucket, credits, note }) =>
        withdraw({ input: { accountId, bucket, credits, withdrawalId: id, ...(note !== null && { note }) } })
      }
      onDone={({ data }, { credits }) => {
        const found = data?.withdrawCredits?.credits;
        if (found !== undefined) setTaken({ credits: found, isAll: found === credits });
        onChange();
      }}
      onClose={onClose}
    />
  );
}
