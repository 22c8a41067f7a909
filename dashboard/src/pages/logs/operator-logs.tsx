/** Logs of all accounts, or of one, for operators. */
import { Anchor, Group, Stack, Text } from "@mantine/core";
import { Link, useSearchParams } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { OperatorLogEntryDocument, OperatorLogsDocument } from "../../client/generated/graphql.js";
import { EntryDrawer } from "../../ui/entry-drawer.js";
import { Card } from "../../ui/page.js";
import { QueryView } from "../../ui/states.js";
import { ACCOUNTS, OPERATOR, OperatorPage } from "../operator/parts.js";
import { ErrorCard, RequestCard } from "./entry.js";
import { FilterBar } from "./filter-bar.js";
import { useLiveOperatorLogs } from "./live.js";
import { LogTable, TableSkeleton, useLogAddress } from "./table.js";

export function OperatorLogs({ id }: { readonly id: string | null }) {
  const { variables, ...address } = useLogAddress(`${OPERATOR}/logs`);
  const [query, setQuery] = useSearchParams();
  const account = query.get("account");
  const answer = useAnswer({ query: OperatorLogsDocument, variables: { ...variables, accountId: account } });
  useLiveOperatorLogs(account, variables.after == null, answer.refetch);
  return (
    <OperatorPage title="Logs" above={[{ label: "Operator", to: OPERATOR }]}>
      {account !== null && (
        <Group gap="xs">
          <Text size="sm">Requests of one account.</Text>
          <Anchor component={Link} size="sm" to={`${ACCOUNTS}/${encodeURIComponent(account)}`}>
            Open account
          </Anchor>
          <Anchor
            component="button"
            size="sm"
            onClick={() =>
              setQuery((before) => {
                const next = new URLSearchParams(before);
                next.delete("account");
                return next;
              })
            }
          >
            Show all accounts
          </Anchor>
        </Group>
      )}
      <FilterBar keys={null} />
      <Card>
        <QueryView answer={answer} loading={<TableSkeleton />}>
          {({ requestLog }) => <LogTable log={requestLog} {...address} />}
        </QueryView>
      </Card>
      {id !== null && (
        <EntryDrawer title="Request" onClose={address.close}>
          <Stack>
            <Entry id={id} />
          </Stack>
        </EntryDrawer>
      )}
    </OperatorPage>
  );
}

function Entry({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: OperatorLogEntryDocument, variables: { id } });
  return (
    <QueryView answer={answer} loading={<TableSkeleton />}>
      {({ loggedRequest }) =>
        loggedRequest && (
          <>
            <ErrorCard entry={loggedRequest} />
            <RequestCard entry={loggedRequest} account={loggedRequest.accountId} />
          </>
        )
      }
    </QueryView>
  );
}
