/** Gateway page: requests, errors, latency and spend of the last hour or day, upstreams, and behind a tab the engine. */
import { Alert, Anchor, Badge, SegmentedControl, SimpleGrid, Table, Text } from "@mantine/core";
import { Link, useSearchParams } from "react-router";
import { useQuery } from "urql";
import {
  OperatorGatewayDocument,
  type OperatorGatewayQuery,
  type OperatorTrafficFragment,
  OperatorUnreliableDocument,
} from "../../client/generated/graphql.js";
import { formatCount, formatPercent } from "../../ui/amounts.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { Figure } from "../../ui/figure.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { When, WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { Engine } from "./engine.js";
import { LOGS, OPERATOR, OperatorPage } from "./parts.js";
import { usePolled } from "./polled.js";
import { TrafficChart } from "./traffic-chart.js";

type Gateway = NonNullable<OperatorGatewayQuery["gateway"]>;

const HOUR_POLL_MS = 2_000;
/** Sums over roll-ups of all accounts. */
const DAY_POLL_MS = 10_000;
const VIEWS = [
  { value: "hour", label: "Last hour" },
  { value: "day", label: "Last 24 hours" },
  { value: "engine", label: "Engine" },
];

export function isDayShown(query: URLSearchParams): boolean {
  return query.get("view") === "day";
}

export function GatewayStatus() {
  const [query, setQuery] = useSearchParams();
  const view = VIEWS.find(({ value }) => value === query.get("view"))?.value ?? "hour";
  return (
    <OperatorPage
      title="Gateway"
      description={
        view === "engine"
          ? "How charges get into the database. Each process keeps its counts in memory; this page adds up the workers of this gateway."
          : view === "day"
            ? "All accounts and all gateways on this database, by the hour (UTC)."
            : "All accounts, live. Answered requests are those of this gateway and its workers since they started."
      }
      actions={
        <SegmentedControl
          value={view}
          onChange={(value) => setQuery(value === "hour" ? {} : { view: value }, { preventScrollReset: true })}
          data={VIEWS}
          aria-label="View"
        />
      }
    >
      {view === "engine" ? <Engine /> : <Overview key={view} isDay={view === "day"} />}
    </OperatorPage>
  );
}

function Overview({ isDay }: { readonly isDay: boolean }) {
  const answer = usePolled(OperatorGatewayDocument, { isDay }, isDay ? DAY_POLL_MS : HOUR_POLL_MS);
  return (
    <QueryView answer={answer} loading={<Loading rows={6} height={72} />}>
      {({ gateway }) => {
        if (!gateway) return null;
        const traffic = gateway.lastHour ?? gateway.lastDay;
        return (
          <>
            <Warnings gateway={gateway} />
            {traffic && <Figures traffic={traffic} processes={gateway.processes} />}
            {traffic && <TrafficChart steps={traffic.steps} isDay={isDay} />}
            <Upstreams models={gateway.models} />
            <Unreliable />
            <Errors errors={gateway.recentErrors} />
          </>
        );
      }}
    </QueryView>
  );
}

/** What an operator must act on, with the way there. */
function Warnings({ gateway: { spool, processes } }: { readonly gateway: Gateway }) {
  const isAway = processes?.some(({ isDatabaseAvailable }) => isDatabaseAvailable === false) ?? false;
  const engine = (
    <Anchor component={Link} to={`${OPERATOR}?view=engine`} inherit underline="always">
      Open engine
    </Anchor>
  );
  return (
    <>
      {isAway && (
        <Alert color="red" variant="light" title="Database unavailable">
          New requests are refused, and charges are kept on disk until the database is back. {engine}
        </Alert>
      )}
      {spool.refused > 0 && (
        <Alert color="red" variant="light" title={`${formatCount(spool.refused, "charge", "charges")} refused by the database`}>
          The answers were delivered but are not charged yet. {engine}
        </Alert>
      )}
      {!isAway && spool.waiting > 0 && (
        <Alert color="orange" variant="light" title={`${formatCount(spool.waiting, "charge", "charges")} not stored yet`}>
          They are kept on disk and retried. {engine}
        </Alert>
      )}
    </>
  );
}

function Figures({ traffic, processes }: { readonly traffic: OperatorTrafficFragment; readonly processes: Gateway["processes"] }) {
  const { requests, clientErrors, serverErrors, cost, responseTimeMs, timeToFirstTokenMs } = traffic;
  const errors = clientErrors + serverErrors;
  const known = (processes ?? []).filter(({ generations }) => generations !== null);
  const running = sum(known.map(({ generations }) => generations ?? 0));
  return (
    <SimpleGrid cols={{ base: 2, sm: 3 }} spacing="md">
      <Figure label="Requests" value={<span data-requests={requests}>{(requests + errors).toLocaleString("en")}</span>}>
        {requests.toLocaleString("en")} answered, {running} in progress ({sum(known.map(({ streams }) => streams ?? 0))} streaming,{" "}
        {formatCount(sum(known.map(({ jobs }) => jobs ?? 0)), "job", "jobs")})
      </Figure>
      <Figure label="Error rate" value={requests + errors === 0 ? "–" : formatPercent(errors / (requests + errors))}>
        <Anchor component={Link} inherit to={`${LOGS}?status=5xx`}>
          {serverErrors.toLocaleString("en")} 5xx
        </Anchor>
        ,{" "}
        <Anchor component={Link} inherit to={`${LOGS}?status=4xx`}>
          {clientErrors.toLocaleString("en")} 4xx
        </Anchor>
      </Figure>
      <Figure label="Spend" value={<Credits value={cost} />}>
        credits charged
      </Figure>
      <Figure label="Latency (p50)" value={toTime(responseTimeMs?.p50)}>
        p95 {toTime(responseTimeMs?.p95)}, p99 {toTime(responseTimeMs?.p99)}
      </Figure>
      <Figure label="Time to first token (p50)" value={toTime(timeToFirstTokenMs?.p50)}>
        p95 {toTime(timeToFirstTokenMs?.p95)}, p99 {toTime(timeToFirstTokenMs?.p99)}
      </Figure>
      <Figure label="Processes" value={(processes ?? []).length}>
        {processes?.every(({ isDatabaseAvailable }) => isDatabaseAvailable !== false) ? "all reach the database" : "database unavailable"}
      </Figure>
    </SimpleGrid>
  );
}

function toTime(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return "–";
  return milliseconds < 1_000 ? `${milliseconds} ms` : `${(milliseconds / 1_000).toFixed(milliseconds < 10_000 ? 2 : 1)} s`;
}

/** Error rates from which an upstream counts as degraded, and as failing. */
const DEGRADED = 0.05;
const FAILING = 0.5;

function State({ errorRate }: { readonly errorRate: number }) {
  const [label, color] =
    errorRate >= FAILING ? ["Failing", "red"] : errorRate >= DEGRADED ? ["Degraded", "orange"] : ["Operational", "green"];
  return (
    <Badge color={color} variant="light" size="sm">
      {label}
    </Badge>
  );
}

function Upstreams({ models }: { readonly models: Gateway["models"] }) {
  return (
    <Card title="Models and upstreams, last hour">
      {models.length === 0 ? (
        <Empty title="No model calls in the last hour" />
      ) : (
        <WideTable
          label="Models and upstreams"
          columns={["Model", "Upstream", "State", { amount: "Succeeded" }, { amount: "Failed" }, { amount: "Error rate" }, "Last failure"]}
        >
          {models.map(({ modelId, upstreamId, answered, failed, errorRate, lastFailedAt, lastFailure }) => (
            <Table.Tr key={modelId}>
              <Table.Td className="any-wrap" miw={140}>
                {modelId}
              </Table.Td>
              <Table.Td className="any-wrap">{upstreamId ?? "Owner’s upstream"}</Table.Td>
              <Table.Td>
                <State errorRate={errorRate} />
              </Table.Td>
              <Table.Td ta="right">{answered}</Table.Td>
              <Table.Td ta="right">{failed}</Table.Td>
              <Table.Td ta="right">{formatPercent(errorRate)}</Table.Td>
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
