/** Ledger of an account, for operators. */
import { Stack, Text } from "@mantine/core";
import { useState } from "react";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { OperatorLedgerDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { LedgerTable } from "../credits/ledger-table.js";

/** `changedAt`: when this page last changed the balance; 0 before. */
export function AccountLedger({ accountId, changedAt }: { readonly accountId: string; readonly changedAt: number }) {
  const [after, setAfter] = useState<string | null>(null);
  const answer = useAnswer({ query: OperatorLedgerDocument, variables: { id: accountId, ...(after !== null && { after }) } });
  useRefetchOnChange(changedAt, answer.refetch);
  return (
    <Card title="Ledger">
      <QueryView answer={answer} loading={<Loading rows={3} height={34} />}>
        {({ account }) => {
          const { nodes = [], pageInfo } = account?.ledger ?? {};
          if (nodes.length === 0) return <Empty title="No entries yet">Grants, refills and charges appear here.</Empty>;
          return (
            <Stack gap="sm">
              <LedgerTable lines={nodes} />
              <Text size="xs" c="dimmed">
                Days are in UTC. The charges of a day count at its end.
              </Text>
              <Pager after={after} pageInfo={pageInfo} onMove={setAfter} next="Older entries" />
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}
