/** Credits page: balance, how to get more, and the ledger of the account. */
import { Anchor, Stack, Text } from "@mantine/core";
import { useState } from "react";
import { Link } from "react-router";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { CreditsLedgerDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { Balances, GetCredits, Refill } from "../../shell/balances.js";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { formatCredits } from "../../ui/credits.js";
import { Card, Page } from "../../ui/page.js";
import { Pager } from "../../ui/pager.js";
import { Empty, Loading, QueryView } from "../../ui/states.js";
import { LedgerTable } from "./ledger-table.js";

export function start(): void {
  prefetch(CreditsLedgerDocument, {});
}

const usageOf = (from: string, to: string) => `${addressOf("usage")}?${new URLSearchParams({ from, to })}`;

export function Component() {
  return (
    <Page title="Credits" description="Your balance, and where credits came from and went.">
      <Balances />
      <Card title="Get credits">
        <Text size="sm">
          <Refill />
        </Text>
        <GetCredits hasLedgerLink={false} />
        <Threshold />
      </Card>
      <Ledger />
    </Page>
  );
}

function Threshold() {
  const { me } = useLive();
  const threshold = me?.lowBalance?.threshold ?? null;
  return (
    <Text size="sm" c="dimmed" mt="xs">
      {threshold === null ? "No low-balance alert is set." : `You are alerted when the balance falls below ${formatCredits(threshold)}.`}{" "}
      <Anchor component={Link} to={addressOf("account")} inherit underline="always">
        {threshold === null ? "Set an alert" : "Change the alert"}
      </Anchor>
    </Text>
  );
}

function Ledger() {
  const [after, setAfter] = useState<string | null>(null);
  const answer = useAnswer({ query: CreditsLedgerDocument, variables: after === null ? {} : { after } });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, answer.refetch);
  return (
    <Card title="History">
      <QueryView answer={answer} loading={<Loading rows={6} height={28} />}>
        {({ me }) => {
          const { nodes = [], pageInfo } = me?.ledger ?? {};
          return nodes.length === 0 ? (
            <Empty title="No entries yet">Grants, refills and charges appear here.</Empty>
          ) : (
            <Stack gap="sm">
              <LedgerTable lines={nodes} requestsOf={usageOf} />
              <Text size="xs" c="dimmed">
                Days are in UTC. The charges of a day count at its end.
              </Text>
              <Pager after={after} pageInfo={pageInfo} onMove={setAfter} next="Older entries" />
            </Stack>
          );
        }}
      </QueryView>
    </Card>
  );
}
