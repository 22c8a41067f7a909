/** Earnings that accounts are owed, and those that may be farmed. */
import { Anchor, Table, Text } from "@mantine/core";
import { Link } from "react-router";
import { useAnswer } from "../../client/answer.js";
import { OperatorEarningsDocument, type OperatorEarningsQuery } from "../../client/generated/graphql.js";
import { Credits } from "../../ui/credits.js";
import { DownloadButton } from "../../ui/download.js";
import { Card } from "../../ui/page.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { WideTable } from "../../ui/wide.js";
import { ACCOUNTS, OperatorPage } from "./parts.js";

type Owed = NonNullable<OperatorEarningsQuery["owedEarnings"]>[number];
type Flag = NonNullable<OperatorEarningsQuery["earningFlags"]>[number];

const REASONS: Readonly<Record<Flag["reason"], string>> = {
  ONE_PAYER: "Most of the day's earnings came from one payer",
  RISE: "Ten times the week before",
  HIGH_RATE: "Many requests of one payer within a minute",
};

export function EarningsPage() {
  const answer = useAnswer({ query: OperatorEarningsDocument });
  return (
    <OperatorPage
      title="Earnings"
      description="What owners of models and apps are owed. Look at the flagged days before you pay, and take farmed earnings back before they mature."
      actions={<DownloadButton path="/account/operator/earnings?format=csv">Download CSV</DownloadButton>}
    >
      <QueryView
        answer={answer}
        loading={
          <Card>
            <Loading rows={6} height={28} />
          </Card>
        }
      >
        {({ owedEarnings, earningFlags }) => (
          <>
            <Card title="Accounts to pay">
              {owedEarnings?.length ? (
                <OwedTable rows={owedEarnings} />
              ) : (
                <Empty title="Nothing is owed">Shares of charges that others earn of appear here.</Empty>
              )}
            </Card>
            <Card title="Flagged days">
              {earningFlags?.length ? (
                <FlagTable rows={earningFlags} />
              ) : (
                <Empty title="Nothing is unusual">Days of the last week whose earnings may be farmed appear here.</Empty>
              )}
            </Card>
          </>
        )}
      </QueryView>
    </OperatorPage>
  );
}

function OwedTable({ rows }: { readonly rows: readonly Owed[] }) {
  return (
    <WideTable label="Accounts to pay" columns={["Account", { amount: "Available" }, { amount: "Not mature yet" }]}>
      {rows.map(({ accountId, handle, available, pending }) => (
        <Table.Tr key={accountId}>
          <Table.Td>
            <Account id={accountId}>{handle}</Account>
          </Table.Td>
          <Table.Td ta="right">
            <Credits value={available} />
          </Table.Td>
          <Table.Td ta="right">
            <Credits value={pending} />
          </Table.Td>
        </Table.Tr>
      ))}
    </WideTable>
  );
}

function FlagTable({ rows }: { readonly rows: readonly Flag[] }) {
  return (
    <WideTable label="Flagged days" columns={["Day", "Account", "Why", { amount: "Requests" }, { amount: "Earned" }]}>
      {rows.map(({ reason, accountId, handle, payerId, source, date, credits, requests }) => (
        <Table.Tr key={`${reason} ${accountId} ${payerId} ${source} ${date}`}>
          <Table.Td style={{ whiteSpace: "nowrap" }}>{date}</Table.Td>
          <Table.Td>
            <Account id={accountId}>{handle}</Account>
          </Table.Td>
          <Table.Td>
            {REASONS[reason]}
            {(payerId !== null || source !== null) && (
              <Text size="xs" c="dimmed">
                {source !== null && `${source} `}
                {payerId !== null && <Account id={payerId}>Payer</Account>}
              </Text>
            )}
          </Table.Td>
          <Table.Td ta="right">{requests}</Table.Td>
          <Table.Td ta="right">
            <Credits value={credits} />
          </Table.Td>
        </Table.Tr>
      ))}
    </WideTable>
  );
}

function Account({ id, children }: { readonly id: string; readonly children: string }) {
  return (
    <Anchor component={Link} to={`${ACCOUNTS}?${new URLSearchParams({ q: id })}`} inherit>
      {children}
    </Anchor>
  );
}
