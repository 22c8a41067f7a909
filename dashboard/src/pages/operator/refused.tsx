/** Charges that the database refused. The gateway retries each automatically, and immediately on request. */
import { Anchor, Button, Stack, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { useMutation } from "urql";
import { OperatorRefusedDocument, type OperatorRefusedQuery, OperatorRetryDocument } from "../../client/generated/graphql.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { Card } from "../../ui/page.js";
import { Failure, Loading, QueryView } from "../../ui/states.js";
import { WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { ACCOUNTS } from "./parts.js";
import { usePolled } from "./polled.js";

const POLL_MS = 10_000;

export function Refused() {
  const answer = usePolled(OperatorRefusedDocument, {}, POLL_MS);
  const [retried, retry] = useMutation(OperatorRetryDocument);
  const tryAgain = async (ids?: readonly string[]) => {
    await retry({ input: ids ? { ids } : {} });
    answer.refetch();
  };
  return (
    <QueryView answer={answer} loading={<Loading rows={1} height={60} />}>
      {({ refusedSettlements }) =>
        refusedSettlements && (
          <Card
            title="Refused settlements"
            actions={
              refusedSettlements.count > 0 && (
                <Button size="compact-sm" variant="default" loading={retried.fetching} onClick={() => void tryAgain()}>
                  Retry all
                </Button>
              )
            }
          >
            {retried.error && <Failure error={retried.error} />}
            {refusedSettlements.count === 0 ? (
              <Text c="dimmed" size="sm">
                No refused settlements
              </Text>
            ) : (
              <RefusedTable shown={refusedSettlements} isBusy={retried.fetching} onRetry={(id) => void tryAgain([id])} />
            )}
          </Card>
        )
      }
    </QueryView>
  );
}

function RefusedTable({
  shown: { count, settlements },
  isBusy,
  onRetry,
}: {
  readonly shown: NonNullable<OperatorRefusedQuery["refusedSettlements"]>;
  readonly isBusy: boolean;
  readonly onRetry: (id: string) => void;
}) {
  return (
    <Stack gap="xs">
      <Text size="sm">
        {count} {count === 1 ? "answer was" : "answers were"} delivered but could not be charged. Each is retried until it is stored.
      </Text>
      <WideTable label="Refused settlements" columns={["Refused", "Account", "Model", { amount: "Credits" }, "Reason", ""]}>
        {settlements.map(({ generationId, accountId, account, modelId, cost, refusedAt, reason }) => (
          <Table.Tr key={generationId}>
            <WhenCell value={refusedAt} />
            <Table.Td>
              {account ? (
                <Anchor component={Link} to={`${ACCOUNTS}/${encodeURIComponent(account.id)}`} size="sm">
                  <bdi>{account.handle}</bdi>
                </Anchor>
              ) : (
                <Copyable value={accountId} label="account ID" />
              )}
            </Table.Td>
            <Table.Td className="any-wrap">{modelId}</Table.Td>
            <Table.Td ta="right">
              <Credits value={cost} />
            </Table.Td>
            <Table.Td className="any-wrap" miw={220}>
              {reason}
            </Table.Td>
            <Table.Td>
              <Button size="compact-xs" variant="default" disabled={isBusy} onClick={() => onRetry(generationId)}>
                Try again
              </Button>
            </Table.Td>
          </Table.Tr>
        ))}
      </WideTable>
    </Stack>
  );
}
