/** Usage of an account in the last 30 days, with links to its requests. */
import { Anchor, Group, SimpleGrid, Stack, Table, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { OperatorUsageDocument } from "../../client/generated/graphql.js";
import { formatCount } from "../../ui/amounts.js";
import { Credits } from "../../ui/credits.js";
import { daysAgo } from "../../ui/days.js";
import { Card } from "../../ui/page.js";
import { Loading, QueryView } from "../../ui/states.js";
import { WideTable } from "../../ui/wide.js";
import { logsOf } from "./parts.js";

const DAYS = 30;

export function AccountUsage({ accountId }: { readonly accountId: string }) {
  const answer = useAnswer({ query: OperatorUsageDocument, variables: { id: accountId, from: daysAgo(DAYS).toISOString() } });
  return (
    <Card
      title={`Usage, last ${DAYS} days`}
      actions={
        <Group gap="md">
          <Anchor component={Link} size="sm" to={logsOf(accountId)}>
            All requests
          </Anchor>
          <Anchor component={Link} size="sm" to={logsOf(accountId, { status: "failed" })}>
            Failed requests
          </Anchor>
        </Group>
      }
    >
      <QueryView answer={answer} loading={<Loading rows={3} height={34} />}>
        {({ account }) => {
          const models = account?.usageSummary ?? [];
          const [total] = account?.total ?? [];
          return (
            <Stack gap="sm">
              <SimpleGrid cols={3} spacing="sm">
                <Amount label="Spent">
                  <Credits value={total?.cost ?? "0"} />
                </Amount>
                <Amount label="Requests">{(total?.requests ?? 0).toLocaleString("en")}</Amount>
                <Amount label="Upstream failures">{(total?.failedRequests ?? 0).toLocaleString("en")}</Amount>
              </SimpleGrid>
              {models.length > 0 && (
                <WideTable label="Usage by model" columns={["Model", { amount: "Spent" }, { wide: "Requests" }, { wide: "Failed" }]}>
                  {models.map(({ modelId, requests, failedRequests, cost }) => (
                    <Table.Tr key={modelId}>
                      <Table.Td className="any-wrap">
                        <Anchor component={Link} inherit to={logsOf(accountId, { model: modelId ?? "" })}>
                          {modelId}
                        </Anchor>
                      </Table.Td>
                      <Table.Td ta="right">
                        <Credits value={cost} />
                      </Table.Td>
                      <Table.Td visibleFrom="sm">{requests.toLocaleString("en")}</Table.Td>
                      <Table.Td visibleFrom="sm">{failedRequests.toLocaleString("en")}</Table.Td>
                    </Table.Tr>
                  ))}
                </WideTable>
              )}
              {models.length === 10 && (
                <Text size="xs" c="dimmed">
                  {formatCount(models.length, "model", "models")} with the highest spend
                </Text>
              )}
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}

function Amount({ label, children }: { readonly label: string; readonly children: ReactNode }) {
  return (
    <div>
      <Text size="xs" c="dimmed">
        {label}
      </Text>
      <Text fw={600}>{children}</Text>
    </div>
  );
}
