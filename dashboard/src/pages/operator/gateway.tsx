/** How the gateway does now, asked again every two seconds. */
import { Badge, Group, SimpleGrid, Table, Text } from "@mantine/core";
import { useQuery } from "urql";
import { OperatorGatewayDocument, type OperatorGatewayQuery, OperatorUnreliableDocument } from "../../client/generated/graphql.js";
import { formatBytes, formatPercent, greatest } from "../../ui/amounts.js";
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
/** Of so many seconds the mean is told. */
const RATE_SECONDS = 10;

export function GatewayStatus() {
  const answer = usePolled(OperatorGatewayDocument, {}, POLL_MS);
  return (
    <OperatorPage
      title="Gateway"
      description="How it does now. Counts are kept in memory by each process; this gateway tells those of all its workers."
    >
      <QueryView answer={answer} loading={<Loading rows={6} height={72} />}>
        {({ gateway }) =>
          gateway && (
            <>
              <Now gateway={gateway} />
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

function Now({ gateway: { settlements, spool, holds, leases, processes, models } }: { readonly gateway: Gateway }) {
  const recent = settlements.counts.slice(-RATE_SECONDS);
  const rate = sum(recent) / RATE_SECONDS;
  const known = (processes ?? []).filter(({ generations }) => generations !== null);
  const answered = sum(models.map((model) => model.answered));
  const failed = sum(models.map((model) => model.failed));
  const isSpoolEmpty = spool.waiting === 0 && spool.waitingBytes === 0 && spool.refused === 0;
  return (
    <SimpleGrid cols={{ base: 2, md: 3 }} spacing="md">
      <Figure label="Settlements a second" value={<span data-rate={rate}>{rate.toFixed(1)}</span>}>
        mean of the last {RATE_SECONDS} seconds
      </Figure>
      <Figure label="Generations under way" value={sum(known.map(({ generations }) => generations ?? 0))}>
        {sum(known.map(({ streams }) => streams ?? 0))} streamed, {sum(known.map(({ jobs }) => jobs ?? 0))} jobs
      </Figure>
      <Figure label="Upstream failures" value={answered + failed === 0 ? "–" : formatPercent(failed / (answered + failed))}>
        {failed} of {answered + failed} calls in the last hour
      </Figure>
      <Figure label="Holds" value={<Credits value={holds?.credits} />}>
        {holds ? `${holds.count}, for generations under way` : "the database cannot be asked"}
      </Figure>
      <Figure label="Leases" value={<Credits value={leases?.credits} />}>
        {leases ? `${leases.count}, of all processes` : "the database cannot be asked"}
      </Figure>
      <Figure
        label="Settlement spool"
        value={
          <Badge color={isSpoolEmpty ? "green" : "red"} variant="light" size="lg">
            {isSpoolEmpty ? "empty" : `${spool.waiting + spool.refused} waiting`}
          </Badge>
        }
      >
        {isSpoolEmpty
          ? "the database has everything"
          : `${spool.waiting} for the database (${formatBytes(spool.waitingBytes)}), ${spool.refused} refused (${formatBytes(spool.refusedBytes)})`}
      </Figure>
    </SimpleGrid>
  );
}

const BAR = 4;
const HEIGHT = 64;

function Settlements({ series: { counts } }: { readonly series: Gateway["settlements"] }) {
  const most = Math.max(1, greatest(counts));
  const total = sum(counts);
  const text = `${total} ${total === 1 ? "settlement" : "settlements"} in the last ${counts.length} seconds, at most ${greatest(counts)} in one.`;
  return (
    <Card title="Settlements, second by second">
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
          // Seconds move along: each bar is its place, not its second.
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
        <Empty title="The database cannot be asked which processes run." />
      ) : (
        <WideTable
          label="Processes"
          columns={["Process", "Started", "Heard", "Version", { amount: "Memory" }, { amount: "Generations" }, "Database"]}
        >
          {processes.map((each) => (
            <Table.Tr key={each.processId}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                {each.version === null ? "another gateway's" : each.worker === null ? "this one" : `worker ${each.worker}`}{" "}
                <Copyable value={each.processId} shown={each.processId.slice(-6)} label="the process's id" />
              </Table.Td>
              <WhenCell value={each.startedAt} />
              <WhenCell value={each.heardAt} fallback="not yet" />
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
                    {each.isDatabaseAvailable ? "answers" : "away"}
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

/** More failures than this are shown as trouble. */
const TROUBLE_SHARE = 0.05;

function Upstreams({ models }: { readonly models: Gateway["models"] }) {
  return (
    <Card title="Models and upstreams, the last hour">
      {models.length === 0 ? (
        <Empty title="No model was called in the last hour." />
      ) : (
        <WideTable
          label="Models and upstreams"
          columns={["Model", "Upstream", { amount: "Answered" }, { amount: "Failed" }, { amount: "Error rate" }, "Last failure"]}
        >
          {models.map(({ modelId, upstreamId, answered, failed, errorRate, lastFailedAt, lastFailure }) => (
            <Table.Tr key={modelId}>
              <Table.Td className="any-wrap" miw={140}>
                {modelId}
              </Table.Td>
              <Table.Td className="any-wrap">{upstreamId ?? "its owner's"}</Table.Td>
              <Table.Td ta="right">{answered}</Table.Td>
              <Table.Td ta="right">{failed}</Table.Td>
              <Table.Td ta="right">
                {errorRate > TROUBLE_SHARE ? (
                  <Badge color="red" variant="light" size="sm">
                    {formatPercent(errorRate)}
                  </Badge>
                ) : (
                  formatPercent(errorRate)
                )}
              </Table.Td>
              <Table.Td style={{ whiteSpace: "nowrap" }}>
                {lastFailure === null ? (
                  <span className="soft">none</span>
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

/** Those of accounts whose calls by others failed too often within a day. */
function Unreliable() {
  const [{ data }] = useQuery({ query: OperatorUnreliableDocument });
  const { nodes = [], totalCount = 0 } = data?.models ?? {};
  if (nodes.length === 0) return null;
  return (
    <Card title={`Unreliable models of accounts (${totalCount})`}>
      <WideTable
        label="Unreliable models of accounts"
        columns={["Model", "Owner", { amount: "Succeeded" }, { amount: "Requests in 24 hours" }]}
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
        <Empty title="No request has failed since the processes started.">
          What a caller did wrong is not among them. The log has the rest of each under the id of its request.
        </Empty>
      ) : (
        <WideTable label="Recent errors" columns={["When", "Code", "Where", "Model", "Request"]}>
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
              <Table.Td>{requestId === null ? "–" : <Copyable value={requestId} label="the id of the request" />}</Table.Td>
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
