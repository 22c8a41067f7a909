/** Credits page: balance, how to get more, and the ledger of the account. */
import { Anchor, Text } from "@mantine/core";
import { useCallback, useState } from "react";
import { Link } from "react-router";
import { useAnswer, useRefetchOnChange } from "../../client/answer.js";
import { CreditsLedgerDocument, CreditsOfferDocument } from "../../client/generated/graphql.js";
import { prefetch } from "../../client/graphql.js";
import { Balances, GetCredits, Refill } from "../../shell/balances.js";
import { useLive } from "../../shell/live.js";
import { addressOf } from "../../shell/pages.js";
import { formatCredits } from "../../ui/credits.js";
import { Card, Page } from "../../ui/page.js";
import { Loading, QueryView } from "../../ui/states.js";
import { AutoTopUpCard } from "./auto-top-up.js";
import { BuyCredits } from "./buy-credits.js";
import { Ledger } from "./ledger-table.js";
import { Invoices, Purchases } from "./purchases.js";

export function start(): void {
  prefetch(CreditsLedgerDocument, {});
}

const usageOf = (from: string, to: string) => `${addressOf("usage")}?${new URLSearchParams({ from, to })}`;

export function Component() {
  // Null on a gateway that sells no credits.
  const [attemptAt, setAttemptAt] = useState(0);
  const onAttempt = useCallback(() => setAttemptAt(Date.now()), []);
  const offer = useAnswer({ query: CreditsOfferDocument }).data?.creditSales;
  return (
    <Page title="Credits" description="Your balance, and where credits came from and went.">
      <Balances />
      {offer && <BuyCredits offer={offer} />}
      {offer?.hasAutoTopUp && <AutoTopUpCard onAttempt={onAttempt} />}
      {offer && <Purchases changedAt={attemptAt} />}
      {offer && <Invoices hasPortal={offer.hasPortal} />}
      <Card title={offer ? "Free credits" : "Get credits"}>
        <Text size="sm">
          <Refill />
        </Text>
        {!offer && <GetCredits hasLedgerLink={false} />}
        <Threshold />
      </Card>
      <History />
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

function History() {
  const [after, setAfter] = useState<string | null>(null);
  const answer = useAnswer({ query: CreditsLedgerDocument, variables: after === null ? {} : { after } });
  const { chargedAt } = useLive();
  useRefetchOnChange(chargedAt, answer.refetch);
  return (
    <Card title="History">
      <QueryView answer={answer} loading={<Loading rows={6} height={28} />}>
        {({ me }) => {
          const { nodes = [], pageInfo } = me?.ledger ?? {};
          return <Ledger lines={nodes} requestsOf={usageOf} after={after} pageInfo={pageInfo} onMove={setAfter} />;
        }}
      </QueryView>
    </Card>
  );
}
