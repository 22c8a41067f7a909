/** Ledger of an account, for operators. */
import { useState } from "react";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { OperatorLedgerDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { Loading, QueryView } from "../../ui/states.js";
import { Ledger } from "../credits/ledger-table.js";
import { logsOf } from "./parts.js";

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
          return (
            <Ledger
              requestsOf={(from) => logsOf(accountId, { day: from.slice(0, 10) })}
              lines={nodes}
              after={after}
              pageInfo={pageInfo}
              onMove={setAfter}
            />
          );
        }}
      </QueryView>
    </Card>
  );
}
