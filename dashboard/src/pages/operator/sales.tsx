/** Sales of credits by day, with refunds and disputes. */
import { Table, Text } from "@mantine/core";
import { useAnswer } from "../../client/answer.js";
import { OperatorSalesDocument, type OperatorSalesQuery } from "../../client/generated/graphql.js";
import { Credits } from "../../ui/credits.js";
import { DownloadButton } from "../../ui/download.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { Wide } from "../../ui/wide.js";
import { OperatorPage } from "./parts.js";

type SalesDay = NonNullable<OperatorSalesQuery["sales"]>[number];

export function SalesPage() {
  const answer = useAnswer({ query: OperatorSalesDocument });
  return (
    <OperatorPage
      title="Sales"
      description="Credits sold in the last 30 days, by day (UTC) and currency. Amounts are without taxes."
      actions={<DownloadButton path="/account/operator/sales?format=csv">Download CSV</DownloadButton>}
    >
      <Card>
        <QueryView answer={answer} loading={<Loading rows={6} height={28} />}>
          {({ sales }) =>
            !sales || sales.length === 0 ? (
              <Empty title="No sales yet">Purchases, refunds and disputes of the last 30 days appear here.</Empty>
            ) : (
              <SalesTable rows={sales} />
            )
          }
        </QueryView>
      </Card>
    </OperatorPage>
  );
}

function SalesTable({ rows }: { readonly rows: readonly SalesDay[] }) {
  return (
    <Wide label="Sales">
      <Table className="slim" verticalSpacing="xs">
        <Table.Thead>
          <Table.Tr>
            <Table.Th>Day</Table.Th>
            <Table.Th>Processor</Table.Th>
            <Table.Th ta="right">Credits</Table.Th>
            <Table.Th ta="right">Sold</Table.Th>
            <Table.Th ta="right">Refunds</Table.Th>
            <Table.Th ta="right">Failed refunds</Table.Th>
            <Table.Th ta="right">Disputes</Table.Th>
            <Table.Th ta="right">Disputes won</Table.Th>
            <Table.Th ta="right">Written off</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((row) => (
            <Table.Tr key={`${row.day} ${row.processor} ${row.currency}`}>
              <Table.Td style={{ whiteSpace: "nowrap" }}>{row.day}</Table.Td>
              <Table.Td>{row.processor}</Table.Td>
              <Table.Td ta="right">
                <Credits value={row.credits} />
              </Table.Td>
              <Money row={row} count={row.purchases} amount={row.sold} />
              <Money row={row} count={row.refunds} amount={row.refunded} />
              <Money row={row} count={row.refundsFailed} amount={row.returned} />
              <Money row={row} count={row.disputes} amount={row.disputed} />
              <Money row={row} count={row.disputesWon} amount={row.won} />
              <Table.Td ta="right">{Number(row.writtenOff) > 0 && <Credits value={row.writtenOff} />}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Wide>
  );
}

/** Nothing for none. */
function Money({ row: { currency }, count, amount }: { readonly row: SalesDay; readonly count: number; readonly amount: string }) {
  if (count === 0) return <Table.Td />;
  return (
    <Table.Td ta="right">
      {amount} {currency.toUpperCase()}
      <Text size="xs" c="dimmed">
        {count}
      </Text>
    </Table.Td>
  );
}
