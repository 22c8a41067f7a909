/** Current state of the gateway, polled every two seconds. */
import { Badge, Group, SimpleGrid, Table, Text } from "@mantine/core";
import { useQuery } from "urql";
import { OperatorGatewayDocument, type OperatorGatewayQuery, OperatorUnreliableDocument } from "../../client/generated/graphql.js";
import { formatBytes, formatCount, formatPercent, greatest } from "../../ui/amounts.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { Figure } from "../../ui/figure.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { OperatorPage } from "./parts.js";
import { usePolled } from "./polled.js";
import { Refused } from "./refused.js";

type Gateway = NonNullable<OperatorGatewayQuery["gateway"]>;

const POLL_MS = 2_000;
/** Window of the average settlement rate. */
const RATE_SECONDS = 10;

export function GatewayStatus() {
  const answer = usePolled(OperatorGatewayDocument, {}, POLL_MS);
  return (
    <OperatorPage
      title="Gateway"
      description="Current state. Each process keeps its counts in memory. This page adds up the workers of this gateway."
    >
      <QueryView answer={answer} loading={<Loading rows={6} height={72} />}>
        {({ gateway }) =>
          gateway && (
            <>
              <Summary gateway={gateway} />
              <Settlements series={gateway.settlements} />
              <Refused />
              <Processes processes={gateway.processes} />
              <Upstreams models={gateway.models} />
              <Unreliable />
              <Errors errors={gateway.recentErrors} />
            </>
          )
        }
      </QueryView>
    </OperatorPage>
  );
}

function Summary({ gateway: { settlements, spool, holds, leases, processes, models } }: { readonly gateway: Gateway }) {
  const recent = settlements.counts.slice(-RATE_SECONDS);
  const rate = sum(recent) / RATE_SECONDS;
  const known = (processes ?? []).filter(({ generations }) => generations !== null);
  const answered = sum(models.map((model) => model.answered));
  const failed = sum(models.map((model) => model.failed));
  const isSpoolEmpty = spool.waiting === 0 && spool.waitingBytes === 0 && spool.refused === 0;
  return (
    <SimpleGrid cols={{ base: 2, md: 3 }} spacing="md">
      <Figure label="Settlements per second" value={<span data-rate={rate}>{rate.toFixed(1)}</span>}>
        average of the last {RATE_SECONDS} seconds
      </Figure>
      <Figure label="Generations in progress" value={sum(known.map(({ generations }) => generations ?? 0))}>
        {sum(known.map(({ streams }) => streams ?? 0))} streaming, {sum(known.map(({ jobs }) => jobs ?? 0))} jobs
      </Figure>
      <Figure label="Upstream error rate" value={answered + failed === 0 ? "–" : formatPercent(failed / (answered + failed))}>
        {failed} of {answered + failed} calls failed in the last hour
      </Figure>
      <Figure label="Holds" value={<Credits value={holds?.credits} />}>
        {holds ? `${formatCount(holds.count, "hold", "holds")} for generations in progress` : "database unavailable"}
      </Figure>
      <Figure label="Leases" value={<Credits value={leases?.credits} />}>
        {leases ? `${formatCount(leases.count, "lease", "leases")} of all processes` : "database unavailable"}
      </Figure>
      <Figure
        label="Settlement spool"
        value={
          <Badge color={isSpoolEmpty ? "green" : "red"} variant="light" size="lg">
            {isSpoolEmpty ? "Empty" : `${spool.waiting + spool.refused} waiting`}
          </Badge>
        }
      >
        {isSpoolEmpty
          ? "all charges are stored in the database"
          : `${spool.waiting} not stored yet (${formatBytes(spool.waitingBytes)}), ${spool.refused} refused (${formatBytes(spool.refusedBytes)})`}
      </Figure>
    </SimpleGrid>
  );
}

const BAR = 4;
const HEIGHT = 64;

function Settlements({ series: { counts } }: { readonly series: Gateway["settlements"] }) {
  const most = Math.max(1, greatest(counts));
  const total = sum(counts);
  const text = `${total} ${total === 1 ? "settlement" : "settlements"} in the last ${counts.length} seconds, at most ${greatest(counts)} per second.`;
  return (
    <Card title="Settlements by second">
      <svg
        width="100%"
        height={HEIGHT}
        viewBox={`0 0 ${counts.length * BAR} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={text}
        style={{ display: "block", borderBottom: "1px solid var(--line)" }}
      >
        {counts.map((count, index) => {
          const height = (count / most) * (HEIGHT - 2);
          // Seconds move through the bars, so the key is the position.
          return <rect key={index} x={index * BAR} width={BAR - 1} y={HEIGHT - height} height={height} fill="var(--strong)" />;
        })}
      </svg>
      <Group justify="space-between" align="flex-start" wrap="nowrap" mt={4}>
        <Text size="xs" c="dimmed">
          {text}
        </Text>
        <Text size="xs" c="dimmed">
          now
        </Text>
      </Group>
    </Card>
  );
}

function Processes({ processes }: { readonly processes: Gateway["processes"] }) {
  return (
    <Card title="Processes">
      {processes === null || processes.length === 0 ? (
        <Empty title="Database unavailable">The list of processes is stored in the database.</Empty>
      ) : (
        <WideTable
          label="Processes"
          columns={["Process", "Started", "Last seen", "Version", { amount: "Memory" }, { amount: "Generations" }, "Database"]}
        >
          {processes.map((each) => (
            <Table.Tr key={each.processId}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                {each.version === null ? "Another gateway" : each.worker === null ? "This process" : `Worker ${each.worker}`}{" "}
                <Copyable value={each.processId} shown={each.processId.slice(-6)} label="process ID" />
              </Table.Td>
              <WhenCell value={each.startedAt} />
              <WhenCell value={each.heardAt} fallback="Not yet" />
              <Table.Td>{each.version ?? "–"}</Table.Td>
              <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                {each.residentBytes === null ? "–" : formatBytes(each.residentBytes)}
              </Table.Td>
              <Table.Td ta="right">{each.generations ?? "–"}</Table.Td>
              <Table.Td>
                {each.isDatabaseAvailable === null ? (
                  "–"
                ) : (
                  <Badge color={each.isDatabaseAvailable ? "green" : "red"} variant="light" size="sm">
                    {each.isDatabaseAvailable ? "Available" : "Unavailable"}
                  </Badge>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </WideTable>
      )}
    </Card>
  );
}

/** Error rate above which it is shown in red. */
const HIGH_ERROR_RATE = 0.05;

function Upstreams({ models }: { readonly models: Gateway["models"] }) {
  return (
    <Card title="Models and upstreams, last hour">
      {models.length === 0 ? (
        <Empty title="No model calls in the last hour" />
      ) : (
        <WideTable
          label="Models and upstreams"
          columns={["Model", "Upstream", { amount: "Succeeded" }, { amount: "Failed" }, { amount: "Error rate" }, "Last failure"]}
        >
          {models.map(({ modelId, upstreamId, answered, failed, errorRate, lastFailedAt, lastFailure }) => (
            <Table.Tr key={modelId}>
              <Table.Td className="any-wrap" miw={140}>
                {modelId}
              </Table.Td>
              <Table.Td className="any-wrap">{upstreamId ?? "Owner’s upstream"}</Table.Td>
              <Table.Td ta="right">{answered}</Table.Td>
              <Table.Td ta="right">{failed}</Table.Td>
              <Table.Td ta="right">
                {errorRate > HIGH_ERROR_RATE ? (
                  <Badge color="red" variant="light" size="sm">
                    {formatPercent(errorRate)}
                  </Badge>
                ) : (
                  formatPercent(errorRate)
                )}
              </Table.Td>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                {lastFailure === null ? (
                  <span className="soft">None</span>
                ) : (
                  <>
                    {lastFailure}, <When value={lastFailedAt} />
                  </>
                )}
              </Table.Td>
            </Table.Tr>
          ))}
        </WideTable>
      )}
    </Card>
  );
}

/** Community models whose calls by other users failed too often in the last 24 hours. */
function Unreliable() {
  const [{ data }] = useQuery({ query: OperatorUnreliableDocument });
  const { nodes = [], totalCount = 0 } = data?.models ?? {};
  if (nodes.length === 0) return null;
  return (
    <Card title={`Unreliable community models (${totalCount})`}>
      <WideTable
        label="Unreliable community models"
        columns={["Model", "Owner", { amount: "Success rate" }, { amount: "Requests, 24 hours" }]}
      >
        {nodes.map(({ id, restId, ownerHandle, health }) => (
          <Table.Tr key={id}>
            <Table.Td className="any-wrap">{restId}</Table.Td>
            <Table.Td>
              <bdi>{ownerHandle}</bdi>
            </Table.Td>
            <Table.Td ta="right">{health.successRate === null ? "–" : formatPercent(health.successRate)}</Table.Td>
            <Table.Td ta="right">{health.requests}</Table.Td>
          </Table.Tr>
        ))}
      </WideTable>
    </Card>
  );
}

function Errors({ errors }: { readonly errors: Gateway["recentErrors"] }) {
  return (
    <Card title="Recent errors">
      {errors.length === 0 ? (
        <Empty title="No errors since the processes started">
          Client errors are not listed. The log has the details of each error under its request ID.
        </Empty>
      ) : (
        <WideTable label="Recent errors" columns={["Time", "Code", "Route", "Model", "Request ID"]}>
          {errors.map(({ at, code, requestId, method, route, status, operation, modelId }) => (
            <Table.Tr key={`${at} ${requestId}`}>
              <WhenCell value={at} />
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                <Text size="sm" {...(code === "INTERNAL_ERROR" && { c: "red", fw: 600 })}>
                  {code}
                </Text>
              </Table.Td>
              <Table.Td className="any-wrap" miw={160}>
                {method} {route ?? "no route"}
                <Text size="xs" c="dimmed">
                  {status}
                  {operation !== null && `, ${operation}`}
                </Text>
              </Table.Td>
              <Table.Td className="any-wrap">{modelId ?? "–"}</Table.Td>
              <Table.Td>{requestId === null ? "–" : <Copyable value={requestId} label="request ID" />}</Table.Td>
            </Table.Tr>
          ))}
        </WideTable>
      )}
    </Card>
  );
}

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
