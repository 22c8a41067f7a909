/** The account's balance by bucket, and a notice when it is low. */
import { Alert, Anchor, Group, SimpleGrid, Skeleton, Text } from "@mantine/core";
import type { ReactNode } from "react";
import { Link } from "react-router";
import type { RefillPeriod } from "../client/generated/graphql.js";
import { Credits, formatCredits, toNanocredits } from "../ui/credits.js";
import { Card } from "../ui/page.js";
import { When } from "../ui/when.js";
import { type Balance, useLive } from "./live.js";
import { addressOf } from "./pages.js";

export function Balances() {
  const { balance, me } = useLive();
  if (!balance) {
    // Of the same height as with figures.
    return (
      <Skeleton visible radius="md" aria-hidden>
        <BalanceCard balance={NO_BALANCE} free="refilled to 1.00 in 23 hours" />
      </Skeleton>
    );
  }
  const refilled = me?.tierRefill ? `refilled to ${formatCredits(me.tierRefill.credits)}` : "refilled";
  const free = me?.nextResetAt ? (
    <>
      {refilled} <When value={me.nextResetAt} />
    </>
  ) : (
    "no refill"
  );
  return <BalanceCard balance={balance} free={free} />;
}

type Buckets = Omit<Balance, "__typename">;
const NO_BALANCE: Buckets = { available: "0", tier: "0", crypto: "0", pack: "0", held: "0" };

function BalanceCard({ balance, free }: { readonly balance: Buckets; readonly free: ReactNode }) {
  return (
    <Card>
      <Group justify="space-between" align="flex-start" gap="xl">
        <div>
          <Text size="sm" c="dimmed">
            Balance
          </Text>
          <div className="amount" role="status" aria-label={`Balance: ${formatCredits(balance.available, 2)} credits`}>
            <Credits value={balance.available} />
          </div>
          <Text size="sm" c="dimmed">
            One credit is worth one US dollar.
          </Text>
        </div>
        <SimpleGrid cols={{ base: 2, sm: 4 }} spacing="xl" component="dl" m={0} flex="1 1 28rem" maw="46rem">
          <Bucket label="Free" value={balance.tier}>
            {free}
          </Bucket>
          <Bucket label="Purchased (crypto)" value={balance.crypto} />
          <Bucket label="Purchased" value={balance.pack} />
          <Bucket label="On hold" value={balance.held}>
            for requests in progress
          </Bucket>
        </SimpleGrid>
      </Group>
    </Card>
  );
}

function Bucket({ label, value, children }: { readonly label: string; readonly value: string; readonly children?: ReactNode }) {
  return (
    <div>
      <Text component="dt" size="sm" c="dimmed">
        {label}
      </Text>
      <Text component="dd" m={0} fw={600}>
        <Credits value={value} />
        {children !== undefined && (
          <Text size="xs" c="dimmed" component="span" display="block" fw={400}>
            {children}
          </Text>
        )}
      </Text>
    </div>
  );
}

const PERIODS: Readonly<Record<RefillPeriod, string>> = { HOUR: "hour", DAY: "day", WEEK: "week", MONTH: "month" };

/** Shown without credits, and below the threshold of the low-balance alert. */
export function BalanceNotice() {
  const { balance, me } = useLive();
  if (!balance || !me) return null;
  const left = toNanocredits(balance.available) - toNanocredits(balance.held);
  const threshold = me.lowBalance?.threshold ?? null;
  const isEmpty = left <= 0n;
  if (!isEmpty && (threshold === null || toNanocredits(balance.available) >= toNanocredits(threshold))) return null;
  return (
    <Alert
      color={isEmpty ? "red" : "orange"}
      variant="light"
      role="status"
      title={isEmpty ? "You have no credits left" : "Your balance is low"}
    >
      <Text size="sm">
        {isEmpty
          ? "Requests to paid models are refused with status 402. "
          : `${formatCredits(balance.available)} credits left, below your alert threshold of ${formatCredits(threshold ?? "0")}. `}
        <Refill />
      </Text>
      <GetCredits />
    </Alert>
  );
}

/** When and to how much the free credits are refilled, as a sentence. */
export function Refill() {
  const { me } = useLive();
  if (!me?.tierRefill) return <>Your account has no free refill.</>;
  const { credits, period } = me.tierRefill;
  return (
    <>
      Free credits are refilled to {formatCredits(credits)} every {PERIODS[period]}
      {me.nextResetAt && (
        <>
          , next <When value={me.nextResetAt} />
        </>
      )}
      .
    </>
  );
}

/** The operator's way to more credits, and the page with the account's ledger. */
export function GetCredits({ hasLedgerLink = true }: { readonly hasLedgerLink?: boolean }) {
  const { topUp } = useLive();
  return (
    <>
      <Text size="sm" mt={4} className="any-wrap">
        {topUp?.text ?? (topUp?.url ? "" : "To get more credits, ask the operator of this gateway.")}
      </Text>
      <Group gap="md" mt={4}>
        {topUp?.url && (
          <Anchor href={topUp.url} target="_blank" rel="noopener noreferrer" size="sm" underline="always" c="inherit" fw={600}>
            Get credits
          </Anchor>
        )}
        {hasLedgerLink && (
          <Anchor component={Link} to={addressOf("credits")} size="sm" underline="always" c="inherit">
            View credits
          </Anchor>
        )}
      </Group>
    </>
  );
}
