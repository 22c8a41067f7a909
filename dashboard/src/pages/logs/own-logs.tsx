/** Logs of the account: every request, refused and failed ones included. */
import { Stack } from "@mantine/core";
import { useQuery } from "urql";
import { useAnswer } from "../../client/answer.js";
import { LogEntryDocument, LogKeysDocument, LogsDocument } from "../../client/generated/graphql.js";
import { addressOf } from "../../shell/pages.js";
import { EntryDrawer } from "../../ui/entry-drawer.js";
import { Card, Page } from "../../ui/page.js";
import { QueryView } from "../../ui/states.js";
import { ReceiptCards } from "../usage/receipt.js";
import { ErrorCard, RequestCard } from "./entry.js";
import { FilterBar } from "./filter-bar.js";
import { useLiveLogs } from "./live.js";
import { LogTable, TableSkeleton, useLogAddress } from "./table.js";

const LOGS = addressOf("logs");

export function OwnLogs({ id }: { readonly id: string | null }) {
  const { variables, ...address } = useLogAddress(LOGS);
  const answer = useAnswer({ query: LogsDocument, variables });
  useLiveLogs({}, variables.after == null, answer.refetch);
  const [keys] = useQuery({ query: LogKeysDocument });
  return (
    <Page title="Logs" description="All requests, newest first. Failed requests are kept for a limited time.">
      <FilterBar keys={keys.data?.me?.apiKeys?.nodes ?? []} />
      <Card>
        <QueryView answer={answer} loading={<TableSkeleton />}>
          {({ me }) => <LogTable log={me?.requestLog ?? null} {...address} />}
        </QueryView>
      </Card>
      {id !== null && (
        <EntryDrawer title="Request" onClose={address.close}>
          <Stack>
            <Entry id={id} />
          </Stack>
        </EntryDrawer>
      )}
    </Page>
  );
}

function Entry({ id }: { readonly id: string }) {
  const answer = useAnswer({ query: LogEntryDocument, variables: { id } });
  return (
    <QueryView answer={answer} loading={<TableSkeleton />}>
      {({ me }) =>
        me?.loggedRequest && (
          <>
            <ErrorCard entry={me.loggedRequest} />
            {me.loggedRequest.usageRecord ? (
              <ReceiptCards record={me.loggedRequest.usageRecord} columns={1} />
            ) : (
              <RequestCard entry={me.loggedRequest} />
            )}
          </>
        )
      }
    </QueryView>
  );
}
