/** The gateway's engine: how charges get from memory into the database, and the processes that do it. */
import { Badge, SimpleGrid, Table } from "@mantine/core";
import { OperatorEngineDocument, type OperatorEngineQuery } from "../../client/generated/graphql.js";
import { formatBytes, formatCount, greatest } from "../../ui/amounts.js";
import { Copyable } from "../../ui/copy.js";
import { Credits } from "../../ui/credits.js";
import { Figure } from "../../ui/figure.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { WhenCell } from "../../ui/when.js";
import { WideTable } from "../../ui/wide.js";
import { Bars } from "./bars.js";
import { usePolled } from "./polled.js";
import { Refused } from "./refused.js";

type Gateway = NonNullable<OperatorEngineQuery["gateway"]>;

const POLL_MS = 2_000;
/** Window of the average settlement rate. */
const RATE_SECONDS = 10;

export function Engine() {
  const answer = usePolled(OperatorEngineDocument, {}, POLL_MS);
  return (
    <QueryView answer={answer} loading={<Loading rows={6} height={72} />}>
      {({ gateway }) =>
        gateway && (
          <>
            <Summary gateway={gateway} />
            <Settlements series={gateway.settlements} />
            <Refused />
            <Processes processes={gateway.processes} />
          </>
        )
      }
    </QueryView>
  );
}

function Summary({ gateway: { settlements, spool, holds, leases } }: { readonly gateway: Gateway }) {
  const rate = sum(settlements.counts.slice(-RATE_SECONDS)) / RATE_SECONDS;
  const isSpoolEmpty = spool.waiting === 0 && spool.waitingBytes === 0 && spool.refused === 0;
  return (
    <SimpleGrid cols={{ base: 2, md: 4 }} spacing="md">
      <Figure label="Settlements per second" value={<span data-rate={rate}>{rate.toFixed(1)}</span>}>
        average of the last {RATE_SECONDS} seconds
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
      <Bars width={counts.length * BAR} height={HEIGHT} text={text}>
        {counts.map((count, index) => {
          const height = (count / most) * (HEIGHT - 2);
          // Seconds move through the bars, so the key is the position.
          return <rect key={index} x={index * BAR} width={BAR - 1} y={HEIGHT - height} height={height} fill="var(--strong)" />;
        })}
      </Bars>
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

function sum(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}
