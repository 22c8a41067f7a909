/** Acts of operators on an account. */
import { Anchor } from "@mantine/core";
import { Link } from "react-router";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { OperatorAuditDocument } from "../../client/generated/graphql.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { AuditTable } from "./audit-table.js";
import { AUDIT } from "./parts.js";

const ROWS = 10;

/** `changedAt`: when this page last changed the account; 0 before. */
export function AccountAudit({ accountId, changedAt }: { readonly accountId: string; readonly changedAt: number }) {
  const answer = useAnswer({ query: OperatorAuditDocument, variables: { first: ROWS, filter: { accountIds: [accountId] } } });
  useRefetchOnChange(changedAt, answer.refetch);
  const query = new URLSearchParams({ account: accountId });
  return (
    <Card
      title="Audit log"
      actions={
        <Anchor component={Link} size="sm" to={`${AUDIT}?${query}`}>
          All entries
        </Anchor>
      }
    >
      <QueryView answer={answer} loading={<Loading rows={2} height={34} />}>
        {({ auditLog }) => {
          const entries = auditLog?.nodes ?? [];
          if (entries.length === 0) return <Empty title="No entries yet">Acts of operators on this account appear here.</Empty>;
          return <AuditTable entries={entries} entryAddress={(id) => `${AUDIT}/${encodeURIComponent(id)}?${query}`} isOfOneAccount />;
        }}
      </QueryView>
    </Card>
  );
}
